/** Selects the HCA of an endpoint: the one with its address, or all of them for the wildcard address. */
import type { PathParameters } from '../hca/soft-hca-binding.js';
import { Status } from '../ioctl/status.js';
import type { RcOptions } from '../option-checks/option-schemas.js';
import type {
  CmConnectParameters,
  CmEvents,
  CmListener,
  CmListenParameters,
  SidrLookupEvents,
  SidrLookupParameters,
} from './cm/service.js';
import type { EndpointServices, PortClaim } from './filter/endpoint-types.js';
import type { HcaBackend, HcaConnections } from './hca-driver/backend.js';
import type { PortTable } from './hca-driver/hca-ports.js';
import { assertPassive } from './io-manager/irql.js';

/** Number of free ports to try until one is free on all HCAs. */
const portTries = 16;

interface Listener<T> extends CmListener {
  takeRequest(): T | undefined;
}

/** One listener on each HCA. The backlog applies to each of them. */
class ListenerAtAll<T> implements Listener<T> {
  constructor(private readonly listeners: readonly Listener<T>[]) {}

  get waiting(): number {
    return this.listeners.reduce((sum, { waiting }) => sum + waiting, 0);
  }

  takeRequest(): T | undefined {
    for (const listener of this.listeners) {
      const taken = listener.takeRequest();
      if (taken) return taken;
    }
    return undefined;
  }

  close(): void {
    for (const listener of this.listeners) listener.close();
  }
}

export class EndpointRouting implements EndpointServices {
  constructor(
    private readonly hcas: readonly HcaBackend[],
    private readonly ports: PortTable,
    readonly rc: RcOptions,
    readonly newCacheEpoch: () => void,
  ) {}

  /** The connections of the HCA with an address, or of the first HCA if the address is gone. */
  private at(gid: Uint8Array, scopeId = 0): HcaConnections {
    return (this.ports.ofGid(gid, scopeId)?.hca ?? this.hcas[0]!).connections;
  }

  connect(parameters: CmConnectParameters, events: CmEvents) {
    const { source, scopeId } = parameters.path;
    return this.at(source, scopeId).connect(parameters, events);
  }

  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents) {
    const { source, scopeId } = parameters.path;
    return this.at(source, scopeId).lookup(parameters, events);
  }

  listen(parameters: CmListenParameters) {
    return this.listenWith(parameters, (connections, ofIt) => connections.listen(ofIt));
  }

  listenForLookups(parameters: CmListenParameters) {
    return this.listenWith(parameters, (connections, ofIt) => connections.listenForLookups(ofIt));
  }

  private listenWith<T>(
    parameters: CmListenParameters,
    listen: (connections: HcaConnections, parameters: CmListenParameters) => Listener<T>,
  ): Listener<T> {
    const { address, accepts } = parameters;
    if (address) return listen(this.at(address), parameters);
    if (this.hcas.length === 1) return listen(this.hcas[0]!.connections, parameters);
    const listeners: Listener<T>[] = [];
    try {
      for (const hca of this.hcas) {
        // An address of several HCAs belongs to one of them.
        const own = (gid: Uint8Array): boolean => this.ports.ofGid(gid)?.hca === hca;
        const both = (gid: Uint8Array): boolean => own(gid) && accepts?.(gid) !== false;
        listeners.push(listen(hca.connections, { ...parameters, accepts: both }));
      }
    } catch (error) {
      for (const listener of listeners) listener.close();
      throw error;
    }
    return new ListenerAtAll(listeners);
  }

  claimPort(service: number, gid: Uint8Array | null, port: number) {
    assertPassive('claiming a port');
    if (gid) return this.claimWith([this.at(gid)], service, gid, port);
    const all = this.hcas.map(({ connections }) => connections);
    for (let tries = 1; ; tries++) {
      const claimed = this.claimWith(all, service, gid, port);
      // A port that is free on the first HCA may be in use on another.
      const again = claimed.status === Status.ADDRESS_ALREADY_EXISTS && port === 0 && tries < portTries;
      if (!again) return claimed;
    }
  }

  private claimWith(
    connections: readonly HcaConnections[],
    service: number,
    gid: Uint8Array | null,
    port: number,
  ): { status: number; claim: PortClaim | undefined; port: number } {
    let whole: PortClaim | undefined;
    let chosen = port;
    for (const at of connections) {
      const { status, claim, port: granted } = at.claimPort(service, gid, chosen);
      if (status !== Status.SUCCESS) {
        if (whole) this.releasePort(whole);
        return { status, claim: undefined, port: 0 };
      }
      chosen = granted;
      whole = { at, claim, next: whole };
    }
    return { status: Status.SUCCESS, claim: whole, port: chosen };
  }

  openPort(claim: PortClaim): number {
    for (let one: PortClaim | undefined = claim; one; one = one.next) {
      const status = one.at.openPort(one.claim);
      if (status !== Status.SUCCESS) return status;
    }
    return Status.SUCCESS;
  }

  releasePort(claim: PortClaim): void {
    for (let one: PortClaim | undefined = claim; one; one = one.next) one.at.releasePort(one.claim);
  }

  portOf(gid: Uint8Array, scopeId?: number) {
    return this.ports.ofGid(gid, scopeId);
  }

  isOwn(gid: Uint8Array): boolean {
    return this.ports.ofGid(gid) !== undefined;
  }

  packetBytes({ source, destination }: PathParameters, pathMtu: number): number {
    return this.ports.packetBytes(source, destination, pathMtu);
  }

  sourceFor(gid: Uint8Array, scopeId: number): Uint8Array | undefined {
    return this.ports.routeTo(gid, undefined, scopeId)?.source;
  }
}
