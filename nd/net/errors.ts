import { NdError, Status } from '../index.js';

/** The codes of Node.js for the statuses that connecting, listening and the end of a connection can have. */
const codes: Readonly<Record<number, string>> = {
  [Status.CONNECTION_REFUSED]: 'ECONNREFUSED',
  [Status.IO_TIMEOUT]: 'ETIMEDOUT',
  [Status.NETWORK_UNREACHABLE]: 'ENETUNREACH',
  [Status.HOST_UNREACHABLE]: 'EHOSTUNREACH',
  [Status.BAD_NETWORK_NAME]: 'EHOSTUNREACH',
  [Status.INVALID_ADDRESS]: 'EADDRNOTAVAIL',
  [Status.ADDRESS_ALREADY_EXISTS]: 'EADDRINUSE',
  [Status.SHARING_VIOLATION]: 'EADDRINUSE',
  [Status.CONNECTION_ABORTED]: 'ECONNABORTED',
  [Status.INSUFFICIENT_RESOURCES]: 'ENOBUFS',
  [Status.NO_MEMORY]: 'ENOMEM',
};

/** An error of this layer: `code` is as Node.js has it, such as `'ECONNREFUSED'`; `cause` is the `NdError`, if there is one. */
export class NetError extends Error {
  static {
    NetError.prototype.name = 'NetError';
  }

  constructor(
    /** As Node.js has it: `'ECONNREFUSED'`, `'ECONNRESET'`, `'ETIMEDOUT'`, `'EPROTO'` … */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** An error of the SPI as one of this layer; others are returned unchanged. */
export function netError(error: unknown, what: string): unknown {
  if (!(error instanceof NdError)) return error;
  return new NetError(codes[error.status] ?? 'EIO', `${what}: ${error.message}`, { cause: error });
}

/** The error of an operation on a connection that has ended. */
export function closed(what: string): NetError {
  return new NetError('ERR_STREAM_DESTROYED', `${what}: the connection has ended.`);
}

/** The error of a connection that ended without END. */
export function reset(): NetError {
  return new NetError('ECONNRESET', 'The peer has ended the connection, or is gone.');
}

/** The error of a peer whose bytes make no sense. */
export function violation(sentence: string): NetError {
  return new NetError('EPROTO', `The peer does not keep to the protocol: ${sentence}`);
}

/** As Node.js rejects what was aborted. */
export function aborted(signal: AbortSignal): Error & { code: string } {
  const error = new Error('The operation was aborted', { cause: signal.reason });
  return Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' });
}
