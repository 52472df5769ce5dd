/** Connections of the software HCA: MADs on QP1, handled by this package's connection manager. */
import { BY_WIRE, type SoftHca } from '../../hca/soft-hca-binding.js';
import { randomBits } from '../../ioctl/random-bits.js';
import { Status } from '../../ioctl/status.js';
import type { CmOptions } from '../../option-checks/option-schemas.js';
import {
  type CmConnectParameters,
  type CmEvents,
  type CmListenParameters,
  type CmPath,
  type CmPlatform,
  type ConnectionManager,
  HostLink,
  type SidrLookupEvents,
  type SidrLookupParameters,
} from '../cm/service.js';
import type { HcaConnections, HcaPort, MadEvent } from '../hca-driver/backend.js';
import { isV4, mtuCode, packetBytesOf } from '../hca-driver/hca-ports.js';
import { DEFAULT_PKEY, managementPkey, pkeyIndexFor } from '../hca-driver/pkeys.js';
import { atDispatchLevel } from '../io-manager/irql.js';

/** CM ids of one kernel: base + 1 … base + 0x3FFFF. */
const commIdCount = 0x3_ffff;

/** Statuses of a MAD that can never be sent; others may pass with the next retry. */
const unsendable: readonly number[] = [
  Status.HOST_UNREACHABLE,
  Status.NETWORK_UNREACHABLE,
  Status.INVALID_ADDRESS,
  Status.NOT_SUPPORTED,
  Status.TOO_MANY_OPENED_FILES,
];

/** Notifications about refused connections, for the user of the software HCA. */
export interface Refusals {
  /** A connection of this host was refused because no process of this version listens there. */
  noListener(service: number, port: number, address: Uint8Array): void;
  /** A connection was refused because the two processes have no link in common. `own`: this side's option `link`. */
  links(own: 'local' | 'wire'): void;
}
const silent: Refusals = { noListener: () => {}, links: () => {} };

export class SoftConnections implements HcaConnections {
  private readonly cm: ConnectionManager;
  private readonly commIds = new Set<number>();
  /** The next communication id to try; the first is random. */
  private nextCommId: number | undefined = undefined;
  /** The status of sending the latest MAD. */
  private sendStatus: number = Status.SUCCESS;

  constructor(
    private readonly native: SoftHca,
    private readonly portOf: (gid: Uint8Array) => HcaPort | undefined,
    createConnectionManager: (platform: CmPlatform, options: CmOptions) => ConnectionManager,
    options: CmOptions,
    private readonly refusals: Refusals = silent,
  ) {
    this.cm = createConnectionManager(this.platform(), options);
  }

  connect(parameters: CmConnectParameters, events: CmEvents) {
    this.sendStatus = Status.SUCCESS;
    const connection = this.cm.connect(parameters, events);
    return { connection, status: this.leaveStatus() };
  }

  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents) {
    this.sendStatus = Status.SUCCESS;
    const lookup = this.cm.lookup(parameters, events);
    return { lookup, status: this.leaveStatus() };
  }

  listen(parameters: CmListenParameters) {
    return this.cm.listen(parameters);
  }

  listenForLookups(parameters: CmListenParameters) {
    return this.cm.listenForLookups(parameters);
  }

  claimPort(service: number, gid: Uint8Array | null, port: number) {
    return this.native.claimPort(service, gid, port);
  }

  openPort(claim: number): number {
    return this.native.openPort(claim);
  }

  releasePort(claim: number): void {
    this.native.releasePort(claim);
  }

  receive({ source, destination, scopeId, sender, mad }: MadEvent): void {
    this.cm.receive(source, destination, scopeId, mad, sender);
  }

  counters() {
    return this.cm.counters();
  }

  close(): void {
    this.cm.close();
  }

  private platform(): CmPlatform {
    return {
      sendMad: (path: CmPath, mad: Uint8Array) => {
        const { pkeys } = this.portOf(path.source) ?? { pkeys: [] };
        this.sendStatus = this.native.sendMad(path, mad, managementPkey(pkeys, path.pkey));
      },
      setTimer: (milliseconds, expired) => {
        const timer = setTimeout(() => atDispatchLevel(expired), milliseconds);
        return { cancel: () => clearTimeout(timer) };
      },
      allocateCommId: () => this.allocateCommId(),
      releaseCommId: (id) => {
        this.commIds.delete(id);
      },
      randomPsn: () => randomBits(24),
      caGuid: (source) => this.portOf(source)?.guid ?? 0n,
      onNoListener: (serviceId, local) =>
        this.refusals.noListener(Number(serviceId >> 16n), Number(serviceId & 0xffffn), local),
      hostLink: (destination) => this.hostLink(destination),
      acceptsLink: (sender, said) => this.acceptsLink(sender, said),
      onLinkRefused: (destination) => {
        if (this.hostLink(destination) > HostLink.seen) this.reportLinks();
      },
      acceptsPkey: (local, pkey) => pkeyIndexFor(this.portOf(local)?.pkeys ?? [DEFAULT_PKEY], pkey) >= 0,
      maxPacketBytes: (local) => packetBytesOf(this.portOf(local)?.ipMtu ?? 0, isV4(local)),
      standardOnly: this.native.peerExtensions === 0,
      maxPathMtu: (local) => mtuCode(this.portOf(local)?.activeMtu ?? 4096),
    };
  }

  /** The links are announced to processes on this host only. */
  private hostLink(destination: Uint8Array): number {
    const { hostLink } = this.native;
    return hostLink !== HostLink.free && this.portOf(destination) ? hostLink : HostLink.free;
  }

  /**
   * A process with the option `link: 'wire'` sends its MADs over UDP. A claim of loopback only needs no UDP socket, so
   * before such a process has one, only processes on this host can reach it.
   */
  private acceptsLink(sender: number, said: number): boolean {
    const { hostLink } = this.native;
    const theirs = sender === BY_WIRE ? HostLink.wire : said;
    const local = hostLink === HostLink.local;
    if (local ? theirs === HostLink.wire : hostLink === HostLink.wire && theirs === HostLink.local) {
      this.reportLinks();
      return false;
    }
    // Both sides then use UDP from the first packet on.
    if (!local && (theirs === HostLink.wire || theirs === HostLink.seen)) this.native.openWire();
    return true;
  }

  private reportLinks(): void {
    this.refusals.links(this.native.hostLink === HostLink.local ? 'local' : 'wire');
  }

  /** The status if the latest MAD can never be sent; SUCCESS if it may pass with the next retry. */
  private leaveStatus(): number {
    return unsendable.includes(this.sendStatus) ? this.sendStatus : Status.SUCCESS;
  }

  private allocateCommId(): number {
    if (this.commIds.size >= commIdCount) return 0;
    let next = this.nextCommId ?? randomBits(18);
    for (let tries = 0; tries < commIdCount; tries++) {
      this.nextCommId = next = (next % commIdCount) + 1;
      const id = (this.native.commIdBase + next) >>> 0;
      if (this.commIds.has(id)) continue;
      this.commIds.add(id);
      return id;
    }
    return 0;
  }
}
