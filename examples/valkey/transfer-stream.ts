/**
 * A byte stream over a reliable connection, as defined by Valkey's RDMA transport; both roles work alike.
 *
 * Each side has a receive buffer that the other side writes to. A command of 32 bytes, sent as a message, announces the buffer
 * (RegisterXferMemory). Data is sent as RDMA Writes with immediate data, one after the other from the start of the buffer. The immediate is
 * the number of bytes written, and nothing else identifies their location. A full buffer is reused only after its owner has read all of it
 * and has announced it again.
 */
import { Duplex } from 'node:stream';
import {
  allocate,
  DeviceType,
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVDevice,
  QpAttr,
  QpState,
  RemoteMemory,
  Status,
  type StatusError,
  WcStatus,
  WvAccess,
  type WvCompletion,
  WvOpcode,
  WvSend,
  type WvSge,
} from 'networkdirect/winverbs';

/** Values of the first two bytes of a command, and offsets of its fields. Numbers are big-endian. */
export const Opcode = { GET_FEATURE: 0, SET_FEATURE: 1, KEEPALIVE: 2, REGISTER_XFER_MEMORY: 3 } as const;
export const Field = { SELECT: 2, ADDRESS: 16, LENGTH: 24, FEATURES: 24, RKEY: 28 } as const;
const COMMAND_BYTES = 32;
/** Number of Receives that are always posted; each receives a command or the immediate of a Write. */
const RECEIVES = 1024;
/** Maximum number of outstanding requests: Writes, and commands. */
const WRITES = 1008;
const COMMANDS = 16;
/** There are no RDMA Reads. With an RNR retry count of 7, this side waits for a peer that has no Receive posted. */
export const CONNECT = { responderResources: 1, initiatorDepth: 1, retryCount: 7, rnrRetryCount: 7 } as const;
/** One in this many Writes is signaled; its completion also covers the Writes before it. Fewer completions wake this side less often. */
const SIGNAL_EVERY = 64;
/** Completions per poll, and polls per turn of the event loop, so that a flood cannot block the loop. */
const BATCH = 64;
const POLLS = 16;
/** A peer that has acknowledged nothing for this many keep-alive intervals is considered lost. */
const SILENT = 5;

type Callback = (error?: Error | null) => void;

/** The context of a signaled request: its end position in the stream, and the number of requests that complete with it. */
type Mark = readonly [position: number, requests: number];

export interface TransferOptions {
  /** Size in bytes of the buffer that the peer writes to; default 1 MiB. */
  readonly receiveBytes?: number | undefined;
  /** Maximum number of bytes in flight to the peer; default 1 MiB. */
  readonly sendBytes?: number | undefined;
  /** Keep-alive interval in milliseconds; default 3000. */
  readonly keepAliveMs?: number | undefined;
}

/**
 * A stream with the members of `net.Socket` that client libraries use. `end` ends both directions once everything has been acknowledged.
 */
export class TransferStream extends Duplex {
  /** True until 'connect' is emitted. Data written before that is queued. */
  connecting = true;
  #endpoint: IWVConnectEndpoint | undefined;
  #device: IWVDevice | undefined;
  #cq!: IWVCompletionQueue;
  #qp!: IWVConnectQueuePair;
  /** The connection has ended. Data that has arrived can still be read. */
  #over = false;
  // The receive buffer: bytes from #taken to #arrived wait for the reader.
  #received!: Buffer;
  #arrived = 0;
  #taken = 0;
  #wanted = false;
  // The peer's buffer, and how much of it has been written.
  #remote!: RemoteMemory;
  #remoteLength = 0;
  #remoteAt = 0;
  // The circular send buffer, by positions in the stream: posted, the last Mark, acknowledged. Then the data that waits for room.
  #sending!: Buffer;
  #sendingSge!: [WvSge];
  #posted = 0;
  #marked = 0;
  #acknowledged = 0;
  #rest: Uint8Array = new Uint8Array(0);
  #written: Callback | undefined;
  #finished: Callback | undefined;
  /** The peer's commands, a slot for each Receive, followed by this side's own, a slot for each opcode. */
  #commands!: Buffer;
  #commandSge!: [WvSge];
  // Requests that have not completed, and those after the last Mark.
  #outstanding = 0;
  #unmarked = 0;
  #silent = 0;
  #keepAlive: NodeJS.Timeout | undefined;
  #timeout: NodeJS.Timeout | undefined;
  readonly #batch: WvCompletion[] = [];

  constructor(private readonly options: TransferOptions) {
    super({ allowHalfOpen: false });
  }

  /** Takes ownership of both references, and connects with `establish`. Failures destroy the stream. */
  async open(
    endpoint: IWVConnectEndpoint,
    device: IWVDevice,
    establish: (qp: IWVConnectQueuePair) => Promise<void>,
  ): Promise<void> {
    this.#endpoint = endpoint;
    this.#device = device;
    if (this.destroyed) return this.#release();
    try {
      this.#prepare(device);
      void this.#pump();
      await establish(this.#qp);
      if (this.#over) return;
      // Data that arrived before the peer's disconnect can be read after it.
      endpoint.keepQueuePairOnDisconnect(true);
      endpoint.notifyDisconnect().then(undefined, (error) => this.#attempt(() => this.#disconnected(error)));
      this.command(Opcode.REGISTER_XFER_MEMORY);
      this.#keepAlive = setInterval(this.#attempt, this.options.keepAliveMs ?? 3000, this.#beat);
      this.connecting = false;
      this.emit('connect');
      this.#flush();
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #prepare(device: IWVDevice): void {
    const { receiveBytes = 2 ** 20, sendBytes = 2 ** 20 } = this.options;
    if (device.query().deviceType === DeviceType.IWARP)
      throw failure('ENOTSUP', 'iWARP has no immediate data. Use an address of another device.');
    const pd = device.allocateProtectionDomain();
    const cq = device.createCompletionQueue(RECEIVES + WRITES + COMMANDS);
    this.#cq = cq;
    this.#qp = pd.createConnectQueuePair({
      ...{ sendCq: cq, sendDepth: WRITES + COMMANDS, sendSge: 1, initiatorDepth: 1 },
      ...{ receiveCq: cq, receiveDepth: RECEIVES, receiveSge: 1, responderResources: 1 },
    });
    this.#qp.modify(
      { qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: WvAccess.REMOTE_WRITE },
      QpAttr.STATE | QpAttr.PKEY_INDEX | QpAttr.PORT_NUMBER | QpAttr.ACCESS_FLAGS,
    );
    this.#received = zeros(receiveBytes);
    this.#sending = zeros(sendBytes);
    this.#commands = zeros((RECEIVES + 4) * COMMAND_BYTES);
    // The peer can write only to this buffer.
    const { address, rkey } = pd.registerMemory(this.#received, WvAccess.REMOTE_WRITE);
    this.#sendingSge = [{ region: pd.registerMemory(this.#sending, 0), offset: 0, length: 0 }];
    const region = pd.registerMemory(this.#commands, WvAccess.LOCAL_WRITE);
    this.#commandSge = [{ region, offset: 0, length: COMMAND_BYTES }];
    for (const opcode of Object.values(Opcode)) this.own(opcode).writeUInt16BE(opcode);
    const naming = this.own(Opcode.REGISTER_XFER_MEMORY);
    naming.writeBigUInt64BE(BigInt(address), Field.ADDRESS);
    naming.writeUInt32BE(receiveBytes, Field.LENGTH);
    naming.writeUInt32BE(rkey, Field.RKEY);
    // Receives are posted before connecting, so that the peer's first message does not cause an RNR NAK.
    for (let slot = 0; slot < RECEIVES; slot += 1) this.#receive(slot);
  }

  #command(slot: number): Buffer {
    return this.#commands.subarray(slot * COMMAND_BYTES, (slot + 1) * COMMAND_BYTES);
  }

  /** This side's command with an opcode. */
  protected own(opcode: number): Buffer {
    return this.#command(RECEIVES + opcode);
  }

  #receive(slot: number): void {
    this.#commandSge[0].offset = slot * COMMAND_BYTES;
    this.#qp.postReceive(slot, this.#commandSge);
  }

  async #pump(): Promise<void> {
    try {
      for (let polls = 1; !this.#over; polls += 1)
        if (this.#poll(BATCH) === 0) await this.#cq.notify('any');
        else if (polls % POLLS === 0) await new Promise(setImmediate);
    } catch (error) {
      if (!this.#over) this.destroy(error as Error);
    }
  }

  #poll(most: number): number {
    const count = this.#cq.poll(this.#batch, most);
    for (let n = 0; n < count; n += 1) this.#handle(this.#batch[n]!);
    if (count > 0) this.#deliver();
    if (count > 0) this.#flush();
    return count;
  }

  #handle({ opcode, status, context, length, immediateData }: WvCompletion): void {
    if (status !== WcStatus.SUCCESS) throw lost(`a request has ended in status ${status}`);
    if (opcode < WvOpcode.RECEIVE) {
      const [position, requests] = context as Mark;
      this.#acknowledged = position;
      this.#outstanding -= requests;
      this.#silent = 0;
      this.#finish();
      return;
    }
    if (opcode === WvOpcode.RECEIVE_RDMA_WRITE) this.#arrived += immediateData;
    else if (length === COMMAND_BYTES) this.obey(this.#command(context as number));
    else throw wrong(`a command of ${length} bytes`);
    if (this.#arrived > this.#received.length) throw wrong('more bytes than its buffer has');
    this.#receive(context as number);
  }

  /** Executes a command of the peer. Only servers receive commands for features. */
  protected obey(command: Buffer): void {
    const opcode = command.readUInt16BE();
    if (opcode === Opcode.KEEPALIVE) return;
    if (opcode !== Opcode.REGISTER_XFER_MEMORY) throw wrong(`a command of opcode ${opcode}`);
    const address = command.readBigUInt64BE(Field.ADDRESS);
    const bytes = command.readUInt32BE(Field.LENGTH);
    if (bytes === 0 || address + BigInt(bytes) > 2n ** 64n) throw wrong(`a buffer of ${bytes} bytes`);
    if (this.#remoteAt < this.#remoteLength) throw wrong('another buffer before the last one was full');
    this.#remote = new RemoteMemory({ address, rkey: command.readUInt32BE(Field.RKEY) });
    this.#remoteLength = bytes;
    this.#remoteAt = 0;
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  /** Passes a copy to the reader, because the peer overwrites a buffer that is announced again. */
  #deliver(): void {
    while (this.#wanted && this.#taken < this.#arrived) {
      const chunk = Buffer.from(this.#received.subarray(this.#taken, this.#arrived));
      this.#taken = this.#arrived;
      if (this.#taken === this.#received.length && !this.#over) {
        this.#taken = 0;
        this.#arrived = 0;
        this.command(Opcode.REGISTER_XFER_MEMORY);
      }
      this.#wanted = false;
      if (this.push(chunk)) this.#wanted = true;
    }
    if (this.#over && this.#taken === this.#arrived) this.push(null);
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, written: Callback): void {
    this.#rest = chunk;
    this.#written = written;
    this.#attempt(this.#flush);
  }

  /** Data that a program has written while `_write` was in progress. */
  override _writev(chunks: readonly { readonly chunk: Uint8Array }[], written: Callback): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'utf8', written);
  }

  /** Posts written data while the peer's buffer and the send buffer have room. */
  readonly #flush = (): void => {
    const written = this.#written;
    if (written === undefined || this.connecting) return;
    if (this.#over) throw lost('the peer has ended it');
    const size = this.#sending.length;
    while (this.#rest.length > 0) {
      const from = this.#posted % size;
      const free = Math.min(size - from, size - (this.#posted - this.#acknowledged));
      const bytes = Math.min(this.#rest.length, free, this.#remoteLength - this.#remoteAt);
      if (bytes === 0 || this.#outstanding >= WRITES) return;
      this.#sending.set(this.#rest.subarray(0, bytes), from);
      this.#sendingSge[0].offset = from;
      this.#sendingSge[0].length = bytes;
      this.#posted += bytes;
      const mark = this.#next(this.#posted - this.#marked >= size / 4 || this.#unmarked >= SIGNAL_EVERY);
      const flags = mark === undefined ? WvSend.IMMEDIATE : WvSend.IMMEDIATE | WvSend.SIGNALED;
      this.#qp.write(mark, this.#sendingSge, flags, this.#remote, this.#remoteAt, bytes);
      this.#rest = this.#rest.subarray(bytes);
      this.#remoteAt += bytes;
    }
    this.#written = undefined;
    // The call is deferred, so that everything else that the program writes now arrives in one `_writev`.
    queueMicrotask(written);
  };

  override _final(finished: Callback): void {
    this.#finished = finished;
    if (this.connecting) this.once('connect', this.#finish);
    else this.#attempt(this.#finish);
  }

  /** Ends both directions when the last byte has been acknowledged; the protocol cannot end only one. */
  readonly #finish = (): void => {
    const finished = this.#finished;
    if (finished === undefined) return;
    if (this.#unmarked > 0 && !this.#over) this.command(Opcode.KEEPALIVE);
    if (this.#outstanding > 0 && !this.#over) return;
    this.#finished = undefined;
    void this.#release();
    finished();
  };

  protected command(opcode: number): void {
    if (this.#outstanding >= WRITES + COMMANDS) throw lost('the peer does not accept commands');
    this.#commandSge[0].offset = (RECEIVES + opcode) * COMMAND_BYTES;
    this.#qp.send(this.#next(true), this.#commandSge, WvSend.SIGNALED);
  }

  /** The context of the next request. */
  #next(marked: boolean): Mark | undefined {
    this.#outstanding += 1;
    this.#unmarked += 1;
    if (!marked) return undefined;
    const mark: Mark = [this.#posted, this.#unmarked];
    this.#marked = this.#posted;
    this.#unmarked = 0;
    return mark;
  }

  readonly #beat = (): void => {
    if (this.#outstanding === this.#unmarked) this.command(Opcode.KEEPALIVE);
    else if (++this.#silent > SILENT) throw lost('the peer does not respond');
  };

  #disconnected(error: unknown): void {
    // Processes data that arrived before the disconnect.
    if (!this.#over) this.#poll(RECEIVES + WRITES + COMMANDS);
    if (this.#over) return;
    const ended = (error as StatusError).status === Status.CONNECTION_DISCONNECTED;
    if (!ended || this.#written !== undefined) throw lost('the peer is gone');
    void this.#release();
    this.#deliver();
  }

  /** Runs a function outside a promise; an error destroys the stream. */
  readonly #attempt = (run: () => void): void => {
    try {
      run();
    } catch (error) {
      this.destroy(error as Error);
    }
  };

  override _destroy(error: Error | null, callback: Callback): void {
    clearTimeout(this.#timeout);
    void this.#release();
    this.#written?.(error ?? lost('the stream is destroyed'));
    callback(error);
  }

  async #release(): Promise<void> {
    const [endpoint, device] = [this.#endpoint, this.#device];
    this.#endpoint = undefined;
    this.#device = undefined;
    this.#over = true;
    clearInterval(this.#keepAlive);
    // Ends the queue pair immediately. Fails, possibly after a long wait, if there was no connection or the peer does not confirm.
    const confirmed = (async () => endpoint?.disconnect())().catch(() => {});
    await device?.[Symbol.asyncDispose]();
    await confirmed;
    endpoint?.release();
  }

  /** The timeout fires once, unlike a socket's: client libraries set it before waiting and clear it afterwards. */
  setTimeout(ms: number, callback?: () => void): this {
    clearTimeout(this.#timeout);
    if (ms > 0 && callback !== undefined) this.#timeout = setTimeout(callback, ms);
    return this;
  }

  readonly setNoDelay = (): this => this;
  readonly setKeepAlive = (): this => this;
}

const zeros = (bytes: number): Buffer => Buffer.from(allocate(bytes).buffer, 0, bytes);
const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });
const lost = (why: string): Error => failure('ECONNRESET', `The connection is lost: ${why}.`);
export const wrong = (what: string): Error =>
  failure('EPROTO', `The peer violates the protocol: it has sent ${what}.`);
