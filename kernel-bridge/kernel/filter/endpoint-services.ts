/** The kernel's services for endpoints. */
import type { PathParameters } from '../../hca/binding.js';
import type { RcOptions } from '../../options.js';
import type { HcaConnections, HcaPort } from '../hca-driver/backend.js';

/** An RDMA port, claimed with one HCA or with several. */
export interface PortClaim {
  readonly at: HcaConnections;
  /** That HCA's number for it. */
  readonly claim: number;
  readonly next: PortClaim | undefined;
}

/** Of connections, as an HCA has them: the address says which HCA; no address means all of them. */
export interface EndpointServices
  extends Pick<HcaConnections, 'connect' | 'lookup' | 'listen' | 'listenForLookups'> {
  readonly rc: RcOptions;
  /** Claims an RDMA port on this host; `gid` null: on all addresses, `port` 0: a free one. */
  claimPort(
    service: number,
    gid: Uint8Array | null,
    port: number,
  ): { status: number; claim: PortClaim | undefined; port: number };
  /** Somebody listens at a claimed port from now on; answers a status. */
  openPort(claim: PortClaim): number;
  releasePort(claim: PortClaim): void;
  /** The port that has this address. */
  portOf(gid: Uint8Array, scopeId?: number): HcaPort | undefined;
  /** Invalidates the caches of the user side. */
  newCacheEpoch(): void;
  isOwn(gid: Uint8Array): boolean;
  /** Bytes of payload of the longest packet on a path of this MTU (bytes); 0: those of the MTU. Does not wait. */
  packetBytes(path: PathParameters, pathMtu: number): number;
  /** The local address for packets to this one. */
  sourceFor(gid: Uint8Array, scopeId: number): Uint8Array | undefined;
}
