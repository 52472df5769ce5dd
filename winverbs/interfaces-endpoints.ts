/** Endpoints: peers find each other, connect and disconnect. */
import type { Overlapped } from '../kernel-bridge/overlapped.js';
import type {
  SocketAddress,
  WvAddressVector,
  WvDeviceAddress,
  WvPathRecord,
} from './interfaces-addresses.js';
import type { WvOverlappedObject } from './interfaces-objects.js';
import type { IWVConnectQueuePair, IWVDatagramQueuePair } from './interfaces-queue-pairs.js';

/** The common part of connect and datagram endpoints. Their classes document all statuses. */
export interface IWVEndpoint extends WvOverlappedObject {
  /** Resolves the route to a peer (IBAT) and sets it: AddressBound → RouteResolved. */
  resolveRoute(peer: SocketAddress): void;
  /** Sets the path to a peer as a whole: AddressBound → RouteResolved. */
  modify(path: WvPathRecord): void;
  /**
   * With port 0 it gets a free port, which query() returns. With `device` the wildcard means the addresses of that
   * device.
   */
  bindAddress(address: SocketAddress, device?: WvDeviceAddress): void;
  /**
   * Accepts requests from now on; `backlog` is the maximum of waiting requests, at most 1024, which 0 means, too. With
   * `pkey` only requests for the partition of that P_Key.
   */
  listen(backlog: number, pkey?: number): void;
  /** Rejects the request or the reply, with at most 148 bytes for the peer, 136 for a datagram service. */
  reject(privateData?: Uint8Array): void;
}

/** Connection parameters. Depths are this side's view: reads that it accepts and reads that it issues. */
export interface WvConnectParam {
  /** At most 56 bytes. */
  privateData?: Uint8Array;
  /** RDMA reads and atomics of the peer that this side serves at a time; default: those of the queue pair. */
  responderResources?: number;
  /** RDMA reads and atomics that this side wants to have outstanding; default: those of the queue pair. */
  initiatorDepth?: number;
  /** Repetitions without an acknowledgement, 0 to 7, the default. */
  retryCount?: number;
  /**
   * 0..7: how often the peer repeats a send that finds no receive here. 7 is infinite and the default of QPs with an
   * SRQ; 6 is the default of others. With 6 the peer also waits for at least one second (the option `rnrPatienceMs`); a
   * smaller count limits the retries alone.
   */
  rnrRetryCount?: number;
}

/** Attributes of an endpoint's connection: addresses, device, and the peer's last private data. */
export interface WvConnectAttributes {
  /** This side's address and port; the wildcard of IPv4 while there is none. */
  readonly localAddress: SocketAddress;
  /** The peer's address and port; undefined while there is no peer. */
  readonly peerAddress: SocketAddress | undefined;
  /** Of a connection, or a request for one, with its partition. */
  readonly device: WvDeviceAddress;
  /**
   * The peer's last private data. Messages do not carry its length: it is padded with zeros to 56 bytes, and longer
   * only if the REP (at most 196 bytes) or REJ (148) has other bytes than zeros behind them.
   */
  readonly privateData: Uint8Array;
  /** RDMA reads and atomics of the peer that this side serves at a time. */
  readonly responderResources: number;
  /** RDMA reads and atomics that this side may have outstanding. */
  readonly initiatorDepth: number;
  /** Repetitions without an acknowledgement, 0 to 7. */
  readonly retryCount: number;
  /** Repetitions when no receive is posted, 0 to 6; 7: without end. */
  readonly rnrRetryCount: number;
  /** How many requests may wait, of a listener; 0 of all others. */
  readonly backlog: number;
}

/**
 * Establishes and ends one connection, or listens for requests (IBA 1 §12). Its class documents all statuses.
 *
 * @example
 * ```ts
 * endpoint.bindAddress({ family: 4, address: '192.0.2.1', port: 0 });
 * const peer = { family: 4, address: '192.0.2.2', port: 5000 } as const;
 * endpoint.resolveRoute(peer);
 * await endpoint.connect(qp, peer, { privateData: Buffer.from('who I am') });
 * console.log(endpoint.query().privateData);
 * await endpoint.accept(null, {});
 * // …
 * await endpoint.disconnect();
 * ```
 */
export interface IWVConnectEndpoint extends IWVEndpoint {
  /** Waits for a request and puts it into a fresh endpoint. */
  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
  /** Requests a connection. It ends when the peer has replied: accept or reject the reply then. */
  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
  /** Accepts the request, or the reply; the queue pair is in RTS when it ends. On the active side `qp` may be null. */
  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
  /** Ends the connection and flushes the queue pair at once; ends when the peer has confirmed. */
  disconnect(): Overlapped<void>;
  /**
   * Chooses what a disconnect by the peer does to the queue pair: with true it stays as it is until {@link disconnect},
   * so that its owner decides what becomes of outstanding requests; with false (default) it is flushed at once.
   */
  keepQueuePairOnDisconnect(keep: boolean): void;
  /** Waits for the end of the connection; never ends in SUCCESS. */
  notifyDisconnect(): Overlapped<void>;
  /** Addresses, private data and read depths, in the view of this side. */
  query(): WvConnectAttributes;
}

/** A datagram endpoint's answer to a look-up of its queue pair. */
export interface WvDatagramParam {
  /** A UD queue pair of this provider, or any queue pair number. */
  qp: IWVDatagramQueuePair | number;
  /** Default: 0x01234567, as in RDMA CM. */
  qkey?: number;
  /** At most 136 bytes. */
  privateData?: Uint8Array;
}

/** Attributes of a datagram endpoint, and of one of its peers or groups (WV_DATAGRAM_ATTRIBUTES). */
export interface WvDatagramAttributes {
  /** This side's address and port. */
  readonly localAddress: SocketAddress;
  /** The peer's address and port, or the group's; undefined if there is no peer. */
  readonly peerAddress: SocketAddress | undefined;
  /** The device of the local address, its port and partition. */
  readonly device: WvDeviceAddress;
  /** Of a listener. */
  readonly backlog: number;
  /** For an address handle on {@link device}. Undefined if there is no peer. */
  readonly addressVector: WvAddressVector | undefined;
  /** 0: unknown, as for the sender of a look-up; 0xFFFFFF: the group. */
  readonly qpn: number;
  /** The Q_Key that datagrams to the peer must carry. */
  readonly qkey: number;
  /** The peer's answer: 0 yes, 1 nobody there, 2 rejected, 3 no queue pair, 4 elsewhere, 5 another version. */
  readonly sidrStatus: number;
  /** The peer's private data, zero-padded: 180 bytes of a request, 136 of an answer. */
  readonly privateData: Uint8Array;
}

/**
 * Looks up datagram peers, answers look-ups, and joins groups (IBA 1 §12.11). Its class documents all statuses.
 *
 * @example
 * ```ts
 * using endpoint = provider.createDatagramEndpoint();
 * endpoint.bindAddress({ family: 4, address: '192.0.2.1', port: 0 });
 * const { qpn, qkey, addressVector } = await endpoint.lookup({ family: 4, address: '192.0.2.2', port: 5000 });
 * const handle = pd.createAddressHandle(addressVector!);
 * datagrams.send('hello', handle, { region, offset: 0, length: 100 }, WvSend.SIGNALED, qpn, qkey);
 * ```
 */
export interface IWVDatagramEndpoint extends IWVEndpoint {
  /** Waits for a look-up and puts it into a fresh endpoint. */
  getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void>;
  /** Looks up the peer's queue pair, with at most 180 bytes of private data. Several may be outstanding. */
  lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes>;
  /** Answers a look-up with a queue pair. */
  accept(param: WvDatagramParam): Overlapped<void>;
  /** Joins a multicast group; returns what is needed to attach a queue pair and to send. */
  joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes>;
  /** Leaves a group. */
  leaveMulticast(group: SocketAddress): Overlapped<void>;
  /** Attributes of a peer or group; without an address, of the look-up's sender, or of the endpoint alone. */
  query(peer?: SocketAddress): WvDatagramAttributes;
}
