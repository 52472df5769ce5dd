/**
 * The user-mode verbs providers, by the library name that a device returns for LIBRARY_QUERY.
 */
import { loadAddon, SOFT_USER_LIBRARY } from '../hca/index.js';
import { requireUserVerbs, type UserVerbs } from '../user-verbs.js';
import { SoftUserVerbs } from './soft-user-verbs.js';

/**
 * A loader of providers by a table of names. A provider is made when it is first asked for, and checked for its mandatory functions.
 *
 * @returns a function that throws StatusError NOT_SUPPORTED: no provider has that name, or it lacks a mandatory function.
 */
export function userVerbsOf(
  providers: Readonly<Record<string, () => Partial<UserVerbs>>>,
): (library: string) => UserVerbs {
  const loaded = new Map<string, UserVerbs>();
  return (library) => {
    let verbs = loaded.get(library);
    if (verbs === undefined) {
      const make = Object.hasOwn(providers, library) ? providers[library] : undefined;
      verbs = requireUserVerbs(library, make?.());
      loaded.set(library, verbs);
    }
    return verbs;
  };
}

/** The provider of a device of this package's HCAs. */
export const loadUserVerbs = userVerbsOf({
  [SOFT_USER_LIBRARY]: () => new SoftUserVerbs(loadAddon()),
});
