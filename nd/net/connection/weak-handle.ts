import type { LinkUser } from './link.js';

interface Destroyable {
  destroy(): unknown;
}

/**
 * Reference from a link or server to a connection's object: strong while the connection has work to do, otherwise weak. An object without
 * other references can then be collected, which ends its connection with a warning.
 */
export class WeakHandle<T extends Destroyable> {
  readonly #weak: WeakRef<T>;
  /** The strong reference; undefined if only the program references the object. */
  strong: T | undefined;
  /** Called when the connection has ended. */
  gone: (() => void) | undefined;

  constructor(object: T) {
    this.#weak = new WeakRef(object);
    this.strong = object;
  }

  /** The object; undefined if it was collected. */
  get(): T | undefined {
    return this.strong ?? this.#weak.deref();
  }

  /** Ends the connection immediately. */
  destroy(): void {
    this.get()?.destroy();
  }
}

/**
 * Creates a link user that refers to a connection's object by `handle`. Its closures must not capture the object itself, because the link
 * references them.
 */
export function weakUser(handle: WeakHandle<Destroyable & { readonly linkUser: LinkUser }>): LinkUser {
  const user = (): LinkUser | undefined => handle.get()?.linkUser;
  return {
    frame: (type, flags, id, slot, at, length) => user()?.frame(type, flags, id, slot, at, length),
    wasRead: (id) => user()?.wasRead(id),
    writable: () => user()?.writable(),
    ended: (error) => {
      const one = user();
      if (one !== undefined) one.ended(error);
      else handle.gone?.();
    },
    unsent: () => user()?.unsent() ?? false,
  };
}
