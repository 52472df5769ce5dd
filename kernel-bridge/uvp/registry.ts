/** Which user-mode verbs provider belongs to a library name: the answer of a device to LIBRARY_QUERY. */

import { requireUserVerbs, type UserVerbs } from '../door/user-verbs.js';
import { Status, StatusError } from '../ioctl/status.js';

/**
 * Makes a provider when the first device asks for it. `previous` makes the one that the name had before, if any: for a provider that
 * passes calls on.
 */
export type UserVerbsMaker = (previous: (() => UserVerbs) | undefined) => Partial<UserVerbs>;

/** A driver answers at most 32 bytes with the zero behind them (WV_MAX_LIB_NAME), in Latin-1. */
const longestName = 31;

/** One registration. */
interface Entry {
  readonly make: UserVerbsMaker;
}

function checkedName(library: unknown): string {
  if (typeof library === 'string' && /^[\x21-\xff]+$/.test(library) && library.length <= longestName)
    return library;
  throw new StatusError(
    Status.INVALID_PARAMETER,
    `A library's name has 1 to ${longestName} characters of Latin-1 without spaces; this one is ${JSON.stringify(library)}.`,
  );
}

export class UserVerbsRegistry {
  /** The latest registration of a name is the last. */
  readonly #entries = new Map<string, Entry[]>();
  /** Providers that were made, each checked for its mandatory functions. */
  readonly #loaded = new Map<string, UserVerbs>();

  constructor(
    /** Finds providers of names that nobody has registered. */
    private readonly others?: (library: string) => Partial<UserVerbs>,
  ) {}

  /**
   * Registers a provider. It is for devices that are opened from now on.
   *
   * @returns a function that takes it back
   * @throws StatusError INVALID_PARAMETER
   */
  register(library: string, make: UserVerbsMaker): () => void {
    const name = checkedName(library);
    if (typeof make !== 'function') {
      throw new StatusError(
        Status.INVALID_PARAMETER,
        `A provider is made by a function; for '${name}' there is one of type ${typeof make}.`,
      );
    }
    const entry: Entry = { make };
    this.#entries.set(name, [...(this.#entries.get(name) ?? []), entry]);
    this.#loaded.delete(name);
    return () => {
      this.#entries.set(
        name,
        (this.#entries.get(name) ?? []).filter((one) => one !== entry),
      );
      this.#loaded.delete(name);
    };
  }

  /**
   * The provider of a name, made when it is first asked for.
   *
   * @throws StatusError NOT_SUPPORTED: no provider has that name, or it lacks a mandatory function.
   */
  load(library: string): UserVerbs {
    let verbs = this.#loaded.get(library);
    if (verbs === undefined) {
      verbs = this.#make(library, this.#entries.get(library) ?? []);
      this.#loaded.set(library, verbs);
    }
    return verbs;
  }

  #make(library: string, entries: readonly Entry[]): UserVerbs {
    const latest = entries.at(-1);
    if (latest === undefined) return requireUserVerbs(library, this.others?.(library));
    const before = entries.slice(0, -1);
    const known = before.length > 0 || this.others !== undefined;
    return requireUserVerbs(library, latest.make(known ? () => this.#make(library, before) : undefined));
  }
}
