/** A client of the block device, over WinVerbs: it names its memory, and the device moves the blocks. */

import { connectEndpoint, HostWv, type MemoryWv } from '../../nd/cli/sides/winverbs.js';
import { WvAccess, WvSend } from '../../winverbs/index.js';
import { ANSWER_BYTES, Operation, REQUEST_BYTES, Result, WINDOW, writeRequest } from './protocol.js';

const RESULTS: Readonly<Record<number, string>> = {
  [Result.OUT_OF_RANGE]: 'these blocks do not exist',
  [Result.UNKNOWN]: 'the device does not know this request',
};

export class BlockClient implements Disposable {
  private constructor(
    private readonly host: HostWv,
    private readonly parts: Awaited<ReturnType<typeof connected>>,
    readonly blockSize: number,
    readonly blocks: number,
  ) {}

  private tag = 0;

  /** Connects to the device's port. */
  static async connect(address: string, port: number): Promise<BlockClient> {
    const host = HostWv.open(address);
    const parts = await connected(host, address, port);
    const [blockSize = 0, blocks = 0] = new Uint32Array(parts.size.buffer, 0, 2);
    return new BlockClient(host, parts, blockSize, blocks);
  }

  /** Memory that requests may name. */
  buffer(bytes: number): MemoryWv {
    return this.host.memory(bytes, WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE);
  }

  /** Reads blocks into a buffer, from its start. */
  read(buffer: MemoryWv, block: number, count: number): Promise<void> {
    return this.ask(Operation.READ, buffer, block, count);
  }

  /** Writes blocks from a buffer, from its start. */
  write(buffer: MemoryWv, block: number, count: number): Promise<void> {
    return this.ask(Operation.WRITE, buffer, block, count);
  }

  /** One request, and its answer. @throws Error if the device refuses it. */
  async ask(operation: number, buffer: MemoryWv, block: number, count: number): Promise<void> {
    const { qp, queue, memory } = this.parts;
    const view = new DataView(memory.bytes.buffer);
    const { address, rkey } = buffer.region;
    const tag = ++this.tag;
    writeRequest(view, 0, { operation, tag, block, count, rkey, address: BigInt(address) });
    qp.postReceive('answer', memory.sge(REQUEST_BYTES, ANSWER_BYTES));
    qp.send('request', memory.sge(0, REQUEST_BYTES), WvSend.SIGNALED);
    await queue.take(2);
    const [answered, result] = [view.getUint32(REQUEST_BYTES, true), view.getUint32(REQUEST_BYTES + 4, true)];
    if (answered !== tag) throw new Error(`The answer has the tag ${answered}, not ${tag}.`);
    if (result !== Result.DONE) throw new Error(RESULTS[result] ?? `The device answers ${result}.`);
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    await this.parts.endpoint.disconnect();
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    const { endpoint, qp, queue, memory } = this.parts;
    endpoint.release();
    qp.release();
    queue.cq.release();
    memory.release();
    this.host.release();
  }
}

async function connected(host: HostWv, address: string, port: number) {
  const queue = host.queue(64);
  const shape = { sendDepth: WINDOW, receiveDepth: WINDOW, sendSge: 1, receiveSge: 1 };
  const access = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE;
  const qp = host.queuePair(queue.cq, shape, access);
  const memory = host.memory(REQUEST_BYTES + ANSWER_BYTES, WvAccess.LOCAL_WRITE);
  const endpoint = host.provider.createConnectEndpoint();
  const peer = { family: address.includes(':') ? 6 : 4, address, port } as const;
  const limits = { responderResources: WINDOW, initiatorDepth: WINDOW };
  const { privateData } = await connectEndpoint(endpoint, qp, peer, limits);
  return { queue, qp, memory, endpoint, size: Uint8Array.from(privateData) };
}
