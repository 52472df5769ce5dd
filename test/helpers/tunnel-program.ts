/**
 * One end of a connection through a tunnel. `server ADDRESS` prints its port and accepts all connections. `client ADDRESS PEER PORT` reads
 * lines and replies to each. `connect` returns the path MTU of a new connection. `write BYTES` performs a Write, reads it back, compares,
 * and returns the completion's status. `device` returns the device's GUID. `packets` returns the number of packets that this side sent for
 * the last Write and Read, without retransmissions.
 */
import { createInterface } from 'node:readline';
import { readCounters } from '../../kernel-bridge/index.js';
import { socketAddress } from '../../nd/cli/sides/connected-side.js';
import { ALL_ACCESS, connectEndpoint, HostWv, remoteOf, wcName } from '../../nd/cli/sides/winverbs-side.js';
import {
  type IWVConnectQueuePair,
  RemoteMemory,
  WcStatus,
  type WvCompletion,
  WvSend,
} from '../../winverbs/index.js';

const BYTES = 1 << 20;
const ADVERT_BYTES = 12;

// Retries are exhausted after half a second.
const host = HostWv.open(process.argv[3]!, { rc: { ackTimeoutCode: 14 } });
const cq = host.device.createCompletionQueue(64);
const shape = { sendDepth: 16, sendSge: 1, receiveDepth: 16, receiveSge: 1 };
const memory = host.memory(2 * BYTES, ALL_ACCESS);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function serve(): Promise<void> {
  const listener = host.listen(0, 16);
  print(`${listener.address.port}`);
  const advert = Buffer.alloc(ADVERT_BYTES);
  const { address, rkey } = remoteOf(memory.region);
  advert.writeBigUInt64LE(address);
  advert.writeUInt32LE(rkey, 8);
  for (;;) {
    const endpoint = await listener.next();
    await endpoint.accept(host.queuePair(cq, shape, ALL_ACCESS), { privateData: advert });
  }
}

/** The status of the last posted request. */
async function completed(): Promise<number> {
  const completions: WvCompletion[] = [];
  while (cq.poll(completions, 1) === 0) await cq.notify('any');
  return completions[0]!.status;
}

async function exchange(qp: IWVConnectQueuePair, remote: RemoteMemory, bytes: number): Promise<string> {
  memory.bytes.subarray(0, bytes).forEach((_, i, all) => {
    all[i] = (i * 7 + (i >> 8) + bytes) & 0xff;
  });
  qp.write(undefined, memory.sge(0, bytes), WvSend.SIGNALED, remote, 0);
  const written = await completed();
  if (written !== WcStatus.SUCCESS) return wcName(written);
  memory.bytes.fill(0, BYTES, BYTES + bytes);
  qp.read(undefined, memory.sge(BYTES, bytes), WvSend.SIGNALED, remote, 0);
  const read = await completed();
  if (read !== WcStatus.SUCCESS) return wcName(read);
  const [sent, got] = [memory.bytes.subarray(0, bytes), memory.bytes.subarray(BYTES, BYTES + bytes)];
  return Buffer.compare(sent, got) === 0 ? wcName(read) : 'DIFFERENT';
}

/** Packets sent, without retransmissions. */
function sentOnce(): number {
  const { hca } = readCounters();
  return hca.sent_pkts! - hca.retransmitted_pkts!;
}

async function ask([, , , own, peer, port]: readonly string[]): Promise<void> {
  let qp: IWVConnectQueuePair | undefined;
  let remote: RemoteMemory | undefined;
  let packets = 0;
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, bytes] = line.split(' ');
    if (command === 'device') {
      print(host.provider.translateAddress(own!).deviceGuid.toString(16));
    } else if (command === 'connect') {
      qp = host.queuePair(cq, shape, ALL_ACCESS);
      const endpoint = host.provider.createConnectEndpoint();
      const { privateData } = await connectEndpoint(
        endpoint,
        qp,
        socketAddress(peer!, Number(port)),
        {},
        own,
      );
      const advert = Buffer.from(privateData);
      remote = new RemoteMemory({ address: advert.readBigUInt64LE(), rkey: advert.readUInt32LE(8) });
      print(`${qp.query().pathMtu}`);
    } else if (command === 'packets') {
      print(`${packets}`);
    } else {
      const before = sentOnce();
      const status = await exchange(qp!, remote!, Number(bytes));
      packets = sentOnce() - before;
      print(status);
    }
  }
  process.exit();
}

if (process.argv[2] === 'server') {
  process.stdin.on('end', () => process.exit()).resume();
  await serve();
} else {
  await ask(process.argv);
}
