/**
 * A queue of the target: one connection of a host. It receives command capsules, moves their data with RDMA Reads and Writes, and sends
 * completions. It uses WinVerbs because NetworkDirect lacks Send with Invalidate. A completion uses it to invalidate the key that Linux
 * provides with each command.
 */
import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  RemoteMemory,
  WcStatus,
  WvAccess,
  type WvCompletion,
  WvSend,
} from '../../../winverbs/index.js';
import type { HostWv, MemoryWv } from '../sides/winverbs-side.js';
import {
  Command,
  CommandError,
  Completion,
  ConnectAccept,
  DO_NOT_RETRY,
  NvmeStatus,
  PAGE,
  Sgl,
} from './capsules.js';
import type { Parsed } from './little-endian.js';

/** Maximum data of a command (MDTS): 2^n pages. */
export const TRANSFER_BITS = 5;
export const TRANSFER_BYTES = PAGE << TRANSFER_BITS;
/** Maximum bytes of data in a capsule. */
export const IN_CAPSULE_BYTES = 8192;
const CAPSULE = Command.bytes + IN_CAPSULE_BYTES;
/** Maximum commands of a queue whose data is being transferred. */
const BUFFERS = 16;
/** Maximum RDMA Reads in flight. */
const READS = 16;
const BATCH = 32;

/** The data transfer of a command, as seen from the host. */
export interface DataPlan {
  readonly direction: 'in' | 'out';
  readonly length: number;
}

/** A supported command. Its methods throw {@link CommandError}. */
export interface TargetCommand {
  /** Default: no data. */
  data?(work: Work): DataPlan;
  /** Executes the command. Returns the result field of the completion; undefined means 0. */
  run(work: Work): Promise<bigint | undefined> | bigint | undefined;
}

/** A command in progress. */
export interface Work {
  readonly queue: TargetQueue;
  readonly command: Buffer;
  /** Received data, or the buffer for the reply, with the planned length. */
  data: Buffer;
}

/** The user of a queue. */
export interface QueueUser {
  /** Finds the implementation of a command. @throws CommandError */
  find(queue: TargetQueue, command: Buffer): TargetCommand;
  /** Called once when the connection has ended. */
  ended(queue: TargetQueue): void;
  /** Called for a failure that the host did not cause. */
  failed(error: unknown): void;
}

/** A validated connection request. */
export interface QueueRequest {
  readonly id: number;
  /** Maximum commands that the host has in flight. */
  readonly depth: number;
  readonly controllerId: number;
  /** RDMA Reads that the host accepts. */
  readonly reads: number;
}

interface Response {
  readonly offset: number;
  /** Index of its data buffer, until the completion was sent. */
  buffer: number | undefined;
}

interface Pending {
  resolve(): void;
  reject(error: Error): void;
}

export class TargetQueue {
  /** Entries of the submission queue according to Connect. */
  size = 0;
  /** Whether Connect has disabled flow control, so that completions carry no head pointer. */
  withoutFlowControl = false;
  readonly #cq: IWVCompletionQueue;
  readonly #qp: IWVConnectQueuePair;
  readonly #capsules: MemoryWv;
  readonly #completions: MemoryWv;
  readonly #buffers: MemoryWv;
  readonly #freeBuffers: number[] = [];
  readonly #bufferWaiters: ((buffer: number) => void)[] = [];
  readonly #freeResponses: Response[] = [];
  readonly #responseWaiters: ((response: Response) => void)[] = [];
  readonly #reading = new Set<Pending>();
  #head = 0;
  #over = false;

  /** Takes ownership of the references to `host` and `endpoint`. */
  constructor(
    private readonly host: HostWv,
    private readonly endpoint: IWVConnectEndpoint,
    readonly request: QueueRequest,
    private readonly user: QueueUser,
  ) {
    const { depth, reads } = request;
    const responses = 2 * depth;
    const sendDepth = 2 * BUFFERS + responses;
    this.#cq = host.device.createCompletionQueue(depth + sendDepth);
    const shape = { sendDepth, sendSge: 1, receiveDepth: depth, receiveSge: 1 };
    const initiatorDepth = Math.min(READS, reads);
    this.#qp = host.queuePair(this.#cq, { ...shape, initiatorDepth, responderResources: 0 });
    this.#capsules = host.memory(depth * CAPSULE, WvAccess.LOCAL_WRITE);
    this.#completions = host.memory(responses * Completion.bytes, 0);
    this.#buffers = host.memory(BUFFERS * TRANSFER_BYTES, WvAccess.LOCAL_WRITE);
    for (let n = 0; n < BUFFERS; n += 1) this.#freeBuffers.push(n);
    for (let n = 0; n < responses; n += 1) {
      this.#freeResponses.push({ offset: n * Completion.bytes, buffer: undefined });
    }
    for (let n = 0; n < depth; n += 1) this.#receive(n);
  }

  /** 0: an admin queue. */
  get id(): number {
    return this.request.id;
  }

  /** The local address to which the host connected. */
  get localAddress() {
    return this.endpoint.query().localAddress;
  }

  get peerAddress(): string {
    return this.endpoint.query().peerAddress?.address ?? 'unknown';
  }

  /** Accepts the connection and starts to serve it. @throws WvError */
  async accept(): Promise<void> {
    const { depth, reads } = this.request;
    const privateData = ConnectAccept.make({ receiveSize: depth });
    const initiatorDepth = Math.min(READS, reads);
    void this.#pump();
    try {
      await this.endpoint.accept(this.#qp, { privateData, initiatorDepth, responderResources: 0 });
      this.endpoint.notifyDisconnect().catch(() => this.end());
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** Ends the connection. */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    for (const { reject } of this.#reading) reject(new Error('The connection ended.'));
    this.#reading.clear();
    void this.#release();
    this.user.ended(this);
  }

  async #release(): Promise<void> {
    try {
      await this.endpoint.disconnect();
    } catch {
      // The connection has already ended.
    }
    this.endpoint.release();
    this.#qp.release();
    this.#cq.release();
    for (const memory of [this.#capsules, this.#completions, this.#buffers]) memory.release();
    this.host.release();
  }

  #receive(slot: number): void {
    this.#qp.postReceive(slot, this.#capsules.sge(slot * CAPSULE, CAPSULE));
  }

  async #pump(): Promise<void> {
    const batch: WvCompletion[] = [];
    try {
      while (!this.#over) {
        const count = this.#cq.poll(batch, BATCH);
        for (let i = 0; i < count; i += 1) this.#completed(batch[i]!);
        if (count === 0) await this.#cq.notify('any');
      }
    } catch (error) {
      if (!this.#over) this.user.failed(error);
      this.end();
    }
  }

  #completed({ status, context, length }: WvCompletion): void {
    if (this.#over) return;
    if (status !== WcStatus.SUCCESS) this.end();
    else if (typeof context === 'number') void this.#serve(context, length);
    else if (this.#reading.delete(context as Pending)) (context as Pending).resolve();
    else this.#sent(context as Response);
  }

  #sent(response: Response): void {
    if (response.buffer !== undefined) this.#releaseBuffer(response.buffer);
    response.buffer = undefined;
    const next = this.#responseWaiters.shift();
    if (next === undefined) this.#freeResponses.push(response);
    else next(response);
  }

  /** Processes one command, from its capsule to its completion. */
  async #serve(slot: number, length: number): Promise<void> {
    if (length < Command.bytes) {
      // Without a command identifier, no completion can be sent.
      this.end();
      return;
    }
    const at = slot * CAPSULE;
    const all = this.#bytesOf(this.#capsules, at, length);
    const head = Command.parse(all);
    const work: Work = { queue: this, command: all.subarray(0, Command.bytes), data: Buffer.alloc(0) };
    let buffer: number | undefined;
    let toWrite = 0;
    let status: number = NvmeStatus.SUCCESS;
    let result = 0n;
    try {
      const command = this.user.find(this, work.command);
      const plan = command.data?.(work);
      if (plan !== undefined && plan.length > 0) {
        checkData(plan, head, length);
        if (head.sglType === Sgl.IN_CAPSULE) {
          const from = Command.bytes + Number(head.address);
          work.data = all.subarray(from, from + plan.length);
        } else {
          buffer = await this.#buffer();
          work.data = this.#bytesOf(this.#buffers, buffer * TRANSFER_BYTES, plan.length);
          if (plan.direction === 'out') await this.#read(buffer, plan.length, head);
          else work.data.fill(0);
        }
      }
      result = (await command.run(work)) ?? 0n;
      if (plan?.direction === 'in') toWrite = plan.length;
    } catch (error) {
      if (this.#over) return;
      if (!(error instanceof CommandError)) this.user.failed(error);
      const known = error instanceof CommandError;
      status = known ? error.status | DO_NOT_RETRY : NvmeStatus.INTERNAL_ERROR;
      if (known) result = error.result;
    }
    await this.#respond(slot, head, { status, result, buffer, toWrite });
  }

  async #respond(
    slot: number,
    head: Parsed<typeof Command>,
    { status, result, buffer, toWrite }: Answer,
  ): Promise<void> {
    const response = this.#freeResponses.pop() ?? (await this.#response());
    if (this.#over) return;
    if (this.size > 0) this.#head = (this.#head + 1) % this.size;
    Completion.emit(
      {
        result,
        head: this.withoutFlowControl ? 0xffff : this.#head,
        commandId: head.commandId,
        statusField: (status << 1) & 0xffff,
        queueId: this.id,
      },
      this.#bytesOf(this.#completions, response.offset, Completion.bytes),
    );
    response.buffer = buffer;
    try {
      // The host may reuse the slot as soon as it has the completion.
      this.#receive(slot);
      if (toWrite > 0) {
        const from = this.#buffers.sge(buffer! * TRANSFER_BYTES, toWrite);
        this.#qp.write(response, from, 0, remoteOf(head), 0);
      }
      const sge = this.#completions.sge(response.offset, Completion.bytes);
      if (head.sglType === Sgl.KEYED_INVALIDATE && head.keyedLength > 0) {
        this.#qp.sendAndInvalidate(response, sge, WvSend.SIGNALED, head.key);
      } else {
        this.#qp.send(response, sge, WvSend.SIGNALED);
      }
    } catch (error) {
      if (!this.#over) this.user.failed(error);
      this.end();
    }
  }

  #read(buffer: number, length: number, head: Parsed<typeof Command>): Promise<void> {
    return new Promise((resolve, reject) => {
      const pending: Pending = { resolve, reject };
      this.#reading.add(pending);
      const into = this.#buffers.sge(buffer * TRANSFER_BYTES, length);
      this.#qp.read(pending, into, WvSend.SIGNALED, remoteOf(head), 0);
    });
  }

  #buffer(): Promise<number> {
    const free = this.#freeBuffers.pop();
    if (free !== undefined) return Promise.resolve(free);
    return new Promise((resolve) => this.#bufferWaiters.push(resolve));
  }

  #releaseBuffer(buffer: number): void {
    const next = this.#bufferWaiters.shift();
    if (next === undefined) this.#freeBuffers.push(buffer);
    else next(buffer);
  }

  #response(): Promise<Response> {
    return new Promise((resolve) => this.#responseWaiters.push(resolve));
  }

  #bytesOf({ bytes }: MemoryWv, offset: number, length: number): Buffer {
    return Buffer.from(bytes.buffer, bytes.byteOffset + offset, length);
  }
}

interface Answer {
  readonly status: number;
  readonly result: bigint;
  readonly buffer: number | undefined;
  readonly toWrite: number;
}

const remoteOf = ({ address, key }: Parsed<typeof Command>): RemoteMemory =>
  new RemoteMemory({ address, rkey: key });

/** Checks that the descriptor is supported and matches the length of the command's data. @throws CommandError */
function checkData(plan: DataPlan, head: Parsed<typeof Command>, capsule: number): void {
  const { sglType, address, blockLength, keyedLength } = head;
  if (plan.length > TRANSFER_BYTES) throw new CommandError(NvmeStatus.INVALID_FIELD);
  if (sglType === Sgl.IN_CAPSULE) {
    if (plan.direction !== 'out') throw new CommandError(NvmeStatus.SGL_TYPE_INVALID);
    if (blockLength !== plan.length) throw new CommandError(NvmeStatus.SGL_LENGTH_INVALID);
    if (address + BigInt(Command.bytes + blockLength) > BigInt(capsule)) {
      throw new CommandError(NvmeStatus.SGL_OFFSET_INVALID);
    }
  } else if (sglType === Sgl.KEYED || sglType === Sgl.KEYED_INVALIDATE) {
    if (keyedLength !== plan.length) throw new CommandError(NvmeStatus.SGL_LENGTH_INVALID);
  } else {
    throw new CommandError(NvmeStatus.SGL_TYPE_INVALID);
  }
}
