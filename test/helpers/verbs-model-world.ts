/** The world of a run, which creates, changes and releases its objects. */
import { type DeviceFile, openDeviceFile } from '../../kernel-bridge/index.js';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { loadUserVerbs } from '../../kernel-bridge/uvp/index.js';
import {
  type Overlapped,
  QpAttr,
  QpState,
  QpType,
  Status,
  StatusError,
  statusName,
  WVProvider,
  WVSharedReceiveQueue,
  type WvCompletion,
  type WvMemoryRegion,
  type WvUnknown,
} from '../../winverbs/index.js';
import { ADDRESS } from './loopback.js';
import { Coverage } from './verbs-model-coverage.js';
import {
  type Ah,
  type AnyQp,
  budget,
  type Counted,
  CountedEp,
  CountedQp,
  CQ_ENTRIES,
  Cq,
  Device,
  handle,
  MESSAGE_BYTES,
  MOST_OBJECTS,
  MOST_SHARED,
  Mw,
  Pd,
  pick,
  type Qp,
  REGION_ACCESS,
  REGION_BYTES,
  type Region,
  Srq,
  type Ud,
} from './verbs-model-objects.js';
import { ModelError, names, outcome } from './verbs-model-outcome.js';
import type { Step } from './verbs-model-plan.js';
import { type Pair, QueuePair, type Request, type SharedReceives } from './verbs-model-queues.js';

/** A provider, its objects, and the model's expectations. */
export class World {
  protected readonly files: DeviceFile[] = [];
  protected readonly provider = new WVProvider({
    openFile: (name) => {
      const file = openDeviceFile(name);
      this.files.push(file);
      return file;
    },
    loadUserVerbs,
  });
  protected readonly devices: Device[] = [];
  protected readonly cqs: Cq[] = [];
  protected readonly pds: Pd[] = [];
  protected readonly regions: Region[] = [];
  protected readonly mws: Mw[] = [];
  protected readonly qps: Qp[] = [];
  protected readonly srqs: Srq[] = [];
  protected readonly uds: Ud[] = [];
  protected readonly ahs: Ah[] = [];
  protected readonly pairs: Pair<Qp>[] = [];
  /** All objects to which the model holds references. */
  protected readonly counted: Counted<WvUnknown>[] = [];
  /** Requests that must have ended when the run ends, and their permitted statuses. */
  protected readonly endings: { what: string; request: Overlapped<unknown>; allowed: readonly number[] }[] =
    [];
  protected readonly completions: WvCompletion[] = [];
  protected serial = 0;

  constructor(protected readonly coverage: Coverage = new Coverage()) {
    const { deviceGuid } = this.provider.translateAddress(ADDRESS);
    for (let n = 0; n < 2; n++) {
      this.devices.push(this.keep(new Device('device', this.provider.openDevice(deviceGuid))));
    }
    // Creates enough initial objects for short sequences to have an effect.
    this.createCq({ op: 'createCq', a: 0, b: 0, c: 0 });
    this.allocatePd({ op: 'allocatePd', a: 0, b: 0, c: 0 });
    this.register({ op: 'register', a: 0, b: 0, c: 0 });
    for (let n = 0; n < 2; n++) this.createQp({ op: 'createQp', a: 0, b: 0, c: 35 });
  }

  protected keep<C extends Counted<WvUnknown>>(counted: C): C {
    this.counted.push(counted);
    return counted;
  }

  /** Makes a call that must end in one of these statuses. Returns its result if that is SUCCESS. */
  protected expect<T>(what: string, allowed: readonly number[], call: () => T): { value: T } | undefined {
    let status: number = Status.SUCCESS;
    let value: T | undefined;
    try {
      value = call();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      status = error.status;
    }
    if (!allowed.includes(status)) {
      throw new ModelError(`${what} must end in ${names(allowed)}; got ${statusName(status)}.`);
    }
    return status === Status.SUCCESS ? { value: value as T } : undefined;
  }

  // ── Objects ────────────────────────────────────────────────────────────────────────────────────

  protected createCq({ a, b }: Step): void {
    const device = pick(this.devices, a)!;
    if (this.cqs.length >= MOST_OBJECTS) return;
    const entries = [CQ_ENTRIES, CQ_ENTRIES, CQ_ENTRIES + 1, 0, -1, 2 ** 30][b % 6]!;
    const expected =
      device.users === 0 ? Status.INVALID_HANDLE : b % 6 > 2 ? Status.INVALID_PARAMETER : Status.SUCCESS;
    const made = this.expect('createCompletionQueue', [expected], () =>
      device.real.createCompletionQueue(entries),
    );
    if (made === undefined) return;
    if (made.value.entries < entries)
      throw new ModelError(`A CQ must have at least ${entries} entries; got ${made.value.entries}.`);
    this.cqs.push(this.keep(new Cq(device, made.value)));
  }

  protected resize({ a, b }: Step): void {
    const cq = pick(this.cqs, a)!;
    const entries = [CQ_ENTRIES, 2 * CQ_ENTRIES, 4 * CQ_ENTRIES][b % 3]!;
    this.expect('resize', [handle(cq)], () => cq.real.resize(entries));
  }

  protected allocatePd({ a }: Step): void {
    const device = pick(this.devices, a)!;
    if (this.pds.length >= MOST_OBJECTS) return;
    const made = this.expect('allocateProtectionDomain', [handle(device)], () =>
      device.real.allocateProtectionDomain(),
    );
    if (made !== undefined) this.pds.push(this.keep(new Pd(device, made.value)));
  }

  protected async register({ a, b, c }: Step): Promise<void> {
    const pd = pick(this.pds, a)!;
    if (this.regions.length >= MOST_OBJECTS) return;
    const access = REGION_ACCESS[b % REGION_ACCESS.length]!;
    const refused = b % REGION_ACCESS.length > 4;
    const expected =
      pd.users === 0 ? Status.INVALID_HANDLE : refused ? Status.INVALID_PARAMETER : Status.SUCCESS;
    const buffer = new Uint8Array(REGION_BYTES);
    let region: WvMemoryRegion | undefined;
    if (c % 2 === 0) {
      region = this.expect('registerMemory', [expected], () => pd.real.registerMemory(buffer, access))?.value;
    } else {
      // Only invalid arguments throw an error. Errors of the kernel reject the promise.
      const request = this.expect('registerMemoryOverlapped', [Status.SUCCESS, expected], () =>
        pd.real.registerMemoryOverlapped(buffer, access),
      )?.value;
      if (request === undefined) return;
      const status = await outcome('registerMemoryOverlapped', request);
      if (status !== expected) {
        throw new ModelError(
          `An overlapped registration must end in ${names([expected])}; got ${names([status])}.`,
        );
      }
      if (status === Status.SUCCESS) region = request.getResult();
    }
    if (region === undefined) return;
    if ((region.rkey !== 0) !== b % REGION_ACCESS.length < 2)
      throw new ModelError('An rkey without a right.');
    this.regions.push({ pd, real: region, access, live: true });
  }

  protected deregister({ a, b }: Step): void {
    const region = pick(this.regions, a);
    if (region === undefined) return;
    const pd = b % 4 === 0 ? pick(this.pds, b)! : region.pd;
    const windows = this.mws.filter((mw) => mw.candidates.has(region));
    const allowed: number[] = [];
    if (pd.users === 0) allowed.push(Status.INVALID_HANDLE);
    else if (pd !== region.pd || !region.live) allowed.push(Status.INVALID_PARAMETER);
    else if (windows.some(({ bound }) => bound === 'yes')) allowed.push(Status.DEVICE_BUSY);
    else if (windows.some(({ bound }) => bound === 'maybe')) allowed.push(Status.DEVICE_BUSY, Status.SUCCESS);
    else allowed.push(Status.SUCCESS);
    const done = this.expect('deregisterMemory', allowed, () => pd.real.deregisterMemory(region.real));
    if (done !== undefined) this.revoke(region);
  }

  /** Outstanding requests with this memory may fail now. */
  protected revoke(region: Region): void {
    region.live = false;
    for (const { receives } of this.srqs) {
      if (![...receives.unreported].some(({ regions }) => regions.includes(region))) continue;
      receives.poisoned = true;
      this.taintShared(receives);
    }
    for (const qp of this.everyQp()) {
      const uses = ({ regions }: Request): boolean => regions.includes(region);
      if (qp.sends.some(uses) || qp.receives.some(uses)) this.taint(qp);
    }
  }

  protected everyQp(): AnyQp[] {
    return [...this.qps, ...this.uds];
  }

  protected allocateMw({ a }: Step): void {
    const pd = pick(this.pds, a)!;
    if (this.mws.length >= MOST_OBJECTS) return;
    const made = this.expect('allocateMemoryWindow', [handle(pd)], () => pd.real.allocateMemoryWindow());
    if (made !== undefined) this.mws.push(this.keep(new Mw(pd, made.value)));
  }

  protected createSrq({ a, b, c }: Step): void {
    const pd = pick(this.pds, a)!;
    if (this.srqs.length >= MOST_OBJECTS) return;
    const maxWr = [4, 16, 5, 1, 0, 2 ** 30][b % 6]!;
    const limit = [0, 0, 2, maxWr, maxWr + 1, -1][c % 6]!;
    const refused = b % 6 > 3 || limit < 0 || limit > maxWr;
    const expected =
      pd.users === 0 ? Status.INVALID_HANDLE : refused ? Status.INVALID_PARAMETER : Status.SUCCESS;
    const made = this.expect('createSharedReceiveQueue', [expected], () =>
      pd.real.createSharedReceiveQueue(maxWr, 2, limit),
    );
    if (made === undefined) return;
    const srq = this.keep(new Srq(pd, made.value));
    this.srqs.push(srq);
    if (limit > 0) srq.receives.mayTell();
    this.measure(srq, maxWr, undefined);
  }

  /** Applies the actual size. If the limit was reached, it has been reported and is reset. */
  private measure(srq: Srq, maxWr: number, limit: number | undefined): void {
    const { receives } = srq;
    const found = srq.real.query();
    if (found.maxWr < maxWr)
      throw new ModelError(`A shared queue must have at least ${maxWr} entries; got ${found.maxWr}.`);
    receives.entries = found.maxWr;
    if (limit === undefined || limit === 0) return;
    if (receives.least >= limit && found.srqLimit !== limit)
      throw new ModelError(
        `The limit must be ${limit} with ${receives.least} waiting; got ${found.srqLimit}.`,
      );
    if (receives.most < limit && found.srqLimit !== 0)
      throw new ModelError(`The limit ${limit} is still set with ${receives.most} waiting.`);
  }

  protected modifySrq({ a, b, c }: Step): void {
    const srq = pick(this.srqs, a);
    if (srq === undefined) return;
    const { receives } = srq;
    const maxWr = [16, 4, 1, 64, 0, 2 ** 30][b % 6]!;
    const limit = [0, 1, 2, maxWr, maxWr + 1, -1][c % 6]!;
    let allowed: number[] = [Status.SUCCESS];
    // The granted size is a power of two.
    if (receives.least > maxWr) allowed = [Status.BUFFER_OVERFLOW];
    else if (receives.most > maxWr) allowed.push(Status.BUFFER_OVERFLOW);
    if (b % 6 > 3 || limit < 0 || limit > maxWr) allowed = [Status.INVALID_PARAMETER];
    if (srq.users === 0) allowed = [Status.INVALID_HANDLE];
    const done = this.expect('modify of a shared receive queue', allowed, () =>
      srq.real.modify(maxWr, limit),
    );
    if (done === undefined) return;
    if (limit > 0) receives.mayTell();
    this.coverage.add('shared queue changed');
    this.measure(srq, maxWr, limit);
  }

  protected notifySrq({ a }: Step): void {
    const srq = pick(this.srqs, a);
    if (srq === undefined) return;
    const done = this.expect('notify of a shared receive queue', [handle(srq)], () => srq.real.notify());
    if (done === undefined) return;
    this.endings.push({
      what: 'notify of a shared receive queue',
      request: done.value,
      allowed: srq.receives.endings,
    });
  }

  /** Tries to destroy a used SRQ. The kernel must reject that while queue pairs use it. */
  protected destroyBusySrq({ a }: Step): void {
    const busy = this.srqs.filter(({ receives }) =>
      this.qps.some((qp) => qp.shared === receives && qp.users > 0),
    );
    const real = pick(busy, a)?.real;
    if (!(real instanceof WVSharedReceiveQueue)) return;
    this.expect('SRQ_DESTROY', [Status.DEVICE_BUSY], () => real.file.callId(IoctlCode.SRQ_DESTROY, real.id));
  }

  /** From now on, any queue pair of a shared receive queue may fail. */
  protected taintShared(shared: SharedReceives): void {
    for (const qp of this.qps) if (qp.shared === shared) this.taint(qp);
  }

  protected createQp({ a, b, c }: Step): void {
    const pd = pick(this.pds, a)!;
    const sendCq = pick(this.cqs, b)!;
    const receiveCq = pick(this.cqs, b >> 3)!;
    const sendDepth = 1 + (c % 8);
    const srq = (b >> 6) % 3 === 1 ? pick(this.srqs, b >> 4) : undefined;
    const receiveDepth = srq === undefined ? 1 + ((c >> 3) % 8) : 0;
    const type = (c >> 6) % 4 === 1 ? QpType.UC : QpType.RC;
    const toBeTold = srq === undefined ? receiveDepth : MOST_SHARED;
    if (this.qps.length >= MOST_OBJECTS || !budget(sendCq, sendDepth) || !budget(receiveCq, toBeTold)) return;
    const status = (device: Device, { users }: { users: number }): number =>
      device !== pd.device ? Status.INVALID_PARAMETER : users === 0 ? Status.INVALID_HANDLE : Status.SUCCESS;
    const expected =
      handle(pd) ||
      status(sendCq.device, sendCq) ||
      status(receiveCq.device, receiveCq) ||
      (srq === undefined ? Status.SUCCESS : status(srq.pd.device, srq));
    const context = { qp: this.qps.length };
    const made = this.expect('createConnectQueuePair', [expected], () =>
      pd.real.createConnectQueuePair({
        sendCq: sendCq.real,
        receiveCq: receiveCq.real,
        ...(srq === undefined ? {} : { srq: srq.real }),
        type,
        context,
        sendDepth,
        sendSge: 2,
        receiveDepth,
        receiveSge: 2,
        maxInlineSend: MESSAGE_BYTES,
      }),
    );
    if (made === undefined) return;
    const qp: Qp = new QueuePair(
      made.value,
      context,
      pd,
      sendCq,
      receiveCq,
      sendDepth,
      receiveDepth,
      type,
      srq?.receives,
    );
    // Queue pairs cannot use memory of another domain.
    if (srq !== undefined && srq.pd !== pd) {
      srq.receives.poisoned = true;
      this.taintShared(srq.receives);
    }
    this.keep(new CountedQp(qp));
    this.qps.push(qp);
  }

  protected modify({ a, b }: Step): void {
    const qp = pick(this.qps, a)!;
    const target = [QpState.INIT, QpState.ERROR, QpState.RESET, QpState.RTS][b % 4]!;
    // The endpoint moves a connected queue pair. Moving it directly would be a program error.
    if (qp.users > 0 && qp.pair !== undefined && target !== QpState.ERROR) return;
    if (
      target === QpState.RESET &&
      !(budget(qp.sendCq, qp.sendDepth) && budget(qp.receiveCq, qp.receiveDepth))
    ) {
      return;
    }
    const from = qp.users > 0 ? qp.real.state : 0;
    const legal: Record<number, boolean> = {
      [QpState.INIT]: from === QpState.RESET || from === QpState.INIT,
      [QpState.ERROR]: from !== QpState.RESET,
      [QpState.RESET]: true,
      [QpState.RTS]: false,
    };
    const refusals = [Status.INVALID_DEVICE_STATE, Status.INVALID_PARAMETER];
    let allowed: number[] = legal[target]! ? [Status.SUCCESS] : refusals;
    // IBA permits ERROR from any state; for RESET it is the HCA's choice. RTS to RTS changes nothing.
    if (target === QpState.ERROR && from === QpState.RESET) allowed = [Status.SUCCESS, ...refusals];
    if (qp.users === 0) allowed = [Status.INVALID_HANDLE];
    const done = this.expect(`modify from ${from} to ${target}`, allowed, () =>
      qp.real.modify({ qpState: target, pkeyIndex: 0, portNumber: 1, accessFlags: 0 }, QpAttr.STATE),
    );
    if (done === undefined) return;
    if (qp.real.state !== target)
      throw new ModelError(`A queue pair must be in ${target}; got ${qp.real.state}.`);
    if (target === QpState.RESET) qp.reset();
    if (target !== QpState.INIT) this.unsettleWindows(qp);
    if (target === QpState.ERROR) this.taint(qp);
  }

  protected pickCounted(a: number): Counted<WvUnknown> {
    return pick(this.counted, a)!;
  }

  protected addRef({ a }: Step): void {
    const object = this.pickCounted(a);
    const done = this.expect(`addRef of a ${object.kind}`, [handle(object)], () => object.real.addRef());
    if (done === undefined) return;
    object.users++;
    if (done.value !== object.users)
      throw new ModelError(`addRef must return ${object.users}; got ${done.value}.`);
  }

  protected release({ a, b }: Step): void {
    // Releases objects rarely, so that enough of them remain.
    if (b % 3 === 0) this.releaseOnce(this.pickCounted(a));
  }

  protected releaseOnce(object: Counted<WvUnknown>): void {
    const left = object.real.release();
    object.users = Math.max(0, object.users - 1);
    if (left !== object.users) throw new ModelError(`release must return ${object.users}; got ${left}.`);
    if (object.users > 0) return;
    if (object instanceof Mw) this.dropWindow(object);
    if (object instanceof CountedEp) this.dropPair(object.pair);
    if (object instanceof CountedQp) {
      this.unsettleWindows(object.qp);
      object.qp.shared?.mayTell();
    }
    if (object instanceof Pd) {
      for (const region of this.regions) if (region.pd === object && !this.inUse(object)) region.live = false;
    }
    // Any release can drop the last reference to another object.
    for (const pd of this.pds) {
      if (pd.users === 0 && !this.inUse(pd)) {
        for (const region of this.regions) if (region.pd === pd) region.live = false;
      }
    }
  }

  protected inUse(pd: Pd): boolean {
    return (
      this.srqs.some((srq) => srq.pd === pd && this.keepsShared(srq)) ||
      this.mws.some((mw) => mw.pd === pd && mw.users > 0) ||
      this.ahs.some((ah) => ah.pd === pd && ah.users > 0) ||
      this.everyQp().some((qp) => qp.pd === pd && qp.held)
    );
  }

  private keepsShared(srq: Srq): boolean {
    return srq.users > 0 || this.qps.some((qp) => qp.shared === srq.receives && qp.held);
  }

  protected dropWindow(mw: Mw): void {
    // A queued bind of this region fails.
    for (const qp of this.qps) if (qp.sends.some(({ window }) => window === mw)) this.taint(qp);
    mw.bound = 'no';
    mw.region = undefined;
    mw.candidates.clear();
  }

  protected dropPair(pair: Pair<Qp>): void {
    for (const qp of [pair.a, pair.b]) this.taint(qp);
    if (pair.endpoints.some(({ users }) => users > 0)) return;
    for (const qp of [pair.a, pair.b]) if (qp.pair === pair) qp.pair = undefined;
  }

  protected unsettleWindows(qp: AnyQp): void {
    for (const mw of this.mws) if (mw.qp === qp && mw.bound === 'yes') mw.bound = 'maybe';
  }

  /** From now on, requests of the queue pair and of its peer may fail. */
  protected taint(qp: AnyQp): void {
    for (const one of [qp, qp.peer] as (AnyQp | undefined)[]) {
      if (one === undefined) continue;
      one.taint();
      this.unsettleWindows(one);
    }
  }
}
