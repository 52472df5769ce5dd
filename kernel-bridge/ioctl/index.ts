/**
 * The IOCTL interface: the bytes that cross door 1, shared by callers and kernel.
 *
 * @module
 */

export * from './codes.js';
export * from './constants.js';
export * from './hca-file.js';
export * from './layout.js';
export * from './provider-data.js';
export * from './sockaddr.js';
export * from './status.js';
export * from './structs.js';
