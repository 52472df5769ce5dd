import * as assert from 'uvu/assert';
import {
  type INDAdapter,
  NdError,
  type NdMemoryHandle,
  type NdResult,
  type SocketAddress,
  Status,
} from '../../nd/index.js';
import type { Endpoint } from '../../nd/v1/endpoint.js';
import { Provider } from '../../nd/v1/provider.js';
import { QpState } from '../../winverbs/index.js';
import { type FakeCq, type FakeDevice, type FakePd, FakeProvider, type FakeQp } from './fake-winverbs.js';

/** A provider of either version on in-memory WinVerbs, on a host with three addresses. */
export function fakeProvider<P>(
  Provider: new (open: () => FakeProvider, addresses: () => SocketAddress[]) => P,
): { wv: FakeProvider; nd: P } {
  const wv = new FakeProvider();
  const nd = new Provider(
    () => {
      wv.references += 1;
      return wv;
    },
    () => [
      { family: 4, address: '10.0.0.1', port: 0 },
      { family: 4, address: '192.168.7.7', port: 0 },
      { family: 6, address: 'fd00::1', port: 0 },
    ],
  );
  wv.references -= 1;
  return { wv, nd };
}

/** An adapter on in-memory WinVerbs. */
export function openFake(): {
  wv: FakeProvider;
  nd: Provider;
  adapter: INDAdapter;
  device: FakeDevice;
  pd: FakePd;
} {
  const { wv, nd } = fakeProvider(Provider);
  const adapter = nd.openAdapter('10.0.0.1');
  const device = wv.devices[0]!;
  return { wv, nd, adapter, device, pd: device.pds[0]! };
}

/** Registered memory of `length` bytes at address 0x10000. */
export function registered(adapter: INDAdapter, pd: FakePd, length = 4096): NdMemoryHandle {
  const bytes = new Uint8Array(length);
  const request = adapter.registerMemory(bytes);
  pd.request('register').succeed({ lkey: 0x77, rkey: 0, address: 0x10000, length, bytes });
  return request.getResult();
}

/** An endpoint, by default in the connected state of WinVerbs. */
export function endpointOf(
  adapter: INDAdapter,
  pd: FakePd,
  options: { connected?: boolean; inbound?: number; outbound?: number } = {},
): {
  endpoint: Endpoint;
  qp: FakeQp;
  inCq: FakeCq;
  outCq: FakeCq;
  inbound: ReturnType<INDAdapter['createCompletionQueue']>;
  outbound: ReturnType<INDAdapter['createCompletionQueue']>;
} {
  const inbound = adapter.createCompletionQueue(100);
  const outbound = adapter.createCompletionQueue(100);
  const endpoint = adapter.createConnector().createEndpoint({
    inboundCompletionQueue: inbound,
    outboundCompletionQueue: outbound,
    inboundEntries: options.inbound ?? 4,
    outboundEntries: options.outbound ?? 4,
  }) as Endpoint;
  const qp = pd.qps.at(-1)!;
  if (options.connected !== false) qp.state = QpState.RTS;
  const { receiveCq, sendCq } = qp.create;
  return { endpoint, qp, inCq: receiveCq as FakeCq, outCq: sendCq as FakeCq, inbound, outbound };
}

export function result(context?: unknown): NdResult {
  return { status: Status.PENDING, bytesTransferred: 12345, context };
}

/** The status that a call throws; SUCCESS if it does not throw. */
export function statusOf(call: () => unknown): number {
  try {
    call();
    return Status.SUCCESS;
  } catch (error) {
    assert.instance(error, NdError, String(error));
    return (error as NdError).status;
  }
}

/** Asserts that a call ends in a status. */
export function endsIn(call: () => unknown, status: number, what?: string): void {
  assert.is(statusOf(call), status, what);
}
