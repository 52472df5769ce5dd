import { allocate } from '../../index.js';
import { IDLE_MS } from '../connection/link-memory.js';
import type { LocalContext, Registered } from '../connection/local-context.js';
import { type LentMemory, lendAt } from './lent-memory.js';

/** Memory is lent in chunks of this length and divided into blocks of one size each. Longer blocks have their own memory. */
const CHUNK_BYTES = 2 ** 20;
const LEAST_BLOCK = 8192;

interface Chunk {
  readonly lent: LentMemory;
  readonly blockBytes: number;
  used: number;
  /** Whether the memory has been used since the last check. */
  busy: boolean;
}

/** A copy of a message that several peers of one local address read, each with its own key. */
export interface SharedCopy {
  /** The lent memory that contains the copy. */
  readonly memory: Registered;
  /** The bytes of the message. */
  readonly bytes: Uint8Array;
  /** Called when no peer has access to the copy any more. */
  release(): void;
}

/** Memory for {@link SharedCopy}. It is reused only when the keys of all its readers are invalid. */
export class SharedCopies {
  readonly #free = new Map<number, { readonly chunk: Chunk; readonly offset: number }[]>();
  readonly #chunks = new Set<Chunk>();
  /** Memory that is being allocated, by the length of its blocks. */
  readonly #making = new Map<number, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param emptied - called when no memory is left */
  constructor(
    private readonly context: LocalContext,
    private readonly emptied: () => void,
  ) {}

  /** Copies a message to free memory, or returns undefined if {@link make} must allocate some first. */
  take(bytes: Uint8Array): SharedCopy | undefined {
    const blockBytes = blockFor(bytes.length);
    const block = this.#free.get(blockBytes)?.pop();
    if (block === undefined) return undefined;
    const { chunk, offset } = block;
    chunk.used += 1;
    chunk.busy = true;
    const copy = chunk.lent.bytes.subarray(offset, offset + bytes.length);
    copy.set(bytes);
    return {
      memory: chunk.lent.registered,
      bytes: copy,
      release: () => {
        chunk.used -= 1;
        if (this.#closed || blockBytes > CHUNK_BYTES) this.#dropIfFree(chunk);
        else this.#free.get(blockBytes)!.push(block);
      },
    };
  }

  /** Allocates memory for such a message, then copies it. @throws NetError */
  async make(bytes: Uint8Array): Promise<SharedCopy> {
    const blockBytes = blockFor(bytes.length);
    for (;;) {
      let making = this.#making.get(blockBytes);
      if (making === undefined) {
        making = this.#addChunk(blockBytes).finally(() => this.#making.delete(blockBytes));
        this.#making.set(blockBytes, making);
      }
      await making;
      const copy = this.take(bytes);
      if (copy !== undefined) return copy;
    }
  }

  async #addChunk(blockBytes: number): Promise<void> {
    const lent = await lendAt(this.context, allocate(Math.max(CHUNK_BYTES, blockBytes)));
    const chunk: Chunk = { lent, blockBytes, used: 0, busy: true };
    this.#chunks.add(chunk);
    const free = this.#free.get(blockBytes) ?? [];
    this.#free.set(blockBytes, free);
    for (let offset = 0; offset + blockBytes <= lent.bytes.length; offset += blockBytes)
      free.push({ chunk, offset });
    this.#timer ??= setInterval(() => this.#trim(), IDLE_MS).unref();
  }

  /** Frees memory without readers, and the rest when it has been read. */
  close(): void {
    this.#closed = true;
    for (const chunk of [...this.#chunks]) this.#dropIfFree(chunk);
  }

  #trim(): void {
    for (const chunk of [...this.#chunks]) {
      if (!chunk.busy) this.#dropIfFree(chunk);
      chunk.busy = chunk.used > 0;
    }
  }

  #dropIfFree(chunk: Chunk): void {
    if (chunk.used > 0 || !this.#chunks.delete(chunk)) return;
    const { blockBytes, lent } = chunk;
    this.#free.set(
      blockBytes,
      this.#free.get(blockBytes)!.filter((block) => block.chunk !== chunk),
    );
    lent.release();
    if (this.#chunks.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#making.size === 0) this.emptied();
  }
}

/** Size in bytes of the block for a message: a power of two. */
function blockFor(bytes: number): number {
  return Math.max(LEAST_BLOCK, 2 ** Math.ceil(Math.log2(bytes)));
}
