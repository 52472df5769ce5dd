import { checkNames } from './base/checks.js';

/** Options of `net.connect` that programs for it may give, and that have no effect here. */
export interface NodeSocketOptions {
  /** No effect: nothing waits for more bytes before it is sent. */
  readonly noDelay?: boolean | undefined;
  /** No effect: the adapter has its own keep-alive. */
  readonly keepAlive?: boolean | undefined;
  /** No effect, as `keepAlive`. */
  readonly keepAliveInitialDelay?: number | undefined;
  /** No effect: addresses of both families are tried. */
  readonly family?: number | undefined;
  /** No effect: the system's name service is asked. */
  readonly hints?: number | undefined;
  /** No effect: the system's name service is asked. */
  readonly lookup?: unknown;
  /** No effect: the host's routes choose the address. */
  readonly localAddress?: string | undefined;
  /** No effect: the port is a free one. */
  readonly localPort?: number | undefined;
  /** No effect: addresses are tried one after the other. */
  readonly autoSelectFamily?: boolean | undefined;
  /** No effect, as `autoSelectFamily`. */
  readonly autoSelectFamilyAttemptTimeout?: number | undefined;
}

/** Options of `net.createServer` that have no effect here. */
export type NodeServerOptions = Pick<NodeSocketOptions, 'noDelay' | 'keepAlive' | 'keepAliveInitialDelay'>;

const words = (text: string): string[] => text.trim().split(/\s+/);

const ofServer = words('noDelay keepAlive keepAliveInitialDelay blockList');

const ofSocket = [
  ...ofServer,
  ...words(`family hints lookup localAddress localPort autoSelectFamily autoSelectFamilyAttemptTimeout fd readable writable
    path writableHighWaterMark readableHighWaterMark`),
];

/** A client of HTTP or TLS passes on all that it was called with. */
const ofHttp =
  words(`agent auth createConnection defaultPort encoding headers hostname insecureHTTPParser method
  joinDuplicateHeaders maxHeaderSize protocol servername setHost setDefaultHeaders socketPath uniqueHeaders scheduling maxSockets
  maxTotalSockets maxFreeSockets keepAliveMsecs nodelay href origin username password pathname search searchParams hash query
  sessionKey`);

const sizes = ['slots', 'slotBytes', 'ringBytes', 'allowHalfOpen', 'highWaterMark'];

/** @throws TypeError: an option of `connect` that nobody knows */
export function checkConnectNames(options: unknown): void {
  checkNames(
    'connect',
    options,
    ['port', 'host', 'signal', 'timeout', 'onread', ...sizes],
    [...ofSocket, ...ofHttp],
  );
}

/** @throws TypeError: an option of a server, or of its sockets, that nobody knows */
export function checkServerNames(options: { readonly socket?: unknown }): void {
  checkNames(
    'a server',
    options,
    ['channel', 'socket', 'allowHalfOpen', 'highWaterMark', 'pauseOnConnect', 'maxBufferedBytes'],
    ofServer,
  );
  checkNames("a server's sockets", options.socket, sizes, ofSocket);
}

/** @throws TypeError: an option of `listen` that nobody knows */
export function checkListenNames(options: unknown): void {
  const others = ['exclusive', 'ipv6Only', 'reusePort', 'readableAll', 'writableAll'];
  checkNames('listen', options, ['port', 'host', 'backlog', 'signal'], others);
}
