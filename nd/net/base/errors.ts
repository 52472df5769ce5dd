import { DIALECT } from '../../../kernel-bridge/schema/generated/numbers.js';
import { NdError, Status } from '../../index.js';
import { isSignal, wrongSignal } from './checks.js';

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
  [Status.TOO_MANY_OPENED_FILES]: 'EMFILE',
  [Status.INVALID_PARAMETER]: 'EINVAL',
  [Status.NO_MEMORY]: 'ENOMEM',
  [Status.NOT_SUPPORTED]: 'ENOTSUP',
};

/** What was called with which address, as system errors of Node.js tell it. */
interface Call {
  readonly syscall: 'connect' | 'listen';
  readonly address: string;
  readonly port: number;
}

/** An error of this layer: `code` is as Node.js has it, such as `'ECONNREFUSED'`; `cause` is the `NdError`, if there is one. */
export class NetError extends Error {
  /** `'connect'` or `'listen'`, if that has failed. */
  readonly syscall?: Call['syscall'];
  /** The address that it was called with. */
  readonly address?: string;
  /** The port that it was called with. */
  readonly port?: number;

  static {
    NetError.prototype.name = 'NetError';
  }

  constructor(
    /** As Node.js has it: `'ECONNREFUSED'`, `'ECONNRESET'`, `'ETIMEDOUT'`, `'EPROTO'` … */
    readonly code: string,
    message: string,
    options?: ErrorOptions,
    call?: Pick<NetError, 'syscall' | 'address' | 'port'>,
  ) {
    super(message, options);
    if (call !== undefined) Object.assign(this, call);
  }
}

/** An error of the SPI as one of this layer; others are returned unchanged. */
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

/** A message of the SPI without the names of its calls and of the layer below, which the cause tells. */
function plain(message: string): string {
  return message.replace(/^(?:\w+: )+/, '').replace(/\((?:\w+: )+/g, '(');
}

/** What was called, for a message. */
export function textOf(what: string | Call): string {
  if (typeof what === 'string') return what;
  const { syscall, address, port } = what;
  return `${syscall} ${address.includes(':') ? `[${address}]` : address}:${port}`;
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

/** The error of a message that the peer does not take. */
export function tooLong(what: string, bytes: number, most: number): NetError {
  return new NetError(
    'EMSGSIZE',
    `The ${what} has ${bytes} bytes; the peer takes at most ${most}, its maxMessageBytes.`,
  );
}

/** As Node.js rejects what was aborted. */
export function aborted(signal: AbortSignal): Error & { code: string } {
  const error = new Error('The operation was aborted', { cause: signal.reason });
  return Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' });
}

/** Why an operation with this signal does not begin; undefined: it may. */
export function refusalBy(signal: AbortSignal | undefined): Error | undefined {
  if (signal === undefined) return undefined;
  if (!isSignal(signal)) return wrongSignal(signal);
  return signal.aborted ? aborted(signal) : undefined;
}

/** Of two versions of this package that have no protocol in common. */
export function otherVersion(what: string, peer: string, version: number): NetError {
  const cure = 'install the same version of networkdirect on both sides.';
  return new NetError(
    'EPROTO',
    `${what}: ${peer} speaks version ${version} of this protocol, this side version ${DIALECT}; ${cure}`,
  );
}
