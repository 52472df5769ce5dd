/**
 * A queue of the initiator: one connection, which carries commands and completions as messages. It uses ND SPI v2, which suffices for an
 * initiator because the target moves the data.
 */
import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2MemoryRegion,
  type IND2QueuePair,
  Nd2MrFlag,
  Nd2RequestType,
  type Nd2Result,
  type Nd2Sge,
  type SocketAddress,
  Status,
  statusName,
} from '../../index.js';
import { memoryFor } from '../sides/connected-side.js';
import {
  Command,
  Completion,
  ConnectReject,
  ConnectRequest,
  NvmeConnectionError,
  NvmeError,
  NvmeRefusedError,
  RejectStatus,
  Sgl,
  USES_SGL,
} from './capsules.js';
import type { Parsed } from './little-endian.js';

const COMMAND = Command.bytes;
const COMPLETION = Completion.bytes;
const BATCH = 32;

/** Parameters of a queue. */
export interface QueueOptions {
  readonly adapter: IND2Adapter;
  readonly local: SocketAddress;
  readonly target: SocketAddress;
  /** 0: the admin queue. */
  readonly id: number;
  /** Maximum commands in flight, at least 2. */
  readonly depth: number;
  /** Size in bytes of the data buffer of each slot. */
  readonly slotBytes: number;
  /** Maximum bytes of data in a command capsule. */
  readonly capsuleBytes: number;
  readonly controllerId: number;
  /** Time limit for a command in ms; 0: none. */
  readonly answerMs: number;
}

/** Registered memory with the data of a command. */
export interface Data {
  readonly region: IND2MemoryRegion;
  readonly address: bigint;
  readonly token: number;
  readonly offset: number;
  readonly length: number;
}

/** The direction of a command's data as seen from the host. */
export type Direction = 'in' | 'out';

/** The resources of one command in flight. */
export class Slot {
  /** The slot's registered data buffer. */
  readonly data: Buffer;
  /** @internal */
  readonly command: Buffer;
  /** @internal */
  settle: { resolve(result: bigint): void; reject(error: unknown): void; what: string } | undefined;
  /** When its command was sent, in ms. @internal */
  sent = 0;

  /** @internal */
  constructor(
    private readonly queue: NvmeQueue,
    readonly id: number,
    command: Buffer,
    data: Buffer,
  ) {
    this.command = command;
    this.data = data;
  }

  /** The first bytes of its data buffer, for {@link run}. */
  own(length: number): Data {
    return this.queue.ownData(this.id, length);
  }

  /**
   * Sends a command and waits for its completion.
   *
   * @param what - name of the command in error messages
   * @param fill - writes the fields of the command
   * @returns the result field of the completion
   * @throws NvmeError, NvmeConnectionError
   */
  run(
    what: string,
    fill: (command: Buffer) => void,
    data?: Data,
    direction: Direction = 'in',
  ): Promise<bigint> {
    return this.queue.run(this, what, fill, data, direction);
  }

  /** Returns the slot to its queue. */
  free(): void {
    this.queue.free(this);
  }
}

export class NvmeQueue {
  /** Rejects when the connection is lost; never fulfills. */
  readonly lost: Promise<never>;
  readonly #options: QueueOptions;
  readonly #connector: IND2Connector;
  readonly #queue: IND2CompletionQueue;
  readonly #queuePair: IND2QueuePair;
  readonly #capsules: IND2MemoryRegion;
  readonly #dataRegion: IND2MemoryRegion;
  readonly #capsuleBytes: Buffer;
  readonly #slots: Slot[] = [];
  readonly #free: Slot[] = [];
  readonly #waiting: { resolve(slot: Slot): void; reject(error: unknown): void }[] = [];
  readonly #dataBytes: Buffer;
  #dataAddress = 0n;
  #dataToken = 0;
  #error: Error | undefined;
  #fail!: (error: Error) => void;
  #released = false;
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: QueueOptions) {
    this.#options = options;
    const { adapter, depth, slotBytes } = options;
    const entries = 2 * depth;
    this.#queue = adapter.createCompletionQueue(entries + depth);
    this.#queuePair = adapter.createQueuePair({
      receiveCompletionQueue: this.#queue,
      initiatorCompletionQueue: this.#queue,
      receiveQueueDepth: depth,
      // A completion may arrive before the Send that carried its command has completed.
      initiatorQueueDepth: entries,
      maxInitiatorRequestSge: 2,
    });
    this.#connector = adapter.createConnector();
    this.#capsules = adapter.createMemoryRegion();
    this.#dataRegion = adapter.createMemoryRegion();
    this.#capsuleBytes = bufferFor(depth * (COMMAND + COMPLETION));
    this.#dataBytes = bufferFor(depth * slotBytes);
    this.lost = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.lost.catch(() => {});
  }

  /** Opens a connected queue. Its first command must be Connect. @throws NvmeConnectionError, NdError */
  static async open(options: QueueOptions): Promise<NvmeQueue> {
    const queue = new NvmeQueue(options);
    try {
      await queue.#prepare();
      await queue.#connect();
      return queue;
    } catch (error) {
      queue.#release();
      throw error;
    }
  }

  get id(): number {
    return this.#options.id;
  }

  /** Number of commands that wait for a slot or are in flight. */
  get load(): number {
    return this.#options.depth - this.#free.length + this.#waiting.length;
  }

  /** Size of a slot's data buffer in bytes. */
  get slotBytes(): number {
    return this.#options.slotBytes;
  }

  /** Waits for a free slot. @throws NvmeConnectionError */
  slot(): Promise<Slot> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    const slot = this.#free.pop();
    if (slot !== undefined) return Promise.resolve(slot);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Calls `use` with a slot, which is released afterwards. */
  async with<T>(use: (slot: Slot) => Promise<T>): Promise<T> {
    const slot = await this.slot();
    try {
      return await use(slot);
    } finally {
      slot.free();
    }
  }

  /** Ends the connection. Commands in flight fail. With an error, it does not wait for the peer, which is lost. */
  async close(error?: Error): Promise<void> {
    if (this.#error === undefined) this.#end(error ?? new NvmeConnectionError('The queue was closed.'));
    if (this.#released) return;
    if (error === undefined) {
      try {
        await this.#connector.disconnect();
      } catch {
        // The connection has already ended.
      }
    }
    this.#release();
  }

  /** @internal */
  ownData(id: number, length: number): Data {
    const { slotBytes } = this.#options;
    if (length > slotBytes)
      throw new RangeError(`Data in a slot must have at most ${slotBytes} bytes; got ${length}.`);
    return {
      region: this.#dataRegion,
      address: this.#dataAddress,
      token: this.#dataToken,
      offset: id * slotBytes,
      length,
    };
  }

  /** @internal */
  free(slot: Slot): void {
    if (this.#error !== undefined) return;
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(slot);
    else next.resolve(slot);
  }

  /** @internal */
  run(
    slot: Slot,
    what: string,
    fill: (command: Buffer) => void,
    data: Data | undefined,
    direction: Direction,
  ): Promise<bigint> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    const { command, id } = slot;
    command.fill(0);
    fill(command);
    Command.emit({ flags: USES_SGL, commandId: id }, command);
    const sgl: Nd2Sge[] = [{ memory: this.#capsules, offset: id * COMMAND, length: COMMAND }];
    if (data !== undefined && direction === 'out' && data.length <= this.#options.capsuleBytes) {
      Command.emit({ address: 0n, blockLength: data.length, sglType: Sgl.IN_CAPSULE }, command);
      sgl.push({ memory: data.region, offset: data.offset, length: data.length });
    } else if (data === undefined) {
      Command.emit({ sglType: Sgl.KEYED }, command);
    } else {
      const { address, offset, length, token } = data;
      const place = { address: address + BigInt(offset), keyedLength: length, key: token };
      Command.emit({ ...place, sglType: Sgl.KEYED }, command);
    }
    return new Promise((resolve, reject) => {
      slot.settle = { resolve, reject, what };
      slot.sent = performance.now();
      this.#timer ??= this.#watch();
      try {
        this.#queuePair.send(slot, sgl);
      } catch (error) {
        // The send queue has room for the command of every slot, so the connection is broken.
        this.#end(new NvmeConnectionError('The connection does not accept a command.', { cause: error }));
      }
    });
  }

  /** A timer, while commands are in flight, that ends the connection if one exceeds the time limit. */
  #watch(): NodeJS.Timeout | undefined {
    const { answerMs } = this.#options;
    if (answerMs === 0) return undefined;
    const checkOldest = () => {
      const flying = this.#slots.filter(({ settle }) => settle !== undefined);
      const [oldest] = flying.sort((a, b) => a.sent - b.sent);
      this.#timer = oldest === undefined ? undefined : this.#watch();
      if (oldest === undefined || performance.now() - oldest.sent < answerMs) return;
      const what = oldest.settle!.what;
      this.#end(new NvmeConnectionError(`${what} did not complete within ${answerMs} ms.`));
    };
    return setTimeout(checkOldest, answerMs / 4).unref();
  }

  async #prepare(): Promise<void> {
    const { depth, slotBytes } = this.#options;
    const { ALLOW_LOCAL_WRITE, ALLOW_REMOTE_READ, ALLOW_REMOTE_WRITE } = Nd2MrFlag;
    await this.#capsules.register(this.#capsuleBytes, ALLOW_LOCAL_WRITE);
    await this.#dataRegion.register(this.#dataBytes, ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE);
    this.#dataAddress = this.#dataRegion.address;
    this.#dataToken = this.#dataRegion.getRemoteToken();
    for (let id = 0; id < depth; id += 1) {
      const command = this.#capsuleBytes.subarray(id * COMMAND, (id + 1) * COMMAND);
      const data = this.#dataBytes.subarray(id * slotBytes, (id + 1) * slotBytes);
      const slot = new Slot(this, id, command, data);
      this.#slots.push(slot);
      this.#free.push(slot);
      this.#receive(id);
    }
  }

  async #connect(): Promise<void> {
    const { id, depth, controllerId, local, target } = this.#options;
    const privateData = ConnectRequest.make({
      queueId: id,
      hostReceiveSize: depth,
      hostSendSize: depth - 1,
      controllerId: id === 0 ? 0 : controllerId,
    });
    this.#connector.bind(local);
    try {
      await this.#connector.connect(this.#queuePair, target, { privateData });
    } catch (error) {
      throw this.#refusal(error);
    }
    await this.#connector.completeConnect();
    this.#connector.notifyDisconnect().then(
      () => this.#end(new NvmeConnectionError('The target ended the connection.')),
      (error) => this.#end(new NvmeConnectionError('The connection ended.', { cause: error })),
    );
    void this.#pump();
  }

  /** Converts a rejection by the target that has a reason. */
  #refusal(error: unknown): unknown {
    try {
      const { status } = ConnectReject.parse(Buffer.from(this.#connector.getPrivateData()));
      const name = Object.entries(RejectStatus).find(([, value]) => value === status)?.[0];
      if (name === undefined) return error;
      return new NvmeRefusedError(`The target rejected queue ${this.id}: ${name}.`, { cause: error });
    } catch {
      return error;
    }
  }

  #receive(id: number): void {
    const offset = this.#options.depth * COMMAND + id * COMPLETION;
    this.#queuePair.receive(id, [{ memory: this.#capsules, offset, length: COMPLETION }]);
  }

  /** Processes results until the connection ends. */
  async #pump(): Promise<void> {
    const results: Nd2Result[] = [];
    try {
      while (this.#error === undefined) {
        const count = this.#queue.getResults(results, BATCH);
        for (let i = 0; i < count; i += 1) this.#completed(results[i]!);
        if (count === 0) await this.#queue.notify('any');
      }
    } catch (error) {
      this.#end(new NvmeConnectionError('The queue failed.', { cause: error }));
    }
  }

  #completed({ status, requestType, requestContext, bytesTransferred }: Nd2Result): void {
    if (status !== Status.SUCCESS) {
      this.#end(new NvmeConnectionError(`The connection to the target failed: ${statusName(status)}.`));
      return;
    }
    if (requestType !== Nd2RequestType.RECEIVE || this.#error !== undefined) return;
    const id = requestContext as number;
    if (bytesTransferred !== COMPLETION) {
      this.#end(
        new NvmeConnectionError(
          `Completions must have ${COMPLETION} bytes; the target sent ${bytesTransferred}.`,
        ),
      );
      return;
    }
    const at = this.#options.depth * COMMAND + id * COMPLETION;
    const completion = Completion.parse(this.#capsuleBytes, at);
    this.#receive(id);
    this.#settle(completion);
  }

  #settle({ commandId, statusField, result }: Parsed<typeof Completion>): void {
    const slot = this.#slots[commandId];
    const settle = slot?.settle;
    if (slot === undefined || settle === undefined) {
      this.#end(
        new NvmeConnectionError(`The target completed command ${commandId}, which is not in flight.`),
      );
      return;
    }
    slot.settle = undefined;
    const status = statusField >>> 1;
    if (status === 0) settle.resolve(result);
    else settle.reject(new NvmeError(settle.what, status));
  }

  /** Ends the connection and fails all pending operations. */
  #end(error: Error): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    clearTimeout(this.#timer);
    this.#fail(error);
    for (const slot of this.#slots) {
      slot.settle?.reject(error);
      slot.settle = undefined;
    }
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#error ??= new NvmeConnectionError('The queue was closed.');
    for (const one of [this.#connector, this.#queuePair, this.#queue, this.#capsules, this.#dataRegion]) {
      one.release();
    }
  }
}

function bufferFor(bytes: number): Buffer {
  const memory = memoryFor(bytes);
  return Buffer.from(memory.buffer, memory.byteOffset, memory.length);
}
