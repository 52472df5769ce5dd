/** Connections of kernel clients: a connect endpoint whose requests are IRPs. Source: IWVConnectEndpoint. */
import { Capacity, RnrRetry } from '../../ioctl/constants.js';
import { addressOfGid, checkSocketAddress, type SocketAddress } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import { IbPathRecord } from '../../ioctl/structs.js';
import { callVerb } from '../filter/call.js';
import { Endpoint } from '../filter/connect-endpoint.js';
import { routeOf } from '../filter/endpoint-requests.js';
import {
  type EndpointAddress,
  type EndpointParam,
  type EndpointServices,
  endpointAddress,
  noParam,
} from '../filter/endpoint-types.js';
import type { WvFile } from '../filter/file-objects.js';
import type { IbAl } from '../hca-driver/al.js';
import type { IbQp } from '../hca-driver/ib-objects.js';
import type { Irp } from '../io-manager/irp.js';
import type { WorkItems } from '../io-manager/work-items.js';
import type { KernelVerbs } from './kernel-verbs.js';

/** Connection limits negotiated by both sides. Omitted ones are 0; omitted retry counts are the largest finite ones. */
export interface ConnectionParameters {
  /** The peer's RDMA Reads and atomics that this side serves at a time. Values above 255 count as 255. */
  readonly responderResources?: number;
  /** Outstanding RDMA Reads and atomics of this side. Values above 255 count as 255. */
  readonly initiatorDepth?: number;
  /** Retries without an acknowledgement, 0 to 7. */
  readonly retryCount?: number;
  /** Retries when the peer has no receive posted, 0 to 6; 7: unlimited. */
  readonly rnrRetryCount?: number;
  /** Private data: at most 56 bytes for connect, 196 for accept. */
  readonly privateData?: Uint8Array;
}

/** The state of an endpoint: both addresses and the peer's offer. */
export interface EndpointAttributes {
  /** The local IP address as text; empty until one is chosen. */
  readonly localAddress: string;
  /** The local port; 0 until one is chosen. */
  readonly localPort: number;
  /** The peer's IP address as text. */
  readonly peerAddress: string;
  /** The peer's port. */
  readonly peerPort: number;
  /** RDMA Reads and atomics that the peer serves at a time. */
  readonly responderResources: number;
  /** RDMA Reads and atomics that the peer intends to have outstanding. */
  readonly initiatorDepth: number;
  /** The peer's private data. */
  readonly privateData: Uint8Array;
}

function checkedCount(what: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new StatusError(
    Status.INVALID_PARAMETER,
    `${what} must be an integer from 0 to ${most}; got ${value}`,
  );
}

function checkedData(data: Uint8Array, most: number): Uint8Array {
  if (!(data instanceof Uint8Array))
    throw new StatusError(Status.INVALID_PARAMETER, `private data must be a Uint8Array; got ${typeof data}`);
  if (data.length > most) {
    throw new StatusError(
      Status.INVALID_BUFFER_SIZE,
      `private data must be at most ${most} bytes; got ${data.length}`,
    );
  }
  return data.slice();
}

/** Checks parameters; `most` is the maximum length of private data in bytes. */
function checked(param: ConnectionParameters, most: number): EndpointParam {
  const { responderResources = 0, initiatorDepth = 0, retryCount = 7, rnrRetryCount = RnrRetry.MOST } = param;
  const depth = (what: string, value: number): number =>
    Math.min(checkedCount(what, value, 0xffff_ffff), 255);
  return {
    responderResources: depth('responderResources', responderResources),
    initiatorDepth: depth('initiatorDepth', initiatorDepth),
    retryCount: checkedCount('retryCount', retryCount, 7),
    rnrRetryCount: checkedCount('rnrRetryCount', rnrRetryCount, RnrRetry.FOR_EVER),
    privateData: param.privateData ? checkedData(param.privateData, most) : noParam.privateData,
  };
}

function checkedAddress(address: SocketAddress): EndpointAddress {
  checkSocketAddress(address);
  return endpointAddress(address);
}

/** Handles a request of the endpoint; a StatusError is its result. */
function answer(irp: Irp, handle: () => number): number {
  const { state } = irp;
  try {
    return handle();
  } catch (error) {
    if (error instanceof StatusError && irp.state === state) return irp.complete(error.status);
    throw error;
  }
}

/** A connect endpoint: a listener, or one side of a connection. Its requests may be issued at DISPATCH_LEVEL. */
export class KernelEndpoint {
  private readonly endpoint: Endpoint;
  private readonly id: number;

  /** @internal */
  constructor(
    private readonly al: IbAl,
    private readonly services: EndpointServices,
    private readonly work: WorkItems,
    private readonly verbs: KernelVerbs,
    private readonly tables: WvFile,
    private readonly ended: (endpoint: KernelEndpoint) => void,
  ) {
    this.endpoint = new Endpoint(services);
    this.id = tables.endpoints.add(this.endpoint);
    al.resources.acquire();
  }

  /**
   * Binds to a local address; port 0 selects a free one.
   *
   * @returns PENDING. Completes with SUCCESS (Information: the port), INVALID_ADDRESS, ADDRESS_ALREADY_EXISTS,
   * CANCELED. Returns INVALID_ADDRESS or INVALID_PARAMETER (the port) immediately.
   */
  bind(address: SocketAddress, irp: Irp): number {
    return answer(irp, () => {
      const local = checkedAddress(address);
      const done = (): number => irp.complete(Status.SUCCESS, this.endpoint.local!.port);
      return this.work.pend(irp, () => {
        answer(irp, () => this.endpoint.handle('bind', irp, { address: local, answer: done }));
      });
    });
  }

  /**
   * Starts listening. @returns PENDING; completes with SUCCESS, ADDRESS_ALREADY_EXISTS, INVALID_DEVICE_STATE, CANCELED.
   * INVALID_PARAMETER for an invalid backlog.
   */
  listen(backlog: number, irp: Irp): number {
    return answer(irp, () => {
      const args = { backlog: checkedCount('the backlog', backlog, 0xffff_ffff) };
      return this.work.pend(irp, () => {
        answer(irp, () => this.endpoint.handle('listen', irp, args));
      });
    });
  }

  /**
   * Waits for a request at this listener and moves it to a new endpoint. @returns PENDING; completes with SUCCESS,
   * CANCELED.
   */
  getRequest(to: KernelEndpoint, irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('getRequest', irp, { endpoint: to.endpoint }));
  }

  /**
   * Accepts the request with a queue pair, which becomes ready to send and receive.
   *
   * @returns PENDING; completes with SUCCESS when the peer is ready, CONNECTION_ABORTED, IO_TIMEOUT, CANCELED.
   * INVALID_PARAMETER for a count, INVALID_BUFFER_SIZE for too much private data. Other statuses: the queue pair cannot
   * be used.
   */
  accept(qp: IbQp, param: ConnectionParameters, irp: Irp): number {
    return answer(irp, () => {
      const args = { qp: this.verbs.entryOf(qp), param: checked(param, Capacity.REP_DATA) };
      return this.endpoint.handle('accept', irp, args);
    });
  }

  /** Rejects the request, with at most 148 bytes of private data. Completes with SUCCESS, INVALID_BUFFER_SIZE. */
  reject(privateData: Uint8Array, irp: Irp): number {
    return answer(irp, () => {
      const args = { privateData: checkedData(privateData, Capacity.REJ_DATA) };
      return this.endpoint.handle('reject', irp, args);
    });
  }

  /**
   * Connects a bound endpoint and a queue pair to a peer's listener. {@link KernelEndpoint.completeConnect} follows.
   *
   * @returns PENDING; completes with SUCCESS when the peer has accepted, CONNECTION_REFUSED, TIMEOUT,
   * NETWORK_UNREACHABLE, CANCELED. INVALID_ADDRESS for the peer's address, INVALID_PARAMETER for a count,
   * INVALID_BUFFER_SIZE for too much private data. Other statuses: the queue pair cannot be used.
   */
  connect(qp: IbQp, peer: SocketAddress, param: ConnectionParameters, irp: Irp): number {
    return answer(irp, () => {
      const address = checkedAddress(peer);
      const parameters = checked(param, Capacity.CONNECT_DATA);
      return this.work.pend(irp, () => {
        answer(irp, () => this.connectNow(qp, address, parameters, irp));
      });
    });
  }

  /** {@link KernelEndpoint.connect} at a level that allows looking up routes. */
  private connectNow(qp: IbQp, address: EndpointAddress, param: EndpointParam, irp: Irp): number {
    const ended = (status: number): void => {
      irp.setCancelRoutine(undefined);
      irp.complete(status);
    };
    const source = this.services.sourceFor(address.gid, address.scopeId);
    if (!source) return irp.complete(Status.NETWORK_UNREACHABLE);
    const record = { ...IbPathRecord.zero(), sgid: source, dgid: address.gid, hopFlowRaw: 64 };
    const setRoute = (inner: Irp): number =>
      answer(inner, () => this.endpoint.handle('modify', inner, { route: routeOf(record, this.services) }));
    callVerb<number>(
      setRoute,
      (status) => {
        if (status !== Status.SUCCESS) return ended(status);
        const args = { qp: this.verbs.entryOf(qp), address, param };
        const connect = (inner: Irp): number =>
          answer(inner, () => this.endpoint.handle('connect', inner, args));
        const inner = callVerb<number>(connect, ended, irp.requestorMode);
        if (!inner.completed) irp.setCancelRoutine(() => inner.cancel());
      },
      irp.requestorMode,
    );
    return irp.returnStatus;
  }

  /**
   * Completes a connect: the queue pair becomes ready to send and receive. Completes with SUCCESS, or the queue pair's
   * status.
   */
  completeConnect(irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('accept', irp, { param: noParam }));
  }

  /**
   * Ends the connection; the queue pair is flushed immediately. @returns PENDING; completes with SUCCESS, TIMEOUT,
   * CANCELED.
   */
  disconnect(irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('disconnect', irp, {}));
  }

  /**
   * Sets the effect of a disconnect by the peer on the queue pair: with true it keeps its state until {@link
   * disconnect}, with false (default) it is flushed immediately.
   */
  keepQueuePairOnDisconnect(keep: boolean): void {
    this.endpoint.keepQp = keep;
  }

  /**
   * Waits for the end of the connection. @returns PENDING; completes with CONNECTION_DISCONNECTED, CONNECTION_ABORTED,
   * CANCELED.
   */
  notifyDisconnect(irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('notifyDisconnect', irp));
  }

  /** Queries the current state of the connection. */
  query(): EndpointAttributes {
    const { local, peer, param } = this.endpoint;
    return {
      localAddress: local ? addressOfGid(local.gid) : '',
      localPort: local?.port ?? 0,
      peerAddress: peer ? addressOfGid(peer.gid) : '',
      peerPort: peer?.port ?? 0,
      responderResources: param.responderResources,
      initiatorDepth: param.initiatorDepth,
      privateData: param.privateData,
    };
  }

  /**
   * Ends everything immediately: pending requests complete with CANCELED, and a connection is ended without waiting for
   * the peer's reply.
   */
  close(): void {
    if (this.tables.endpoints.delete(this.id) === undefined) return;
    this.endpoint.destroy();
    this.al.resources.release();
    this.ended(this);
  }
}
