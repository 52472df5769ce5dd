/** User-mode verbs providers by library name, as a device returns it for LIBRARY_QUERY. */

import { requireUserVerbs, type UserVerbs } from '../door/user-verbs.js';
import { shown } from '../ioctl/shown.js';
import { Status, StatusError } from '../ioctl/status.js';

/**
 * Creates a provider when the first device needs it. `previous` creates the provider previously registered with that
 * name, if any, for providers that forward calls.
 */
export type UserVerbsMaker = (previous: (() => UserVerbs) | undefined) => Partial<UserVerbs>;

/** A driver returns at most 32 bytes including the NUL (WV_MAX_LIB_NAME), in Latin-1. */
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
    `\`library\` must be 1 to ${longestName} Latin-1 characters without spaces; got ${shown(library)}.`,
  );
}

export class UserVerbsRegistry {
  /** The last entry is the latest registration of a name. */
  readonly #entries = new Map<string, Entry[]>();
  /** Providers that were created, each checked for its mandatory functions. */
  readonly #loaded = new Map<string, UserVerbs>();

  constructor(
    /** Finds providers whose names were not registered. */
    private readonly others?: (library: string) => Partial<UserVerbs>,
  ) {}

  /**
   * Registers a provider for devices that are opened from now on.
   *
   * @returns a function that removes the registration
   * @throws StatusError INVALID_PARAMETER
   */
  register(library: string, make: UserVerbsMaker): () => void {
    const name = checkedName(library);
    if (typeof make !== 'function') {
      throw new StatusError(
        Status.INVALID_PARAMETER,
        `\`make\` must be a function that creates the provider '${name}'; got ${shown(make)}.`,
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
   * The provider with a name, created when it is first needed.
   *
   * @throws StatusError NOT_SUPPORTED if no provider has that name, or it lacks a mandatory function
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
