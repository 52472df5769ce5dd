/** Connecting and accepting in one call each, for programs that do without the steps between. */
import { type SocketAddress, Status, StatusError } from '../winverbs/index.js';
import { isLoopback, parseAddress } from './core/address.js';
import type { NdAddress } from './spi/common-types.js';
import type { INDConnector, INDEndpoint, INDListen, NdConnectOptions } from './spi/v1.js';
import type { IND2Adapter, IND2Connector, IND2Listener, IND2QueuePair, Nd2ConnectOptions } from './spi/v2.js';
import { refuse } from './status.js';
import type { WaitOptions } from './waiting.js';

/** Options of {@link connectQueuePair}. */
export interface Nd2ConnectingOptions extends Nd2ConnectOptions, WaitOptions {
  /** The local address; default: the adapter's first of the peer's family. */
  readonly from?: NdAddress | undefined;
}

/** Options of {@link acceptQueuePair}. */
export interface Nd2AcceptingOptions extends Nd2ConnectOptions, WaitOptions {}

/** A connection that was made. */
export interface Nd2Connected {
  /** It is the connection: release or dispose of it to end it. */
  readonly connector: IND2Connector;
  /** What the peer sent with its request or its answer; the wire has no length of it, so that zeros follow. */
  readonly privateData: Uint8Array;
}

/**
 * Connects a queue pair to a listener: makes a connector, binds it, connects, and completes the connection. The queue pair can send when
 * it ends. To look at the peer's answer before, use the connector's own methods.
 *
 * @param adapter - of the queue pair
 * @param queuePair - with Receives posted, if the peer begins
 * @param address - the listener's, with its port
 * @throws NdError as {@link IND2Connector.connect} and {@link IND2Connector.completeConnect}; the signal's reason
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
  const { from, signal, ...how } = options;
  const connector = adapter.createConnector();
  return guarded(connector, signal, async () => {
    connector.bind(from ?? ownAddress(adapter, address));
    await abortable(connector.connect(queuePair, address, how), signal);
    const privateData = connector.getPrivateData();
    await abortable(connector.completeConnect(), signal);
    return { connector, privateData };
  });
}

/**
 * Accepts the next connection request of a listener with a queue pair. To decide by the request, or to make the queue pair after it, use
 * the listener's and the connector's own methods.
 *
 * @param adapter - of the listener and the queue pair
 * @param listener - that listens
 * @param queuePair - with Receives posted, if the peer begins
 * @throws NdError as {@link IND2Listener.getConnectionRequest} and {@link IND2Connector.accept}; the signal's reason
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
  const { signal, ...how } = options;
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
  /** At most maxCalleeData bytes. */
  readonly privateData?: Uint8Array | undefined;
}

/**
 * v1: connects an endpoint of a connector to a listener, and completes the connection. Answers the peer's private data, which zeros
 * follow. To look at it before, use the connector's own methods. The connector stays yours, also when it fails.
 *
 * @param connector - an idle one
 * @param endpoint - that the connector made, with Receives posted, if the peer begins
 * @param address - the listener's, with its port
 * @throws NdError as {@link INDConnector.connect} and {@link INDConnector.completeConnect}; the signal's reason
 */
export async function connectEndpoint(
  connector: INDConnector,
  endpoint: INDEndpoint,
  address: NdAddress,
  options: NdConnectingOptions = {},
): Promise<Uint8Array> {
  const { signal, ...how } = options;
  return orAborted(signal, async () => {
    await abortable(connector.connect(endpoint, address, how), signal);
    const { privateData } = connector.getConnectionData();
    await abortable(connector.completeConnect(), signal);
    return privateData;
  });
}

/**
 * v1: accepts the next connection request of a listener with an endpoint. Answers the peer's private data, which zeros follow. The
 * connector stays yours, also when it fails.
 *
 * @param listen - of the same adapter instance
 * @param connector - an idle one
 * @param endpoint - that the connector made, with Receives posted, if the peer begins
 * @throws NdError as {@link INDListen.getConnectionRequest} and {@link INDConnector.accept}; the signal's reason
 */
export async function acceptEndpoint(
  listen: INDListen,
  connector: INDConnector,
  endpoint: INDEndpoint,
  options: NdAcceptingOptions = {},
): Promise<Uint8Array> {
  const { signal, privateData: answer } = options;
  return orAborted(signal, async () => {
    await abortable(listen.getConnectionRequest(connector), signal);
    const { privateData } = connector.getConnectionData();
    await abortable(connector.accept(endpoint, answer), signal);
    return privateData;
  });
}

/** The adapter's own address to reach a peer from: the same, if it is its own, else the first of its family. */
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
    `The adapter has no IPv${peer.family} address to reach ${peer.address} from; open one that has, or name one with 'from'.`,
  );
}

function abortable<T extends { abortOn(signal: AbortSignal): unknown }>(request: T, signal?: AbortSignal): T {
  if (signal !== undefined) request.abortOn(signal);
  return request;
}

/** Runs the steps. The connector is released if one fails. */
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

/** Runs the steps; when one ends in CANCELED because of the signal, its reason is thrown. */
async function orAborted<T>(signal: AbortSignal | undefined, steps: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted();
  try {
    return await steps();
  } catch (error) {
    if (error instanceof StatusError && error.status === Status.CANCELED) signal?.throwIfAborted();
    throw error;
  }
}
