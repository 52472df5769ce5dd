import { inspect } from 'node:util';
import { netError } from '../base/errors.js';
import type { LocalContext, Registered } from '../connection/local-context.js';
import { unreleased } from './unreleased-memory.js';

/**
 * Memory that is registered once for many messages, on all connections at a local address. A peer can read only the bytes of its own
 * messages, only on its connection, and only until it has reported that they were read.
 *
 * @example
 * ```ts
 * using lent = await channel.lend(allocate(1 << 20));
 * lent.bytes.fill(7);
 * // The peer reads the bytes in place, without a copy.
 * await channel.send(lent.bytes);
 * ```
 */
export class LentMemory implements Disposable {
  readonly #context: LocalContext;
  readonly #memory: Registered;
  #released = false;

  /** Takes ownership of a reference to the context. @internal */
  constructor(context: LocalContext, memory: Registered) {
    this.#context = context;
    this.#memory = memory;
    const { buffer } = memory.bytes;
    const before = context.lent.get(buffer);
    if (before === undefined) context.lent.set(buffer, [memory]);
    else before.push(memory);
    unreleased.register(this, `Lent memory of ${memory.bytes.length} bytes`, this);
  }

  /** The memory itself. */
  get bytes(): Uint8Array {
    return this.#memory.bytes;
  }

  /** The registered memory, for connections. @internal */
  get registered(): Registered {
    return this.#memory;
  }

  /**
   * Ends the registration and the access of peers that are reading messages from it; never fails. Await all sends from this memory first.
   */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    unreleased.unregister(this);
    const { lent } = this.#context;
    const left = (lent.get(this.bytes.buffer) ?? []).filter((memory) => memory !== this.#memory);
    if (left.length === 0) lent.delete(this.bytes.buffer);
    else lent.set(this.bytes.buffer, left);
    for (const grant of this.#memory.grants ?? []) grant.cut();
    this.#memory.region.release();
    this.#context.releaseRef();
  }

  /** {@link release}, for `using`. */
  [Symbol.dispose](): void {
    this.release();
  }

  /** @internal */
  [inspect.custom](): string {
    return `LentMemory { ${this.bytes.length} bytes${this.#released ? ', released' : ''} }`;
  }
}

/** Lends memory to a context. @internal */
export async function lendAt(context: LocalContext, buffer: Uint8Array): Promise<LentMemory> {
  // The connection that holds the context may end while the memory is being registered.
  context.addRef();
  try {
    const memory = await context.registerFor(buffer, 0);
    return new LentMemory(context, { ...memory, grants: new Set() });
  } catch (error) {
    context.releaseRef();
    throw netError(error, 'lend');
  }
}
