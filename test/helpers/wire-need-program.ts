/**
 * A program that opens its HCA and then performs one operation. It prints the UDP sockets of its network namespace before and after that as
 * JSON. Arguments: a name of {@link needs}, a non-loopback address of this host, an address of another host.
 */
import { readFileSync } from 'node:fs';
import { openProvider, type SocketAddress, StatusError } from '../../winverbs/index.js';
import { UdSocket } from './ud-socket.js';

const [need, own = '', foreign = ''] = process.argv.slice(2);

export interface NeedReport {
  /** Local ports of UDP sockets, ascending. */
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** The name of the status, or SUCCESS. */
  readonly status: string;
  readonly message: string;
}

function udpPorts(): number[] {
  const lines = ['udp', 'udp6'].flatMap((table) =>
    readFileSync(`/proc/self/net/${table}`, 'utf8').trim().split('\n').slice(1),
  );
  return lines.map((line) => Number.parseInt(/:([0-9A-F]{4}) /.exec(line)![1]!, 16)).sort((a, b) => a - b);
}

const at = (address: string, port = 0): SocketAddress => ({
  family: address.includes(':') ? 6 : 4,
  address,
  port,
});

function opened() {
  const provider = openProvider();
  provider.queryDeviceList();
  return provider;
}

function queuePair(provider: ReturnType<typeof opened>, address: string) {
  const device = provider.openDevice(provider.translateAddress(at(address)).deviceGuid);
  const cq = device.createCompletionQueue(8);
  const sizes = { sendCq: cq, receiveCq: cq, sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
  return device.allocateProtectionDomain().createConnectQueuePair(sizes);
}

/** Operations that need the wire, and `loopback`, which does not need it. */
const needs: Record<string, (provider: ReturnType<typeof opened>) => unknown> = {
  loopback: (provider) => {
    const listener = provider.createConnectEndpoint();
    listener.bindAddress(at('127.0.0.1'));
    listener.listen(4);
    provider.createConnectEndpoint().bindAddress(at('127.0.0.1', 7000));
    queuePair(provider, '127.0.0.1');
  },
  wildcard: (provider) => provider.createConnectEndpoint().bindAddress(at('0.0.0.0')),
  wildcard6: (provider) => provider.createConnectEndpoint().bindAddress(at('::')),
  interface: (provider) => provider.createConnectEndpoint().bindAddress(at(own)),
  listen: (provider) => {
    const listener = provider.createConnectEndpoint();
    listener.bindAddress(at(own, 7000));
    listener.listen(4);
  },
  datagram: (provider) => new UdSocket(provider, '127.0.0.1', 0x1111_1111),
  group: async (provider) => {
    const { qp } = new UdSocket(provider, '127.0.0.1', 0x1111_1111);
    await qp.attachMulticast('239.1.2.3');
  },
  // Only listeners claim an explicit port.
  foreign: async (provider) => {
    const endpoint = provider.createConnectEndpoint();
    endpoint.bindAddress(at(own, 7001));
    endpoint.resolveRoute(at(foreign, 7000));
    await endpoint.connect(queuePair(provider, own), at(foreign, 7000), {});
  },
};

if (need !== undefined) {
  const provider = opened();
  const before = udpPorts();
  let [status, message] = ['SUCCESS', ''];
  try {
    await needs[need]!(provider);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    [status, message] = [error.code, error.message];
  }
  const report: NeedReport = { before, after: udpPorts(), status, message };
  console.log(JSON.stringify(report));
  process.exit(0);
}
