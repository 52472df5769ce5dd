/**
 * RDMA ports of librdmacm: a claim is an id that is bound, and a listener listens by it. A claim on all addresses is one id for all devices
 * of the system, which several HCAs of this kernel share.
 */

import { EpType } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import type { CmIds, CmMessage, CmOwner } from './cm-ids.js';

const unspecified = new Uint8Array(16);

/** Hears of requests at a claimed port. */
export type RequestSink = (message: CmMessage) => void;

export class PortClaim implements CmOwner {
  /** By HCA. */
  readonly sinks = new Map<object, RequestSink>();
  readonly holders = new Set<object>();
  listening = false;

  constructor(
    readonly service: number,
    readonly gid: Uint8Array | null,
    readonly number: number,
  ) {}

  id = 0;
  port = 0;

  /** Events of the listener itself mean nothing here: a device that goes says so by its own id. */
  on(): void {}
}

const sameGid = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === null || b === null ? a === b : Buffer.compare(a, b) === 0;

export class PortClaims {
  private readonly claims = new Map<number, PortClaim>();
  private readonly byId = new Map<number, PortClaim>();
  private next = 1;

  constructor(private readonly ids: CmIds) {}

  /** `scopeId` of a link-local address. */
  claim(
    holder: object,
    service: number,
    gid: Uint8Array | null,
    port: number,
    scopeId: number,
  ): { status: number; claim: number; port: number } {
    const shared = gid === null && port !== 0 ? this.find(service, null, port) : undefined;
    if (shared && !shared.holders.has(holder)) {
      shared.holders.add(holder);
      return { status: Status.SUCCESS, claim: shared.number, port };
    }
    const claim = new PortClaim(service, gid && Uint8Array.from(gid), this.next++);
    claim.id = this.ids.create(service === EpType.DATAGRAM, claim);
    // One at a free port is for connectors as well, each of which is bound to it.
    const { status, port: granted } = this.ids.bind(claim.id, gid ?? unspecified, port, scopeId, port === 0);
    if (status !== Status.SUCCESS) {
      this.ids.destroy(claim.id);
      const taken = status === Status.ACCESS_DENIED ? status : Status.ADDRESS_ALREADY_EXISTS;
      return { status: status === Status.INVALID_ADDRESS ? status : taken, claim: 0, port: 0 };
    }
    claim.port = granted;
    claim.holders.add(holder);
    this.claims.set(claim.number, claim);
    this.byId.set(claim.id, claim);
    return { status: Status.SUCCESS, claim: claim.number, port: granted };
  }

  release(holder: object, number: number): void {
    const claim = this.claims.get(number);
    if (!claim) return;
    claim.holders.delete(holder);
    claim.sinks.delete(holder);
    if (claim.holders.size > 0) return;
    this.claims.delete(number);
    this.byId.delete(claim.id);
    this.ids.destroy(claim.id);
  }

  find(service: number, gid: Uint8Array | null, port: number): PortClaim | undefined {
    for (const claim of this.claims.values()) {
      if (claim.service === service && claim.port === port && sameGid(claim.gid, gid)) return claim;
    }
    return undefined;
  }

  /** Listens at a claim; requests go to the sink. Returns a status. */
  listen(claim: PortClaim, holder: object, backlog: number, sink: RequestSink): number {
    if (!claim.listening) {
      const status = this.ids.listen(claim.id, backlog);
      if (status !== Status.SUCCESS) return status;
      claim.listening = true;
    }
    claim.sinks.set(holder, sink);
    return Status.SUCCESS;
  }

  /** The claim by whose id a request has come. */
  ofListener(id: number): PortClaim | undefined {
    return this.byId.get(id);
  }

  close(): void {
    for (const claim of this.claims.values()) this.ids.destroy(claim.id);
    this.claims.clear();
    this.byId.clear();
  }
}
