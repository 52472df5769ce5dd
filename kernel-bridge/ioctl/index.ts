/**
 * The IOCTL interface: what crosses door 1 as bytes, shared by its callers and the kernel.
 *
 * @module
 */
export * from './ca.js';
export * from './codes.js';
export * from './constants.js';
export * from './layout.js';
export * from './provider-data.js';
export * from './sockaddr.js';
export * from './status.js';
export * from './structs.js';
