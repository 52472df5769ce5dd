/**
 * RDMA ports of librdmacm: a claim is a bound id, through which a listener listens. A claim on all addresses applies to
 * all RDMA devices, which several HCAs of this kernel share. It has an id for each family: rdma_cm refuses an IPv4 peer
 * that arrives over iWARP at a listener on `::`, because it looks for a network interface with the mapped address
 * (cma.c, iw_conn_req_handler).
 */

import { EpType } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import type { CmIds, CmMessage, CmOwner } from './cm-ids.js';

const everyIpv6 = new Uint8Array(16);
const everyIpv4 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0);
/** Maximum number of attempts to find a port that is free in both families. */
const tries = 16;

/** Receives the requests at a claimed port. */
export type RequestSink = (message: CmMessage) => void;

export class PortClaim implements CmOwner {
  /** Sinks by HCA. */
  readonly sinks = new Map<object, RequestSink>();
  readonly holders = new Set<object>();
  listening = false;

  constructor(
    readonly service: number,
    readonly gid: Uint8Array | null,
    readonly number: number,
  ) {}

  ids: number[] = [];
  port = 0;

  /** Events of the listener itself are ignored: the removal of a device is reported through its own id. */
  on(): void {}
}

const isTaken = (status: number): boolean =>
  status === Status.ADDRESS_ALREADY_EXISTS || status === Status.INVALID_ADDRESS;

const sameGid = (a: Uint8Array | null, b: Uint8Array | null): boolean =>
  a === null || b === null ? a === b : Buffer.compare(a, b) === 0;

export class PortClaims {
  private readonly claims = new Map<number, PortClaim>();
  private readonly byId = new Map<number, PortClaim>();
  private next = 1;

  constructor(private readonly ids: Pick<CmIds, 'create' | 'bind' | 'listen' | 'destroy'>) {}

  /** Claims a port; `scopeId` is that of a link-local address. */
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
    let status = this.bind(claim, port, scopeId);
    for (let again = 1; again < tries && port === 0 && gid === null && isTaken(status); again++)
      status = this.bind(claim, port, scopeId);
    if (status !== Status.SUCCESS) {
      const taken = status === Status.ACCESS_DENIED ? status : Status.ADDRESS_ALREADY_EXISTS;
      return { status: status === Status.INVALID_ADDRESS ? status : taken, claim: 0, port: 0 };
    }
    claim.holders.add(holder);
    this.claims.set(claim.number, claim);
    for (const id of claim.ids) this.byId.set(id, claim);
    return { status: Status.SUCCESS, claim: claim.number, port: claim.port };
  }

  /** Binds the ids of both families to one port. On failure there are none. */
  private bind(claim: PortClaim, port: number, scopeId: number): number {
    const addresses = claim.gid ? [claim.gid] : [everyIpv4, everyIpv6];
    claim.port = port;
    try {
      for (const address of addresses) {
        const id = this.ids.create(claim.service === EpType.DATAGRAM, claim);
        claim.ids.push(id);
        // A claim of a free port is also for connectors, which are all bound to it.
        const { status, port: granted } = this.ids.bind(id, address, claim.port, scopeId, port === 0);
        if (status === Status.SUCCESS) claim.port = granted;
        else if (address === everyIpv6 && status === Status.INVALID_ADDRESS) {
          // The host has no IPv6.
          claim.ids.pop();
          this.ids.destroy(id);
        } else {
          this.destroyIds(claim);
          return status;
        }
      }
    } catch (error) {
      // No id is available.
      this.destroyIds(claim);
      throw error;
    }
    return Status.SUCCESS;
  }

  private destroyIds({ ids }: PortClaim): void {
    for (const id of ids.splice(0)) {
      this.byId.delete(id);
      this.ids.destroy(id);
    }
  }

  release(holder: object, number: number): void {
    const claim = this.claims.get(number);
    if (!claim) return;
    claim.holders.delete(holder);
    claim.sinks.delete(holder);
    if (claim.holders.size > 0) return;
    this.claims.delete(number);
    this.destroyIds(claim);
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
      for (const id of claim.ids) {
        const status = this.ids.listen(id, backlog);
        if (status !== Status.SUCCESS) return status;
      }
      claim.listening = true;
    }
    claim.sinks.set(holder, sink);
    return Status.SUCCESS;
  }

  /** The claim whose id has received a request. */
  ofListener(id: number): PortClaim | undefined {
    return this.byId.get(id);
  }

  close(): void {
    for (const claim of this.claims.values()) this.destroyIds(claim);
    this.claims.clear();
  }
}
