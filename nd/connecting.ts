/** Connects or accepts in one call, for programs that do not need the separate steps. */
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { checkedSignal, type SocketAddress, Status, StatusError } from '../winverbs/index.js';
import { isLoopback, parseAddress } from './core/address.js';
import { checkOptions, type OptionNames } from './core/argument-checks.js';
import type { NdAddress } from './spi/common-types.js';
import type { INDConnector, INDEndpoint, INDListen, NdConnectOptions } from './spi/v1.js';
import type { IND2Adapter, IND2Connector, IND2Listener, IND2QueuePair, Nd2ConnectOptions } from './spi/v2.js';
import { refuse, v2Terms } from './status.js';
import type { WaitOptions } from './waiting.js';

/** Options of {@link connectQueuePair}. */
export interface Nd2ConnectingOptions extends Nd2ConnectOptions, WaitOptions {
  /** The local address, by default the adapter's first one of the peer's family. */
  readonly from?: NdAddress | undefined;
}

/** Options of {@link acceptQueuePair}. */
export interface Nd2AcceptingOptions extends Nd2ConnectOptions, WaitOptions {}

/** An established connection. */
export interface Nd2Connected {
  /** The connection's connector. Release or dispose of it to end the connection. */
  readonly connector: IND2Connector;
  /** The private data of the peer's request or reply, zero-padded, because messages do not carry its length. */
  readonly privateData: Uint8Array;
}

/**
 * Connects a queue pair to a listener: creates a connector, binds it, connects, and completes the connection. The queue
 * pair can send when the call has completed. To read the peer's reply before completing, use the connector's own
 * methods.
 *
 * @param adapter - the adapter of the queue pair
 * @param queuePair - the queue pair to connect; post Receives beforehand if the peer sends first
 * @param address - the address of the listener, with its port
 * @throws NdError as {@link IND2Connector.connect} and {@link IND2Connector.completeConnect}, or the signal's reason
 * @example
 * ```ts
 * const { connector } = await connectQueuePair(adapter, queuePair, '192.0.2.1:5000', { signal: AbortSignal.timeout(5000) });
 * ```
 */
export async function connectQueuePair(
  adapter: IND2Adapter,
  queuePair: IND2QueuePair,
  address: NdAddress,
  options: Nd2ConnectingOptions = {},
): Promise<Nd2Connected> {
  const what = 'connectQueuePair';
  checkHas(what, 'adapter', adapter, 'createConnector', 'IND2Adapter');
  const { from, signal, ...how } = checkedOptions(what, options, { ...connectOptions, from: true });
  const connector = adapter.createConnector();
  return guarded(connector, signal, async () => {
    connector.bind(from === undefined ? ownAddress(adapter, address) : parseAddress(from, what, 'from'));
    await abortable(connector.connect(queuePair, address, how), signal);
    const privateData = connector.getPrivateData();
    await abortable(connector.completeConnect(), signal);
    return { connector, privateData };
  });
}

/**
 * Accepts the next connection request of a listener with a queue pair. To decide based on the request, or to create the
 * queue pair after it, use the listener's and the connector's own methods.
 *
 * @param adapter - the adapter of the listener and the queue pair
 * @param listener - a listener that is listening
 * @param queuePair - the queue pair to connect; post Receives beforehand if the peer sends first
 * @throws NdError as {@link IND2Listener.getConnectionRequest} and {@link IND2Connector.accept}, or the signal's reason
 * @example
 * ```ts
 * const { connector, privateData } = await acceptQueuePair(adapter, listener, queuePair);
 * ```
 */
export async function acceptQueuePair(
  adapter: IND2Adapter,
  listener: IND2Listener,
  queuePair: IND2QueuePair,
  options: Nd2AcceptingOptions = {},
): Promise<Nd2Connected> {
  const what = 'acceptQueuePair';
  checkHas(what, 'adapter', adapter, 'createConnector', 'IND2Adapter');
  checkHas(what, 'listener', listener, 'getConnectionRequest', 'IND2Listener');
  const { signal, ...how } = checkedOptions(what, options, connectOptions);
  const connector = adapter.createConnector();
  return guarded(connector, signal, async () => {
    await abortable(listener.getConnectionRequest(connector), signal);
    const privateData = connector.getPrivateData();
    await abortable(connector.accept(queuePair, how), signal);
    return { connector, privateData };
  });
}

/** Options of {@link connectEndpoint}. */
export interface NdConnectingOptions extends NdConnectOptions, WaitOptions {}

/** Options of {@link acceptEndpoint}. */
export interface NdAcceptingOptions extends WaitOptions {
  /** Private data for the peer, at most maxCalleeData bytes. */
  readonly privateData?: Uint8Array | undefined;
}

/**
 * v1: connects an endpoint of a connector to a listener, and completes the connection. Returns the peer's private data,
 * zero-padded. To read it before completing, use the connector's own methods. The caller keeps the connector, even when
 * the call fails.
 *
 * @param connector - an idle connector
 * @param endpoint - an endpoint of the connector; post Receives beforehand if the peer sends first
 * @param address - the address of the listener, with its port
 * @throws NdError as {@link INDConnector.connect} and {@link INDConnector.completeConnect}, or the signal's reason
 */
export async function connectEndpoint(
  connector: INDConnector,
  endpoint: INDEndpoint,
  address: NdAddress,
  options: NdConnectingOptions = {},
): Promise<Uint8Array> {
  const what = 'connectEndpoint';
  checkHas(what, 'connector', connector, 'completeConnect', 'INDConnector');
  const { signal, ...how } = checkedOptions(what, options, {
    signal: true,
    privateData: true,
    localPort: true,
    protocol: true,
  });
  return orAborted(signal, async () => {
    await abortable(connector.connect(endpoint, address, how), signal);
    const { privateData } = connector.getConnectionData();
    await abortable(connector.completeConnect(), signal);
    return privateData;
  });
}

/**
 * v1: accepts the next connection request of a listener with an endpoint. Returns the peer's private data, zero-padded.
 * The caller keeps the connector, even when the call fails.
 *
 * @param listen - a listener of the same adapter instance
 * @param connector - an idle connector
 * @param endpoint - an endpoint of the connector; post Receives beforehand if the peer sends first
 * @throws NdError as {@link INDListen.getConnectionRequest} and {@link INDConnector.accept}, or the signal's reason
 */
export async function acceptEndpoint(
  listen: INDListen,
  connector: INDConnector,
  endpoint: INDEndpoint,
  options: NdAcceptingOptions = {},
): Promise<Uint8Array> {
  const what = 'acceptEndpoint';
  checkHas(what, 'listen', listen, 'getConnectionRequest', 'INDListen');
  checkHas(what, 'connector', connector, 'completeConnect', 'INDConnector');
  const { signal, privateData: answer } = checkedOptions(what, options, { signal: true, privateData: true });
  return orAborted(signal, async () => {
    await abortable(listen.getConnectionRequest(connector), signal);
    const { privateData } = connector.getConnectionData();
    await abortable(connector.accept(endpoint, answer), signal);
    return privateData;
  });
}

/**
 * Returns the adapter's source address for a peer: the same address if it is local, otherwise the first one of
 * its family.
 */
function ownAddress(adapter: IND2Adapter, address: NdAddress): SocketAddress {
  const what = 'Connect';
  const peer = parseAddress(address, what);
  const own = adapter.queryAddressList().filter(({ family }) => family === peer.family);
  const same = own.find(
    (one) => one.address === peer.address || (isLoopback(one.address) && isLoopback(peer.address)),
  );
  const first = same ?? own[0];
  if (first !== undefined) return { ...first, port: 0 };
  throw refuse(
    Status.INVALID_ADDRESS,
    what,
    `The adapter has no IPv${peer.family} address to reach ${peer.address}. Open an adapter that has one, or set \`from\`.`,
  );
}

/** Throws INVALID_PARAMETER unless an object has a method of its interface. */
function checkHas(what: string, name: string, object: unknown, method: string, type: string): void {
  if (typeof (object as Record<string, unknown> | null | undefined)?.[method] === 'function') return;
  throw refuse(Status.INVALID_PARAMETER, what, `\`${name}\` must be an ${type}; got ${shown(object)}.`);
}

/** Options that both calls of v2 have. */
const connectOptions: OptionNames<Nd2AcceptingOptions> = {
  inboundReadLimit: true,
  outboundReadLimit: true,
  privateData: true,
  signal: true,
};

function checkedOptions<O extends WaitOptions>(what: string, options: O, names: OptionNames<O>): O {
  checkOptions(what, options, names);
  return v2Terms.call(what, () => checkedSignal(options));
}

function abortable<T extends { abortOn(signal: AbortSignal): unknown }>(request: T, signal?: AbortSignal): T {
  if (signal !== undefined) request.abortOn(signal);
  return request;
}

/** Runs the steps, and releases the connector if one fails. */
async function guarded<T>(
  connector: IND2Connector,
  signal: AbortSignal | undefined,
  steps: () => Promise<T>,
): Promise<T> {
  try {
    return await orAborted(signal, steps);
  } catch (error) {
    connector.release();
    throw error;
  }
}

/** Runs the steps; if one completes with CANCELED because of the signal, throws the signal's reason. */
async function orAborted<T>(signal: AbortSignal | undefined, steps: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await steps();
  } catch (error) {
    if (error instanceof StatusError && error.status === Status.CANCELED) signal?.throwIfAborted();
    throw error;
  }
}
