import type { UserVerbs } from '../../door/user-verbs.js';
import { nativeBytes } from '../../windows/steady-memory.js';
import { loadUvpTable } from './native-library.js';
import { VendorUserVerbs } from './vendor-user-verbs.js';

/**
 * Loads a user-mode verbs provider from a vendor's DLL by the name that the device returns.
 *
 * @throws StatusError NOT_SUPPORTED if it is not in the searched folders, or lacks a mandatory function
 */
export function loadVendorVerbs(library: string): UserVerbs {
  return new VendorUserVerbs(nativeBytes(), loadUvpTable(library));
}
