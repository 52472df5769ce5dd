// A peer of `networkdirect/net` that uses ND v2 directly and can send arbitrary bytes.
import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2QueuePair,
  Nd2MrFlag,
  Nd2RemoteMemory,
  Nd2RequestType,
  type Nd2Result,
  type Nd2Sge,
  ndCleanup,
  ndOpenAdapter,
  ndStartup,
  Status,
} from '../../nd/index.js';
import {
  CONTROL_SLOTS,
  encodeHello,
  encodeMemory,
  Frame,
  type Hello,
  Kind,
  type MemoryDescription,
  moreSlots,
} from '../../nd/net/connection/frames.js';

const LOOPBACK = '127.0.0.1';
const SLOT = 131_072;
const RECEIVES = 32;
const DEPTH = 512;
/** Maximum Sends of a {@link Hoarder} in flight. They do not share memory. */
const HOARDED = 16;
const HOARDED_BYTES = SLOT / HOARDED;
/** Fills memory that no Read has written yet, and the source of Writes to the peer's memory. */
export const MARK = 0xa5;

/** The hello of an honest peer. */
export const honest: Hello = {
  kind: Kind.CHANNEL,
  slots: 128,
  slotBytes: 4096,
  maxMessageBytes: 2 ** 28,
  ringBytes: 0,
};

/** One end of a connection and all its objects. */
export class RawPeer implements Disposable {
  readonly #adapter: IND2Adapter;
  readonly #queue: IND2CompletionQueue;
  readonly #region: IND2MemoryRegion;
  /** Every provider can register a SharedArrayBuffer. */
  readonly #memory = new Uint8Array(new SharedArrayBuffer((RECEIVES + 2) * SLOT));
  readonly #queuePair: IND2QueuePair;
  readonly connector: IND2Connector;
  #listener: IND2Listener | undefined;
  /** Received messages, with headers. */
  readonly received: Buffer[] = [];
  /** Sends that have not completed. */
  sending = 0;
  /** Status of the last Read or Write of {@link access}. */
  #accessed: number | undefined;

  private constructor() {
    ndStartup();
    this.#adapter = ndOpenAdapter(LOOPBACK);
    this.#queue = this.#adapter.createCompletionQueue(2 * DEPTH);
    this.#region = this.#adapter.createMemoryRegion();
    this.#queuePair = this.#adapter.createQueuePair({
      receiveCompletionQueue: this.#queue,
      initiatorCompletionQueue: this.#queue,
      context: undefined,
      receiveQueueDepth: RECEIVES,
      initiatorQueueDepth: DEPTH,
    });
    this.connector = this.#adapter.createConnector();
  }

  async #post(): Promise<void> {
    await this.#region.register(this.#memory, Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_READ);
    for (let n = 1; n <= RECEIVES; n += 1) this.#receive(n * SLOT);
  }

  #receive(offset: number): void {
    this.#queuePair.receive(offset, [{ memory: this.#region, offset, length: SLOT }]);
  }

  /** Connects to a server with arbitrary bytes as its hello. */
  static async connect(port: number, hello: Uint8Array = encodeHello(honest)): Promise<RawPeer> {
    const peer = await RawPeer.connectHalfOpen(port, hello);
    try {
      await peer.connector.completeConnect();
      return peer;
    } catch (error) {
      peer[Symbol.dispose]();
      throw error;
    }
  }

  /** Like {@link connect}, but leaves the connection half open, so that the server waits. */
  static async connectHalfOpen(port: number, hello: Uint8Array): Promise<RawPeer> {
    const peer = new RawPeer();
    try {
      await peer.#post();
      peer.connector.bind({ family: 4, address: LOOPBACK, port: 0 });
      await peer.connector.connect(
        peer.#queuePair,
        { family: 4, address: LOOPBACK, port },
        { privateData: hello },
      );
      return peer;
    } catch (error) {
      peer[Symbol.dispose]();
      throw error;
    }
  }

  /** Listens. `accepted` accepts one client with arbitrary bytes as the hello. */
  static async listen(): Promise<{
    peer: RawPeer;
    port: number;
    accepted: (hello?: Uint8Array) => Promise<void>;
  }> {
    const peer = new RawPeer();
    await peer.#post();
    const listener = peer.#adapter.createListener();
    peer.#listener = listener;
    listener.bind({ family: 4, address: LOOPBACK, port: 0 });
    listener.listen();
    return {
      peer,
      port: listener.getLocalAddress().port,
      accepted: async (hello = encodeHello(honest)) => {
        await listener.getConnectionRequest(peer.connector);
        await peer.connector.accept(peer.#queuePair, { privateData: hello });
      },
    };
  }

  /** A description of memory that peers may read. */
  description(length: number, id: number): Uint8Array {
    const { address } = this.#region;
    return encodeMemory({ address, token: this.#region.getRemoteToken(), id, length });
  }

  /** Posts the bytes as one Send and returns before it has completed. */
  send(...frames: Uint8Array[]): void {
    this.sendAt(0, Buffer.concat(frames));
  }

  /** Like {@link send}, from a part of its memory below SLOT. */
  sendAt(offset: number, bytes: Uint8Array): void {
    this.#memory.set(bytes, offset);
    this.#queuePair.send('send', [{ memory: this.#region, offset, length: bytes.length }]);
    this.sending += 1;
  }

  /** Processes completions: received bytes, and the statuses of other requests. Returns the number of results. */
  take(): number {
    const results: Nd2Result[] = [];
    const count = this.#queue.getResults(results, 16);
    for (const { requestType, status, requestContext, bytesTransferred } of results.slice(0, count)) {
      if (requestType === Nd2RequestType.SEND) this.sending -= 1;
      else if (requestType !== Nd2RequestType.RECEIVE) this.#accessed = status;
      else if (status === Status.SUCCESS) {
        const offset = requestContext as number;
        this.received.push(Buffer.from(this.#memory.subarray(offset, offset + bytesTransferred)));
        this.#receive(offset);
      }
    }
    return count;
  }

  /** {@link take} until the condition holds. */
  async until(done: (peer: RawPeer) => boolean): Promise<void> {
    for (;;) {
      const count = this.take();
      if (done(this)) return;
      if (count === 0) await this.#queue.notify('any');
    }
  }

  /** Reads or writes up to a slot of the peer's memory. Resolves with the status and the bytes read. */
  async access(
    right: 'read' | 'write',
    { address, token, length }: MemoryDescription,
  ): Promise<{ status: number; bytes: Buffer }> {
    // Uses the last part of the memory, because Sends from the first one may be in flight.
    const offset = (RECEIVES + 1) * SLOT;
    const bytes = Buffer.from(this.#memory.buffer, offset, Math.min(length, SLOT));
    bytes.fill(MARK);
    const remote = new Nd2RemoteMemory(address, token);
    const sgl: [Nd2Sge] = [{ memory: this.#region, offset, length: bytes.length }];
    if (right === 'read') this.#queuePair.read('read', sgl, remote);
    else this.#queuePair.write('write', sgl, remote);
    this.#accessed = undefined;
    await this.until(() => this.#accessed !== undefined);
    const status = this.#accessed!;
    return { status, bytes: Buffer.from(bytes) };
  }

  /** Resolves when the peer has ended the connection. */
  async ended(): Promise<void> {
    await this.connector.notifyDisconnect();
  }

  [Symbol.dispose](): void {
    this.#listener?.release();
    this.connector.release();
    this.#queuePair.release();
    this.#queue.release();
    this.#region.release();
    this.#adapter.release();
    ndCleanup();
  }
}

/** Creates a frame from header fields and a payload. */
export function frameOf(
  type: number,
  {
    flags = 0,
    data = 0,
    control = 0,
    reserved = 0,
    id = 0,
    length,
    payload = Buffer.alloc(0),
  }: {
    flags?: number;
    data?: number;
    control?: number;
    reserved?: number;
    id?: number;
    length?: number;
    payload?: Uint8Array;
  } = {},
): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt8(type, 0);
  header.writeUInt8(flags, 1);
  header.writeUInt16BE(data, 2);
  header.writeUInt16BE(control, 4);
  header.writeUInt16BE(reserved, 6);
  header.writeUInt32BE(id, 8);
  header.writeUInt32BE(length ?? payload.length, 12);
  return Buffer.concat([header, payload]);
}

/** A peer that counts its credits and returns only the chosen kinds. */
export class Hoarder {
  readonly peer: RawPeer;
  readonly #returns: { readonly data: boolean; readonly control: boolean };
  readonly #stream: boolean;
  /** Its remaining credits. */
  #data: number;
  #control = CONTROL_SLOTS;
  /** Received Sends for which it has returned no credit. */
  #owedData = 0;
  #owedControl = 0;
  #next = 0;
  /** Called with each received Send. */
  heard: (bytes: Buffer) => void = () => {};

  constructor(
    peer: RawPeer,
    { slots, data = false, control = false }: { slots: number; data?: boolean; control?: boolean },
    stream = false,
  ) {
    this.peer = peer;
    this.#returns = { data, control };
    this.#stream = stream;
    this.#data = slots + moreSlots(stream ? Kind.STREAM : Kind.CHANNEL);
  }

  /** Processes received Sends. */
  #take(): void {
    while (this.peer.take() > 0);
    for (const bytes of this.peer.received.splice(0)) {
      const type = bytes[0]!;
      this.#data += bytes.readUInt16BE(2);
      this.#control += bytes.readUInt16BE(4);
      if (type === Frame.CONTROL || (this.#stream && type === Frame.RING)) this.#owedControl += 1;
      else this.#owedData += 1;
      this.heard(bytes);
    }
  }

  /** Sends these frames as one Send if it has a credit. */
  #send(bytes: Buffer): boolean {
    if (this.peer.sending >= HOARDED) return false;
    const isControl = bytes[0] === Frame.CONTROL || (this.#stream && bytes[0] === Frame.RING);
    if (isControl ? this.#control === 0 : this.#data === 0) return false;
    if (isControl) this.#control -= 1;
    else this.#data -= 1;
    if (this.#returns.data) {
      bytes.writeUInt16BE(this.#owedData, 2);
      this.#owedData = 0;
    }
    if (this.#returns.control) {
      bytes.writeUInt16BE(this.#owedControl, 4);
      this.#owedControl = 0;
    }
    this.peer.sendAt(this.#next * HOARDED_BYTES, bytes);
    this.#next = (this.#next + 1) % HOARDED;
    return true;
  }

  /** Receives until the condition holds. */
  async hear(done: () => boolean): Promise<void> {
    await this.peer.until(() => {
      this.#take();
      return done();
    });
  }

  /** Sends these frames as one Send as soon as it has a credit. */
  async say(bytes: Buffer): Promise<void> {
    await this.hear(() => this.#send(bytes));
  }

  /**
   * Sends the results of `next` up to `times` times, as long as it gets credits. Returns the number of Sends, which is lower if credits run
   * out.
   *
   * @param turn - resolves when the victim has had a turn of its event loop, that is, when an honest peer has got a reply
   */
  async flood(times: number, next: (n: number) => Buffer, turn: () => Promise<unknown>): Promise<number> {
    let sent = 0;
    for (let idle = 0; sent < times && idle < 5; idle += 1) {
      this.#take();
      for (; sent < times && this.#send(next(sent)); sent += 1) idle = 0;
      // The victim's turns only count after it has received everything.
      if (this.peer.sending > 0) idle = 0;
      await turn();
    }
    while (this.peer.sending > 0) {
      this.#take();
      await turn();
    }
    return sent;
  }
}

/** A received frame. */
export interface Received {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

/** The frames of a Send. */
export function framesOf(send: Buffer): Received[] {
  const frames: Received[] = [];
  for (let at = 0; at < send.length; ) {
    const end = at + 16 + send.readUInt32BE(at + 12);
    const [type, flags] = [send.readUInt8(at), send.readUInt8(at + 1)];
    frames.push({ type, flags, id: send.readUInt32BE(at + 8), payload: send.subarray(at + 16, end) });
    at = end;
  }
  return frames;
}

/** Reports that the peer's large payloads with these ids were read. */
export function reportOf(...ids: number[]): Buffer {
  const payload = Buffer.alloc(4 * ids.length);
  for (const [n, id] of ids.entries()) payload.writeUInt32BE(id, 4 * n);
  return frameOf(Frame.CONTROL, { payload });
}
