/** The connections of a real HCA: those of the OS, through librdmacm. */
import type { ConnectAttributes } from '../../hca/soft-hca-binding.js';
import { Capacity, QpType } from '../../ioctl/constants.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type {
  CmConnectParameters,
  CmEvents,
  CmListenerControl,
  CmListenParameters,
  CmRequest,
  SidrListener,
  SidrLookupEvents,
  SidrLookupParameters,
  SidrRequest,
} from '../cm/service.js';
import type { HcaConnections, HcaPort } from '../hca-driver/backend.js';
import { isLinkLocal, mtuCode } from '../hca-driver/hca-ports.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import type { CmCore } from './cm-core.js';
import { type CmEnds, type CmMessage, type CmNegotiated, padded } from './cm-ids.js';
import type { PortClaim, RequestSink } from './rdma-port-claims.js';
import { type ConnectionOwner, VerbsConnection } from './verbs-connection.js';
import { VerbsInquiry, VerbsLookup } from './verbs-lookups.js';

/** Maximum number of requests waiting at a listener whose owner set no limit. */
const mostWaiting = 1024;
/** rdma_cm's hop limit. */
const hops = 64;

const portOfService = (serviceId: bigint): number => Number(serviceId & 0xffffn);
const spaceOfService = (serviceId: bigint): number => Number((serviceId >> 16n) & 0xffffn);

/** Identifies a queue pair's connection until it is connected. */
const keyOf = ({ receivePsn, sendPsn }: { receivePsn: number; sendPsn: number }, peerQpn: number): string =>
  `${receivePsn}/${sendPsn}/${peerQpn}`;

/** A listener; a request waits together with its connection or inquiry. */
class Waiting<T extends object> {
  readonly queue: T[] = [];

  constructor(
    private readonly core: CmCore,
    private readonly holder: object,
    readonly claim: PortClaim,
    private readonly parameters: CmListenParameters,
    private readonly take: (message: CmMessage, ends: CmEnds) => T | undefined,
    private readonly drop: (waiting: T) => void,
  ) {
    const sink: RequestSink = (message) => this.on(message);
    const status = core.claims.listen(claim, holder, parameters.backlog, sink);
    if (status !== Status.SUCCESS) throw new StatusError(status);
  }

  get waiting(): number {
    return this.queue.length;
  }

  takeRequest(): T | undefined {
    return this.queue.shift();
  }

  /** A request has ended before it was taken. */
  forget(over: (waiting: T) => boolean): void {
    const index = this.queue.findIndex(over);
    if (index >= 0) this.queue.splice(index, 1);
  }

  close(): void {
    this.claim.sinks.delete(this.holder);
    for (const waiting of this.queue.splice(0)) this.drop(waiting);
  }

  private on(message: CmMessage): void {
    const { backlog, accepts, onRequest } = this.parameters;
    const most = backlog > 0 ? Math.min(backlog, mostWaiting) : mostWaiting;
    const ends = this.core.ids.ends(message.id);
    const welcome = this.queue.length < most && accepts?.(ends.source) !== false;
    const taken = welcome ? this.take(message, ends) : undefined;
    if (!taken) {
      this.core.refuse(message.id);
      return;
    }
    this.queue.push(taken);
    onRequest();
  }
}

type WaitingConnection = { connection: VerbsConnection; request: CmRequest };

export class VerbsConnections implements HcaConnections, ConnectionOwner {
  private readonly all = new Set<VerbsConnection>();
  private readonly byKey = new Map<string, VerbsConnection>();
  private readonly listeners = new Set<Waiting<WaitingConnection>>();
  private number = 0;

  constructor(
    private readonly core: CmCore,
    private readonly info: {
      readonly number: number;
      readonly iwarp: boolean;
      pkeyOf(index: number): number;
    },
    private readonly portOf: (gid: Uint8Array) => HcaPort | undefined,
  ) {
    core.acquire();
  }

  get ids() {
    return this.core.ids;
  }

  /** The device, for listeners on all addresses: requests at this device belong to this HCA. */
  get device(): number {
    return this.info.number;
  }

  get iwarp(): boolean {
    return this.info.iwarp;
  }

  nextNumber(): number {
    this.number = (this.number % 0xff_ffff) + 1;
    return this.number;
  }

  known(connection: VerbsConnection): void {
    this.byKey.set(keyOf(connection, connection.peerQpn), connection);
  }

  over(connection: VerbsConnection): void {
    this.all.delete(connection);
    const key = keyOf(connection, connection.peerQpn);
    if (this.byKey.get(key) === connection) this.byKey.delete(key);
    for (const listener of this.listeners) listener.forget((one) => one.connection === connection);
  }

  /** The id of the connection with these attributes; 0: none. */
  idFor(attributes: ConnectAttributes): number {
    return this.byKey.get(keyOf(attributes, attributes.destinationQpn))?.localCommId ?? 0;
  }

  // ── Connections

  connect(parameters: CmConnectParameters, events: CmEvents) {
    const connection = new VerbsConnection(this);
    connection.events = events;
    // librdmacm does not support unreliable connections.
    if (parameters.qp.type === QpType.UC) return { connection, status: Status.NOT_SUPPORTED };
    // Throws if no id is available.
    const status = connection.connect(parameters);
    this.all.add(connection);
    return { connection, status };
  }

  listen(parameters: CmListenParameters): CmListenerControl {
    const listener: Waiting<WaitingConnection> = new Waiting(
      this.core,
      this,
      this.claimFor(parameters),
      parameters,
      (message, ends) => this.request(message, ends, parameters.serviceId),
      ({ connection }) => connection.abandon(),
    );
    this.listeners.add(listener);
    return {
      get waiting() {
        return listener.waiting;
      },
      takeRequest: () => listener.takeRequest(),
      close: () => {
        this.listeners.delete(listener);
        listener.close();
      },
    };
  }

  private request(message: CmMessage, ends: CmEnds, serviceId: bigint): WaitingConnection | undefined {
    const negotiated = this.iwarp ? undefined : this.ids.negotiated(message.id);
    if (!negotiated && !this.iwarp) return undefined;
    const connection = new VerbsConnection(this);
    this.all.add(connection);
    connection.adopt(message.id, negotiated);
    const { source, destination, scopeId } = ends;
    const pkey = negotiated ? this.info.pkeyOf(negotiated.pkeyIndex) : DEFAULT_PKEY;
    const request: CmRequest = {
      serviceId,
      localAddress: source,
      localPort: ends.sourcePort,
      peerAddress: destination,
      peerPort: ends.destinationPort,
      path: { ...pathBack(negotiated), source, destination, scopeId, pkey },
      peerQpn: connection.peerQpn,
      type: QpType.RC,
      sendPsn: connection.sendPsn,
      responderResources: message.responderResources,
      initiatorDepth: message.initiatorDepth,
      retryCount: message.retryCount,
      rnrRetryCount: message.rnrRetryCount,
      pathMtu: negotiated?.pathMtu ?? mtuCode(this.portOf(source)?.activeMtu ?? 1024),
      localAckTimeout: negotiated?.ackTimeout ?? 0,
      pkey,
      peerUsesSrq: message.srq,
      privateData: padded(message.data, Capacity.CONNECT_DATA),
    };
    return { connection, request };
  }

  // ── Lookups

  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents) {
    const lookup = new VerbsLookup(this.ids, parameters, events);
    if (this.iwarp) return { lookup, status: Status.NOT_SUPPORTED };
    return { lookup, status: lookup.start(portOfService(parameters.serviceId)) };
  }

  listenForLookups(parameters: CmListenParameters): SidrListener {
    if (this.iwarp) throw new StatusError(Status.NOT_SUPPORTED, 'iWARP has no datagrams');
    return new Waiting<{ inquiry: VerbsInquiry; request: SidrRequest }>(
      this.core,
      this,
      this.claimFor(parameters),
      parameters,
      ({ id, data }, { source, sourcePort, destination, destinationPort, scopeId }) => {
        const pkey = this.portOf(source)?.pkeys[0] ?? DEFAULT_PKEY;
        const request: SidrRequest = {
          serviceId: parameters.serviceId,
          localAddress: source,
          localPort: sourcePort,
          peerAddress: destination,
          peerPort: destinationPort,
          path: { ...pathBack(undefined), source, destination, scopeId, pkey },
          pkey,
          privateData: padded(data, Capacity.LOOKUP_DATA),
        };
        return { inquiry: new VerbsInquiry(this.ids, id), request };
      },
      ({ inquiry }) => inquiry.abandon(),
    );
  }

  // ── Ports

  claimPort(service: number, gid: Uint8Array | null, port: number) {
    const scopeId = gid && isLinkLocal(gid) ? (this.portOf(gid)?.interfaceIndex ?? 0) : 0;
    return this.core.claims.claim(this, service, gid, port, scopeId);
  }

  /** Others can reach the port once there is a listener. */
  openPort(): number {
    return Status.SUCCESS;
  }

  releasePort(claim: number): void {
    this.core.claims.release(this, claim);
  }

  private claimFor({ serviceId, address }: CmListenParameters): PortClaim {
    const claim = this.core.claims.find(spaceOfService(serviceId), address ?? null, portOfService(serviceId));
    if (!claim)
      throw new StatusError(Status.INVALID_PARAMETER, 'the port of the listener must be claimed first');
    return claim;
  }

  counters(): Record<string, number> {
    return { connections: this.all.size };
  }

  close(): void {
    for (const connection of [...this.all]) connection.end();
    this.core.release();
  }
}

function pathBack(negotiated: CmNegotiated | undefined) {
  return {
    flowLabel: negotiated?.flowLabel ?? 0,
    trafficClass: negotiated?.trafficClass ?? 0,
    hopLimit: negotiated?.hopLimit || hops,
  };
}
