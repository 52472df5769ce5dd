/** User-mode verbs providers that an application brings. */
import { type UserVerbsMaker, userVerbsRegistry } from '../kernel-bridge/uvp/index.js';
import { guarded } from './status.js';

/**
 * Registers a user-mode verbs provider by the library name that devices answer to LIBRARY_QUERY: it posts requests and polls
 * completions for the devices of that name that this thread opens from now on. Where the name has a provider already, such as
 * {@link SOFT_USER_LIBRARY} of the software HCA, `make` gets that one, to pass calls on to.
 *
 * @param library - 1 to 31 characters
 * @param make - makes the table of functions, when the first device asks for it. A table without a mandatory function is refused by
 *   openDevice: NOT_SUPPORTED.
 * @returns Disposing of it takes the provider back; devices that are open keep theirs.
 * @throws WvError INVALID_PARAMETER
 * @example
 * ```ts
 * using mine = registerUserVerbs('my_uvp', () => new MyVerbs());
 * ```
 */
export function registerUserVerbs(library: string, make: UserVerbsMaker): Disposable {
  const takeBack = guarded('registerUserVerbs', () => userVerbsRegistry.register(library, make));
  return { [Symbol.dispose]: takeBack };
}
