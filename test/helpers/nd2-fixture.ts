import type { IND2MemoryRegion } from '../../nd/index.js';
import type { Adapter } from '../../nd/v2/adapter.js';
import { Provider } from '../../nd/v2/provider.js';
import type { QueuePair } from '../../nd/v2/queue-pair.js';
import { QpState } from '../../winverbs/index.js';
import type { FakeDevice, FakePd, FakeProvider, FakeQp } from './fake-winverbs.js';
import { fakeProvider } from './nd-fixture.js';

/** A v2 adapter on in-memory WinVerbs. */
export function openFake2(): {
  wv: FakeProvider;
  nd: Provider;
  adapter: Adapter;
  device: FakeDevice;
  pd: FakePd;
} {
  const { wv, nd } = fakeProvider(Provider);
  const adapter = nd.openAdapter(nd.resolveAddress('10.0.0.1')) as Adapter;
  const device = wv.devices[0]!;
  return { wv, nd, adapter, device, pd: device.pds[0]! };
}

/** A region with `length` bytes registered at address 0x10000. */
export function registered2(adapter: Adapter, pd: FakePd, flags: number, length = 4096): IND2MemoryRegion {
  const region = adapter.createMemoryRegion();
  const bytes = new Uint8Array(length);
  const request = region.register(bytes, flags);
  pd.request('register').succeed({ lkey: 0x77, rkey: 0x88, address: 0x10000, length, bytes });
  request.getResult();
  return region;
}

/** A queue pair, by default in the connected state of WinVerbs. */
export function queuePairOf(
  adapter: Adapter,
  pd: FakePd,
  options: { connected?: boolean; depth?: number; context?: unknown } = {},
) {
  const receives = adapter.createCompletionQueue(100);
  const initiators = adapter.createCompletionQueue(100);
  const queuePair = adapter.createQueuePair({
    receiveCompletionQueue: receives,
    initiatorCompletionQueue: initiators,
    context: options.context,
    receiveQueueDepth: options.depth ?? 4,
    initiatorQueueDepth: options.depth ?? 4,
    inlineDataSize: 32,
  }) as QueuePair;
  const qp: FakeQp = pd.qps.at(-1)!;
  if (options.connected !== false) qp.state = QpState.RTS;
  return { queuePair, qp, receives, initiators };
}
