/**
 * The capabilities that a device reports, and the results of using those that it lacks: `lacks ADDRESS`. Prints a line of JSON: the
 * capabilities, and for each request SUCCESS or the error's status and text.
 */
import { AtomicCapability, DeviceType, WvCapability } from '../../../kernel-bridge/index.js';
import {
  openProvider,
  QpType,
  RemoteMemory,
  StatusError,
  statusName,
  WvOpcode,
  WvSend,
} from '../../../winverbs/index.js';
import { openSide } from '../../helpers/loopback.js';

const [address = ''] = process.argv.slice(2);
const provider = openProvider();
const side = openSide(provider, { maxInlineSend: 0 }, 8192, address);
const { device, pd, cq, qp } = side;
const sgl = side.sge(0, 8);
const [sge] = sgl;
const remote = new RemoteMemory({ address: 0n, rkey: 1 });
const sizes = {
  sendCq: cq,
  receiveCq: cq,
  sendDepth: 4,
  sendSge: 1,
  receiveDepth: 4,
  receiveSge: 1,
  maxInlineSend: 0,
};
const [listener, client] = [provider.createDatagramEndpoint(), provider.createDatagramEndpoint()];
for (const one of [listener, client]) one.bindAddress({ family: 4, address, port: 0 });

const requests: Readonly<Record<string, () => unknown>> = {
  'Send with immediate data': () => qp.send(0, sgl, WvSend.IMMEDIATE, 5),
  'Write with immediate data': () => qp.write(0, sgl, WvSend.IMMEDIATE, remote, 0, 5),
  'Send with immediate data, of a list': () =>
    qp.postSend([{ context: 0, opcode: WvOpcode.SEND, sgl, flags: WvSend.IMMEDIATE, immediate: 5 }]),
  'compare and exchange': () => qp.compareExchange(0, sge, WvSend.SIGNALED, 1n, 2n, remote, 0),
  'fetch and add': () => qp.fetchAdd(0, sge, WvSend.SIGNALED, 1n, remote, 0),
  'memory window': () => pd.allocateMemoryWindow().release(),
  'fast region': () => pd.allocateFastRegion(4096).release(),
  'larger completion queue': () => cq.resize(8192),
  'shared receive queue': () => pd.createSharedReceiveQueue(4, 1).release(),
  'unreliable connection': () => pd.createConnectQueuePair({ ...sizes, type: QpType.UC }).release(),
  'datagram queue pair': () => pd.createDatagramQueuePair(sizes).release(),
  'address handle': () => pd.createAddressHandle(provider.resolvePath(address).addressVector).release(),
  'datagram listener': () => listener.listen(1),
  'datagram lookup': () => client.lookup({ family: 4, address, port: 9 }),
};

async function outcome(request: () => unknown): Promise<string> {
  try {
    await request();
    return 'SUCCESS';
  } catch (error) {
    if (error instanceof StatusError) return `${statusName(error.status)}: ${error.message}`;
    throw error;
  }
}

const attributes = device.query();
const ended: Record<string, string> = {};
for (const [name, request] of Object.entries(requests)) ended[name] = await outcome(request);
const reported = {
  iwarp: attributes.deviceType === DeviceType.IWARP,
  atomics: attributes.atomicCapability !== AtomicCapability.NONE,
  windows: attributes.maxMw > 0,
  fastRegions: (attributes.capabilityFlags & WvCapability.MEM_MGT_EXTENSIONS) !== 0,
  fixedCqs: (attributes.capabilityFlags & WvCapability.FIXED_CQ) !== 0,
  addressHandles: attributes.maxAh > 0,
};
for (const one of [listener, client]) one.release();
side.release();
provider.release();
console.log(JSON.stringify({ reported, ended }));
