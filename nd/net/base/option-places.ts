/** All options and the calls that accept them. The error for a misplaced option names the right call. */
import { shown } from '../../../kernel-bridge/ioctl/shown.js';
import { wrongType, wrongValue } from './checks.js';

const words = (text: string): string[] => text.trim().split(/\s+/);

const sizesOfSocket = words('slots slotBytes ringBytes allowHalfOpen highWaterMark');
const channel = words('slots slotBytes maxMessageBytes maxRequests onRequest');

const nodeServer = words('noDelay keepAlive keepAliveInitialDelay blockList');
const nodeSocket = [
  ...nodeServer,
  ...words(`family hints lookup localAddress localPort autoSelectFamily autoSelectFamilyAttemptTimeout fd readable writable
    path writableHighWaterMark readableHighWaterMark`),
];
/** An HTTP or TLS client passes on all options that it was called with. */
const http =
  words(`agent auth createConnection defaultPort encoding headers hostname insecureHTTPParser method
  joinDuplicateHeaders maxHeaderSize protocol servername setHost setDefaultHeaders socketPath uniqueHeaders scheduling maxSockets
  maxTotalSockets maxFreeSockets keepAliveMsecs nodelay href origin username password pathname search searchParams hash query
  sessionKey`);

/** A call that accepts options. */
interface Place {
  /** The call as it appears in programs. */
  readonly call: string;
  /** Options that have an effect. */
  readonly names: readonly string[];
  /** Options for `node:net` that are accepted but have no effect here. */
  readonly ignored?: readonly string[];
  /** The name of the object in errors. Default: the options of {@link call}. */
  readonly object?: string;
}

/** All calls. If several accept an option, the error names the first. */
const places = {
  listen: {
    call: 'listen()',
    names: words('port host name backlog signal'),
    ignored: words('exclusive ipv6Only reusePort readableAll writableAll'),
  },
  connect: {
    call: 'connect()',
    names: [...words('port host name signal timeout onread'), ...sizesOfSocket],
    ignored: [...nodeSocket, ...http],
  },
  connectChannel: { call: 'connectChannel()', names: [...words('port host name signal'), ...channel] },
  server: {
    call: 'createServer() and createChannelServer()',
    names: words('channel socket allowHalfOpen highWaterMark pauseOnConnect maxBufferedBytes broadcasts'),
    ignored: nodeServer,
  },
  serverSockets: {
    call: 'createServer({ socket })',
    names: sizesOfSocket,
    ignored: nodeSocket,
    object: '`socket` of createServer()',
  },
  serverChannels: {
    call: 'createChannelServer({ channel })',
    names: channel,
    object: '`channel` of createChannelServer()',
  },
  property: { call: 'the server itself, as `server.maxConnections`', names: ['maxConnections'] },
  broadcast: { call: 'broadcast()', names: words('except slow maxQueuedBytes') },
  createSharedMap: { call: 'createSharedMap()', names: words('name port host entries bytes counters codec') },
  openSharedMap: { call: 'openSharedMap()', names: words('name port host codec signal') },
  setEntry: { call: 'set()', names: ['ttl'] },
  expose: { call: 'expose()', names: words('writable views') },
  operation: { call: 'operations such as send()', names: ['signal'] },
  allChannels: { call: 'setMaxBufferedBytes()', names: ['maxBufferedBytes'] },
  // These names come from the schema; integration/net-options compares them.
  adapter: {
    call: 'the adapter, in the environment variable ND_OPTIONS',
    names:
      words(`cm rc keepAliveMs rnrTimeoutMs ecn window longWindowBytes link icrc direct capture statistics receiveBufferBytes
      faults pkeys hca kernel startTimeoutMs`),
  },
} as const satisfies Readonly<Record<string, Place>>;

const all: readonly Place[] = Object.values(places);

/** The options of the adapter, for the test. @internal */
export const adapterOptionNames: readonly string[] = places.adapter.names;

/** `a(), b() or c()`. */
function alternatives(calls: readonly string[]): string {
  const last = calls.at(-1)!;
  return calls.length === 1 ? last : `${calls.slice(0, -1).join(', ')} or ${last}`;
}

/**
 * Rejects options that are misspelt or misplaced, which would otherwise be ignored silently. Omitted options are valid.
 *
 * @param at - where the options were given
 * @param call - the call that received them
 * @throws TypeError `ERR_INVALID_ARG_TYPE` (not an object), `ERR_INVALID_ARG_VALUE` (an unknown or misplaced option)
 */
export function checkOptionNames(
  at: keyof typeof places,
  options: unknown,
  call: string = places[at].call,
): void {
  if (options !== undefined) checkGivenOptions(at, options, call);
}

/** As {@link checkOptionNames}, but options must be given. */
export function checkGivenOptions(
  at: keyof typeof places,
  options: unknown,
  call: string = places[at].call,
): void {
  const { names, ignored = [], object = `\`options\` of ${call}` }: Place = places[at];
  if (typeof options !== 'object' || options === null)
    throw wrongType(`${object} must be an object; got ${shown(options)}.`);
  for (const name of Object.keys(options)) {
    if (names.includes(name) || ignored.includes(name) || name.startsWith('_')) continue;
    const right = all.filter((place) => place.names.includes(name)).map((place) => place.call);
    const sentence =
      right.length > 0
        ? `\`${name}\` must be given to ${alternatives(right)}; got it among the options of ${call}.`
        : `${object} must contain only ${names.join(', ')}; got ${shown(name)}.`;
    throw wrongValue(sentence);
  }
}

/** The signal of an operation's options. `call` is the operation. @throws as {@link checkOptionNames} */
export function signalOf(
  call: string,
  options: { readonly signal?: AbortSignal | undefined } | null | undefined,
): AbortSignal | undefined {
  if (options === undefined || options === null) return undefined;
  checkGivenOptions('operation', options, `${call}()`);
  return options.signal;
}
