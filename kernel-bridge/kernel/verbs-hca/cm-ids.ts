/** Calls of librdmacm with their arguments in shared memory, and the owners of ids for events. */

import type { HcaEvent } from '../../hca/soft-hca-binding.js';
import { CmEventType, type VerbsHca } from '../../hca/verbs-binding.js';
import { RnrRetry } from '../../ioctl/constants.js';
import { Status, StatusError } from '../../ioctl/status.js';
import { madAt, putPath } from '../../schema/generated/attributes.js';
import type { CmPath, CmQpParameters } from '../cm/service.js';

/** The retry counts of a connection request have 3 bits. */
const MOST_RETRIES = 7;

/** An event of librdmacm. */
export type CmMessage = Extract<HcaEvent, { type: 'cm' }>;

/**
 * The status of an event that ends an attempt; undefined: a timeout. The neighbour of an address that is not resolved in
 * time does not respond, so the host is unreachable.
 */
export function failureOf({ event, status }: CmMessage): number | undefined {
  const failure = status < 0 ? status >>> 0 : undefined;
  if (failure === Status.IO_TIMEOUT)
    return event === CmEventType.addressError ? Status.HOST_UNREACHABLE : undefined;
  return failure ?? (event === CmEventType.connectError ? Status.CONNECTION_ABORTED : undefined);
}

/** The owner of an id. */
export interface CmOwner {
  on(message: CmMessage): void;
}

/** Both ends of an id. */
export interface CmEnds {
  readonly source: Uint8Array;
  readonly sourcePort: number;
  readonly destination: Uint8Array;
  readonly destinationPort: number;
  readonly scopeId: number;
  /** Number of the device; 0 if it is not open. */
  readonly device: number;
}

/** Parameters negotiated by librdmacm. */
export interface CmNegotiated {
  readonly pathMtu: number;
  readonly peerQpn: number;
  readonly receivePsn: number;
  readonly sendPsn: number;
  readonly pkeyIndex: number;
  readonly ackTimeout: number;
  readonly flowLabel: number;
  readonly hopLimit: number;
  readonly trafficClass: number;
}

const nothing = new Uint8Array(0);
/** Timeout for resolving addresses and routes in milliseconds: ARP, and on InfiniBand the subnet manager. */
const resolveMs = 4000;

/** A copy of private data, padded to a message's length. */
export function padded(data: Uint8Array, length: number): Uint8Array {
  const whole = new Uint8Array(length);
  whole.set(data.subarray(0, length));
  return whole;
}

export class CmIds {
  private readonly owners = new Map<number, CmOwner>();

  constructor(private readonly host: VerbsHca) {}

  get size(): number {
    return this.owners.size;
  }

  /** Passes an event to the owner of its id. Returns false if the id has no owner. */
  dispatch(message: CmMessage): boolean {
    const owner = this.owners.get(message.id);
    owner?.on(message);
    return owner !== undefined;
  }

  /** @throws StatusError if there are too many ids. */
  create(datagrams: boolean, owner: CmOwner): number {
    const status = this.host.commands.cmCreate(datagrams);
    if (status !== Status.SUCCESS) throw new StatusError(status);
    const id = this.host.words[0]!;
    this.owners.set(id, owner);
    return id;
  }

  /** Sets the owner of an id that a request has created. */
  adopt(id: number, owner: CmOwner): void {
    this.owners.set(id, owner);
  }

  /** Destroys an id; the peer of a connection that is being established is notified. */
  destroy(id: number): void {
    this.owners.delete(id);
    this.host.commands.cmDestroy(id);
  }

  bind(
    id: number,
    gid: Uint8Array,
    port: number,
    scopeId: number,
    shared: boolean,
  ): { status: number; port: number } {
    this.host.bytes.set(gid, 0);
    const status = this.host.commands.cmBind(id, port, scopeId, shared);
    return { status, port: this.host.words[0]! };
  }

  /** Uses the local port if possible, otherwise any. */
  resolve(id: number, path: CmPath, localPort: number, peerPort: number): number {
    const { host } = this;
    for (const port of localPort === 0 ? [0] : [localPort, 0]) {
      if (!putPath(host, path)) return Status.INVALID_PARAMETER;
      const status = host.commands.cmResolve(id, port, path.scopeId, peerPort, path.scopeId, resolveMs);
      const taken = status === Status.ADDRESS_ALREADY_EXISTS || status === Status.INVALID_ADDRESS;
      if (!taken || port === 0) return status;
    }
    return Status.INVALID_ADDRESS;
  }

  resolveRoute(id: number): number {
    return this.host.commands.cmResolveRoute(id, resolveMs);
  }

  setOptions(id: number, ackTimeoutCode: number, trafficClass: number): void {
    this.host.commands.cmSetOptions(id, ackTimeoutCode, trafficClass);
  }

  listen(id: number, backlog: number): number {
    return this.host.commands.cmListen(id, backlog);
  }

  connect(id: number, qp: Partial<CmQpParameters>, data: Uint8Array): number {
    return this.host.commands.cmConnect(id, this.put(qp, data));
  }

  accept(id: number, qp: Partial<CmQpParameters>, data: Uint8Array): number {
    return this.host.commands.cmAccept(id, this.put(qp, data));
  }

  reject(id: number, data: Uint8Array = nothing): number {
    this.host.bytes.set(data, madAt);
    return this.host.commands.cmReject(id, data.length);
  }

  establish(id: number): number {
    return this.host.commands.cmEstablish(id);
  }

  disconnect(id: number): number {
    return this.host.commands.cmDisconnect(id);
  }

  notify(id: number): number {
    return this.host.commands.cmNotify(id);
  }

  closeRemoved(id: number): number {
    return this.host.commands.cmCloseRemoved(id);
  }

  join(id: number, group: Uint8Array, scopeId: number): number {
    this.host.bytes.set(group, 0);
    return this.host.commands.cmJoin(id, 0, scopeId);
  }

  ends(id: number): CmEnds {
    const { host } = this;
    host.commands.cmAddresses(id);
    const { words, bytes } = host;
    return {
      source: bytes.slice(0, 16),
      sourcePort: words[0]!,
      destination: bytes.slice(16, 32),
      destinationPort: words[2]!,
      scopeId: words[1]! || words[3]!,
      device: words[4]!,
    };
  }

  /** Undefined: nothing has been negotiated yet. */
  negotiated(id: number): CmNegotiated | undefined {
    if (this.host.commands.cmAttributes(id) !== Status.SUCCESS) return undefined;
    const { words } = this.host;
    return {
      pathMtu: words[0]!,
      peerQpn: words[1]!,
      receivePsn: words[2]!,
      sendPsn: words[3]!,
      pkeyIndex: words[4]!,
      ackTimeout: words[5]!,
      flowLabel: words[6]!,
      hopLimit: words[7]!,
      trafficClass: words[8]!,
    };
  }

  /** Writes the arguments of connect and accept; returns the length of the private data. */
  private put(
    {
      qpn = 0,
      responderResources = 0,
      initiatorDepth = 0,
      retryCount = MOST_RETRIES,
      rnrRetryCount = RnrRetry.FOR_EVER,
      srq = false,
    }: Partial<CmQpParameters>,
    data: Uint8Array,
  ): number {
    const { words, bytes } = this.host;
    const most = 255;
    const values = [qpn, Math.min(responderResources, most), Math.min(initiatorDepth, most)];
    words.set(
      [
        ...values,
        Math.min(retryCount, MOST_RETRIES),
        Math.min(rnrRetryCount, RnrRetry.FOR_EVER),
        srq ? 1 : 0,
      ],
      0,
    );
    bytes.set(data, madAt);
    return data.length;
  }
}
