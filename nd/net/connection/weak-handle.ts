import type { LinkUser } from './link.js';

interface Destroyable {
  destroy(): unknown;
}

/**
 * How a link and a server refer to a connection's object: strongly while it has work of its own, otherwise weakly. One that the program has
 * lost can then be collected, which ends its connection with a warning.
 */
export class WeakHandle<T extends Destroyable> {
  readonly #weak: WeakRef<T>;
  /** Keeps the object; undefined: the program alone keeps it. */
  strong: T | undefined;
  /** Called when the connection has ended. */
  gone: (() => void) | undefined;

  constructor(object: T) {
    this.#weak = new WeakRef(object);
    this.strong = object;
  }

  /** The object; undefined: it was collected. */
  get(): T | undefined {
    return this.strong ?? this.#weak.deref();
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.get()?.destroy();
  }
}

/** The user of a link that refers to a connection's object as `handle` does. No closure in it has the object itself: the link keeps it. */
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
