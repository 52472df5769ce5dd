/**
 * The common part of all types of endpoints: the machine that runs their tables, the address, the port, and listening.
 * Each request is identified by its own IRP, never by its position in a queue.
 */
import { addressOfGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type {
  CmConnection,
  CmListener,
  CmListenParameters,
  CmReject,
  CmReply,
  CmRequest,
  SidrInquiry,
  SidrRequest,
} from '../cm/service.js';
import { isUnspecified, sameGid } from '../hca-driver/hca-ports.js';
import type { Hca } from '../hca-driver/ib-objects.js';
import { pkeysFit } from '../hca-driver/pkeys.js';
import { type Irp, IrpQueue } from '../io-manager/irp.js';
import type { WvQp } from './endpoint-qp.js';
import type {
  DatagramPeer,
  EndpointAddress,
  EndpointParam,
  EndpointRoute,
  EndpointServices,
  PortClaim,
} from './endpoint-types.js';

/** An action and the state after it. `failed` is the state if the action fails after it has started (default: unchanged). */
export interface Transition<A, S> {
  readonly action: A;
  readonly next: S;
  readonly failed?: S;
}

/** A request's cell: a transition, or the status of a refusal. */
export type Cell<A, S> = Transition<A, S> | { readonly status: number };

/** The names used by one type of endpoint: its states, the requests and events that change them, and the actions of both. */
export interface EndpointKind {
  readonly state: string;
  readonly request: string;
  readonly signal: string;
  readonly requestAction: string;
  readonly signalAction: string;
}

/** The tables of one type of endpoint: the cells of every state and request, and of every state and event. */
export interface EndpointTables<K extends EndpointKind> {
  readonly initial: K['state'];
  readonly destroying: K['state'];
  readonly requests: Readonly<
    Record<K['state'], Readonly<Record<CommonRequest | K['request'], Cell<K['requestAction'], K['state']>>>>
  >;
  /** `ignored`: the event cannot occur in this state, or has no effect. */
  readonly signals: Readonly<
    Record<
      K['state'],
      Readonly<Record<CommonSignal | K['signal'], Transition<K['signalAction'], K['state']> | 'ignored'>>
    >
  >;
}

/** An endpoint that can be assigned to a GetRequest. */
export interface Nameable {
  /** Assigns the endpoint to a GetRequest; returns the status of a refusal. */
  assign(assignedBy: Irp): number | undefined;
  signal(signal: 'unassigned'): void;
}

/** The arguments of a request; which ones are present depends on the request. */
export interface RequestArguments {
  address?: EndpointAddress;
  /** With the wildcard address: the device whose addresses are meant. */
  onlyDevice?: bigint | undefined;
  route?: EndpointRoute;
  backlog?: number;
  endpoint?: Nameable;
  qp?: WvQp | undefined;
  param?: EndpointParam;
  privateData?: Uint8Array;
  /** The reply of a datagram endpoint's Accept. */
  datagram?: { qpn: number; qkey: number };
  /** Completes the IRP of EP_BIND, EP_QUERY, or of a datagram endpoint's request that returns a peer. */
  answer?: () => number;
  /** The same, but for a request that completes later. */
  answerPeer?: (irp: Irp, peer: DatagramPeer) => void;
}

/** The data of an event. */
export type SignalData =
  | { reply: CmReply }
  | { reject: CmReject }
  | { connection: CmConnection; request: CmRequest; local: EndpointAddress }
  | { inquiry: SidrInquiry; request: SidrRequest; local: EndpointAddress }
  /** The status for the pending requests. */
  | { lost: number }
  | undefined;

/**
 * Executes a request: completes or pends its IRP and returns undefined, or returns the status of a failure. A
 * StatusError means that nothing has been done.
 */
export type RequestStep<E> = (this: E, irp: Irp, args: RequestArguments) => number | undefined;

/** Requests of all types of endpoints. */
export type CommonRequest =
  | 'bind'
  | 'modify'
  | 'listen'
  | 'getRequest'
  | 'assign'
  | 'accept'
  | 'reject'
  | 'query'
  | 'cancel'
  | 'destroy';

/** Actions of all types of endpoints. */
export type CommonAction =
  | 'bind'
  | 'setRoute'
  | 'listen'
  | 'awaitRequest'
  | 'assign'
  | 'query'
  | 'cancelRequests'
  | 'destroy';

const COMMON_ACTIONS: Readonly<Record<CommonAction, true>> = {
  bind: true,
  setRoute: true,
  listen: true,
  awaitRequest: true,
  assign: true,
  query: true,
  cancelRequests: true,
  destroy: true,
};

/** Events of all types of endpoints. */
export type CommonSignal = 'unassigned' | 'deviceLost';

/** `K` has the names of its states, requests and events; `E` is the type itself. */
export abstract class EndpointMachine<K extends EndpointKind, E extends Nameable> {
  protected current: K['state'];
  local: EndpointAddress | undefined = undefined;
  peer: EndpointAddress | undefined = undefined;
  backlog = 0;
  /** Number of ignored events. */
  ignoredSignals = 0;

  protected bound: EndpointAddress | undefined = undefined;
  protected route: EndpointRoute | undefined = undefined;
  protected listener: CmListener | undefined = undefined;
  /** GetRequests of a listener, each with its endpoint; created by the first. */
  private getRequests: IrpQueue<E> | undefined = undefined;
  /** The GetRequest to which this endpoint is assigned. */
  protected assignedBy: Irp | undefined = undefined;
  /** CA GUID of the device with the local address. */
  private device: bigint | undefined = undefined;
  private claim: PortClaim | undefined = undefined;
  /** The device, if the endpoint is bound to the wildcard address of one device. */
  private onlyDevice: bigint | undefined = undefined;
  /** The P_Key, if this is a listener for one partition only ({@link EpOption}.PARTITION). */
  partitionAlone: number | undefined = undefined;

  /** Executes the action of a request: completes or pends the IRP, or returns the status of a refusal. */
  protected abstract act(action: K['requestAction'], irp: Irp, args: RequestArguments): number | undefined;
  /** Executes the action of an event. */
  protected abstract react(action: K['signalAction'], data: SignalData): void;

  constructor(
    /** WinVerbs endpoint type, also the RDMA port space. */
    readonly type: number,
    protected readonly services: EndpointServices,
    private readonly tables: EndpointTables<K>,
  ) {
    this.current = tables.initial;
  }

  get state(): K['state'] {
    return this.current;
  }

  /** Executes a request, or refuses it with the table's status. Completes or pends the IRP. */
  handle(request: CommonRequest | K['request'], irp: Irp, args: RequestArguments = {}): number {
    const cell = this.tables.requests[this.current][request];
    if ('status' in cell) return irp.complete(cell.status);
    const before = this.current;
    this.current = cell.next;
    try {
      const failure = this.act(cell.action, irp, args);
      if (failure === undefined) return irp.returnStatus;
      this.current = cell.failed ?? before;
      return irp.complete(failure);
    } catch (error) {
      // The request was refused before anything was done.
      if (this.current === cell.next) this.current = before;
      throw error;
    }
  }

  /** Handles an event. */
  signal(signal: CommonSignal | K['signal'], data?: SignalData): void {
    const cell = this.tables.signals[this.current][signal];
    if (cell === 'ignored') {
      this.ignoredSignals++;
      return;
    }
    this.current = cell.next;
    this.react(cell.action, data);
  }

  /** Called when its device is gone: pending requests complete with `status`. */
  deviceLost(status: number): void {
    this.signal('deviceLost', { lost: status });
  }

  /** Whether the endpoint belongs to this HCA: by its address, or by the wildcard of this HCA only. */
  isOn(hca: Hca): boolean {
    return this.device === hca.guid || this.onlyDevice === hca.guid;
  }

  // ── Requests of all types ───────────────────────────────────────────────────────────────────────────────

  protected static isCommon(action: string): action is CommonAction {
    return action in COMMON_ACTIONS;
  }

  /** Executes an action common to all types. */
  protected common(action: CommonAction, irp: Irp, args: RequestArguments): number | undefined {
    switch (action) {
      case 'bind':
        return this.bind(args);
      case 'setRoute':
        return this.setRoute(irp, args);
      case 'listen':
        return this.listen(irp, args);
      case 'awaitRequest':
        return this.awaitRequest(irp, args);
      case 'assign':
        return undefined;
      case 'query':
        args.answer!();
        return undefined;
      case 'cancelRequests':
        this.cancelAll();
        break;
      case 'destroy':
        this.destroy();
    }
    irp.complete(Status.SUCCESS, 0);
    return undefined;
  }

  private bind(args: RequestArguments): undefined {
    const address = args.address!;
    if (address.port === 0) {
      const gid = isUnspecified(address.gid) ? null : address.gid;
      const { status, claim, port } = this.services.claimPort(this.type, gid, 0);
      if (status !== Status.SUCCESS) throw new StatusError(status);
      this.claim = claim;
      this.bound = { ...address, port };
    } else {
      // Listen claims an explicit port, because many connectors may be bound to a listener's address.
      this.bound = address;
    }
    this.onlyDevice = args.onlyDevice;
    this.standAt(this.bound);
    args.answer!();
    return undefined;
  }

  private setRoute(irp: Irp, args: RequestArguments): undefined {
    const route = args.route!;
    const bound = this.bound!;
    if (!isUnspecified(bound.gid) && !sameGid(bound.gid, route.path.source)) {
      throw new StatusError(
        Status.INVALID_ADDRESS,
        `the route must start at the endpoint's address ${addressOfGid(bound.gid)}; got ${addressOfGid(route.path.source)}`,
      );
    }
    this.route = route;
    const { source: gid, scopeId } = route.path;
    const same = bound.scopeId === scopeId && sameGid(bound.gid, gid);
    this.standAt(same ? bound : { gid, port: bound.port, scopeId });
    irp.complete(Status.SUCCESS, 0);
    return undefined;
  }

  private listen(irp: Irp, args: RequestArguments): undefined {
    const { gid, port } = this.bound!;
    const address = isUnspecified(gid) ? undefined : gid;
    let claimed = this.claim;
    if (claimed === undefined) {
      const { status, claim } = this.services.claimPort(this.type, address ?? null, port);
      if (status !== Status.SUCCESS) throw new StatusError(status);
      claimed = claim!;
    } else {
      const status = this.services.openPort(claimed);
      if (status !== Status.SUCCESS) throw new StatusError(status);
    }
    try {
      this.listener = this.startListening({
        serviceId: this.serviceId(port),
        address,
        ...(this.onlyDevice === undefined ? {} : { accepts: this.ofDevice(this.onlyDevice) }),
        ...(this.partitionAlone === undefined ? {} : { acceptsPkey: this.ofPartition(this.partitionAlone) }),
        backlog: args.backlog!,
        onRequest: () => this.deliverRequests(),
      });
    } catch (error) {
      if (this.claim === undefined) this.services.releasePort(claimed);
      throw error;
    }
    this.claim = claimed;
    this.backlog = args.backlog!;
    irp.complete(Status.SUCCESS, 0);
    return undefined;
  }

  private awaitRequest(irp: Irp, args: RequestArguments): undefined {
    const endpoint = this.own(args.endpoint!);
    if (!endpoint) {
      throw new StatusError(Status.INVALID_PARAMETER, 'listener and endpoint must be of the same type');
    }
    // Marks the other endpoint as queued; returns whether that was possible.
    const refused = endpoint.assign(irp);
    if (refused !== undefined) throw new StatusError(refused);
    this.getRequests ??= new IrpQueue((_irp, named) => named.signal('unassigned'));
    this.getRequests.insert(irp, endpoint);
    this.deliverRequests();
    return undefined;
  }

  // ── Parts specific to each type ────────────────────────────────────────────────────────────────────────────

  /** Starts listening with connection management. */
  protected abstract startListening(parameters: CmListenParameters): CmListener;

  /** The endpoint, if it is of the same type. */
  protected abstract own(endpoint: Nameable): E | undefined;

  /** Takes the oldest waiting request; the returned function passes it to an endpoint. */
  protected abstract takeRequest(): ((endpoint: E) => void) | undefined;

  /** Cancels the pending requests that exist only in this type. */
  protected abstract cancelOwn(): void;

  /** Releases peers and queue pairs. */
  protected abstract letGo(): void;

  // ── Steps ───────────────────────────────────────────────────────────────────────────────────────────────

  private ofPartition(own: number): (pkey: number) => boolean {
    return (pkey) => pkeysFit(own, pkey);
  }

  private ofDevice(guid: bigint): (gid: Uint8Array) => boolean {
    return (gid) => this.services.portOf(gid)?.guid === guid;
  }

  protected standAt(local: EndpointAddress): void {
    this.local = local;
    this.device = isUnspecified(local.gid) ? undefined : this.services.portOf(local.gid, local.scopeId)?.guid;
  }

  /** Cancels all pending requests. */
  private cancelAll(): void {
    this.cancelOwn();
    this.getRequests?.cancelAll();
  }

  /** Ends everything immediately; also for the cleanup of a file. The state becomes `destroying` first. */
  destroy(): void {
    this.current = this.tables.destroying;
    // A GetRequest with this endpoint can no longer succeed.
    this.assignedBy?.cancel();
    this.assignedBy = undefined;
    this.cancelAll();
    this.letGo();
    this.stopListening();
  }

  protected stopListening(): void {
    this.listener?.close();
    this.listener = undefined;
    if (this.claim !== undefined) this.services.releasePort(this.claim);
    this.claim = undefined;
  }

  /** Ends GetRequests with a status, and releases the endpoints assigned to them. */
  protected endGetRequests(status: number): void {
    for (let taken = this.getRequests?.removeFirst(); taken; taken = this.getRequests?.removeFirst()) {
      taken.context.signal('unassigned');
      taken.irp.complete(status);
    }
  }

  /** Assigns this endpoint to a GetRequest; returns the status of a refusal. */
  assign(assignedBy: Irp): number | undefined {
    const cell = this.tables.requests[this.current].assign;
    if ('status' in cell) return cell.status;
    this.current = cell.next;
    this.assignedBy = assignedBy;
    return undefined;
  }

  private deliverRequests(): void {
    while (this.listener && this.getRequests !== undefined && this.getRequests.size > 0) {
      const handTo = this.takeRequest();
      if (!handTo) return;
      const { irp, context } = this.getRequests.removeFirst()!;
      handTo(context);
      irp.complete(Status.SUCCESS, this.writeRequest(irp, context));
    }
  }

  /** Writes a GetRequest's output about its endpoint; returns its length in bytes. */
  protected writeRequest(_irp: Irp, _endpoint: E): number {
    return 0;
  }

  protected serviceId(port: number): bigint {
    return (BigInt(this.type) << 16n) | BigInt(port);
  }
}
