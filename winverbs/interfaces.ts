/**
 * The WinVerbs interfaces as TypeScript contracts. Method semantics, sources and statuses are documented on the
 * classes that implement them, one file each.
 */

export type * from './interfaces-addresses.js';
export type * from './interfaces-device.js';
export type * from './interfaces-endpoints.js';
export type * from './interfaces-memory.js';
export type * from './interfaces-objects.js';
export type * from './interfaces-queue-pairs.js';
