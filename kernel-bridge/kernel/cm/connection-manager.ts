/**
 * The connection manager: receives MADs from QP1, finds their connection, and runs its state machine (IBA 1 §12; RDMA
 * IP CM Service, annex A11). The worst that a message from a peer can cause is a counted drop.
 */
import { BY_WIRE } from '../../hca/soft-hca-binding.js';
import { sharedGid } from '../../ioctl/sockaddr.js';
import type { CmOptions } from '../../option-checks/option-schemas.js';
import { Connection, type ConnectionHost, keptOfReq, type ReceivedReq } from './connection.js';
import { ConnectionTable } from './connection-table.js';
import { gidEquals } from './gids.js';
import { HalfOpen } from './half-open.js';
import { type Listener, ListenerTable } from './listener-table.js';
import {
  AnsweredMessage,
  type CmBody,
  type CmMessage,
  type CmMessageName,
  counterNames,
  emitMad,
  parseMad,
  RejReason,
} from './mad-layouts.js';
import { answerPath, isConnectableQpn, readReq, replyOf } from './messages.js';
import {
  type CmConnection,
  type CmConnectParameters,
  type CmCounters,
  type CmEvents,
  type CmListenerControl,
  type CmListenParameters,
  type CmPlatform,
  type CmRequest,
  type CmState,
  type ConnectionManager,
  type Gid,
  HostLink,
  type SidrListener,
  type SidrLookup,
  type SidrLookupEvents,
  type SidrLookupParameters,
} from './service.js';
import { sourceOf } from './shares.js';
import { SidrManager } from './sidr-manager.js';

const NOTHING = new Uint8Array(0);
const LARGEST_PATH_MTU = 5;
/** Position of the process's slot in a QPN and in a communication id. */
const QPN_SLOT_SHIFT = 16;
const ID_SLOT_SHIFT = 24;
const RECEIVED = counterNames('received');

/** Source and destination of a MAD. */
interface Origin {
  readonly source: Gid;
  readonly destination: Gid;
  readonly scopeId: number;
  /** The slot of the sending process if it is on this host and used the local link, otherwise BY_WIRE. */
  readonly sender: number;
}

type TakenRequest = { connection: CmConnection; request: CmRequest };
type Received<N extends CmMessageName> = Extract<CmMessage, { name: N }>;
/** A request that a listener may accept. */
type Admissible = { listener: Listener<TakenRequest>; request: CmRequest };
type Handlers = { [N in CmMessageName]: (message: Received<N>, origin: Origin) => void };

/** Creates a connection manager on a platform, with validated options. */
export function createConnectionManager(platform: CmPlatform, options: CmOptions): ConnectionManager {
  return new Manager(platform, options);
}

class Manager implements ConnectionManager, ConnectionHost {
  readonly platform: CmPlatform;
  readonly options: CmOptions;
  readonly #connections = new ConnectionTable();
  readonly #halfOpen: HalfOpen;
  readonly #listeners: ListenerTable<TakenRequest>;
  readonly #sidr: SidrManager;
  /** The listener where a connection's request is or was waiting. */
  readonly #requestedAt = new Map<Connection, Listener<TakenRequest>>();
  readonly #counters = new Map<string, { count: number }>();
  /** The high half of this manager's transaction ids; the low half is the connection's id. */
  readonly #clientId: number;
  #closed = false;

  constructor(platform: CmPlatform, options: CmOptions) {
    this.platform = platform;
    this.options = options;
    this.#clientId = platform.randomPsn() & 0xff_ffff;
    this.#halfOpen = new HalfOpen(platform, (counter) => this.count(counter));
    this.#listeners = new ListenerTable(this.#halfOpen);
    this.#sidr = new SidrManager(this);
  }

  // ── Calls of the owner ─────────────────────────────────────────────────────────────────────────────────────

  listen(parameters: CmListenParameters): CmListenerControl {
    return this.#listeners.add(parameters);
  }

  connect(parameters: CmConnectParameters, events: CmEvents): CmConnection {
    const id = this.#closed ? 0 : this.platform.allocateCommId() >>> 0;
    const connection = new Connection(this, id, this.#transactionId(id), { connect: parameters });
    connection.events = events;
    if (id === 0) {
      this.count('noCommId');
      connection.refuseLater();
      return connection;
    }
    try {
      connection.dispatch('connect', { request: parameters });
    } catch (error) {
      connection.silence();
      this.#connections.remove(connection);
      this.platform.releaseCommId(id);
      throw error;
    }
    return connection;
  }

  listenForLookups(parameters: CmListenParameters): SidrListener {
    return this.#sidr.listen(parameters);
  }

  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): SidrLookup {
    const id = this.#closed ? 0 : this.platform.allocateCommId() >>> 0;
    return this.#sidr.lookup(parameters, events, id, this.#transactionId(id));
  }

  counters(): CmCounters {
    return {
      ...Object.fromEntries([...this.#counters].map(([name, { count }]) => [name, count])),
      connections: this.#connections.size - this.#connections.inTimewait,
      timewait: this.#connections.inTimewait,
      waitingRequests: this.#listeners.waiting,
      halfOpen: this.#halfOpen.size,
      ...this.#sidr.counters(),
    };
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#sidr.close();
    for (const listener of this.#listeners.all) listener.close();
    this.#halfOpen.clear();
    for (const connection of this.#connections.all) {
      if (connection.state === 'idle') continue;
      connection.abandon();
      connection.silence();
      this.platform.releaseCommId(connection.localCommId);
    }
    this.#connections.clear();
    this.#requestedAt.clear();
  }

  // ── Events of connections (ConnectionHost) ─────────────────────────────────────────────────────────────────

  count(counter: string): void {
    const counted = this.#counters.get(counter);
    if (counted) counted.count++;
    else this.#counters.set(counter, { count: 1 });
  }

  changed(connection: Connection, before: CmState): void {
    if (before === 'reqReceived') {
      this.#requestedAt.get(connection)?.forget(connection);
      this.#requestedAt.delete(connection);
    }
    this.#connections.changed(connection, before);
    if (connection.received) this.#halfOpen.changed(connection, before);
    if (connection.state === 'idle') this.platform.releaseCommId(connection.localCommId);
  }

  // ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────

  receive(source: Gid, destination: Gid, scopeId: number, mad: Uint8Array, sender = BY_WIRE): void {
    if (this.#closed) return;
    const message = parseMad(mad);
    if (typeof message === 'string') {
      this.count(`dropped.${message}`);
      return;
    }
    if (source.length !== 16 || destination.length !== 16) {
      this.count('dropped.badAddress');
      return;
    }
    this.count(RECEIVED[message.name]);
    const origin = { source: sharedGid(source), destination: sharedGid(destination), scopeId, sender };
    const handle = this.#handlers[message.name] as (message: CmMessage, origin: Origin) => void;
    handle(message, origin);
  }

  readonly #handlers: Handlers = {
    REQ: (message, origin) => this.#onReq(message, origin),
    REP: (message, origin) => this.#onRep(message, origin),
    REJ: (message, origin) => this.#onRej(message, origin),
    MRA: ({ header, body }, origin) => {
      const forReq = body.message === AnsweredMessage.REQ;
      if (!forReq && body.message !== AnsweredMessage.REP) {
        this.count('ignored.mraLap');
        return;
      }
      // An MRA for the REQ is the first message with the peer's id.
      const connection = this.#find(body.remoteCommId, forReq ? undefined : body.localCommId, origin);
      if (connection && this.#isAnswer(connection, header.transactionId)) {
        connection.dispatch(forReq ? 'mraReq' : 'mraRep', { serviceTimeout: body.serviceTimeout });
      } else if (!connection) this.count('unknown.MRA');
    },
    RTU: ({ header, body }, origin) => {
      const connection = this.#find(body.remoteCommId, body.localCommId, origin);
      if (connection) connection.dispatch('rtu');
      else if (this.#isStranger(body.remoteCommId, origin)) {
        // The peer assumes that it is connected.
        this.count('unknown.RTU');
        this.#rejectStranger(AnsweredMessage.other, header.transactionId, body, origin);
      }
    },
    DREQ: ({ header, body }, origin) => {
      const { transactionId } = header;
      const connection = this.#find(body.remoteCommId, body.localCommId, origin);
      if (connection && body.remoteQpn === connection.localQpn)
        connection.dispatch('dreq', { transactionId });
      else if (connection) this.count('ignored.dreqWrongQpn');
      else if (this.#isStranger(body.remoteCommId, origin)) {
        // An unknown connection counts as disconnected; a reply saves the peer its retries.
        this.count('unknown.DREQ');
        const ids = { localCommId: body.remoteCommId, remoteCommId: body.localCommId };
        this.#answer(origin, 'DREP', emitMad('DREP', transactionId, ids));
      }
    },
    DREP: ({ body }, origin) => {
      const connection = this.#find(body.remoteCommId, body.localCommId, origin);
      if (connection) connection.dispatch('drep');
      else this.count('unknown.DREP');
    },
    SIDR_REQ: (message, origin) => this.#sidr.onReq(message, origin),
    SIDR_REP: (message, origin) => this.#sidr.onRep(message, origin),
    // Alternate paths do not exist: RoCE has no path migration.
    LAP: () => this.count('dropped.LAP'),
    APR: () => this.count('dropped.APR'),
  };

  /**
   * Distinguishes the cases of a REQ in this order. The first is a repetition of a known REQ (IBA 1 §12.9.8.3.2),
   * recognized by the peer's id. The second is an invalid REQ. The third is a REQ that reuses a QP of a live connection
   * because the peer has restarted, which ends that connection (stale, §12.9.8.3.1). Any other REQ is new. A peer is
   * identified by the origin of the REQ: its address and CA GUID, and on this host its process. A REQ is not refused
   * because of a connection that this side has already ended and whose DREQ awaits its reply: the peer has ended it
   * too, and its own DREQ or DREP is late or lost.
   */
  #onReq(message: Received<'REQ'>, origin: Origin): void {
    const { header, body } = message;
    if (this.#isForeignQp(body, origin)) return;
    const { source, sender } = origin;
    const { transactionId } = header;
    const known = this.#connections.byRemoteId(body.localCaGuid, body.localCommId, source, sender);
    if (known && isSameReq(known.received, transactionId, body)) {
      known.dispatch('req');
      return;
    }
    const holder = this.#connections.byRemoteQp(body.localCaGuid, body.localQpn, source, sender);
    // The id alone does not end a connection: the connection with this id is alive, and this is not its REQ. Linux's
    // ib_cm does not reply either.
    if (known && known.state !== 'timewait' && holder !== known) {
      this.count('ignored.reqKnownId');
      return;
    }
    const verdict = this.#judge(message, origin);
    if ('reason' in verdict) {
      this.#rejectReq(verdict.reason, verdict.ari, transactionId, body, origin);
      return;
    }
    if (holder) {
      const ended = holder.state === 'dreqSent';
      if (!ended) this.#rejectReq(RejReason.staleConnection, NOTHING, transactionId, body, origin);
      holder.dispatch('stale');
      if (!ended) return;
    }
    if (known) this.#connections.forgetRemoteId(known);
    this.#admit(verdict, { header, body, name: 'REQ' }, origin);
  }

  /**
   * Whether a REQ or REP contains a QP that its sender cannot have. QPNs of a process on this host contain its slot. A
   * message that arrived over UDP cannot refer to a QP that is connected over the local link.
   */
  #isForeignQp(
    { localQpn, localCaGuid }: CmBody<'REQ'> | CmBody<'REP'>,
    { source, sender }: Origin,
  ): boolean {
    const slot = localQpn >>> QPN_SLOT_SHIFT;
    const foreign =
      sender === BY_WIRE
        ? this.#connections.byRemoteQp(localCaGuid, localQpn, source, slot) !== undefined
        : slot !== sender;
    if (foreign) this.count('dropped.foreignQpn');
    return foreign;
  }

  /**
   * Called last, because the room may be taken from another source: a REQ that is not stored must not displace another.
   */
  #admit({ listener, request }: Admissible, { header, body }: Received<'REQ'>, origin: Origin): void {
    const { transactionId } = header;
    const { source: address, sender } = origin;
    const source = sourceOf(address, sender);
    const id = this.platform.allocateCommId() >>> 0;
    const admission = id === 0 ? 'refused' : listener.admit(source);
    if (admission !== 'waits') {
      if (id === 0) this.count('noCommId');
      else this.platform.releaseCommId(id);
      // The peer retransmits a dropped REQ.
      if (admission === 'dropped') this.count('dropped.noRoom');
      else this.#rejectReq(RejReason.noResources, NOTHING, transactionId, body, origin);
      return;
    }
    const received = { body: keptOfReq(body), sender, source, transactionId, request };
    const connection = new Connection(this, id, this.#transactionId(id), { received });
    this.#requestedAt.set(connection, listener);
    connection.dispatch('admit');
    listener.add(connection);
  }

  /** The listener of this request, or the reason for refusing it. */
  #judge(
    { header, body }: Received<'REQ'>,
    origin: Origin,
  ): Admissible | { reason: number; ari: Uint8Array } {
    if (!this.#listeners.has(body.serviceId)) {
      if (origin.sender !== BY_WIRE && body.serviceId >> 32n === 0n)
        this.platform.onNoListener?.(body.serviceId, origin.destination);
      return { reason: RejReason.invalidServiceId, ari: NOTHING };
    }
    if (this.platform.acceptsLink?.(origin.sender, header.attributeModifier & HostLink.mask) === false)
      return { reason: RejReason.vendorOptionNotSupported, ari: NOTHING };
    const link = {
      maxPathMtu: this.platform.maxPathMtu?.(origin.destination) ?? LARGEST_PATH_MTU,
      maxPacketBytes: this.platform.maxPacketBytes?.(origin.destination),
      standardOnly: this.platform.standardOnly,
    };
    const request = readReq(body, origin, link, header.attributeModifier);
    if ('reason' in request) return request;
    // There is no reason code for a P_Key. As in Linux's ib_cm, the REJ rejects the primary path by its GID.
    const foreign = { reason: RejReason.invalidGid, ari: Uint8Array.from(origin.destination) };
    if (this.platform.acceptsPkey?.(origin.destination, request.pkey) === false) return foreign;
    const listener = this.#listeners.find(body.serviceId, request.localAddress);
    if (!listener) return { reason: RejReason.consumerReject, ari: NOTHING };
    if (listener.parameters.acceptsPkey?.(request.pkey) === false) return foreign;
    return { listener, request };
  }

  #onRep(message: Received<'REP'>, origin: Origin): void {
    const { header, body } = message;
    const connection = this.#connections.byLocalId(body.remoteCommId);
    if (connection && !this.#comesFromPeer(connection, origin)) return;
    if (connection && !this.#isAnswer(connection, header.transactionId)) return;
    if (connection?.active && (connection.state === 'reqSent' || connection.state === 'mraReqReceived')) {
      this.#onAnswer(connection, message, origin);
    } else if (connection && (connection.remote?.commId ?? body.localCommId) === body.localCommId) {
      connection.dispatch('rep');
    } else {
      // Without a reply the peer would wait for an RTU that never arrives.
      this.count('unknown.REP');
      this.#rejectStranger(AnsweredMessage.REP, header.transactionId, body, origin);
    }
  }

  /** The REP to our REQ. */
  #onAnswer(connection: Connection, { header, body }: Received<'REP'>, origin: Origin): void {
    if (!connection.offered || !isConnectableQpn(body.localQpn)) {
      this.count('dropped.badQpn');
      return;
    }
    if (this.#isForeignQp(body, origin)) return;
    const { source, sender } = origin;
    const other = this.#connections.byRemoteQp(body.localCaGuid, body.localQpn, source, sender);
    connection.learnRemote(body, sender);
    if (other?.state === 'dreqSent') other.dispatch('stale');
    else if (other) {
      connection.dispatch('staleReply', { reason: RejReason.staleConnection });
      other.dispatch('stale');
      return;
    }
    this.platform.acceptsLink?.(sender, header.attributeModifier & HostLink.mask);
    connection.dispatch('rep', { reply: replyOf(body, connection.offered, header.attributeModifier) });
  }

  #onRej({ header, body }: Received<'REJ'>, origin: Origin): void {
    const connection = this.#findRejected(body, origin);
    if (!connection) {
      this.count('unknown.REJ');
      return;
    }
    if (!this.#isAnswer(connection, header.transactionId)) return;
    if (body.reason === RejReason.vendorOptionNotSupported)
      this.platform.onLinkRefused?.(connection.path.destination);
    const ari = body.ari.slice(0, Math.min(body.ariLength, body.ari.length));
    connection.dispatch('rej', { reject: { reason: body.reason, ari, privateData: body.privateData } });
  }

  /**
   * The connection of a REJ. A peer that gave up before it knew our id identifies itself by CA GUID and its own id (IBA
   * 1 §12.9.8.6). Every other REJ contains our id, and its own once we know it.
   */
  #findRejected(body: CmBody<'REJ'>, origin: Origin): Connection | undefined {
    if (body.reason === RejReason.timeout && body.ariLength >= 8) {
      const caGuid = new DataView(body.ari.buffer, body.ari.byteOffset).getBigUint64(0);
      const connection = this.#connections.byRemoteId(caGuid, body.localCommId, origin.source, origin.sender);
      if (connection) return connection;
    }
    const connection = this.#connections.byLocalId(body.remoteCommId);
    if (!connection || !this.#comesFromPeer(connection, origin)) return undefined;
    const expected = connection.remote?.commId;
    return expected === undefined || expected === body.localCommId ? connection : undefined;
  }

  /** The connection with these ids, if the message is from its peer. */
  #find(localId: number, remoteId: number | undefined, origin: Origin): Connection | undefined {
    const connection = this.#connections.byLocalId(localId);
    if (!connection) return undefined;
    if (remoteId !== undefined && connection.remote?.commId !== remoteId) return undefined;
    return this.#comesFromPeer(connection, origin) ? connection : undefined;
  }

  /**
   * Whether the message can be from the peer: it must have the peer's address and, once known, arrive over the same
   * link or from the same process. If a process on this host has ended, this process sends replies for it.
   */
  #comesFromPeer({ path, remote, localCommId }: Connection, { source, sender }: Origin): boolean {
    const known = remote?.sender ?? sender;
    const answersForIt = known !== BY_WIRE && sender === localCommId >>> ID_SLOT_SHIFT;
    if (gidEquals(path.destination, source) && (sender === known || answersForIt)) return true;
    this.count('dropped.wrongSource');
    return false;
  }

  /** Whether a REP, REJ or MRA is a reply to the pending REQ. Linux repeats the transaction id in all of them. */
  #isAnswer(connection: Connection, transactionId: bigint): boolean {
    if (connection.mayBeAnsweredBy(transactionId)) return true;
    this.count('dropped.otherRequest');
    return false;
  }

  /** Whether no connection with this peer has the id. Connections with other peers do not count. */
  #isStranger(localId: number, origin: Origin): boolean {
    const connection = this.#connections.byLocalId(localId);
    return !connection || gidEquals(connection.path.destination, origin.source);
  }

  // ── Replies without a connection ────────────────────────────────────────────────────────────────────────────

  #rejectReq(
    reason: number,
    ari: Uint8Array,
    transactionId: bigint,
    body: CmBody<'REQ'>,
    origin: Origin,
  ): void {
    this.count(`refused.${reason}`);
    const mad = emitMad('REJ', transactionId, {
      remoteCommId: body.localCommId,
      message: AnsweredMessage.REQ,
      ariLength: ari.length,
      reason,
      ari,
    });
    this.#answer(origin, 'REJ', mad);
  }

  /** Rejects a message with an unknown id: invalid communication id. */
  #rejectStranger(
    message: number,
    transactionId: bigint,
    ids: { localCommId: number; remoteCommId: number },
    origin: Origin,
  ): void {
    const mad = emitMad('REJ', transactionId, {
      localCommId: ids.remoteCommId,
      remoteCommId: ids.localCommId,
      message,
      reason: RejReason.invalidCommId,
    });
    this.#answer(origin, 'REJ', mad);
  }

  #answer({ source, destination, scopeId }: Origin, name: CmMessageName, mad: Uint8Array): void {
    this.count(`sent.${name}`);
    this.platform.sendMad(answerPath(source, destination, scopeId), mad);
  }

  #transactionId(localCommId: number): bigint {
    return (BigInt(this.#clientId) << 32n) | BigInt(localCommId);
  }
}

/** Whether a REQ repeats that of this connection. Comparing ids is not enough: a restarted peer reuses them. */
function isSameReq(received: ReceivedReq | undefined, transactionId: bigint, body: CmBody<'REQ'>): boolean {
  return (
    received !== undefined &&
    received.transactionId === transactionId &&
    received.body.localQpn === body.localQpn &&
    received.body.startingPsn === body.startingPsn
  );
}
