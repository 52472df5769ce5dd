import { inspect } from 'node:util';
import { netError } from '../base/errors.js';
import type { LocalContext, Registered } from '../connection/local-context.js';
import { unreleased } from './unreleased-memory.js';

/**
 * Memory that was registered once for many messages, of all connections of a local address. A peer can read the bytes of each message
 * that it gets, on its connection alone, until it has reported that it has read them; it never sees the rest.
 *
 * @example
 * ```ts
 * using lent = await channel.lend(allocate(1 << 20));
 * lent.bytes.fill(7);
 * // Sent from where it is, without a copy.
 * await channel.send(lent.bytes);
 * ```
 */
export class LentMemory implements Disposable {
  readonly #context: LocalContext;
  readonly #memory: Registered;
  #released = false;

  /** Takes over a reference to the context. @internal */
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

  /** As connections use it. @internal */
  get registered(): Registered {
    return this.#memory;
  }

  /**
   * Ends the registration, and the access of peers that are reading messages from it: release it after the sends from it have resolved. It
   * never fails.
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
    this.#context.letGo();
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
  // The connection that holds the context may end while the memory is registered.
  context.hold();
  try {
    const memory = await context.registerFor(buffer, 0);
    return new LentMemory(context, { ...memory, grants: new Set() });
  } catch (error) {
    context.letGo();
    throw netError(error, 'lend');
  }
}
