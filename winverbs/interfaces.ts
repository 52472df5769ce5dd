/**
 * The WinVerbs interfaces as TypeScript contracts. The implementing classes, one file each, document semantics, sources
 * and statuses.
 */

export type * from './interfaces-addresses.js';
export type * from './interfaces-device.js';
export type * from './interfaces-endpoints.js';
export type * from './interfaces-memory.js';
export type * from './interfaces-objects.js';
export type * from './interfaces-queue-pairs.js';
