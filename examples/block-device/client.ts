/** A client of the block device over WinVerbs. It sends the address of its memory, and the device transfers the blocks. */
import {
  allocate,
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVDevice,
  type IWVProtectionDomain,
  type IWVProvider,
  openProvider,
  QpAttr,
  QpState,
  WcStatus,
  WvAccess,
  type WvCompletion,
  type WvMemoryRegion,
  WvSend,
  type WvSge,
} from 'networkdirect/winverbs';
import { ANSWER_BYTES, Operation, REQUEST_BYTES, Result, WINDOW, writeRequest } from './protocol.js';

const RESULTS: Readonly<Record<number, string>> = {
  [Result.OUT_OF_RANGE]: 'these blocks do not exist',
  [Result.UNKNOWN]: 'the device does not support this request',
};

/** Access rights of the device to a client's memory. */
const BY_DEVICE = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE;

/** Registered memory. */
export class BlockBuffer {
  constructor(
    private readonly pd: IWVProtectionDomain,
    readonly bytes: Uint8Array,
    readonly region: WvMemoryRegion,
  ) {}

  sge(offset: number, length: number): readonly [WvSge] {
    return [{ region: this.region, offset, length }];
  }

  release(): void {
    this.pd.deregisterMemory(this.region);
  }
}

export class BlockClient implements Disposable {
  /** The values reported by the device. */
  readonly blockSize: number = 0;
  readonly blocks: number = 0;
  private readonly provider: IWVProvider;
  private readonly device: IWVDevice;
  private readonly pd: IWVProtectionDomain;
  private readonly cq: IWVCompletionQueue;
  private readonly qp: IWVConnectQueuePair;
  private readonly endpoint: IWVConnectEndpoint;
  /** A request and its reply. */
  private readonly messages: BlockBuffer;
  private tag = 0;

  private constructor(address: string) {
    this.provider = openProvider();
    this.device = this.provider.openDevice(this.provider.translateAddress(address).deviceGuid);
    this.pd = this.device.allocateProtectionDomain();
    this.cq = this.device.createCompletionQueue(2 * WINDOW);
    const depths = { sendDepth: WINDOW, receiveDepth: WINDOW, sendSge: 1, receiveSge: 1 };
    this.qp = this.pd.createConnectQueuePair({ sendCq: this.cq, receiveCq: this.cq, ...depths });
    this.qp.modify(
      { qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: BY_DEVICE },
      QpAttr.STATE | QpAttr.PKEY_INDEX | QpAttr.PORT_NUMBER | QpAttr.ACCESS_FLAGS,
    );
    this.messages = this.memory(REQUEST_BYTES + ANSWER_BYTES, WvAccess.LOCAL_WRITE);
    this.endpoint = this.provider.createConnectEndpoint();
  }

  /** Connects to the device's port at an address of this host. */
  static async connect(address: string, port: number): Promise<BlockClient> {
    const client = new BlockClient(address);
    const { endpoint } = client;
    const peer = { family: address.includes(':') ? 6 : 4, address, port } as const;
    try {
      endpoint.bindAddress({ ...peer, port: 0 });
      endpoint.resolveRoute(peer);
      await endpoint.connect(client.qp, peer, { responderResources: WINDOW, initiatorDepth: WINDOW });
      // The reply contains the size of the device.
      const size = Uint8Array.from(endpoint.query().privateData);
      const [blockSize, blocks] = new Uint32Array(size.buffer, 0, 2);
      await endpoint.accept(null, {});
      return Object.assign(client, { blockSize, blocks });
    } catch (error) {
      client[Symbol.dispose]();
      throw error;
    }
  }

  /** Allocates and registers memory for requests. */
  buffer(bytes: number): BlockBuffer {
    return this.memory(bytes, BY_DEVICE);
  }

  /** Reads blocks to the start of a buffer. */
  read(buffer: BlockBuffer, block: number, count: number): Promise<void> {
    return this.ask(Operation.READ, buffer, block, count);
  }

  /** Writes blocks from the start of a buffer. */
  write(buffer: BlockBuffer, block: number, count: number): Promise<void> {
    return this.ask(Operation.WRITE, buffer, block, count);
  }

  /** Sends a request and waits for the reply. @throws Error if the device rejects it */
  async ask(operation: number, buffer: BlockBuffer, block: number, count: number): Promise<void> {
    const { qp, messages } = this;
    const { buffer: memory, byteOffset } = messages.bytes;
    const view = new DataView(memory, byteOffset, REQUEST_BYTES + ANSWER_BYTES);
    const { address, rkey } = buffer.region;
    const tag = ++this.tag;
    writeRequest(view, 0, { operation, tag, block, count, rkey, address: BigInt(address) });
    qp.postReceive('answer', messages.sge(REQUEST_BYTES, ANSWER_BYTES));
    qp.send('request', messages.sge(0, REQUEST_BYTES), WvSend.SIGNALED);
    await this.completions(2);
    const [answered, result] = [view.getUint32(REQUEST_BYTES, true), view.getUint32(REQUEST_BYTES + 4, true)];
    if (answered !== tag) throw new Error(`The reply must have the tag ${tag}; got ${answered}.`);
    if (result !== Result.DONE) throw new Error(RESULTS[result] ?? `The device replied with ${result}.`);
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    await this.endpoint.disconnect();
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.endpoint.release();
    this.qp.release();
    this.cq.release();
    this.messages.release();
    this.pd.release();
    this.device.release();
    this.provider.release();
  }

  private memory(bytes: number, access: number): BlockBuffer {
    const memory = allocate(bytes);
    return new BlockBuffer(this.pd, memory, this.pd.registerMemory(memory, access));
  }

  /** Waits for `count` completions. @throws Error if a request failed */
  private async completions(count: number): Promise<void> {
    const polled: WvCompletion[] = [];
    for (let left = count; left > 0; ) {
      const found = this.cq.poll(polled, left);
      for (const { context, status } of polled.slice(0, found))
        if (status !== WcStatus.SUCCESS)
          throw new Error(`The ${String(context)} failed with status ${status}.`);
      left -= found;
      if (found === 0) await this.cq.notify('any');
    }
  }
}
