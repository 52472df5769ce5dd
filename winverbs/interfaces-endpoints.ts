/** Endpoints: peers find each other, connect and part. */
import type { Overlapped } from '../kernel-bridge/overlapped.js';
import type { SocketAddress, WvAddressVector, WvDeviceAddress } from './interfaces-addresses.js';
import type { WvOverlappedObject } from './interfaces-objects.js';
import type { IWVConnectQueuePair, IWVDatagramQueuePair } from './interfaces-queue-pairs.js';

/** What endpoints of connections and of datagrams have in common. Their classes tell all statuses. */
export interface IWVEndpoint extends WvOverlappedObject {
  /** Resolves the route to a peer (IBAT) and sets it: AddressBound → RouteResolved. */
  resolveRoute(peer: SocketAddress): void;
  /** Port 0 asks for a free one; query() tells it. With `device` the wildcard address stands for those of that device. */
  bindAddress(address: SocketAddress, device?: WvDeviceAddress): void;
  /** Takes requests from now on; `backlog` are kept while nobody takes them, 1024 at most and with 0. */
  listen(backlog: number): void;
  /** Refuses the request, or the reply: at most 148 bytes for the peer, 136 in the service of datagrams. */
  reject(privateData?: Uint8Array): void;
}

/** Connection parameters. Depths are this side's view: reads it accepts and reads it issues. */
export interface WvConnectParam {
  /** At most 56 bytes. */
  privateData?: Uint8Array;
  responderResources?: number;
  initiatorDepth?: number;
  /** 0..7 */
  retryCount?: number;
  /**
   * 0..7: how often the peer repeats a send that finds no receive here. 7 is for ever: the default of QPs with an SRQ, and 6
   * for others. 6, the default of those, also waits for a second (the option `rnrPatienceMs`); a smaller count is all there is.
   */
  rnrRetryCount?: number;
}

/** What is known of an endpoint's connection: addresses, device, and what the peer sent last. */
export interface WvConnectAttributes {
  readonly localAddress: SocketAddress;
  readonly peerAddress: SocketAddress | undefined;
  readonly device: WvDeviceAddress;
  /**
   * What the peer sent last. Messages do not tell its length: it is padded with zeros to 56 bytes, and longer only if the REP
   * (196 bytes at most) or REJ (148) has anything but zeros behind them.
   */
  readonly privateData: Uint8Array;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly backlog: number;
}

/** Establishes and ends one connection, or listens for requests (IBA 1 §12). Its class tells all statuses. */
export interface IWVConnectEndpoint extends IWVEndpoint {
  /** Waits for a request and puts it into a fresh endpoint. */
  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
  /** Asks a peer for a connection. Ends when it has replied: accept or reject the reply then. */
  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
  /** Accepts the request, or the reply; the queue pair is in RTS when it ends. Active: `qp` may be null. */
  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
  /** Ends the connection and flushes the queue pair at once; ends when the peer has confirmed. */
  disconnect(): Overlapped<void>;
  /** Waits for the end of the connection; never ends in SUCCESS. */
  notifyDisconnect(): Overlapped<void>;
  /** Addresses, private data and read depths, in the view of this side. */
  query(): WvConnectAttributes;
}

/** What a datagram endpoint tells a peer that has asked for its queue pair. */
export interface WvDatagramParam {
  /** A UD queue pair of this provider, or the number of any. */
  qp: IWVDatagramQueuePair | number;
  /** Left out: 0x01234567, as RDMA CM has it. */
  qkey?: number;
  /** At most 136 bytes. */
  privateData?: Uint8Array;
}

/** What is known of a datagram endpoint, and of one of its peers or groups (WV_DATAGRAM_ATTRIBUTES). */
export interface WvDatagramAttributes {
  readonly localAddress: SocketAddress;
  readonly peerAddress: SocketAddress | undefined;
  readonly device: WvDeviceAddress;
  /** Of a listener. */
  readonly backlog: number;
  /** For an address handle on {@link device}. Undefined where no peer is meant. */
  readonly addressVector: WvAddressVector | undefined;
  /** 0: not known, as of a peer that asks; 0xFFFFFF: the group. */
  readonly qpn: number;
  readonly qkey: number;
  /** How the peer answered: 0 yes, 1 nobody there, 2 rejected, 3 no queue pair, 4 elsewhere, 5 another version. */
  readonly sidrStatus: number;
  /** What the peer sent, zero-padded by the messages: 180 bytes of a request, 136 of an answer. */
  readonly privateData: Uint8Array;
}

/** Finds peers of datagrams, is found by them, and joins groups (IBA 1 §12.11). Its class tells all statuses. */
export interface IWVDatagramEndpoint extends IWVEndpoint {
  /** Waits for a peer that asks and puts its request into a fresh endpoint. */
  getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void>;
  /** Asks the peer for its queue pair, with at most 180 bytes for it. Several may wait at once. */
  lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes>;
  /** Tells the peer that has asked a queue pair. */
  accept(param: WvDatagramParam): Overlapped<void>;
  /** Joins a multicast group; the answer has all that attaching a queue pair and sending take. */
  joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes>;
  /** Undoes {@link joinMulticast}. */
  leaveMulticast(group: SocketAddress): Overlapped<void>;
  /** What is known of a peer or group; without an address, of the peer that has asked, or of the endpoint alone. */
  query(peer?: SocketAddress): WvDatagramAttributes;
}
