/**
 * A model of the verbs, and the interpreter that carries random sequences of them out on the stack and compares: each
 * call ends in a status that the model allows, each request comes back once and in order, and what is awaited ends.
 */
import fc from 'fast-check';
import { type DeviceFile, openDeviceFile, readCounters } from '../../kernel-bridge/index.js';
import { loadUserVerbs } from '../../kernel-bridge/uvp/index.js';
import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVDevice,
  type IWVMemoryWindow,
  type IWVProtectionDomain,
  type Overlapped,
  QpAttr,
  QpState,
  Status,
  StatusError,
  statusName,
  WcStatus,
  WVProvider,
  WvAccess,
  type WvCompletion,
  type WvMemoryRegion,
  WvSend,
  type WvSge,
  type WvUnknown,
} from '../../winverbs/index.js';
import { ADDRESS, openListener, remoteOf, toInit } from './loopback.js';
import { MessageLog, Pair, QueuePair, type Request } from './verbs-model-queues.js';

const OPERATIONS = [
  'createCq',
  'allocatePd',
  'register',
  'deregister',
  'allocateMw',
  'createQp',
  'createQp',
  'modify',
  'receive',
  'receive',
  'send',
  'send',
  'write',
  'write',
  'read',
  'add',
  'bind',
  'invalidate',
  'poll',
  'poll',
  'resize',
  'notify',
  'cancel',
  'connect',
  'connect',
  'connect',
  'disconnect',
  'leave',
  'notifyDisconnect',
  'drain',
  'addRef',
  'release',
] as const;

type Operation = (typeof OPERATIONS)[number];

/** One step; the numbers choose objects and parameters, modulo how many there are. */
export interface Step {
  readonly op: Operation;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** A whole run. */
export interface Plan {
  readonly steps: readonly Step[];
  /** Everything is released in an order that `order` gives, or the file is closed under all of it first. */
  readonly end: 'release' | 'closeFile';
  readonly order: number;
  /** Begins with a connection. */
  readonly connected: boolean;
}

const nat = fc.nat(999);
/** Random runs. */
export const plans: fc.Arbitrary<Plan> = fc.record({
  steps: fc.array(fc.record({ op: fc.constantFrom(...OPERATIONS), a: nat, b: nat, c: nat }), {
    minLength: 10,
    maxLength: 80,
    size: 'max',
  }),
  end: fc.constantFrom('release', 'release', 'closeFile'),
  order: nat,
  connected: fc.boolean(),
});

/** Longer than anything here can take that has not hung. */
const HANG_MS = 15_000;
const REGION_BYTES = 4096;
const MESSAGE_BYTES = 64;
/** Entries of every CQ, and the requests that may ever be told there without polling, so that none overruns. */
const CQ_ENTRIES = 512;
const MOST_OBJECTS = 12;
const { SIGNALED, INLINE, IMMEDIATE, FENCE, SOLICITED } = WvSend;

const REGION_ACCESS = [
  WvAccess.LOCAL_WRITE |
    WvAccess.REMOTE_READ |
    WvAccess.REMOTE_WRITE |
    WvAccess.REMOTE_ATOMIC |
    WvAccess.MW_BIND,
  WvAccess.LOCAL_WRITE |
    WvAccess.REMOTE_READ |
    WvAccess.REMOTE_WRITE |
    WvAccess.REMOTE_ATOMIC |
    WvAccess.MW_BIND,
  WvAccess.LOCAL_WRITE | WvAccess.MW_BIND,
  WvAccess.LOCAL_WRITE,
  0,
  // Refused: rights to write need LOCAL_WRITE; a right that there is not.
  WvAccess.REMOTE_ATOMIC,
  0x40,
] as const;

/** An object and what the model knows of it. */
class Counted<T extends WvUnknown> {
  users = 1;
  constructor(
    readonly kind: string,
    readonly real: T,
  ) {}
}

class Device extends Counted<IWVDevice> {}

class Cq extends Counted<IWVCompletionQueue> {
  readonly notifies: Overlapped<void>[] = [];
  /** How many completions can be in it at most if nobody polls. */
  budget = 0;
  constructor(
    readonly device: Device,
    real: IWVCompletionQueue,
  ) {
    super('completion queue', real);
  }
}

class Pd extends Counted<IWVProtectionDomain> {
  constructor(
    readonly device: Device,
    real: IWVProtectionDomain,
  ) {
    super('protection domain', real);
  }
}

class Mw extends Counted<IWVMemoryWindow> {
  bound: 'no' | 'yes' | 'maybe' = 'no';
  region: Region | undefined;
  qp: QueuePair<Pd, Cq> | undefined;
  constructor(
    readonly pd: Pd,
    real: IWVMemoryWindow,
  ) {
    super('memory window', real);
  }
}

interface Region {
  readonly pd: Pd;
  readonly real: WvMemoryRegion;
  readonly access: number;
  live: boolean;
}

type Qp = QueuePair<Pd, Cq>;

/** The stack did what the model does not allow. */
export class ModelError extends Error {}

function names(statuses: Iterable<number>): string {
  return [...statuses].map((status) => statusName(status)).join(' or ');
}

async function within<T>(what: string, promise: PromiseLike<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ModelError(`${what} has hung.`)), HANG_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function outcome(what: string, request: PromiseLike<unknown>): Promise<number> {
  try {
    await within(what, request);
    return Status.SUCCESS;
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One run: a provider, what was made from it, and what the model expects. */
class Run {
  private readonly files: DeviceFile[] = [];
  private readonly provider = new WVProvider({
    openFile: (name) => {
      const file = openDeviceFile(name);
      this.files.push(file);
      return file;
    },
    loadUserVerbs,
  });
  private readonly devices: Device[] = [];
  private readonly cqs: Cq[] = [];
  private readonly pds: Pd[] = [];
  private readonly regions: Region[] = [];
  private readonly mws: Mw[] = [];
  private readonly qps: Qp[] = [];
  private readonly pairs: Pair<Qp>[] = [];
  /** Everything that can be released, as long as the model holds references. */
  private readonly counted: Counted<WvUnknown>[] = [];
  /** Requests that must have ended when the run ends, and how they may. */
  private readonly endings: { what: string; request: Overlapped<void>; allowed: readonly number[] }[] = [];
  private readonly completions: WvCompletion[] = [];
  private serial = 0;

  constructor() {
    const { deviceGuid } = this.provider.translateAddress(ADDRESS);
    for (let n = 0; n < 2; n++) {
      this.devices.push(this.keep(new Device('device', this.provider.openDevice(deviceGuid))));
    }
    // Enough to begin with, so that short sequences do something.
    this.createCq({ op: 'createCq', a: 0, b: 0, c: 0 });
    this.allocatePd({ op: 'allocatePd', a: 0, b: 0, c: 0 });
    this.register({ op: 'register', a: 0, b: 0, c: 0 });
    for (let n = 0; n < 2; n++) this.createQp({ op: 'createQp', a: 0, b: 0, c: 35 });
  }

  private keep<C extends Counted<WvUnknown>>(counted: C): C {
    this.counted.push(counted);
    return counted;
  }

  /** Carries out a call that must end in one of these statuses; answers what it gave if that is SUCCESS. */
  private expect<T>(what: string, allowed: readonly number[], call: () => T): { value: T } | undefined {
    let status: number = Status.SUCCESS;
    let value: T | undefined;
    try {
      value = call();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      status = error.status;
    }
    if (!allowed.includes(status)) {
      throw new ModelError(`${what} ended in ${statusName(status)}; the model has ${names(allowed)}.`);
    }
    return status === Status.SUCCESS ? { value: value as T } : undefined;
  }

  async step(step: Step): Promise<void> {
    await this[step.op](step);
  }

  // ── Objects ────────────────────────────────────────────────────────────────────────────────────

  private createCq({ a, b }: Step): void {
    const device = pick(this.devices, a)!;
    if (this.cqs.length >= MOST_OBJECTS) return;
    const entries = [CQ_ENTRIES, CQ_ENTRIES, CQ_ENTRIES + 1, 0, -1, 2 ** 30][b % 6]!;
    const expected =
      device.users === 0 ? Status.INVALID_HANDLE : b % 6 > 2 ? Status.INVALID_PARAMETER : Status.SUCCESS;
    const made = this.expect('createCompletionQueue', [expected], () =>
      device.real.createCompletionQueue(entries),
    );
    if (made === undefined) return;
    if (made.value.entries < entries) throw new ModelError(`A CQ of ${entries} has ${made.value.entries}.`);
    this.cqs.push(this.keep(new Cq(device, made.value)));
  }

  private resize({ a, b }: Step): void {
    const cq = pick(this.cqs, a)!;
    const entries = [CQ_ENTRIES, 2 * CQ_ENTRIES, 4 * CQ_ENTRIES][b % 3]!;
    this.expect('resize', [handle(cq)], () => cq.real.resize(entries));
  }

  private allocatePd({ a }: Step): void {
    const device = pick(this.devices, a)!;
    if (this.pds.length >= MOST_OBJECTS) return;
    const made = this.expect('allocateProtectionDomain', [handle(device)], () =>
      device.real.allocateProtectionDomain(),
    );
    if (made !== undefined) this.pds.push(this.keep(new Pd(device, made.value)));
  }

  private async register({ a, b, c }: Step): Promise<void> {
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
      // What the arguments alone forbid is thrown, what the kernel refuses rejects.
      const request = this.expect('registerMemoryOverlapped', [Status.SUCCESS, expected], () =>
        pd.real.registerMemoryOverlapped(buffer, access),
      )?.value;
      if (request === undefined) return;
      const status = await outcome('registerMemoryOverlapped', request);
      if (status !== expected) {
        throw new ModelError(
          `An overlapped registration ended in ${names([status])}, not ${names([expected])}.`,
        );
      }
      if (status === Status.SUCCESS) region = request.getResult();
    }
    if (region === undefined) return;
    if ((region.rkey !== 0) !== b % REGION_ACCESS.length < 2)
      throw new ModelError('An rkey without a right.');
    this.regions.push({ pd, real: region, access, live: true });
  }

  private deregister({ a, b }: Step): void {
    const region = pick(this.regions, a);
    if (region === undefined) return;
    const pd = b % 4 === 0 ? pick(this.pds, b)! : region.pd;
    const windows = this.mws.filter((mw) => mw.region === region);
    const allowed: number[] = [];
    if (pd.users === 0) allowed.push(Status.INVALID_HANDLE);
    else if (pd !== region.pd || !region.live) allowed.push(Status.INVALID_PARAMETER);
    else if (windows.some(({ bound }) => bound === 'yes')) allowed.push(Status.DEVICE_BUSY);
    else if (windows.some(({ bound }) => bound === 'maybe')) allowed.push(Status.DEVICE_BUSY, Status.SUCCESS);
    else allowed.push(Status.SUCCESS);
    const done = this.expect('deregisterMemory', allowed, () => pd.real.deregisterMemory(region.real));
    if (done !== undefined) this.revoke(region);
  }

  /** Requests that are on their way with this memory may fail now. */
  private revoke(region: Region): void {
    region.live = false;
    for (const qp of this.qps) {
      const uses = ({ regions }: Request): boolean => regions.includes(region);
      if (qp.sends.some(uses) || qp.receives.some(uses)) this.taint(qp);
    }
  }

  private allocateMw({ a }: Step): void {
    const pd = pick(this.pds, a)!;
    if (this.mws.length >= MOST_OBJECTS) return;
    const made = this.expect('allocateMemoryWindow', [handle(pd)], () => pd.real.allocateMemoryWindow());
    if (made !== undefined) this.mws.push(this.keep(new Mw(pd, made.value)));
  }

  private createQp({ a, b, c }: Step): void {
    const pd = pick(this.pds, a)!;
    const sendCq = pick(this.cqs, b)!;
    const receiveCq = pick(this.cqs, b >> 3)!;
    const sendDepth = 1 + (c % 8);
    const receiveDepth = 1 + ((c >> 3) % 8);
    if (this.qps.length >= MOST_OBJECTS || !budget(sendCq, sendDepth) || !budget(receiveCq, receiveDepth))
      return;
    const status = (cq: Cq): number =>
      cq.device !== pd.device
        ? Status.INVALID_PARAMETER
        : cq.users === 0
          ? Status.INVALID_HANDLE
          : Status.SUCCESS;
    const expected = handle(pd) || status(sendCq) || status(receiveCq);
    const context = { qp: this.qps.length };
    const made = this.expect('createConnectQueuePair', [expected], () =>
      pd.real.createConnectQueuePair({
        sendCq: sendCq.real,
        receiveCq: receiveCq.real,
        context,
        sendDepth,
        sendSge: 2,
        receiveDepth,
        receiveSge: 2,
        maxInlineSend: MESSAGE_BYTES,
      }),
    );
    if (made === undefined) return;
    const qp: Qp = new QueuePair(made.value, context, pd, sendCq, receiveCq, sendDepth, receiveDepth);
    this.keep(new CountedQp(qp));
    this.qps.push(qp);
  }

  private modify({ a, b }: Step): void {
    const qp = pick(this.qps, a)!;
    const target = [QpState.INIT, QpState.ERROR, QpState.RESET, QpState.RTS][b % 4]!;
    // A connected queue pair is moved by its endpoint; moving it elsewhere is a program's own fault.
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
    // IBA lets any state go to ERROR; whether RESET does is the HCA's choice. RTS to RTS changes nothing.
    if (target === QpState.ERROR && from === QpState.RESET) allowed = [Status.SUCCESS, ...refusals];
    if (qp.users === 0) allowed = [Status.INVALID_HANDLE];
    const done = this.expect(`modify from ${from} to ${target}`, allowed, () =>
      qp.real.modify({ qpState: target, pkeyIndex: 0, portNumber: 1, accessFlags: 0 }, QpAttr.STATE),
    );
    if (done === undefined) return;
    if (qp.real.state !== target) throw new ModelError(`A queue pair is in ${qp.real.state}, not ${target}.`);
    if (target === QpState.RESET) qp.reset();
    if (target !== QpState.INIT) this.unsettleWindows(qp);
    if (target === QpState.ERROR) this.taint(qp);
  }

  private pickCounted(a: number): Counted<WvUnknown> {
    return pick(this.counted, a)!;
  }

  private addRef({ a }: Step): void {
    const object = this.pickCounted(a);
    const done = this.expect(`addRef of a ${object.kind}`, [handle(object)], () => object.real.addRef());
    if (done === undefined) return;
    object.users++;
    if (done.value !== object.users)
      throw new ModelError(`addRef answers ${done.value}, not ${object.users}.`);
  }

  private release({ a, b }: Step): void {
    // Rarely, so that there is something to do it with.
    if (b % 3 === 0) this.releaseOnce(this.pickCounted(a));
  }

  private releaseOnce(object: Counted<WvUnknown>): void {
    const left = object.real.release();
    object.users = Math.max(0, object.users - 1);
    if (left !== object.users) throw new ModelError(`release answers ${left}, not ${object.users}.`);
    if (object.users > 0) return;
    if (object instanceof Mw) this.dropWindow(object);
    if (object instanceof CountedEp) this.dropPair(object.pair);
    if (object instanceof CountedQp) this.unsettleWindows(object.qp);
    if (object instanceof Pd) {
      for (const region of this.regions) if (region.pd === object && !this.inUse(object)) region.live = false;
    }
    // Any release can be the last that kept something else.
    for (const pd of this.pds) {
      if (pd.users === 0 && !this.inUse(pd)) {
        for (const region of this.regions) if (region.pd === pd) region.live = false;
      }
    }
  }

  private inUse(pd: Pd): boolean {
    return (
      this.mws.some((mw) => mw.pd === pd && mw.users > 0) || this.qps.some((qp) => qp.pd === pd && qp.held)
    );
  }

  private dropWindow(mw: Mw): void {
    // A bind of it that is still queued finds nothing.
    for (const qp of this.qps) if (qp.sends.some(({ window }) => window === mw)) this.taint(qp);
    mw.bound = 'no';
    mw.region = undefined;
  }

  private dropPair(pair: Pair<Qp>): void {
    for (const qp of [pair.a, pair.b]) this.taint(qp);
    if (pair.endpoints.some(({ users }) => users > 0)) return;
    for (const qp of [pair.a, pair.b]) if (qp.pair === pair) qp.pair = undefined;
  }

  private unsettleWindows(qp: Qp): void {
    for (const mw of this.mws) if (mw.qp === qp && mw.bound === 'yes') mw.bound = 'maybe';
  }

  /** From here on requests of the queue pair, and of its peer, may fail. */
  private taint(qp: Qp): void {
    for (const one of [qp, qp.peer]) {
      if (one === undefined) continue;
      one.taint();
      this.unsettleWindows(one);
    }
  }

  /** A queue pair for a request: mostly a connected one. */
  private poster(a: number): Qp {
    const connected = this.qps.filter((qp) => qp.pair !== undefined && !qp.tainted);
    return (a % 4 === 0 ? undefined : pick(connected, a >> 2)) ?? pick(this.qps, a)!;
  }

  /** A window for a request: mostly one that the queue pair may use, in this state. */
  private window(qp: Qp, b: number, bound: Mw['bound']): Mw | undefined {
    const fitting = this.mws.filter(
      (mw) => mw.users > 0 && mw.pd === qp.pd && mw.bound === bound && (bound === 'no' || mw.qp === qp),
    );
    return (b % 4 === 0 ? undefined : pick(fitting, b >> 2)) ?? pick(this.mws, b);
  }

  // ── Requests ───────────────────────────────────────────────────────────────────────────────────

  /** A piece of memory for a request, and whether the queue pair may use it so. */
  private memory(qp: Qp, choice: number, length: number, write: boolean) {
    // Mostly memory that will do.
    const good = this.regions.filter(
      ({ live, pd, access }) => live && pd === qp.pd && (!write || (access & WvAccess.LOCAL_WRITE) !== 0),
    );
    const region = choice % 16 === 0 ? pick(this.regions, choice >> 4) : pick(good, choice >> 4);
    if (region === undefined) return undefined;
    const sgl: WvSge[] = [{ region: region.real, offset: choice % 64, length }];
    return { sgl, region, good: good.includes(region) };
  }

  private receive({ a, b }: Step): void {
    this.postReceive(this.poster(a), b);
  }

  private postReceive(qp: Qp, b: number): void {
    const memory = this.memory(qp, b, MESSAGE_BYTES, true);
    if (memory === undefined) return;
    const request = this.newRequest('receive', true, [memory.region]);
    const state = qp.users > 0 ? qp.real.state : 0;
    const expected =
      qp.users === 0
        ? Status.INVALID_HANDLE
        : state === QpState.RESET
          ? Status.INVALID_DEVICE_STATE
          : qp.receives.length >= qp.receiveDepth
            ? Status.NO_MORE_ENTRIES
            : Status.SUCCESS;
    const done = this.expect('postReceive', [expected], () => qp.real.postReceive(request, memory.sgl));
    if (done === undefined) return;
    qp.postedReceive(request);
    if (!memory.good) this.taint(qp);
  }

  private newRequest(kind: string, signaled: boolean, regions: readonly Region[], window?: Mw): Request {
    return { kind, signaled, regions, window, serial: this.serial++, mayFail: false };
  }

  /** Posts a send request that the model takes for good, or for one that will fail. */
  private post(qp: Qp, request: Request, good: boolean, call: () => unknown, refused?: number): boolean {
    const state = qp.users > 0 ? qp.real.state : 0;
    const full = qp.sends.length >= qp.sendDepth;
    const expected =
      qp.users === 0
        ? Status.INVALID_HANDLE
        : (refused ??
          (state < QpState.RTS
            ? Status.INVALID_DEVICE_STATE
            : full
              ? Status.NO_MORE_ENTRIES
              : Status.SUCCESS));
    if (this.expect(request.kind, [expected], call) === undefined) return false;
    qp.sends.push(request);
    if (state !== QpState.RTS) request.mayFail = true;
    if (!good) this.taint(qp);
    else if (qp.tainted) request.mayFail = true;
    return true;
  }

  private flags({ b, c }: Step): number {
    return (b % 5 === 0 ? 0 : SIGNALED) | (c % 7 === 0 ? FENCE : 0) | (c % 5 === 0 ? SOLICITED : 0);
  }

  private send(step: Step): void {
    const qp = this.poster(step.a);
    const length = step.c % (MESSAGE_BYTES + 1);
    const memory = this.memory(qp, step.b, length, false);
    if (memory === undefined) return;
    let flags = this.flags(step);
    if (step.c % 3 === 0) flags |= INLINE;
    if (step.c % 4 === 0) flags |= IMMEDIATE;
    const request = this.newRequest('send', (flags & SIGNALED) !== 0, [memory.region]);
    const { peer, outgoing } = qp;
    // Mostly there is a receive for it.
    if (peer !== undefined && step.a % 16 !== 0 && peer.receivesPosted <= outgoing.length)
      this.postReceive(peer, step.c);
    const good = memory.good || (flags & INLINE) !== 0;
    const immediate = (flags & IMMEDIATE) !== 0 ? step.c : undefined;
    const posted = this.post(qp, request, good, () => qp.real.send(request, memory.sgl, flags, step.c));
    // Without a receive it is tried again, and given up at last.
    if (posted && outgoing.add({ length, immediate }) > (peer?.receivesPosted ?? 0)) this.taint(qp);
  }

  private oneSided(
    kind: 'write' | 'read' | 'add',
    step: Step,
    right: number,
    call: (
      qp: Qp,
      request: Request,
      sgl: readonly WvSge[],
      flags: number,
      target: Region,
      offset: number,
    ) => void,
  ): void {
    const qp = this.poster(step.a);
    const length = kind === 'add' ? 8 : step.c % 2000;
    const memory = this.memory(qp, step.b, length, kind !== 'write');
    const good = this.regions.filter(
      ({ live, pd, access }) => live && pd === qp.peer?.pd && (access & right) === right,
    );
    const target = step.c % 16 === 0 ? pick(this.regions, step.c >> 4) : pick(good, step.c >> 2);
    if (memory === undefined || target === undefined) return;
    const flags = this.flags(step);
    const request = this.newRequest(kind, (flags & SIGNALED) !== 0, [memory.region, target]);
    this.post(qp, request, (memory.good || length === 0) && (good.includes(target) || length === 0), () =>
      call(qp, request, memory.sgl, flags, target, (step.a % 64) * 8),
    );
  }

  private write(step: Step): void {
    const right = WvAccess.REMOTE_WRITE & ~WvAccess.LOCAL_WRITE;
    this.oneSided('write', step, right, (qp, request, sgl, flags, target, offset) =>
      qp.real.write(request, sgl, flags, remoteOf(target.real), offset),
    );
  }

  private read(step: Step): void {
    this.oneSided('read', step, WvAccess.REMOTE_READ, (qp, request, sgl, flags, target, offset) =>
      qp.real.read(request, sgl, flags, remoteOf(target.real), offset),
    );
  }

  private add(step: Step): void {
    this.oneSided('add', step, WvAccess.REMOTE_ATOMIC, (qp, request, sgl, flags, target, offset) =>
      qp.real.fetchAdd(request, sgl[0]!, flags, 1n, remoteOf(target.real), offset),
    );
  }

  private windowRefusal(qp: Qp, mw: Mw): number | undefined {
    if (mw.pd !== qp.pd) return Status.INVALID_PARAMETER;
    return mw.users === 0 ? Status.INVALID_HANDLE : undefined;
  }

  private bind(step: Step): void {
    const qp = this.poster(step.a);
    const mw = this.window(qp, step.b, 'no');
    const fitting = this.regions.filter(
      ({ live, pd, access }) => live && pd === qp.pd && access === REGION_ACCESS[0],
    );
    const region = (step.c % 4 === 0 ? undefined : pick(fitting, step.c >> 2)) ?? pick(this.regions, step.c);
    if (mw === undefined || region === undefined) return;
    const request = this.newRequest('bind', true, [region], mw);
    const rights = region.live && region.pd === qp.pd && (region.access & WvAccess.MW_BIND) !== 0;
    const good = rights && mw.bound === 'no';
    const posted = this.post(
      qp,
      request,
      good,
      () => qp.real.bindMemoryWindow(mw.real, request, region.real, 0, 64, WvAccess.REMOTE_WRITE, SIGNALED),
      this.windowRefusal(qp, mw),
    );
    if (!posted) return;
    // Until the poster has seen how it ended, the window's key is this bind's, on every queue pair.
    mw.bound = 'maybe';
    if (!good) return;
    mw.region = region;
    mw.qp = qp;
    request.done = () => {
      if (mw.bound === 'maybe' && mw.region === region && mw.qp === qp && !qp.tainted) mw.bound = 'yes';
    };
  }

  private invalidate(step: Step): void {
    const qp = this.poster(step.a);
    const mw = this.window(qp, step.b, 'yes');
    if (mw === undefined) return;
    const request = this.newRequest('invalidate', true, [], mw);
    const good = mw.bound === 'yes' && mw.qp === qp && !qp.tainted;
    const posted = this.post(
      qp,
      request,
      good,
      () => qp.real.invalidateMemoryWindow(mw.real, request, SIGNALED),
      this.windowRefusal(qp, mw),
    );
    if (!posted || mw.bound === 'no') return;
    mw.bound = 'maybe';
    if (!good) return;
    request.done = () => {
      mw.bound = 'no';
      mw.region = undefined;
    };
  }

  // ── Completions ────────────────────────────────────────────────────────────────────────────────

  private poll({ a, b }: Step): void {
    const cq = a % 3 === 0 ? pick(this.cqs, a)! : this.poster(a).sendCq;
    this.pollSome(cq, 1 + (b % 20));
  }

  private pollSome(cq: Cq, most: number): number {
    const done = this.expect('poll', [handle(cq)], () => cq.real.poll(this.completions, most));
    if (done === undefined) return 0;
    for (const completion of this.completions.slice(0, done.value)) {
      const qp = this.qps.find(({ context }) => context === completion.qpContext);
      if (qp === undefined) throw new ModelError('A completion of no queue pair.');
      const failure = qp.completed(completion, cq);
      if (failure !== undefined) throw new ModelError(failure);
      if (completion.status !== WcStatus.SUCCESS) this.taint(qp);
    }
    return done.value;
  }

  private notify({ a, b }: Step): void {
    const cq = pick(this.cqs, a)!;
    const type = (['any', 'solicited', 'error'] as const)[b % 3]!;
    const done = this.expect('notify', [handle(cq)], () => cq.real.notify(type));
    if (done === undefined) return;
    cq.notifies.push(done.value);
    this.endings.push({
      what: `notify ${type}`,
      request: done.value,
      allowed: type === 'error' ? [Status.CANCELLED] : [Status.SUCCESS, Status.CANCELLED],
    });
  }

  private cancel({ a }: Step): void {
    const cq = pick(this.cqs, a)!;
    const done = this.expect('cancelOverlappedRequests', [handle(cq)], () =>
      cq.real.cancelOverlappedRequests(),
    );
    if (done === undefined) return;
    for (const request of cq.notifies) {
      if (!request.completed) throw new ModelError('A notification waits after its queue has cancelled all.');
    }
    cq.notifies.length = 0;
  }

  /** Waits until all that was posted on a sound queue pair has come back. */
  private async drain({ a }: Step): Promise<void> {
    const qp = this.poster(a);
    const began = performance.now();
    for (;;) {
      const last = qp.sends.findLast(({ signaled }) => signaled);
      if (last === undefined || qp.tainted || qp.users === 0 || qp.sendCq.users === 0) return;
      if (this.pollSome(qp.sendCq, 32) === 0) await turn();
      if (performance.now() - began > HANG_MS) throw new ModelError(`A ${last.kind} never came back.`);
    }
  }

  // ── Connections ────────────────────────────────────────────────────────────────────────────────

  /** Brings a queue pair to INIT, if it can be connected. */
  private ready(qp: Qp): boolean {
    if (qp.users === 0 || qp.pair !== undefined) return false;
    if (qp.real.state !== QpState.RESET && qp.real.state !== QpState.INIT) {
      if (!budget(qp.sendCq, qp.sendDepth) || !budget(qp.receiveCq, qp.receiveDepth)) return false;
      qp.real.modify({ qpState: QpState.RESET }, QpAttr.STATE);
      qp.reset();
      this.unsettleWindows(qp);
    }
    if (qp.real.state === QpState.RESET) toInit(qp.real);
    return true;
  }

  private async connect({ a, b, c }: Step): Promise<void> {
    const free = this.qps.filter((qp) => qp.users > 0 && qp.pair === undefined);
    const one = pick(free, a);
    const other = pick(free, b);
    if (one === undefined || other === undefined) return;
    if (one === other || !this.ready(one) || !this.ready(other)) return;
    const { provider } = this;
    const eps = [provider.createConnectEndpoint(), provider.createConnectEndpoint()] as const;
    const [active, passive] = eps;
    const { listener, peer } = openListener(provider);
    active.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    active.resolveRoute(peer);
    const fails = async (what: string, request: PromiseLike<unknown>, allowed: readonly number[]) => {
      const status = await outcome(what, request);
      if (!allowed.includes(status)) {
        throw new ModelError(`${what} ended in ${statusName(status)}, not ${names(allowed)}.`);
      }
    };
    const request = listener.getRequest(passive);
    const connecting = active.connect(one.real, peer, {});
    switch (c % 8) {
      case 0:
        await fails('getRequest', request, [Status.SUCCESS]);
        passive.reject();
        await fails('a rejected connect', connecting, [Status.CONNECTION_REFUSED]);
        break;
      case 1:
        active.cancelOverlappedRequests();
        await fails('a cancelled connect', connecting, [Status.CANCELLED]);
        listener.cancelOverlappedRequests();
        await fails('getRequest', request, [Status.SUCCESS, Status.CANCELLED]);
        break;
      case 2:
        await fails('getRequest', request, [Status.SUCCESS]);
        active.release();
        await fails('a connect whose endpoint is gone', connecting, [Status.CANCELLED]);
        await fails(
          'accept of nobody',
          attempt(() => passive.accept(other.real, {})),
          [Status.CONNECTION_ABORTED, Status.CONNECTION_REFUSED],
        );
        break;
      case 3: {
        await fails('getRequest', request, [Status.SUCCESS]);
        const accepting = passive.accept(other.real, {});
        await fails('connect', connecting, [Status.SUCCESS]);
        active.reject();
        await fails('a rejected accept', accepting, [Status.CONNECTION_REFUSED]);
        break;
      }
      default: {
        await fails('getRequest', request, [Status.SUCCESS]);
        const accepting = passive.accept(other.real, {});
        await fails('connect', connecting, [Status.SUCCESS]);
        await fails('accept of the reply', active.accept(null, {}), [Status.SUCCESS]);
        await fails('accept', accepting, [Status.SUCCESS]);
        listener.release();
        const pair = new Pair<Qp>(one, other);
        for (const [side, ep] of eps.entries()) {
          pair.endpoints.push(this.keep(new CountedEp(ep, pair, side)));
        }
        this.pairs.push(pair);
        for (const qp of [one, other]) {
          if (qp.real.state !== QpState.RTS) throw new ModelError(`Connected, but in ${qp.real.state}.`);
          qp.pair = pair;
        }
        [one.peer, other.peer] = [other, one];
        [one.outgoing, other.outgoing] = [new MessageLog(), new MessageLog()];
        [one.incoming, other.incoming] = [other.outgoing, one.outgoing];
        return;
      }
    }
    listener.release();
    for (const ep of eps) ep.release();
    for (const qp of [one, other]) qp.taint();
  }

  private async disconnect({ a, b }: Step): Promise<void> {
    const open = this.pairs.filter(({ ended }) => !ended[0] || !ended[1]);
    const pair = (a % 4 === 0 ? undefined : pick(open, a >> 2)) ?? pick(this.pairs, a);
    if (pair === undefined) return;
    const sides = [[0], [1], [0, 1], [1, 0]][b % 4]!;
    const requests: { side: number; request: Overlapped<void> }[] = [];
    for (const side of sides) {
      const ep = pair.endpoints[side]! as CountedEp;
      if (ep.users === 0) {
        this.expect('disconnect', [Status.INVALID_HANDLE], () => ep.real.disconnect());
        continue;
      }
      requests.push({ side, request: ep.real.disconnect() });
      const qp = side === 0 ? pair.a : pair.b;
      this.taint(qp);
      // What disconnects has been flushed when the call returns.
      if (!pair.ended[side] && qp.users > 0 && qp.real.state !== QpState.ERROR) {
        throw new ModelError(`A queue pair is in ${qp.real.state} after disconnect.`);
      }
    }
    for (const { side, request } of requests) {
      const status = await outcome('disconnect', request);
      const expected = pair.ended[side] ? Status.INVALID_DEVICE_STATE : Status.SUCCESS;
      if (status !== expected) {
        throw new ModelError(`disconnect ended in ${statusName(status)}, not ${statusName(expected)}.`);
      }
      pair.ended[side] = true;
    }
    for (const { side } of requests) this.flushed(side === 0 ? pair.a : pair.b);
  }

  /** Everything of a queue pair in ERROR has come back already: nothing is waited for here. */
  private flushed(qp: Qp): void {
    if (qp.users === 0 || qp.real.state !== QpState.ERROR) return;
    for (const cq of new Set([qp.sendCq, qp.receiveCq])) {
      if (cq.users === 0) return;
      while (this.pollSome(cq, 64) > 0);
    }
    const left = qp.sends.find(({ signaled }) => signaled) ?? qp.receives[0];
    if (left !== undefined) throw new ModelError(`A ${left.kind} was not flushed.`);
  }

  /** Lets the endpoints of a connection go, so that its queue pairs can be connected again. */
  private leave({ a }: Step): void {
    const over = pick(
      this.pairs.filter(({ endpoints }) => endpoints.some(({ users }) => users > 0)),
      a,
    );
    for (const ep of over?.endpoints ?? []) while (ep.users > 0) this.releaseOnce(ep as CountedEp);
  }

  private notifyDisconnect({ a, b }: Step): void {
    const pair = pick(this.pairs, a);
    if (pair === undefined) return;
    const ep = pair.endpoints[b % 2]! as CountedEp;
    const done = this.expect('notifyDisconnect', [handle(ep)], () => ep.real.notifyDisconnect());
    if (done === undefined) return;
    this.endings.push({
      what: 'notifyDisconnect',
      request: done.value,
      // ABORTED: its own queue pair has failed before.
      allowed: [Status.CONNECTION_DISCONNECTED, Status.CONNECTION_ABORTED, Status.CANCELLED],
    });
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────

  /** Ends the run in order, and checks that all that was awaited has ended. */
  async end(how: Plan['end'], order: number, alone: boolean): Promise<void> {
    if (how === 'closeFile') {
      for (const file of this.files) file.close();
      for (const { what, request } of this.endings) await outcome(`${what} on a closed file`, request);
      for (const object of this.counted) while (object.users > 0) this.releaseQuietly(object);
    } else {
      const left = [...this.counted];
      for (let n = order; left.length > 0; n = (n * 31 + 17) % 10_007) {
        const [object] = left.splice(n % left.length, 1);
        while (object!.users > 0) this.releaseOnce(object!);
      }
      // Each object has gone by its own release, not only with the file.
      if (alone) await nothingLeft();
    }
    this.provider.release();
    for (const { what, request, allowed } of this.endings) {
      const status = await outcome(what, request);
      if (how === 'release' && !allowed.includes(status)) {
        throw new ModelError(`${what} ended in ${statusName(status)}, not ${names(allowed)}.`);
      }
    }
  }

  /** As after a step that threw: what can be released is, so that the next run begins clean. */
  abandon(): void {
    for (const file of this.files) file.close();
    for (const object of this.counted) while (object.users > 0) this.releaseQuietly(object);
    this.provider.release();
  }

  private releaseQuietly(object: Counted<WvUnknown>): void {
    object.users = object.real.release();
  }
}

class CountedQp extends Counted<WvUnknown> {
  constructor(readonly qp: Qp) {
    super('queue pair', qp.real);
    // The queue pair itself tells how many users it has.
    Object.defineProperty(this, 'users', {
      get: () => qp.users,
      set: (users: number) => {
        qp.users = users;
      },
    });
    qp.users = 1;
  }
}

class CountedEp extends Counted<IWVConnectEndpoint> {
  constructor(
    real: IWVConnectEndpoint,
    readonly pair: Pair<Qp>,
    readonly side: number,
  ) {
    super('endpoint', real);
  }
}

function pick<T>(all: readonly T[], n: number): T | undefined {
  return all[n % Math.max(1, all.length)];
}

/** SUCCESS, or what a call on a released object ends in. */
function handle({ users }: { users: number }): number {
  return users === 0 ? Status.INVALID_HANDLE : Status.SUCCESS;
}

function budget(cq: Cq, more: number): boolean {
  if (cq.budget + more > CQ_ENTRIES) return false;
  cq.budget += more;
  return true;
}

/** A call that may throw what it could also reject with. */
async function attempt(call: () => PromiseLike<unknown>): Promise<void> {
  await call();
}

/** What is alive in the HCA, and what connection management still has. */
export function leftovers(): Record<string, number> {
  const { objects, cm } = readCounters();
  const { pd, mr, mw, cq, srq, qp } = objects;
  return { pd, mr, mw, cq, srq, qp, connections: cm.connections ?? 0 };
}

/** Waits until nothing is left: connections end when the peer has confirmed. */
export async function nothingLeft(): Promise<void> {
  const began = performance.now();
  for (;;) {
    const left = leftovers();
    if (Object.values(left).every((count) => count === 0)) return;
    if (performance.now() - began > HANG_MS) throw new ModelError(`Left over: ${JSON.stringify(left)}.`);
    await turn();
  }
}

/** Carries out a plan; `alone`: no other thread of the process has objects, and what is left is counted. */
export async function runPlan({ steps, end, order, connected }: Plan, alone: boolean): Promise<void> {
  const run = new Run();
  try {
    if (connected) await run.step({ op: 'connect', a: 0, b: 1, c: 7 });
    for (const step of steps) await run.step(step);
    await run.end(end, order, alone);
  } catch (error) {
    run.abandon();
    throw error;
  }
}

/** Runs of one seed: they are made in batches, because fast-check's own time limit would hide a run that hangs. */
const BATCH = 10;

/**
 * Runs random plans until `runs` are done or the time is over; throws with the seed when one fails. `alone`: no other
 * thread of the process has objects.
 */
export async function runPlans(options: {
  seed: number;
  runs: number;
  milliseconds: number;
  alone: boolean;
}): Promise<number> {
  const began = performance.now();
  let done = 0;
  for (let { seed } = options; done < options.runs; seed += 1000) {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        await runPlan(plan, options.alone);
        if (options.alone) await nothingLeft();
        done++;
      }),
      {
        seed,
        numRuns: Math.min(BATCH, options.runs - done),
        endOnFailure: process.env.ND_MODEL_SHRINK === undefined,
      },
    );
    if (performance.now() - began > options.milliseconds) break;
  }
  return done;
}
