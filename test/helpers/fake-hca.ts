/** Both sides of an in-memory HCA: its objects, recorded commands, events that a test creates, and rings. */

import type { NativeChannelServer } from '../../kernel-bridge/hca/request-channel-binding.js';
import {
  ALL_PEER_EXTENSIONS,
  type ConnectAttributes,
  type ConnectSteps,
  type HcaEvent,
  type HcaOptions,
  type PathParameters,
  type QpAttributeValues,
  type QpCreateParameters,
  QpMask,
  type SoftHca,
  type SrqAttributeValues,
  type SrqCreateParameters,
} from '../../kernel-bridge/hca/soft-hca-binding.js';
import type { UserHca } from '../../kernel-bridge/hca/user-hca.js';
import { QpState } from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';

export interface FakeRing {
  readonly address: number;
  readonly words: Uint32Array;
  readonly bytes: number;
}

interface FakeQp {
  /** QpMask of the latest modify, including rejected ones. */
  mask: number;
  parameters: QpCreateParameters;
  qpn: number;
  attributes: QpAttributeValues;
}

export const noPath: PathParameters = {
  source: new Uint8Array(16),
  destination: new Uint8Array(16),
  flowLabel: 0,
  trafficClass: 0,
  hopLimit: 0,
  scopeId: 0,
};

/** An HCA that only records operations and counts live objects. It rejects the same requests as a real one. */
export class FakeHca implements SoftHca, UserHca {
  readonly kernelId = 1;
  readonly slot = 3;
  readonly wire = 'unused';
  readonly hostLink = 0;
  readonly openWire = (): number => 0;
  readonly peerExtensions = ALL_PEER_EXTENSIONS;
  readonly wireProblem = '';
  readonly commIdBase = 0x0304_0000;
  readonly limits = {
    maxQp: 100,
    maxCq: 100,
    maxPd: 100,
    maxMr: 100,
    maxMw: 100,
    maxSrq: 100,
    maxSrqWr: 256,
    maxSrqSge: 8,
    maxQpWr: 256,
    maxSge: 8,
    maxReadSge: 5,
    maxCqEntries: 1024,
    maxInline: 512,
    maxReadDepth: 16,
    maxMrSize: 2 ** 40,
    maxAh: 100,
    maxGroups: 50,
    maxGroupQps: 20,
    maxAttached: 200,
    maxPkeys: 16,
  };
  readonly events: HcaEvent[] = [];
  readonly pds = new Set<number>();
  readonly mrs = new Map<number, number>();
  readonly mws = new Map<number, number>();
  readonly cqs = new Set<number>();
  readonly srqs = new Map<number, SrqCreateParameters & { limit: number }>();
  readonly qps = new Map<number, FakeQp>();
  readonly waiters = new Map<
    number,
    { type: number; server: NativeChannelServer; slot: number; serial: number }[]
  >();
  /** CQs whose events are reported to the kernel. */
  readonly listened = new Set<number>();
  readonly armed: { cq: number; solicitedOnly: boolean }[] = [];
  readonly dreqsOnExit = new Map<number, Uint8Array>();
  readonly ahs = new Map<number, { pd: number; path: PathParameters; pathMtu: number }>();
  /** `QP/group/interface`, in hex. */
  readonly attachments = new Set<string>();
  readonly pkeyTables = new Map<
    number,
    { pkeys: number[]; gids: Uint8Array[]; badPkeys: number; badQkeys: number }
  >();
  readonly claims = new Map<number, string>();
  readonly mads: Uint8Array[] = [];
  /** P_Keys of {@link mads}. */
  readonly madPkeys: number[] = [];
  /** Commands that must fail, with their statuses. */
  readonly refuse = new Map<keyof SoftHca, number>();
  /** A state whose modify fails with this status. */
  refuseState: { state: number; status: number } | undefined;
  sendStatus: number = Status.SUCCESS;
  closed = false;
  private nextHandle = 0x100;
  private nextPort = 49_152;

  configure(_options: HcaOptions): void {}
  replyToObserver(_number: number, _text: Uint8Array | null): void {}
  takeEvent(alsoStrangers = true): HcaEvent | undefined {
    const [first] = this.events;
    if (!alsoStrangers && first?.type === 'mad' && first.stranger) return undefined;
    return this.events.shift();
  }

  allocatePd() {
    const status = this.refuse.get('allocatePd') ?? Status.SUCCESS;
    const pd = this.nextHandle++;
    if (status === Status.SUCCESS) this.pds.add(pd);
    return { status, pd };
  }
  deallocatePd(pd: number): number {
    const children = [...this.ahs.values(), ...this.srqs.values()].map((child) => child.pd);
    const used = [...this.mrs.values(), ...this.mws.values(), ...children].includes(pd);
    if (used || [...this.qps.values()].some(({ parameters }) => parameters.pd === pd))
      return Status.DEVICE_BUSY;
    return this.pds.delete(pd) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  registerMr(pd: number, _address: number, _length: number, access: number) {
    const status = this.refuse.get('registerMr') ?? Status.SUCCESS;
    const lkey = this.nextHandle++;
    if (status === Status.SUCCESS) this.mrs.set(lkey, pd);
    return { status, lkey, rkey: (access & 7) === 0 ? 0 : 0x1234_0000 + lkey };
  }
  allocateMr(pd: number, _length: number) {
    const status = this.refuse.get('allocateMr') ?? Status.SUCCESS;
    const lkey = this.nextHandle++;
    if (status === Status.SUCCESS) this.mrs.set(lkey, pd);
    return { status, lkey };
  }
  deregisterMr(pd: number, lkey: number): number {
    const status = this.refuse.get('deregisterMr');
    if (status !== undefined) return status;
    if (this.mrs.get(lkey) !== pd) return Status.INVALID_HANDLE;
    this.mrs.delete(lkey);
    return Status.SUCCESS;
  }
  allocateMw(pd: number) {
    const status = this.refuse.get('allocateMw') ?? Status.SUCCESS;
    const mw = this.nextHandle++;
    if (status === Status.SUCCESS) this.mws.set(mw, pd);
    return { status, mw, rkey: 0x0a0b_0c0d };
  }
  deallocateMw(mw: number): number {
    return this.mws.delete(mw) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  createCq(ringAddress: number, _ringBytes: number, _entries: number) {
    const refused = this.refuse.get('createCq');
    const status = refused ?? (ringAddress === 0 ? Status.INVALID_PARAMETER : Status.SUCCESS);
    const cq = this.nextHandle++;
    if (status === Status.SUCCESS) this.cqs.add(cq);
    return { status, cq };
  }
  resizeCq(cq: number, ringAddress: number): number {
    if (ringAddress === 0) return Status.INVALID_PARAMETER;
    return this.refuse.get('resizeCq') ?? (this.cqs.has(cq) ? Status.SUCCESS : Status.INVALID_HANDLE);
  }
  destroyCq(cq: number): number {
    const used = [...this.qps.values()].some(({ parameters: p }) => p.sendCq === cq || p.receiveCq === cq);
    if (used) return Status.DEVICE_BUSY;
    return this.cqs.delete(cq) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  createSrq(parameters: SrqCreateParameters) {
    const refused = this.refuse.get('createSrq');
    const status = refused ?? (parameters.ringAddress === 0 ? Status.INVALID_PARAMETER : Status.SUCCESS);
    const srq = this.nextHandle++;
    if (status === Status.SUCCESS) this.srqs.set(srq, { ...parameters, limit: 0 });
    return { status, srq };
  }
  modifySrq(handle: number, _mask: number, attributes: Partial<SrqAttributeValues>): number {
    const srq = this.srqs.get(handle);
    if (!srq) return Status.INVALID_HANDLE;
    const refused = this.refuse.get('modifySrq');
    if (refused !== undefined) return refused;
    if (attributes.ringAddress === 0) return Status.INVALID_PARAMETER;
    Object.assign(srq, attributes);
    return Status.SUCCESS;
  }
  querySrq(handle: number) {
    const { entries, limit, sge } = this.srqs.get(handle) ?? { entries: 0, limit: 0, sge: 0 };
    return { status: entries === 0 ? Status.INVALID_HANDLE : Status.SUCCESS, entries, limit, sge };
  }
  destroySrq(handle: number): number {
    if ([...this.qps.values()].some(({ parameters }) => parameters.srq === handle)) return Status.DEVICE_BUSY;
    return this.srqs.delete(handle) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  createQp(parameters: QpCreateParameters) {
    const refused = this.refuse.get('createQp');
    const status =
      refused ?? ([0, 1, 3].includes(parameters.type) ? Status.SUCCESS : Status.INVALID_PARAMETER);
    const qp = this.nextHandle++;
    const qpn = 0x03_0000 | (qp & 0xffff);
    const attributes: QpAttributeValues = {
      state: 0,
      currentState: 0,
      type: parameters.type,
      qpn,
      access: 0,
      pkeyIndex: 0,
      port: 0,
      qkey: 0,
      path: noPath,
      pathMtu: 0,
      destinationQpn: 0,
      receivePsn: 0,
      sendPsn: 0,
      responderResources: 0,
      initiatorDepth: 0,
      minRnrTimer: 0,
      ackTimeout: 0,
      retryCount: 0,
      rnrRetry: 0,
      rnrTimeout: 0,
      extensions: 0,
    };
    if (status === Status.SUCCESS) this.qps.set(qp, { mask: 0, parameters, qpn, attributes });
    return { status, qp, qpn };
  }
  modifyQp(handle: number, mask: number, attributes: Partial<QpAttributeValues>): number {
    const qp = this.qps.get(handle);
    if (!qp) return Status.INVALID_HANDLE;
    qp.mask = mask;
    if ((mask & 1) !== 0) {
      if (this.refuseState?.state === attributes.state) return this.refuseState!.status;
      const from = qp.attributes.state;
      const to = attributes.state ?? 0;
      const forward = to === from + 1 || (to === QpState.INIT && from === QpState.INIT);
      if (to !== QpState.ERROR && to !== QpState.RESET && !forward) return Status.INVALID_DEVICE_STATE;
    }
    const { state, ...rest } = attributes;
    Object.assign(qp.attributes, rest);
    if ((mask & 1) !== 0) qp.attributes.state = state ?? 0;
    return Status.SUCCESS;
  }
  /** Executes single steps, which tests can observe and reject. */
  connectQp(handle: number, { init, rtr, rts }: ConnectSteps, attributes: ConnectAttributes): number {
    return (
      this.modifyQp(handle, QpMask.state | init, { ...attributes, state: QpState.INIT }) ||
      this.modifyQp(handle, QpMask.state | rtr, { ...attributes, state: QpState.RTR }) ||
      this.modifyQp(handle, QpMask.state | rts, { ...attributes, state: QpState.RTS })
    );
  }
  queryQp(handle: number) {
    const qp = this.qps.get(handle);
    return {
      status: qp ? Status.SUCCESS : Status.INVALID_HANDLE,
      attributes: qp?.attributes ?? ({} as QpAttributeValues),
    };
  }
  queryQpState(handle: number): number {
    return this.qps.get(handle)?.attributes.state ?? -1;
  }
  destroyQp(handle: number): number {
    return this.qps.delete(handle) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  setDreqOnExit(qp: number, _path: PathParameters, mad: Uint8Array): number {
    this.dreqsOnExit.set(qp, mad);
    return Status.SUCCESS;
  }

  createAh(pd: number, path: PathParameters, pathMtu: number) {
    const status = this.refuse.get('createAh') ?? (this.pds.has(pd) ? Status.SUCCESS : Status.INVALID_HANDLE);
    const ah = this.nextHandle++;
    if (status === Status.SUCCESS) this.ahs.set(ah, { pd, path, pathMtu });
    return { status, ah };
  }
  destroyAh(ah: number): number {
    return this.ahs.delete(ah) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  attachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number {
    const refused = this.refuse.get('attachMulticast');
    if (refused !== undefined) return refused;
    const key = `${qp.toString(16)}/${Buffer.from(group).toString('hex')}/${interfaceIndex.toString(16)}`;
    if (!this.qps.has(qp)) return Status.INVALID_HANDLE;
    if (this.attachments.has(key)) return Status.INVALID_DEVICE_STATE;
    this.attachments.add(key);
    return Status.SUCCESS;
  }
  detachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number {
    const key = `${qp.toString(16)}/${Buffer.from(group).toString('hex')}/${interfaceIndex.toString(16)}`;
    if (!this.qps.has(qp)) return Status.INVALID_HANDLE;
    return this.attachments.delete(key) ? Status.SUCCESS : Status.INVALID_PARAMETER;
  }
  createPkeyTable() {
    const status = this.refuse.get('createPkeyTable') ?? Status.SUCCESS;
    const table = this.nextHandle++;
    if (status === Status.SUCCESS)
      this.pkeyTables.set(table, { pkeys: [0xffff], gids: [], badPkeys: 0, badQkeys: 0 });
    return { status, table };
  }
  setPkeyTable(table: number, pkeys: Uint16Array, gids: readonly Uint8Array[]): number {
    const found = this.pkeyTables.get(table);
    if (!found) return Status.INVALID_HANDLE;
    if (pkeys.length === 0 || pkeys.length > this.limits.maxPkeys) return Status.INVALID_PARAMETER;
    Object.assign(found, { pkeys: [...pkeys], gids: [...gids] });
    return Status.SUCCESS;
  }
  queryPkeyTable(table: number) {
    const found = this.pkeyTables.get(table);
    const { badPkeys, badQkeys } = found ?? { badPkeys: 0, badQkeys: 0 };
    return { status: found || table === 0 ? Status.SUCCESS : Status.INVALID_HANDLE, badPkeys, badQkeys };
  }
  destroyPkeyTable(table: number): number {
    if ([...this.qps.values()].some(({ parameters }) => parameters.pkeyTable === table))
      return Status.DEVICE_BUSY;
    return this.pkeyTables.delete(table) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }

  listenCq(cq: number): number {
    this.listened.add(cq);
    return Status.SUCCESS;
  }
  armCq(cq: number, solicitedOnly: boolean): number {
    this.armed.push({ cq, solicitedOnly });
    this.log.push(`arm ${cq} ${solicitedOnly ? 'solicited' : 'any'}`);
    return this.armStatus;
  }
  addCqWaiter(cq: number, type: number, server: NativeChannelServer, slot: number, serial: number): number {
    const refused = this.refuse.get('addCqWaiter');
    if (refused !== undefined) return refused;
    this.waiters.set(cq, [...(this.waiters.get(cq) ?? []), { type, server, slot, serial }]);
    return Status.SUCCESS;
  }
  /** With this HCA, no request bypasses the kernel. */
  endCqEvents(): void {}

  removeCqWaiter(cq: number, slot: number, serial: number): number {
    const before = this.waiters.get(cq) ?? [];
    const after = before.filter((waiter) => waiter.slot !== slot || waiter.serial !== serial);
    this.waiters.set(cq, after);
    return after.length < before.length ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  /** Simulates a completion event: completes all waiters natively, like the engine's thread. */
  fireCq(cq: number, status: number = Status.SUCCESS): void {
    for (const { server, slot, serial } of this.waiters.get(cq) ?? []) {
      server.complete(slot, serial, status, 0, null);
      this.events.push({ type: 'notified', slot, serial });
    }
    this.waiters.delete(cq);
  }

  sendMad(_path: PathParameters, mad: Uint8Array, pkey = 0xffff): number {
    this.mads.push(mad);
    this.madPkeys.push(pkey);
    return this.sendStatus;
  }
  claimPort(service: number, address: Uint8Array | null, port: number) {
    const granted = port || this.nextPort++;
    const name = `${service.toString(16)}/${granted}/${address ? Buffer.from(address).toString('hex') : '*'}`;
    if ([...this.claims.values()].includes(name))
      return { status: Status.ADDRESS_ALREADY_EXISTS, claim: 0, port: 0 };
    const claim = this.nextHandle++;
    this.claims.set(claim, name);
    return { status: Status.SUCCESS, claim, port: granted };
  }
  openPort(claim: number): number {
    return this.claims.has(claim) ? Status.SUCCESS : Status.INVALID_PARAMETER;
  }
  releasePort(claim: number): void {
    this.claims.delete(claim);
  }
  counters(): Record<string, number> {
    return {};
  }
  objectCounts() {
    return {
      pd: this.pds.size,
      mr: this.mrs.size,
      mw: this.mws.size,
      cq: this.cqs.size,
      qp: this.qps.size,
      srq: this.srqs.size,
      ring: 0,
      range: 0,
    };
  }
  close(): void {
    this.closed = true;
  }

  // ── The user side: tests write CQEs and QP states and read WQEs ───────────────────────────────────────────────

  readonly rings = new Map<number, FakeRing>();
  readonly pins = new Map<number, Uint8Array>();
  /** Calls in order: 'doorbell 5', 'arm 3 any', … */
  readonly log: string[] = [];
  armStatus = 0;
  pinStatus = 0;
  /** Called by progress(). */
  onProgress: () => void = () => {};
  private nextAddress = 0x7f00_0000_1000;
  private nextPin = 1;

  allocateRing(bytes: number) {
    const buffer = new ArrayBuffer(bytes);
    const address = this.nextAddress;
    this.nextAddress += 0x10_0000;
    this.rings.set(address, { address, words: new Uint32Array(buffer), bytes });
    return { buffer, address };
  }

  releaseRing(address: number): void {
    if (!this.rings.delete(address)) throw new Error(`Ring ${address} was released twice.`);
  }

  pin(view: Uint8Array) {
    if (this.pinStatus !== Status.SUCCESS)
      return { status: this.pinStatus, pin: 0, address: 0, detachable: false };
    const pin = this.nextPin++;
    this.pins.set(pin, view);
    this.nextAddress += 0x10_0000;
    return { status: Status.SUCCESS as number, pin, address: this.nextAddress, detachable: true };
  }

  unpin(pin: number): void {
    if (!this.pins.delete(pin)) throw new Error(`pin ${pin} was undone twice`);
  }

  readonly doorbell = new Uint32Array(1);

  ringDoorbell(): void {
    this.log.push(`doorbell ${this.doorbell[0]}`);
  }

  ringReceiveDoorbell(): void {
    this.ringDoorbell();
  }

  progress(): boolean {
    this.onProgress();
    return false;
  }

  armCqBatch(cq: number, count: number): number {
    this.log.push(`arm ${cq} batch ${count}`);
    return this.armStatus;
  }
}

/** Writes one CQE as the HCA does. */
export function writeCqe(
  ring: FakeRing,
  cqe: { token: number; wqe: number } & Partial<
    Record<
      'opcode' | 'status' | 'length' | 'flags' | 'immediate' | 'sourceQpn' | 'vendor' | 'pkeyIndex',
      number
    >
  >,
): void {
  const entries = (ring.bytes - abi.cqHeaderBytes) / abi.cqeBytes;
  const producer = ring.words[abi.cqProducer]!;
  const at = abi.cqHeaderBytes / 4 + (producer % entries) * (abi.cqeBytes / 4);
  ring.words[at + abi.cqeToken] = cqe.token;
  ring.words[at + abi.cqeWqe] = cqe.wqe;
  ring.words[at + abi.cqeOpcode] = cqe.opcode ?? 0;
  ring.words[at + abi.cqeStatus] = cqe.status ?? 0;
  ring.words[at + abi.cqeLength] = cqe.length ?? 0;
  ring.words[at + abi.cqeFlags] = cqe.flags ?? 0;
  ring.words[at + abi.cqeImmediate] = cqe.immediate ?? 0;
  ring.words[at + abi.cqeSourceQpn] = cqe.sourceQpn ?? 0;
  ring.words[at + abi.cqeVendor] = cqe.vendor ?? 0;
  ring.words[at + abi.cqePkeyIndex] = cqe.pkeyIndex ?? 0;
  ring.words[abi.cqProducer] = (producer + 1) >>> 0;
}
