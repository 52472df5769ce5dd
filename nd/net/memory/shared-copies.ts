import { allocate } from '../../index.js';
import { IDLE_MS } from '../connection/link-memory.js';
import type { LocalContext, Registered } from '../connection/local-context.js';
import { type LentMemory, lendAt } from './lent-memory.js';

/** Memory is lent in pieces of this length, and divided into blocks of one size each. Longer blocks have memory of their own. */
const CHUNK_BYTES = 2 ** 20;
const LEAST_BLOCK = 8192;

interface Chunk {
  readonly lent: LentMemory;
  readonly blockBytes: number;
  used: number;
  /** It was in use since the last look. */
  busy: boolean;
}

/** A copy of a message that several peers of one local address read, each by a key of its own. */
export interface SharedCopy {
  /** The lent memory that it is a part of. */
  readonly memory: Registered;
  /** The message. */
  readonly bytes: Uint8Array;
  /** No peer has access to it any more. */
  release(): void;
}

/** Memory for {@link SharedCopy}, which is used again only when the keys of all its readers are void. */
export class SharedCopies {
  readonly #free = new Map<number, { readonly chunk: Chunk; readonly offset: number }[]>();
  readonly #chunks = new Set<Chunk>();
  /** Memory that is being made, by the length of its blocks. */
  readonly #making = new Map<number, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param emptied - called when it has no memory any more */
  constructor(
    private readonly context: LocalContext,
    private readonly emptied: () => void,
  ) {}

  /** A copy in memory that is free; undefined: there is none, and {@link make} makes some. */
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

  /** Makes memory for such a message, then copies it. @throws NetError */
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
    this.#timer ??= setInterval(() => this.#look(), IDLE_MS).unref();
  }

  /** Frees what nobody reads, and the rest when it was read. */
  close(): void {
    this.#closed = true;
    for (const chunk of [...this.#chunks]) this.#dropIfFree(chunk);
  }

  #look(): void {
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

/** Bytes of the block for a message: a power of two. */
function blockFor(bytes: number): number {
  return Math.max(LEAST_BLOCK, 2 ** Math.ceil(Math.log2(bytes)));
}
