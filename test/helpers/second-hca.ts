/**
 * A second HCA of a kernel. Its device only records operations, the test plays its connections, and its user side logs calls. Unlike the
 * software HCA, it requires a doorbell for every Receive, completes no pending request for CQ events, and has neither MADs nor cleanup
 * after a process dies.
 */

import type {
  HcaEvent,
  NativeHca,
  QpCreateParameters,
  SrqCreateParameters,
} from '../../kernel-bridge/hca/soft-hca-binding.js';
import { PortState, PortTransport, QpState, WvCapability } from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import type {
  CmConnectParameters,
  CmEvents,
  SidrLookupEvents,
  SidrLookupParameters,
} from '../../kernel-bridge/kernel/cm/service.js';
import type {
  BackendDevice,
  HcaBackend,
  HcaConnections,
  HcaPort,
} from '../../kernel-bridge/kernel/hca-driver/backend.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { FakeHca } from './fake-hca.js';
import { hostInterface } from './kernel-rig.js';
import { FakeCm } from './rig-cm.js';

/** The reply of the second HCA to LIBRARY_QUERY. */
export const SECOND_LIBRARY = 'second_uvp';
export const secondGuid = 0x5ec0_0000_0000_0001n;
export const secondPortGuid = 0x5ec0_0000_0000_0101n;
export const secondAddress = '198.51.100.7';

/** Flag of a handle in a doorbell: a shared receive queue. */
export const SHARED = 0x8000_0000;

/** Logs each call with its object. The header of its rings requests doorbells for Receives. */
class SecondBooks extends FakeHca {
  override ringReceiveDoorbell(): void {
    this.log.push(`receive doorbell ${this.doorbell[0]}`);
  }
  override progress(): boolean {
    this.log.push(`progress ${this.doorbell[0]}`);
    return super.progress();
  }
  override createQp(parameters: QpCreateParameters) {
    const made = super.createQp(parameters);
    const words = this.wordsAt(parameters.ringAddress);
    words[abi.qpState] = QpState.INIT;
    words[abi.qpReceiveBell] = 1;
    return made;
  }
  override createSrq(parameters: SrqCreateParameters) {
    const made = super.createSrq(parameters);
    this.wordsAt(parameters.ringAddress)[abi.srqReceiveBell] = (SHARED | made.srq) >>> 0;
    return made;
  }
  /** The words of a ring at an address, which may be within a larger block; other words for an address outside any ring. */
  private wordsAt(address: number): Uint32Array {
    for (const ring of this.rings.values()) {
      const offset = address - ring.address;
      if (offset >= 0 && offset < ring.bytes) return ring.words.subarray(offset / 4);
    }
    return new Uint32Array(abi.qpHeaderBytes / 4);
  }
}

/** Connections that a test plays, with a separate port space. */
class SecondConnections implements HcaConnections {
  readonly cm = new FakeCm();
  readonly claims = new Map<number, number>();
  /** Ports owned by other processes. */
  readonly taken = new Set<number>();
  private nextClaim = 1;

  connect(parameters: CmConnectParameters, events: CmEvents) {
    const connection = this.cm.connect(parameters, events);
    connection.dreqOnExit = () => undefined as never;
    return { connection, status: Status.SUCCESS };
  }
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents) {
    return { lookup: this.cm.lookup(parameters, events), status: Status.SUCCESS };
  }
  listen: HcaConnections['listen'] = (parameters) => this.cm.listen(parameters);
  listenForLookups: HcaConnections['listenForLookups'] = (parameters) => this.cm.listenForLookups(parameters);
  counters() {
    return { connections: this.cm.connections.length };
  }
  claimPort(_service: number, _gid: Uint8Array | null, port: number) {
    if (this.taken.has(port)) return { status: Status.ADDRESS_ALREADY_EXISTS, claim: 0, port: 0 };
    const claim = this.nextClaim++;
    this.claims.set(claim, port);
    return { status: Status.SUCCESS, claim, port };
  }
  openPort(claim: number): number {
    return this.claims.has(claim) ? Status.SUCCESS : Status.INVALID_PARAMETER;
  }
  releasePort(claim: number): void {
    this.claims.delete(claim);
  }
}

export class SecondHca implements HcaBackend {
  readonly userLibrary = SECOND_LIBRARY;
  readonly attributes = { fwVersion: 7n, vendorId: 0x5ec0, capabilityFlags: WvCapability.SRQ_RESIZE };
  readonly books = new SecondBooks();
  readonly native: NativeHca = this.books;
  readonly connections = new SecondConnections();
  readonly events: HcaEvent[] = this.books.events;
  /** Log of calls to its devices. */
  readonly devices: string[] = [];
  /** Set by the kernel while it watches. Called when the devices have changed. */
  changed: (() => void) | undefined = undefined;
  /** The device; undefined if it was removed. */
  port: HcaPort | undefined;

  constructor(more: Partial<HcaPort> = {}) {
    Object.assign(this.books, { addCqWaiter: undefined, removeCqWaiter: undefined, endCqEvents: undefined });
    const { name, index, addresses } = hostInterface('rdma0', 40, [`${secondAddress}/24`]);
    this.port = {
      guid: secondGuid,
      portGuid: secondPortGuid,
      interfaceName: name,
      interfaceIndex: index,
      mac: undefined,
      state: PortState.ACTIVE,
      activeMtu: 2048,
      link: { maxMtu: 2048, maxMessageSize: 0x4000_0000, activeWidth: 1, transport: PortTransport.RDMAOE },
      gids: addresses.map(({ gid }) => gid),
      addresses,
      pkeys: [0xffff],
      ...more,
    };
  }

  readPorts(): HcaPort[] {
    return this.port ? [this.port] : [];
  }
  watch(changed: () => void): () => void {
    this.changed = changed;
    return () => {
      this.changed = undefined;
    };
  }
  addDevice({ guid }: HcaPort): BackendDevice {
    const say = (what: string): void => {
      this.devices.push(`${what} ${guid.toString(16)}`);
    };
    say('added');
    return {
      pkeyTable: 77,
      portChanged: (_port, gone) => say(gone ? 'gone' : 'changed'),
      violations: () => ({ badPkeys: 3, badQkeys: 4 }),
      end: () => say('ended'),
    };
  }
  close(): void {
    this.connections.cm.close();
    this.native.close();
  }
}
