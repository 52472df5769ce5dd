/** Connections of clients in the kernel: a connect endpoint whose requests are IRPs. Source: IWVConnectEndpoint. */
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

/** Limits of a connection that its two sides negotiate; what is left out is 0, for retry counts the most that are finite. */
export interface ConnectionParameters {
  /** RDMA reads and atomics of the peer that this side serves at a time. More than 255 count as 255. */
  readonly responderResources?: number;
  /** RDMA reads and atomics that this side has outstanding. More than 255 count as 255. */
  readonly initiatorDepth?: number;
  /** Repetitions without an acknowledgement, 0 to 7. */
  readonly retryCount?: number;
  /** Repetitions when the peer has no receive, 0 to 6; 7: without end. */
  readonly rnrRetryCount?: number;
  /** At most 56 bytes to connect, 196 to accept. */
  readonly privateData?: Uint8Array;
}

/** What is known of an endpoint: both addresses, and what the peer has offered. */
export interface EndpointAttributes {
  /** This side's IP address as text; empty until one is chosen. */
  readonly localAddress: string;
  /** This side's port; 0 until one is chosen. */
  readonly localPort: number;
  /** The peer's IP address as text. */
  readonly peerAddress: string;
  /** The peer's port. */
  readonly peerPort: number;
  /** RDMA reads and atomics that the peer offers to serve at a time. */
  readonly responderResources: number;
  /** RDMA reads and atomics that the peer wants to have outstanding. */
  readonly initiatorDepth: number;
  /** The peer's. */
  readonly privateData: Uint8Array;
}

function checkedCount(what: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new StatusError(
    Status.INVALID_PARAMETER,
    `${what} is ${value}; it is a whole number from 0 to ${most}`,
  );
}

function checkedData(data: Uint8Array, most: number): Uint8Array {
  if (!(data instanceof Uint8Array))
    throw new StatusError(Status.INVALID_PARAMETER, `private data is a Uint8Array, not ${typeof data}`);
  if (data.length > most) {
    throw new StatusError(
      Status.INVALID_BUFFER_SIZE,
      `${data.length} bytes of private data; ${most} are the maximum`,
    );
  }
  return data.slice();
}

/** `most`: bytes of private data. */
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

/** Handles a request of the endpoint; its StatusError is the answer. */
function answer(irp: Irp, handle: () => number): number {
  const { state } = irp;
  try {
    return handle();
  } catch (error) {
    if (error instanceof StatusError && irp.state === state) return irp.complete(error.status);
    throw error;
  }
}

/** A connect endpoint: it listens, or it is one side of a connection. Its requests may come at DISPATCH_LEVEL. */
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
   * Binds to a local address; port 0 chooses a free one.
   *
   * @returns PENDING; ends in SUCCESS (Information: the port), INVALID_ADDRESS, ADDRESS_ALREADY_EXISTS, CANCELED.
   *   INVALID_ADDRESS and INVALID_PARAMETER (the port) at once.
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
   * Listens. @returns PENDING; ends in SUCCESS, ADDRESS_ALREADY_EXISTS, INVALID_DEVICE_STATE, CANCELED. INVALID_PARAMETER
   * for a backlog that is no count.
   */
  listen(backlog: number, irp: Irp): number {
    return answer(irp, () => {
      const args = { backlog: checkedCount('the backlog', backlog, 0xffff_ffff) };
      return this.work.pend(irp, () => {
        answer(irp, () => this.endpoint.handle('listen', irp, args));
      });
    });
  }

  /** Waits for a request at this listener, and gives it to a new endpoint. @returns PENDING; ends in SUCCESS, CANCELED. */
  getRequest(to: KernelEndpoint, irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('getRequest', irp, { endpoint: to.endpoint }));
  }

  /**
   * Accepts the request with a queue pair, which becomes ready to send and receive.
   *
   * @returns PENDING; ends in SUCCESS when the peer is ready, CONNECTION_ABORTED, IO_TIMEOUT, CANCELED.
   *   INVALID_PARAMETER for a count, INVALID_BUFFER_SIZE for too much private data. Other statuses: the queue pair cannot be
   *   used.
   */
  accept(qp: IbQp, param: ConnectionParameters, irp: Irp): number {
    return answer(irp, () => {
      const args = { qp: this.verbs.entryOf(qp), param: checked(param, Capacity.REP_DATA) };
      return this.endpoint.handle('accept', irp, args);
    });
  }

  /** Refuses the request, with at most 148 bytes. Ends in SUCCESS, INVALID_BUFFER_SIZE. */
  reject(privateData: Uint8Array, irp: Irp): number {
    return answer(irp, () => {
      const args = { privateData: checkedData(privateData, Capacity.REJ_DATA) };
      return this.endpoint.handle('reject', irp, args);
    });
  }

  /**
   * Connects a bound endpoint and a queue pair to a peer's listener. {@link KernelEndpoint.completeConnect} follows.
   *
   * @returns PENDING; ends in SUCCESS when the peer has accepted, CONNECTION_REFUSED, TIMEOUT, NETWORK_UNREACHABLE,
   *   CANCELED. INVALID_ADDRESS for the peer's, INVALID_PARAMETER for a count, INVALID_BUFFER_SIZE for too much private data.
   *   Other statuses: the queue pair cannot be used.
   */
  connect(qp: IbQp, peer: SocketAddress, param: ConnectionParameters, irp: Irp): number {
    return answer(irp, () => {
      const address = checkedAddress(peer);
      const asked = checked(param, Capacity.CONNECT_DATA);
      return this.work.pend(irp, () => {
        answer(irp, () => this.connectNow(qp, address, asked, irp));
      });
    });
  }

  /** {@link KernelEndpoint.connect} where it may ask for routes. */
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

  /** Completes a connect: the queue pair becomes ready to send and receive. Ends in SUCCESS, or the queue pair's status. */
  completeConnect(irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('accept', irp, { param: noParam }));
  }

  /** Ends the connection; the queue pair is flushed at once. @returns PENDING; ends in SUCCESS, TIMEOUT, CANCELED. */
  disconnect(irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('disconnect', irp, {}));
  }

  /**
   * Chooses what a disconnect by the peer does to the queue pair: with true it stays as it is until {@link disconnect}, with
   * false (default) it is flushed at once.
   */
  keepQueuePairOnDisconnect(keep: boolean): void {
    this.endpoint.keepQp = keep;
  }

  /** Waits for the end of the connection. @returns PENDING; ends in CONNECTION_DISCONNECTED, CONNECTION_ABORTED, CANCELED. */
  notifyDisconnect(irp: Irp): number {
    return answer(irp, () => this.endpoint.handle('notifyDisconnect', irp));
  }

  /** What is known of the connection now. */
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

  /** Ends everything at once: waiting requests end in CANCELED, a connection without an answer of the peer. */
  close(): void {
    if (this.tables.endpoints.delete(this.id) === undefined) return;
    this.endpoint.destroy();
    this.al.resources.release();
    this.ended(this);
  }
}
