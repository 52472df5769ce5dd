/** User-mode verbs providers supplied by the application. */
import { type UserVerbsMaker, userVerbsRegistry } from '../kernel-bridge/uvp/index.js';
import { guarded } from './status.js';

/**
 * Registers a user-mode verbs provider by the library name that devices return to LIBRARY_QUERY. It posts requests and
 * polls completions for devices of that name that this thread opens from now on. If the name already has a provider,
 * such as {@link SOFT_USER_LIBRARY} of the software HCA, `make` gets that one, to forward calls to.
 *
 * @param library - 1 to 31 characters
 * @param make - creates the table of functions when the first device needs it. If a mandatory function is missing,
 *   openDevice throws NOT_SUPPORTED.
 * @returns Disposing of it removes the provider; open devices keep theirs.
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
