import type { UserVerbs } from '../../door/user-verbs.js';
import { nativeBytes } from '../../windows/steady-memory.js';
import { loadUvpTable } from './native-library.js';
import { VendorUserVerbs } from './vendor-user-verbs.js';

/**
 * The user-mode verbs provider in a vendor's DLL, by the name that the device answers.
 *
 * @throws StatusError NOT_SUPPORTED: there is none, it lies where it is not loaded from, or it lacks a function that every device needs.
 */
export function loadVendorVerbs(library: string): UserVerbs {
  return new VendorUserVerbs(nativeBytes(), loadUvpTable(library));
}
