/** The commands of a real HCA: {@link NativeHca} over the native host's. */
import {
  type ConnectAttributes,
  type ConnectSteps,
  type HcaEvent,
  type HcaLimits,
  type NativeHca,
  type PathParameters,
  type QpAttributeValues,
  type QpCreateParameters,
  QpMask,
  type SrqAttributeValues,
  type SrqCreateParameters,
} from '../../hca/binding.js';
import type { VerbsHost } from '../../hca/verbs-binding.js';
import { Status } from '../../ioctl/status.js';
import {
  putAttributes,
  putPath,
  putQpCreate,
  putSrqAttributes,
  putSrqCreate,
} from '../../schema/generated/attributes.js';
import { isMulticast } from '../hca-driver/ports.js';

/** What the commands need to know besides. */
export interface VerbsSurroundings {
  /** The device's number now; 0: it is gone. */
  readonly number: number;
  readonly limits: HcaLimits;
  /** Takes the next event of this device. */
  nextEvent(): HcaEvent | undefined;
  /** The id of the connection that these attributes are of; 0: of none. */
  connectionFor(attributes: ConnectAttributes): number;
  /** The physical port of an address. */
  portNumberOf(gid: Uint8Array): number;
  /** Joins a group at an interface, so that its packets come: a status and what undoes it. */
  join(group: Uint8Array, interfaceIndex: number): { status: number; leave(): void };
  /** The system has refused to lock memory. */
  memoryRefused(): void;
}

type Kind = keyof ReturnType<NativeHca['objectCounts']>;

export class VerbsNative implements NativeHca {
  readonly limits: HcaLimits;
  private readonly counts: Record<Kind, number> = {
    pd: 0,
    mr: 0,
    mw: 0,
    cq: 0,
    qp: 0,
    srq: 0,
    ah: 0,
    ring: 0,
    range: 0,
    pkeyTable: 0,
  };
  /** Memberships, by queue pair, group and interface. */
  private readonly groups = new Map<string, () => void>();

  constructor(
    private readonly host: VerbsHost,
    private readonly around: VerbsSurroundings,
  ) {
    this.limits = around.limits;
  }

  private word(index: number): number {
    return this.host.words[index]!;
  }

  /** Counts what a command has made, or ended. */
  private counted(kind: Kind, change: 1 | -1, status: number): number {
    if (status === Status.SUCCESS) this.counts[kind] = (this.counts[kind] ?? 0) + change;
    return status;
  }

  takeEvent(): HcaEvent | undefined {
    return this.around.nextEvent();
  }

  allocatePd() {
    const status = this.counted('pd', 1, this.host.allocatePd(this.around.number));
    return { status, pd: this.word(0) };
  }
  deallocatePd(pd: number): number {
    return this.counted('pd', -1, this.host.deallocatePd(pd));
  }

  registerMr(pd: number, address: number, length: number, access: number) {
    const status = this.counted('mr', 1, this.host.registerMr(pd, address, length, access));
    if (status === Status.INSUFFICIENT_RESOURCES) this.around.memoryRefused();
    return { status, lkey: this.word(0), rkey: this.word(1) };
  }
  deregisterMr(pd: number, lkey: number): number {
    return this.counted('mr', -1, this.host.deregisterMr(pd, lkey));
  }

  allocateMw(pd: number) {
    const status = this.counted('mw', 1, this.host.allocateMw(pd));
    return { status, mw: this.word(0), rkey: this.word(1) };
  }
  deallocateMw(mw: number): number {
    return this.counted('mw', -1, this.host.deallocateMw(mw));
  }

  createCq(ringAddress: number, ringBytes: number, entries: number) {
    const status = this.host.createCq(this.around.number, ringAddress, ringBytes, entries);
    return { status: this.counted('cq', 1, status), cq: this.word(0) };
  }
  resizeCq(cq: number, ringAddress: number, ringBytes: number, entries: number): number {
    return this.host.resizeCq(cq, ringAddress, ringBytes, entries);
  }
  destroyCq(cq: number): number {
    return this.counted('cq', -1, this.host.destroyCq(cq));
  }
  listenCq(cq: number): number {
    return this.host.listenCq(cq);
  }
  armCq(cq: number, solicitedOnly: boolean): number {
    return this.host.armCq(cq, solicitedOnly);
  }

  createSrq(parameters: SrqCreateParameters) {
    putSrqCreate(this.host, parameters);
    return { status: this.counted('srq', 1, this.host.createSrq()), srq: this.word(0) };
  }
  modifySrq(srq: number, mask: number, attributes: Partial<SrqAttributeValues>): number {
    putSrqAttributes(this.host, attributes);
    return this.host.modifySrq(srq, mask);
  }
  querySrq(srq: number) {
    const status = this.host.querySrq(srq);
    return { status, entries: this.word(0), limit: this.word(1), sge: this.word(2) };
  }
  destroySrq(srq: number): number {
    return this.counted('srq', -1, this.host.destroySrq(srq));
  }

  createQp(parameters: QpCreateParameters) {
    putQpCreate(this.host, parameters);
    const status = this.counted('qp', 1, this.host.createQp());
    return { status, qp: this.word(0), qpn: this.word(1) };
  }
  modifyQp(qp: number, mask: number, attributes: Partial<QpAttributeValues>): number {
    putAttributes(this.host, attributes);
    if ((mask & QpMask.path) !== 0 && !putPath(this.host, attributes.path)) return Status.INVALID_PARAMETER;
    return this.host.modifyQp(qp, mask);
  }
  connectQp(qp: number, { init, rtr, rts }: ConnectSteps, attributes: ConnectAttributes): number {
    const connection = this.around.connectionFor(attributes);
    // The peer has given it up meanwhile.
    if (connection === 0) return Status.CONNECTION_ABORTED;
    putAttributes(this.host, attributes);
    if (!putPath(this.host, attributes.path)) return Status.INVALID_PARAMETER;
    return this.host.connectQp(qp, init, rtr, rts, connection);
  }
  queryQp(qp: number) {
    return this.host.queryQp(qp);
  }
  queryQpState(qp: number): number {
    return this.host.queryQpState(qp);
  }
  destroyQp(qp: number): number {
    const status = this.counted('qp', -1, this.host.destroyQp(qp));
    if (status !== Status.SUCCESS) return status;
    for (const [key, leave] of [...this.groups]) {
      if (!key.startsWith(`${qp}/`)) continue;
      this.groups.delete(key);
      leave();
    }
    return status;
  }
  /** The system ends connections of processes that die. */
  setWill(): number {
    return Status.SUCCESS;
  }

  createAh(pd: number, path: PathParameters, pathMtu: number) {
    if (!putPath(this.host, path)) return { status: Status.INVALID_PARAMETER, ah: 0 };
    const status = this.host.createAh(pd, this.around.portNumberOf(path.source), pathMtu);
    return { status: this.counted('ah', 1, status), ah: this.word(0) };
  }
  destroyAh(ah: number): number {
    return this.counted('ah', -1, this.host.destroyAh(ah));
  }

  attachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number {
    const key = groupKey(qp, group, interfaceIndex);
    if (group.length !== 16 || !isMulticast(group)) return Status.INVALID_ADDRESS;
    if (interfaceIndex === 0) return Status.INVALID_PARAMETER;
    if (this.groups.has(key)) return Status.INVALID_DEVICE_STATE;
    this.host.bytes.set(group, 0);
    const attached = this.host.changeGroup(qp, true);
    if (attached !== Status.SUCCESS) return attached;
    const { status, leave } = this.around.join(group, interfaceIndex);
    if (status === Status.SUCCESS) {
      this.groups.set(key, leave);
      return status;
    }
    this.host.bytes.set(group, 0);
    this.host.changeGroup(qp, false);
    return status;
  }
  detachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number {
    const key = groupKey(qp, group, interfaceIndex);
    const leave = this.groups.get(key);
    if (!leave) return Status.INVALID_PARAMETER;
    this.groups.delete(key);
    leave();
    this.host.bytes.set(group, 0);
    return this.host.changeGroup(qp, false);
  }

  counters(): Record<string, number> {
    return this.host.counters();
  }
  objectCounts() {
    return { ...this.counts };
  }
  close(): void {
    for (const leave of this.groups.values()) leave();
    this.groups.clear();
  }
}

function groupKey(qp: number, group: Uint8Array, interfaceIndex: number): string {
  return `${qp}/${Buffer.from(group).toString('hex')}/${interfaceIndex}`;
}
