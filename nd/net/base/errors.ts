import { DIALECT } from '../../../kernel-bridge/schema/generated/numbers.js';
import { NdError, Status } from '../../index.js';
import { isSignal, wrongSignal } from './checks.js';

/** Node.js error codes for the error statuses of connecting, listening and connections. */
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
  [Status.TOO_MANY_OPENED_FILES]: 'EMFILE',
  [Status.INVALID_PARAMETER]: 'EINVAL',
  [Status.INVALID_BUFFER_SIZE]: 'EINVAL',
  [Status.NO_MEMORY]: 'ENOMEM',
  [Status.NOT_SUPPORTED]: 'ENOTSUP',
};

/** The failed call and its address, as in the system errors of Node.js. */
interface Call {
  readonly syscall: 'connect' | 'listen';
  readonly address: string;
  readonly port: number;
}

/** An error of this layer. `code` is a Node.js error code such as `'ECONNREFUSED'`; `cause` is the `NdError`, if any. */
export class NetError extends Error {
  /** `'connect'` or `'listen'` if that call failed. */
  readonly syscall?: Call['syscall'];
  /** The address passed to that call. */
  readonly address?: string;
  /** The port passed to that call. */
  readonly port?: number;

  static {
    NetError.prototype.name = 'NetError';
  }

  constructor(
    /** Node.js error code: `'ECONNREFUSED'`, `'ECONNRESET'`, `'ETIMEDOUT'`, `'EPROTO'` … */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
    call?: Pick<NetError, 'syscall' | 'address' | 'port'>,
  ) {
    super(message, options);
    if (call !== undefined) Object.assign(this, call);
  }
}

/** Converts an error of the SPI to one of this layer. Other errors are returned unchanged. */
export function netError(error: unknown, what: string | Call): unknown {
  if (!(error instanceof NdError)) return error;
  const call = typeof what === 'string' ? undefined : what;
  return new NetError(
    codes[error.status] ?? 'EIO',
    `${textOf(what)}: ${plain(error.message)}`,
    { cause: error },
    call,
  );
}

/** Removes the names of calls and lower layers from an SPI message. They remain available in `cause`. */
function plain(message: string): string {
  return message.replace(/^(?:\w+: )+/, '').replace(/\((?:\w+: )+/g, '(');
}

/** Describes a call for an error message. */
export function textOf(what: string | Call): string {
  if (typeof what === 'string') return what;
  const { syscall, address, port } = what;
  return `${syscall} ${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** Error for an operation on a closed connection. */
export function closed(what: string): NetError {
  return new NetError('ERR_STREAM_DESTROYED', `${what}: the connection is closed.`);
}

/** Error for a connection that ended without an END frame. */
export function reset(): NetError {
  return new NetError('ECONNRESET', 'The peer aborted the connection, or its process ended.');
}

/** Error for a protocol violation by the peer. */
export function violation(sentence: string): NetError {
  return new NetError('EPROTO', `Protocol violation by the peer: ${sentence}`);
}

/** Error for a message that exceeds the peer's limit or, without RDMA Reads, what can be copied to the peer's slots. */
export function tooLong(what: string, bytes: number, most: number, reads: boolean): NetError {
  const limit = reads
    ? "the peer's maxMessageBytes"
    : "the smaller of the peer's maxMessageBytes and a quarter of the slots, because the adapter does not support RDMA Reads";
  return new NetError('EMSGSIZE', `The ${what} must have at most ${most} bytes, ${limit}; got ${bytes}.`);
}

/** The error that Node.js reports for an aborted operation. */
export function aborted(signal: AbortSignal): Error & { code: string } {
  const error = new Error('The operation was aborted', { cause: signal.reason });
  return Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' });
}

/** The error for an operation that must not begin because of its signal; undefined if it may begin. */
export function refusalBy(signal: AbortSignal | undefined): Error | undefined {
  if (signal === undefined) return undefined;
  if (!isSignal(signal)) return wrongSignal(signal);
  return signal.aborted ? aborted(signal) : undefined;
}

/** Error for two versions of this package without a common protocol. */
export function otherVersion(what: string, peer: string, version: number): NetError {
  const cure = 'install the same version of networkdirect on both sides.';
  return new NetError(
    'EPROTO',
    `${what}: ${peer} uses version ${version} of this protocol, and this side uses version ${DIALECT}; ${cure}`,
  );
}
