import type { Link, LinkUser } from './link.js';

interface Destroyable {
  destroy(): unknown;
}

/**
 * How a link and a server refer to a connection's object: strongly while it has work of its own, otherwise weakly. One that the program has
 * lost can then be collected, which ends its connection with a warning.
 */
export class Held<T extends Destroyable> {
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

/** The user of a link that refers to a connection's object as `held` does. No closure in it has the object itself: the link keeps it. */
export function heldUser(held: Held<Destroyable & { readonly linkUser: LinkUser }>): LinkUser {
  const user = (): LinkUser | undefined => held.get()?.linkUser;
  return {
    frame: (type, flags, id, slot, at, length) => user()?.frame(type, flags, id, slot, at, length),
    wasRead: (id) => user()?.wasRead(id),
    writable: () => user()?.writable(),
    ended: (error) => {
      const one = user();
      if (one !== undefined) one.ended(error);
      else held.gone?.();
    },
    unsent: () => user()?.unsent() ?? false,
  };
}

/** Channels that are not closed, and their links. */
const unclosed = new FinalizationRegistry<Link>((link) => {
  if (link.over) return;
  process.emitWarning(
    `The channel to ${peerText(link)} was collected, and its connection has ended: call close(), or use \`await using\`.`,
    'NetworkDirectWarning',
  );
  link.abort(undefined);
});

/** Warns when a channel is collected before its connection has ended, and ends it. */
export function watchChannel(channel: object, link: Link): void {
  unclosed.register(channel, link, channel);
}

/** The connection has ended. */
export function unwatchChannel(channel: object): void {
  unclosed.unregister(channel);
}

/** The peer's address and port, as people write them. */
export function peerText({ connector }: Link): string {
  try {
    const { address, port, family } = connector.getPeerAddress();
    return family === 6 ? `[${address}]:${port}` : `${address}:${port}`;
  } catch {
    return 'no peer';
  }
}
