/** Connections of the software HCA: MADs on QP1, by our own connection manager. */
import type { SoftHca } from '../../hca/soft-hca-binding.js';
import { randomBits } from '../../ioctl/random-bits.js';
import { Status } from '../../ioctl/status.js';
import type { CmOptions } from '../../option-checks/option-schemas.js';
import type {
  CmConnectParameters,
  CmEvents,
  CmListenParameters,
  CmPath,
  CmPlatform,
  ConnectionManager,
  SidrLookupEvents,
  SidrLookupParameters,
} from '../cm/service.js';
import type { HcaConnections, HcaPort, MadEvent } from '../hca-driver/backend.js';
import { isV4, mtuCode, packetBytesOf } from '../hca-driver/hca-ports.js';
import { DEFAULT_PKEY, managementPkey, pkeyIndexFor } from '../hca-driver/pkeys.js';
import { atDispatchLevel } from '../io-manager/irql.js';

/** CM ids of one kernel: base + 1 … base + 0x3FFFF. */
const commIdCount = 0x3_ffff;

/** Statuses of a MAD that say it can never leave; others may pass with the next retry. */
const unsendable: readonly number[] = [
  Status.HOST_UNREACHABLE,
  Status.NETWORK_UNREACHABLE,
  Status.INVALID_ADDRESS,
];

export class SoftConnections implements HcaConnections {
  private readonly cm: ConnectionManager;
  private readonly commIds = new Set<number>();
  /** Where it begins, the first tells. */
  private nextCommId: number | undefined = undefined;
  /** How the latest MAD left. */
  private sendStatus: number = Status.SUCCESS;

  constructor(
    private readonly native: SoftHca,
    private readonly portOf: (gid: Uint8Array) => HcaPort | undefined,
    createConnectionManager: (platform: CmPlatform, options: CmOptions) => ConnectionManager,
    options: CmOptions,
    /** A connection of this host was refused because nobody of this version listens there. */
    private readonly onNobody: (service: number, port: number, address: Uint8Array) => void = () => {},
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
      nobodyListens: (serviceId, local) =>
        this.onNobody(Number(serviceId >> 16n), Number(serviceId & 0xffffn), local),
      acceptsPkey: (local, pkey) => pkeyIndexFor(this.portOf(local)?.pkeys ?? [DEFAULT_PKEY], pkey) >= 0,
      maxPacketBytes: (local) => packetBytesOf(this.portOf(local)?.ipMtu ?? 0, isV4(local)),
      standardOnly: this.native.peerExtensions === 0,
      maxPathMtu: (local) => mtuCode(this.portOf(local)?.activeMtu ?? 4096),
    };
  }

  /** The status that says that the latest MAD can never leave; SUCCESS for all that may pass with the next retry. */
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
