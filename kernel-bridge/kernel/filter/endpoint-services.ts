/** What endpoints need of the rest of the kernel. */
import type { RcOptions } from '../../options.js';
import type {
  CmConnection,
  CmConnectParameters,
  CmEvents,
  ConnectionManager,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
} from '../cm/service.js';
import type { HcaPort } from '../hca-driver/ports.js';

export interface EndpointServices {
  readonly cm: ConnectionManager;
  readonly rc: RcOptions;
  /** Starts a connection. `status` tells at once of a REQ that cannot be sent at all. */
  connect(parameters: CmConnectParameters, events: CmEvents): { connection: CmConnection; status: number };
  /** Asks a peer for the queue pair of a datagram service; `status` as in {@link connect}. */
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): { lookup: SidrLookup; status: number };
  /** Claims an RDMA port on this host; `gid` null: on all addresses, `port` 0: a free one. */
  claimPort(
    service: number,
    gid: Uint8Array | null,
    port: number,
  ): { status: number; claim: number; port: number };
  /** Somebody listens at a claimed port from now on; answers a status. */
  openPort(claim: number): number;
  releasePort(claim: number): void;
  /** The port that has this address. */
  portOf(gid: Uint8Array, scopeId?: number): HcaPort | undefined;
  /** Invalidates the caches of the user side. */
  newCacheEpoch(): void;
  isOwn(gid: Uint8Array): boolean;
  /** The local address from which one sends to this one. */
  sourceFor(gid: Uint8Array, scopeId: number): Uint8Array | undefined;
}
