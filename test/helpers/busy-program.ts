/**
 * A program that waits for a completion and computes meanwhile. It prints its port, then `connected` with the address and rkey of its
 * memory. For each line `callback` or `immediate`, it spins until its memory contains the next multiple of 20, and then prints `served`. It
 * spins in the callback of the line or in a setImmediate() callback. It polls nothing else.
 */
import { openProvider, QpAttr, QpState, type SocketAddress, WvAccess } from '../../winverbs/index.js';

const STEP = 20;
const address: SocketAddress = { family: 4, address: '127.0.0.1', port: 0 };
const provider = openProvider();
const device = provider.openDevice(provider.translateAddress(address).deviceGuid);
const pd = device.allocateProtectionDomain();
const cq = device.createCompletionQueue(64);
const memory = new Int32Array(new SharedArrayBuffer(8));
const accessFlags = WvAccess.LOCAL_WRITE | WvAccess.REMOTE_WRITE;
const region = pd.registerMemory(new Uint8Array(memory.buffer), accessFlags);
const qp = pd.createConnectQueuePair({
  sendCq: cq,
  receiveCq: cq,
  sendDepth: 4,
  sendSge: 1,
  receiveDepth: 4,
  receiveSge: 1,
});
qp.modify({ qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags }, QpAttr.STATE);

const listener = provider.createConnectEndpoint();
listener.bindAddress(address);
listener.listen(0);
console.log(listener.query().localAddress.port);
const endpoint = provider.createConnectEndpoint();
await listener.getRequest(endpoint);
await endpoint.accept(qp, {});
const waiting = cq.notify('any');
console.log(`connected ${region.address} ${region.rkey}`);

let goal = 0;
function spin(): void {
  goal += STEP;
  while (Atomics.load(memory, 0) < goal);
  console.log('served');
}
process.stdin.setEncoding('utf8');
process.stdin.on('data', (line: string) => {
  if (line.trim() === 'callback') spin();
  else setImmediate(spin);
});
process.stdin.on('end', () => process.exit(0));
waiting.then(undefined, () => {});
