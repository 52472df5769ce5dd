import { Status, StatusError } from '../ioctl/status.js';
import type { Address, Handle, Native, NativeMemory } from './win32.js';

/** IO_STATUS_BLOCK: NTSTATUS at 0, Information at 8. */
const ioStatusSize = 16;
/** Size of the smallest block, which fits the fixed input and output of every IOCTL. */
const smallest = 512;
/** Larger blocks are freed after use. */
const largestKept = 65_536;

/**
 * Memory of one request: its IO_STATUS_BLOCK, input and output, and an event. It belongs to the driver from the start of the request until
 * its completion has been dequeued, and is reused only then.
 */
export class RequestBlock {
  readonly ioStatus: Address;
  readonly #words: Int32Array;
  /** Size, which selects the list of free blocks. */
  readonly size: number;
  inputAt = 0;
  inputLength = 0;
  outputAt = 0;
  outputLength = 0;
  /** Bytes of output that are in the block. */
  #ownOutput = 0;

  constructor(
    readonly memory: NativeMemory,
    readonly event: Handle,
  ) {
    this.ioStatus = memory.address;
    this.size = memory.bytes.length;
    this.#words = new Int32Array(memory.bytes.buffer, memory.bytes.byteOffset, ioStatusSize / 4);
  }

  /** Initializes the block with the input, space for the output unless it is elsewhere (`outputAt`), and PENDING. */
  fill(input: Uint8Array | null, outputLength: number, outputAt: Address): void {
    this.inputLength = input?.length ?? 0;
    this.outputLength = outputLength;
    this.#ownOutput = outputAt === 0 ? outputLength : 0;
    const outputFrom = ioStatusSize + roundUp(this.inputLength);
    if (input !== null) this.memory.bytes.set(input, ioStatusSize);
    this.inputAt = this.inputLength === 0 ? 0 : this.ioStatus + ioStatusSize;
    this.outputAt = outputLength === 0 ? 0 : outputAt || this.ioStatus + outputFrom;
    this.#words[2] = 0;
    Atomics.store(this.#words, 0, Status.PENDING);
  }

  /** NTSTATUS of the request; PENDING until it has completed. */
  get status(): number {
    return Atomics.load(this.#words, 0) >>> 0;
  }

  /** Stores the status that the call itself returned. */
  set status(value: number) {
    Atomics.store(this.#words, 0, value);
  }

  /** Returns a copy of the output. A request that failed has none. */
  output(): Uint8Array {
    if (isError(this.status)) return new Uint8Array(0);
    const from = ioStatusSize + roundUp(this.inputLength);
    return this.memory.bytes.slice(from, from + Math.min(this.#words[2]! >>> 0, this.#ownOutput));
  }
}

/** NT_ERROR. Requests with such a status have no output. They have no packet if they complete immediately. */
export function isError(status: number): boolean {
  return status >>> 30 === 3;
}

function roundUp(length: number): number {
  return (length + 15) & ~15;
}

/** The blocks of one thread. */
export class RequestMemory {
  readonly #free = new Map<number, RequestBlock[]>();

  constructor(private readonly native: Native) {}

  /** Returns a block that is initialized for a request. @throws StatusError INSUFFICIENT_RESOURCES */
  allocate(input: Uint8Array | null, outputLength: number, outputAt: Address): RequestBlock {
    const bytes = ioStatusSize + Math.ceil((input?.length ?? 0) / 16) * 16 + outputLength;
    const size = Math.max(smallest, 2 ** Math.ceil(Math.log2(bytes)));
    const block = this.#free.get(size)?.pop() ?? this.#create(size);
    block.fill(input, outputLength, outputAt);
    return block;
  }

  /** Releases a block that the driver no longer uses. */
  release(block: RequestBlock): void {
    if (block.size > largestKept) {
      this.native.close(block.event);
      block.memory.free();
      return;
    }
    const list = this.#free.get(block.size);
    if (list === undefined) this.#free.set(block.size, [block]);
    else list.push(block);
  }

  #create(size: number): RequestBlock {
    const memory = this.native.allocate(size);
    const event = this.native.own(this.native.createEvent());
    if (event === 0) {
      memory.free();
      throw new StatusError(Status.INSUFFICIENT_RESOURCES, 'Windows cannot create an event for the request.');
    }
    return new RequestBlock(memory, event);
  }
}
