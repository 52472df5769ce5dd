/** Establishes, rejects, abandons and ends connections. */
import { type Overlapped, QpAttr, QpState, Status, statusName } from '../../winverbs/index.js';
import { ADDRESS, openListener, toInit } from './loopback.js';
import { Datagrams } from './verbs-model-datagrams.js';
import { budget, CountedEp, handle, pick, type Qp } from './verbs-model-objects.js';
import { attempt, ModelError, names, outcome } from './verbs-model-outcome.js';
import type { Step } from './verbs-model-plan.js';
import { MessageLog, Pair } from './verbs-model-queues.js';

/** Connects queue pairs and ends connections. */
export class Connections extends Datagrams {
  /** Brings a queue pair to INIT if it can be connected. */
  protected ready(qp: Qp): boolean {
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

  protected async connect({ a, b, c }: Step): Promise<void> {
    const free = this.qps.filter((qp) => qp.users > 0 && qp.pair === undefined);
    const one = pick(free, a);
    if (one === undefined) return;
    const alike = free.filter(({ type }) => type === one.type);
    const other = b % 8 === 0 ? pick(free, b >> 3) : pick(alike, b);
    if (other === undefined || one === other) return;
    await this.connectPair(one, other, c);
  }

  /** Connects two queue pairs, or makes this fail in one of many ways, depending on `c`. */
  protected async connectPair(one: Qp, other: Qp, c: number): Promise<void> {
    if (!this.ready(one) || !this.ready(other)) return;
    const { provider } = this;
    const eps = [provider.createConnectEndpoint(), provider.createConnectEndpoint()] as const;
    const [active, passive] = eps;
    const { listener, peer } = openListener(provider);
    active.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    active.resolveRoute(peer);
    const fails = async (what: string, request: PromiseLike<unknown>, allowed: readonly number[]) => {
      const status = await outcome(what, request);
      if (!allowed.includes(status)) {
        throw new ModelError(`${what} must end in ${names(allowed)}; got ${statusName(status)}.`);
      }
    };
    const request = listener.getRequest(passive);
    const connecting = active.connect(one.real, peer, {});
    switch (one.type === other.type ? c % 8 : 0) {
      case 0:
        await fails('getRequest', request, [Status.SUCCESS]);
        if (one.type !== other.type) {
          const accepting = attempt(() => passive.accept(other.real, {}));
          await fails('accept with another type', accepting, [Status.INVALID_PARAMETER]);
        }
        passive.reject();
        await fails('a rejected connect', connecting, [Status.CONNECTION_REFUSED]);
        break;
      case 1:
        active.cancelOverlappedRequests();
        await fails('a cancelled connect', connecting, [Status.CANCELED]);
        listener.cancelOverlappedRequests();
        await fails('getRequest', request, [Status.SUCCESS, Status.CANCELED]);
        break;
      case 2:
        await fails('getRequest', request, [Status.SUCCESS]);
        active.release();
        await fails('a connect whose endpoint is gone', connecting, [Status.CANCELED]);
        await fails(
          'accept without a request',
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
        one.hear(other.outgoing);
        other.hear(one.outgoing);
        for (const qp of [one, other]) if (qp.shared?.poisoned === true) this.taint(qp);
        this.coverage.add(one.unreliable ? 'unreliable connection' : 'connection');
        if (one.shared !== undefined || other.shared !== undefined)
          this.coverage.add('connection with shared receives');
        return;
      }
    }
    listener.release();
    for (const ep of eps) ep.release();
    for (const qp of [one, other]) qp.taint();
  }

  protected async disconnect({ a, b }: Step): Promise<void> {
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
      // The disconnecting side is flushed when the call returns.
      if (!pair.ended[side] && qp.users > 0 && qp.real.state !== QpState.ERROR) {
        throw new ModelError(`A queue pair is in ${qp.real.state} after disconnect.`);
      }
    }
    for (const { side, request } of requests) {
      const status = await outcome('disconnect', request);
      const expected = pair.ended[side] ? Status.INVALID_DEVICE_STATE : Status.SUCCESS;
      if (status !== expected) {
        throw new ModelError(`disconnect must end in ${statusName(expected)}; got ${statusName(status)}.`);
      }
      pair.ended[side] = true;
      this.coverage.add('disconnect');
    }
    for (const { side } of requests) this.flushed(side === 0 ? pair.a : pair.b);
  }

  /** Checks that all requests of a queue pair in ERROR have completed already, without waiting. */
  protected flushed(qp: Qp): void {
    if (qp.users === 0 || qp.real.state !== QpState.ERROR) return;
    for (const cq of new Set([qp.sendCq, qp.receiveCq])) {
      if (cq.users === 0) return;
      while (this.pollSome(cq, 64) > 0);
    }
    const left = qp.sends.find(({ signaled }) => signaled) ?? qp.receives[0];
    if (left !== undefined) throw new ModelError(`A ${left.kind} was not flushed.`);
  }

  /** Releases the endpoints of a connection, so that its queue pairs can be connected again. */
  protected leave({ a }: Step): void {
    const over = pick(
      this.pairs.filter(({ endpoints }) => endpoints.some(({ users }) => users > 0)),
      a,
    );
    for (const ep of over?.endpoints ?? []) while (ep.users > 0) this.releaseOnce(ep as CountedEp);
  }

  protected notifyDisconnect({ a, b }: Step): void {
    const pair = pick(this.pairs, a);
    if (pair === undefined) return;
    const ep = pair.endpoints[b % 2]! as CountedEp;
    const done = this.expect('notifyDisconnect', [handle(ep)], () => ep.real.notifyDisconnect());
    if (done === undefined) return;
    this.endings.push({
      what: 'notifyDisconnect',
      request: done.value,
      // ABORTED: its own queue pair had already failed.
      allowed: [Status.CONNECTION_DISCONNECTED, Status.CONNECTION_ABORTED, Status.CANCELED],
    });
  }
}
