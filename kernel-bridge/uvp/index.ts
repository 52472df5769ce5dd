/**
 * The user-mode verbs providers, by the library name that a device returns for LIBRARY_QUERY.
 */
import { loadAddon } from '../hca/index.js';
import { requireUserVerbs, type UserVerbs } from '../user-verbs.js';
import { SoftUserVerbs } from './soft-user-verbs.js';

/** Library name of the software HCA's provider. */
export const SOFT_UVP_LIBRARY = 'networkdirect_uvp';

const makers = new Map<string, () => Partial<UserVerbs>>([
  [SOFT_UVP_LIBRARY, () => new SoftUserVerbs(loadAddon())],
]);
const loaded = new Map<string, UserVerbs>();

/**
 * The provider of a device, checked for its mandatory functions.
 *
 * @throws StatusError NOT_SUPPORTED: no provider has that name, or it lacks a mandatory function.
 */
export function loadUserVerbs(library: string): UserVerbs {
  let verbs = loaded.get(library);
  if (verbs === undefined) {
    verbs = requireUserVerbs(library, makers.get(library)?.());
    loaded.set(library, verbs);
  }
  return verbs;
}
