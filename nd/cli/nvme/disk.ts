/** A namespace as an object similar to FileHandle, and as streams. */
import { Duplex, Readable, Writable } from 'node:stream';
import { BlockCommand, Command, Io, NvmeConnectionError } from './capsules.js';
import type { NvmeController } from './controller.js';
import type { Data, Direction, NvmeQueue } from './queue.js';

/** Part of a namespace for a stream: bytes from `start` up to but not including `end`. Default: all. */
export interface Part {
  readonly start?: number;
  readonly end?: number;
}

/** A writable stream to a namespace. */
export interface DiskWriter extends Writable {
  /** Bytes that the target has written, as in `fs.WriteStream`. Queued or pending bytes are not included. */
  bytesWritten: number;
}

/** Size in bytes of one read or write of a stream. */
const STREAM_BYTES = 1 << 20;

/** An open namespace. Positions and lengths are in bytes and need not be multiples of a block. */
export class Disk {
  /** Size in bytes. */
  readonly size: number;
  #closed = false;
  /** Settles after the pending read-modify-write operations, which must not overtake each other. */
  #partial: Promise<unknown> = Promise.resolve();

  /** @internal */
  constructor(
    private readonly controller: NvmeController,
    /** The namespace identifier. */
    readonly id: number,
    /** Block size in bytes. */
    readonly blockSize: number,
    /** Number of blocks. */
    readonly blocks: number,
  ) {
    this.size = blocks * blockSize;
  }

  /**
   * Reads as `FileHandle.read` does. Returns fewer bytes than requested only at the end of the disk.
   *
   * @throws RangeError, NvmeError, NvmeConnectionError
   */
  async read<B extends Uint8Array>(
    buffer: B,
    offset = 0,
    length = buffer.length - offset,
    position = 0,
  ): Promise<{ bytesRead: number; buffer: B }> {
    const bytesRead = this.#check(buffer, offset, length, position, true);
    await this.#pieces(bytesRead, position, (begin, count) =>
      this.#readPiece(buffer.subarray(offset + begin, offset + begin + count), position + begin),
    );
    return { bytesRead, buffer };
  }

  /**
   * Writes as `FileHandle.write` does. Written data survives a crash of the target only after {@link sync}.
   *
   * @throws RangeError if it does not fit, NvmeError, NvmeConnectionError
   */
  async write<B extends Uint8Array>(
    buffer: B,
    offset = 0,
    length = buffer.length - offset,
    position = 0,
  ): Promise<{ bytesWritten: number; buffer: B }> {
    const bytesWritten = this.#check(buffer, offset, length, position, false);
    await this.#pieces(bytesWritten, position, (begin, count) =>
      this.#writePiece(buffer.subarray(offset + begin, offset + begin + count), position + begin),
    );
    return { bytesWritten, buffer };
  }

  /** Makes the target write its caches to the medium. */
  async sync(): Promise<void> {
    this.#open();
    await this.controller.io((queue) =>
      queue.with((slot) =>
        slot.run('Flush', (command) => Command.emit({ opcode: Io.FLUSH, namespaceId: this.id }, command)),
      ),
    );
  }

  /** Closes the handle; the controller stays open. */
  async close(): Promise<void> {
    this.#closed = true;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Creates a readable stream of a part. */
  createReadStream(part: Part = {}): Readable {
    const take = this.#reader(part);
    return new Readable({ highWaterMark: STREAM_BYTES, read: pushing(take) });
  }

  /** Creates a writable stream of a part, which is flushed at its end. Writing beyond the end of the part is an error. */
  createWriteStream(part: Part = {}): DiskWriter {
    const put = this.#writer(part);
    const counted = async (chunk: Uint8Array): Promise<void> => {
      await put(chunk);
      stream.bytesWritten += chunk.length;
    };
    const writable = new Writable({ highWaterMark: STREAM_BYTES, ...writing(counted, () => this.sync()) });
    const stream: DiskWriter = Object.assign(writable, { bytesWritten: 0 });
    return stream;
  }

  /**
   * Creates a stream that is both readable and writable. Reading and writing each begin at the start and are
   * independent of each other.
   */
  createDuplex(part: Part = {}): Duplex {
    const take = this.#reader(part);
    const put = this.#writer(part);
    return new Duplex({
      readableHighWaterMark: STREAM_BYTES,
      writableHighWaterMark: STREAM_BYTES,
      read: pushing(take),
      ...writing(put, () => this.sync()),
    });
  }

  #reader({ start = 0, end = this.size }: Part): () => Promise<Buffer | null> {
    let position = start;
    return async () => {
      const length = Math.min(STREAM_BYTES, Math.min(end, this.size) - position);
      if (length <= 0) return null;
      const { buffer } = await this.read(Buffer.allocUnsafeSlow(length), 0, length, position);
      position += length;
      return buffer;
    };
  }

  #writer({ start = 0, end = this.size }: Part): (chunk: Uint8Array) => Promise<void> {
    let position = start;
    return async (chunk) => {
      if (position + chunk.length > end) {
        throw new RangeError(
          `Writes must not extend beyond byte ${end}; got ${chunk.length} bytes at ${position}.`,
        );
      }
      await this.write(chunk, 0, chunk.length, position);
      position += chunk.length;
    };
  }

  #open(): void {
    if (this.#closed) throw new NvmeConnectionError(`The handle of namespace ${this.id} is closed.`);
  }

  /** Returns the number of bytes to transfer. */
  #check(buffer: Uint8Array, offset: number, length: number, position: number, read: boolean): number {
    this.#open();
    const counts = { offset, length, position };
    for (const [name, value] of Object.entries(counts)) {
      if (!Number.isSafeInteger(value) || value < 0)
        throw new RangeError(`\`${name}\` must be a non-negative safe integer; got ${value}.`);
    }
    if (offset + length > buffer.length) {
      throw new RangeError(
        `\`offset\` + \`length\` must be at most ${buffer.length}, the length of the buffer; got ${offset} + ${length}.`,
      );
    }
    const left = Math.max(0, this.size - position);
    if (!read && length > left) {
      throw new RangeError(
        `Writes must end within the ${this.size} bytes of the disk; got ${length} bytes at ${position}.`,
      );
    }
    return Math.min(length, left);
  }

  /** Splits a transfer into concurrent commands. The first failure fails the whole transfer. */
  async #pieces(
    length: number,
    position: number,
    run: (begin: number, count: number) => Promise<void>,
  ): Promise<void> {
    const most = this.controller.transferBytes;
    const all: Promise<void>[] = [];
    for (let begin = 0; begin < length; ) {
      // A piece ends where its transfer of whole blocks ends.
      const inBlock = (position + begin) % this.blockSize;
      const count = Math.min(most - inBlock, length - begin);
      all.push(run(begin, count));
      begin += count;
    }
    const failed = (await Promise.allSettled(all)).find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  #readPiece(into: Uint8Array, position: number): Promise<void> {
    const { first, count, inFirst } = this.#blocksOf(position, into.length);
    const lent = this.#whole(into, position) ? this.controller.lentData(into) : undefined;
    return this.controller.io((queue) =>
      queue.with(async (slot) => {
        const data = lent ?? slot.own(count * this.blockSize);
        await slot.run('Read', this.#command(Io.READ, first, count), data);
        if (lent === undefined) into.set(slot.data.subarray(inFirst, inFirst + into.length));
      }),
    );
  }

  #writePiece(from: Uint8Array, position: number): Promise<void> {
    if (!this.#whole(from, position)) {
      const turn = this.#partial.then(() => this.#writePartial(from, position));
      this.#partial = turn.catch(() => {});
      return turn;
    }
    const { first, count } = this.#blocksOf(position, from.length);
    const lent = this.controller.lentData(from);
    return this.controller.io((queue) => this.#writeBlocks(queue, from, first, count, lent));
  }

  #writeBlocks(
    queue: NvmeQueue,
    from: Uint8Array,
    first: number,
    count: number,
    lent: Data | undefined,
  ): Promise<void> {
    return queue.with(async (slot) => {
      if (lent === undefined) slot.data.set(from);
      const direction: Direction = 'out';
      await slot.run(
        'Write',
        this.#command(Io.WRITE, first, count),
        lent ?? slot.own(from.length),
        direction,
      );
    });
  }

  /** Reads the blocks, changes part of them, and writes them. */
  #writePartial(from: Uint8Array, position: number): Promise<void> {
    const { first, count, inFirst } = this.#blocksOf(position, from.length);
    return this.controller.io((queue) =>
      queue.with(async (slot) => {
        const data = slot.own(count * this.blockSize);
        await slot.run('Read', this.#command(Io.READ, first, count), data);
        slot.data.set(from, inFirst);
        await slot.run('Write', this.#command(Io.WRITE, first, count), data, 'out');
      }),
    );
  }

  #command(opcode: number, start: number, count: number): (command: Buffer) => void {
    return (command) => {
      Command.emit({ opcode, namespaceId: this.id }, command);
      BlockCommand.emit({ start, count: count - 1 }, command);
    };
  }

  #whole(bytes: Uint8Array, position: number): boolean {
    return position % this.blockSize === 0 && bytes.length % this.blockSize === 0;
  }

  #blocksOf(position: number, length: number): { first: number; count: number; inFirst: number } {
    const first = Math.floor(position / this.blockSize);
    const inFirst = position - first * this.blockSize;
    return { first, count: Math.ceil((inFirst + length) / this.blockSize), inFirst };
  }
}

/** The `read` function of a stream. */
function pushing(take: () => Promise<Buffer | null>): (this: Readable) => void {
  return function read() {
    take().then(
      (chunk) => this.push(chunk),
      (error) => this.destroy(error),
    );
  };
}

type Done = (error?: Error | null) => void;

/** The writing functions of a stream. */
function writing(put: (chunk: Uint8Array) => Promise<void>, sync: () => Promise<void>) {
  return {
    write: (chunk: Uint8Array, _encoding: BufferEncoding, done: Done) =>
      void put(chunk).then(() => done(), done),
    final: (done: Done) => void sync().then(() => done(), done),
  };
}
