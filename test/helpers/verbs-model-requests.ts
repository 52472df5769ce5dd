/** Requests of connected queue pairs, and their completions. */
import {
  QpAttr,
  QpState,
  Status,
  WcStatus,
  WvAccess,
  type WvCompletion,
  WvOpcode,
  WvSend,
  type WvSge,
} from '../../winverbs/index.js';
import { remoteOf } from './loopback.js';
import type { Covered } from './verbs-model-coverage.js';
import {
  type AnyQp,
  budget,
  type Cq,
  handle,
  Mail,
  MESSAGE_BYTES,
  MOST_SHARED,
  type Mw,
  pick,
  type Qp,
  REGION_ACCESS,
  type Region,
  type Srq,
  Ud,
} from './verbs-model-objects.js';
import { ModelError, turn } from './verbs-model-outcome.js';
import type { Step } from './verbs-model-plan.js';
import type { Request } from './verbs-model-queues.js';
import { World } from './verbs-model-world.js';
import { HANG_MS } from './within.js';

const { SIGNALED, INLINE, IMMEDIATE, FENCE, SOLICITED } = WvSend;

/** Posts requests and polls their results. */
export class Requests extends World {
  protected readonly mail = new Mail();

  /** Chooses a queue pair for a request, in most cases a connected one. */
  protected poster(a: number): Qp {
    if (a % 4 === 0) return pick(this.qps, a)!;
    // Each kind of connection is chosen equally often, regardless of how many there are.
    const kinds = new Map<string, Qp[]>();
    for (const qp of this.qps) {
      if (qp.pair === undefined || qp.tainted) continue;
      const kind = `${qp.type} ${qp.peer?.shared !== undefined}`;
      kinds.set(kind, [...(kinds.get(kind) ?? []), qp]);
    }
    return pick(pick([...kinds.values()], a >> 2) ?? this.qps, a >> 4)!;
  }

  /** Chooses a window for a request, in most cases one that the queue pair may use in this state. */
  protected window(qp: Qp, b: number, bound: Mw['bound']): Mw | undefined {
    const fitting = this.mws.filter(
      (mw) => mw.users > 0 && mw.pd === qp.pd && mw.bound === bound && (bound === 'no' || mw.qp === qp),
    );
    return (b % 4 === 0 ? undefined : pick(fitting, b >> 2)) ?? pick(this.mws, b);
  }

  // ── Requests ───────────────────────────────────────────────────────────────────────────────────

  /** Chooses a part of memory for a request. Also returns whether the queue pair may use it in this way. */
  protected memory(qp: AnyQp, choice: number, length: number, write: boolean) {
    // In most cases, chooses valid memory.
    const good = this.regions.filter(
      ({ live, pd, access }) => live && pd === qp.pd && (!write || (access & WvAccess.LOCAL_WRITE) !== 0),
    );
    const region = choice % 16 === 0 ? pick(this.regions, choice >> 4) : pick(good, choice >> 4);
    if (region === undefined) return undefined;
    const sgl: WvSge[] = [{ region: region.real, offset: choice % 64, length }];
    return { sgl, region, good: good.includes(region) };
  }

  protected receive({ a, b }: Step): void {
    this.postReceive(this.poster(a), b);
  }

  protected postReceive(qp: Qp, b: number): void {
    const memory = this.memory(qp, b, MESSAGE_BYTES, true);
    if (memory === undefined) return;
    const request = this.newRequest('receive', true, [memory.region]);
    const state = qp.users > 0 ? qp.real.state : 0;
    const expected =
      qp.users === 0
        ? Status.INVALID_HANDLE
        : qp.shared !== undefined
          ? Status.INVALID_DEVICE_REQUEST
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

  protected receiveShared({ a, b }: Step): void {
    const srq = pick(this.srqs, a);
    if (srq !== undefined) this.postShared(srq, b);
  }

  private postShared(srq: Srq, b: number): void {
    const { receives } = srq;
    const good = this.regions.filter(
      ({ live, pd, access }) => live && pd === srq.pd && (access & WvAccess.LOCAL_WRITE) !== 0,
    );
    const region = b % 64 === 0 ? pick(this.regions, b >> 4) : pick(good, b >> 4);
    if (region === undefined || receives.unreported.size >= MOST_SHARED) return;
    const request = this.newRequest('shared receive', true, [region]);
    const allowed: number[] = [];
    if (srq.users === 0) allowed.push(Status.INVALID_HANDLE);
    else {
      if (receives.least < receives.entries) allowed.push(Status.SUCCESS);
      if (receives.most >= receives.entries) allowed.push(Status.NO_MORE_ENTRIES);
    }
    const done = this.expect('postReceive to a shared queue', allowed, () =>
      srq.real.postReceive(request, [{ region: region.real, offset: b % 64, length: MESSAGE_BYTES }]),
    );
    if (done === undefined) return;
    receives.unreported.add(request);
    receives.posted++;
    if (good.includes(region)) return;
    receives.poisoned = true;
    this.taintShared(receives);
  }

  /** Resumes a send queue that has failed without its queue pair, as in unreliable transports. */
  protected resume({ a }: Step): void {
    const stopped = this.everyQp().filter((qp) => qp.users > 0 && qp.real.state === QpState.SQERROR);
    const qp = pick(stopped, a);
    if (qp === undefined) return;
    if (!qp.unreliable) throw new ModelError('A reliable queue pair is in SQERROR.');
    // The completions of failed or flushed requests remain in the queue, in addition to later ones.
    if (!budget(qp.sendCq, qp.sendDepth)) return;
    // The end of the connection may occur in between.
    const allowed = [Status.SUCCESS, Status.INVALID_DEVICE_STATE, Status.INVALID_PARAMETER];
    const done = this.expect('modify from SQERROR to RTS', allowed, () =>
      qp.real.modify({ qpState: QpState.RTS }, QpAttr.STATE),
    );
    if (done !== undefined) qp.resumed();
    else if (qp.real.state !== QpState.ERROR)
      throw new ModelError('The transition from SQERROR to RTS failed.');
  }

  protected newRequest(kind: string, signaled: boolean, regions: readonly Region[], window?: Mw): Request {
    return { kind, signaled, regions, window, serial: this.serial++, mayFail: false };
  }

  /** Posts a send request that the model expects to succeed or to fail. */
  protected post(qp: Qp, request: Request, good: boolean, call: () => unknown, refused?: number): boolean {
    const state = qp.users > 0 ? qp.real.state : 0;
    const full = qp.sends.length >= qp.sendDepth;
    const expected =
      qp.users === 0
        ? Status.INVALID_HANDLE
        : (refused ??
          (state < QpState.RTS
            ? Status.INVALID_DEVICE_STATE
            : qp.unreliable && request.kind !== 'send' && request.kind !== 'write'
              ? Status.INVALID_PARAMETER
              : full
                ? Status.NO_MORE_ENTRIES
                : Status.SUCCESS));
    if (this.expect(request.kind, [expected], call) === undefined) return false;
    qp.posted(request);
    if (state !== QpState.RTS) request.mayFail = true;
    if (!good) this.taint(qp);
    else if (qp.tainted) request.mayFail = true;
    return true;
  }

  protected flags({ b, c }: Step): number {
    return (b % 5 === 0 ? 0 : SIGNALED) | (c % 7 === 0 ? FENCE : 0) | (c % 5 === 0 ? SOLICITED : 0);
  }

  protected send(step: Step): void {
    const qp = this.poster(step.a);
    const length = step.c % (MESSAGE_BYTES + 1);
    const memory = this.memory(qp, step.b, length, false);
    if (memory === undefined) return;
    let flags = this.flags(step);
    if (step.c % 3 === 0) flags |= INLINE;
    if (step.c % 4 === 0) flags |= IMMEDIATE;
    const request = this.newRequest('send', (flags & SIGNALED) !== 0, [memory.region]);
    const { peer, outgoing } = qp;
    // In most cases, the peer has a Receive for it.
    const shared = this.srqs.find(({ receives }) => receives === peer?.shared);
    if (step.a % 16 !== 0) {
      if (shared !== undefined) {
        if (shared.receives.least === 0) this.postShared(shared, step.c);
      } else if (peer !== undefined && peer.receivesPosted <= outgoing.length) this.postReceive(peer, step.c);
    }
    const sends = qp.users > 0 && qp.real.state === QpState.RTS;
    const good = memory.good || (flags & INLINE) !== 0;
    const immediate = (flags & IMMEDIATE) !== 0 ? step.c : undefined;
    const posted = this.post(qp, request, good, () => qp.real.send(request, memory.sgl, flags, step.c));
    if (!posted) return;
    const count = outgoing.add({ length, immediate });
    // Without a Receive, a reliable one is retried and finally abandoned; an unreliable one is lost.
    if (shared === undefined) {
      if (!qp.unreliable && count > (peer?.receivesPosted ?? 0)) this.taint(qp);
      return;
    }
    const { receives } = shared;
    if (sends) receives.messages++;
    if (receives.messages > receives.posted) this.taintShared(receives);
  }

  protected oneSided(
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

  protected write(step: Step): void {
    const right = WvAccess.REMOTE_WRITE & ~WvAccess.LOCAL_WRITE;
    this.oneSided('write', step, right, (qp, request, sgl, flags, target, offset) =>
      qp.real.write(request, sgl, flags, remoteOf(target.real), offset),
    );
  }

  protected read(step: Step): void {
    this.oneSided('read', step, WvAccess.REMOTE_READ, (qp, request, sgl, flags, target, offset) =>
      qp.real.read(request, sgl, flags, remoteOf(target.real), offset),
    );
  }

  protected add(step: Step): void {
    this.oneSided('add', step, WvAccess.REMOTE_ATOMIC, (qp, request, sgl, flags, target, offset) =>
      qp.real.fetchAdd(request, sgl[0]!, flags, 1n, remoteOf(target.real), offset),
    );
  }

  protected windowRefusal(qp: Qp, mw: Mw): number | undefined {
    if (mw.pd !== qp.pd) return Status.INVALID_PARAMETER;
    return mw.users === 0 ? Status.INVALID_HANDLE : undefined;
  }

  protected bind(step: Step): void {
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
    // Until the result was polled, the window's key is that of this bind, on every queue pair.
    mw.bound = 'maybe';
    if (rights) mw.candidates.add(region);
    const change = ++mw.changes;
    if (!good) return;
    mw.region = region;
    mw.qp = qp;
    request.done = () => {
      if (mw.bound === 'maybe' && mw.changes === change && mw.qp === qp && !qp.tainted) mw.bound = 'yes';
    };
  }

  protected invalidate(step: Step): void {
    // Whether a window is bound is only known when its bind has completed.
    if (step.c % 4 !== 0) this.pollAll();
    const sound = this.mws.filter((mw) => mw.bound === 'yes' && mw.qp?.tainted === false);
    const qp = (step.a % 8 === 0 ? undefined : pick(sound, step.a)?.qp) ?? this.poster(step.a);
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
    const change = ++mw.changes;
    if (!good) return;
    request.done = () => {
      // A later request may have bound it again.
      if (mw.changes !== change) return;
      mw.bound = 'no';
      mw.region = undefined;
      mw.candidates.clear();
    };
  }

  // ── Completions ────────────────────────────────────────────────────────────────────────────────

  protected poll({ a, b }: Step): void {
    const cq = a % 3 === 0 ? pick(this.cqs, a)! : this.poster(a).sendCq;
    this.pollSome(cq, 1 + (b % 20));
  }

  protected pollSome(cq: Cq, most: number): number {
    const done = this.expect('poll', [handle(cq)], () => cq.real.poll(this.completions, most));
    if (done === undefined) return 0;
    for (const completion of this.completions.slice(0, done.value)) {
      const qp = this.everyQp().find(({ context }) => context === completion.qpContext);
      if (qp === undefined) throw new ModelError('A completion belongs to no queue pair.');
      const failure = qp.completed(completion, cq);
      if (failure !== undefined) throw new ModelError(failure);
      this.coverage.add(this.what(qp, completion));
      if (completion.status !== WcStatus.SUCCESS) this.taint(qp);
    }
    return done.value;
  }

  /** Polls all available completions. */
  protected pollAll(): void {
    for (const cq of this.cqs) while (cq.users > 0 && this.pollSome(cq, 64) > 0);
  }

  /** The category under which a completion is counted. */
  private what(qp: AnyQp, { opcode, status, immediateData }: WvCompletion): Covered {
    const datagrams = qp instanceof Ud;
    if (status !== WcStatus.SUCCESS) return datagrams ? 'failed datagram' : 'failed request';
    if (opcode >= WvOpcode.RECEIVE) {
      if (qp.shared !== undefined) return 'shared receive';
      if (!datagrams) return qp.unreliable ? 'unreliable receive' : 'receive';
      const group = typeof this.mail.all[immediateData]?.to === 'string';
      return group ? 'multicast datagram received' : 'datagram received';
    }
    if (datagrams) return 'datagram';
    if (qp.unreliable) return opcode === WvOpcode.SEND ? 'unreliable send' : 'unreliable write';
    return (['send', 'write', 'read', 'add', 'add', 'bind', 'invalidate'] as const)[opcode]!;
  }

  protected notify({ a, b }: Step): void {
    const cq = pick(this.cqs, a)!;
    const type = (['any', 'solicited', 'errors'] as const)[b % 3]!;
    const done = this.expect('notify', [handle(cq)], () => cq.real.notify(type));
    if (done === undefined) return;
    cq.notifies.push(done.value);
    this.endings.push({
      what: `notify ${type}`,
      request: done.value,
      allowed: type === 'errors' ? [Status.CANCELED] : [Status.SUCCESS, Status.CANCELED],
    });
  }

  protected cancel({ a }: Step): void {
    const cq = pick(this.cqs, a)!;
    const done = this.expect('cancelOverlappedRequests', [handle(cq)], () =>
      cq.real.cancelOverlappedRequests(),
    );
    if (done === undefined) return;
    for (const request of cq.notifies) {
      if (!request.completed)
        throw new ModelError('A notification is still pending after its queue canceled all.');
    }
    cq.notifies.length = 0;
  }

  /** Waits until all requests of a healthy queue pair have completed. */
  protected async drain({ a }: Step): Promise<void> {
    const qp = this.poster(a);
    const began = performance.now();
    for (;;) {
      const last = qp.sends.findLast(({ signaled }) => signaled);
      if (last === undefined || qp.tainted || qp.users === 0 || qp.sendCq.users === 0) return;
      if (this.pollSome(qp.sendCq, 32) === 0) await turn();
      if (performance.now() - began > HANG_MS) throw new ModelError(`A ${last.kind} did not complete.`);
    }
  }
}
