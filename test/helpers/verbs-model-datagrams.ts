/** Datagram queue pairs, address handles and groups. */
import { randomInt } from 'node:crypto';
import { MULTICAST_QPN, QpAttr, QpState, Status, WvSend, type WvSge } from '../../winverbs/index.js';
import { ADDRESS } from './loopback.js';
import {
  Ah,
  budget,
  CountedQp,
  GRH,
  handle,
  MESSAGE_BYTES,
  MOST_OBJECTS,
  pick,
  Ud,
} from './verbs-model-objects.js';
import { ModelError, names, outcome } from './verbs-model-outcome.js';
import type { Step } from './verbs-model-plan.js';
import { Requests } from './verbs-model-requests.js';

const { SIGNALED, INLINE, IMMEDIATE, SOLICITED } = WvSend;
const GROUPS = ['239.77.1.1', '239.77.1.2'] as const;
/** Two parts of this length exceed the limit of a datagram. */
const HALF_TOO_LONG = 3000;

/** Sends datagrams to single peers and to groups. */
export class Datagrams extends Requests {
  /** Unique for this run, so that datagrams of other runs and processes to the groups do not match. */
  private readonly qkey = randomInt(1, 0x8000_0000);

  private readyUds(): Ud[] {
    return this.uds.filter(({ users, real }) => users > 0 && real.state === QpState.RTS);
  }

  protected createUd({ a, b, c }: Step): void {
    const pd = pick(this.pds, a)!;
    const sendCq = pick(this.cqs, b)!;
    const receiveCq = pick(this.cqs, b >> 3)!;
    const sendDepth = 1 + (c % 8);
    const receiveDepth = 1 + ((c >> 3) % 8);
    if (this.uds.length >= MOST_OBJECTS || !budget(sendCq, sendDepth) || !budget(receiveCq, receiveDepth))
      return;
    const status = (cq: typeof sendCq): number =>
      cq.device !== pd.device ? Status.INVALID_PARAMETER : handle(cq);
    const expected = handle(pd) || status(sendCq) || status(receiveCq);
    const context = { ud: this.uds.length };
    const made = this.expect('createDatagramQueuePair', [expected], () =>
      pd.real.createDatagramQueuePair({
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
    const ud = new Ud(made.value, context, pd, sendCq, receiveCq, sendDepth, receiveDepth, this.mail);
    this.keep(new CountedQp(ud));
    this.uds.push(ud);
  }

  protected startUd({ a }: Step): void {
    const ud = pick(this.uds, a);
    if (ud === undefined) return;
    const state = ud.users > 0 ? ud.real.state : 0;
    const fresh = state === QpState.RESET || state === QpState.INIT;
    const expected =
      ud.users === 0 ? Status.INVALID_HANDLE : fresh ? Status.SUCCESS : Status.INVALID_DEVICE_STATE;
    this.expect('start', [expected], () => ud.real.start(this.qkey));
  }

  /** Resets a queue pair, also from RTS with datagrams in flight. */
  protected resetUd({ a, b }: Step): void {
    const ud = pick(this.uds, a);
    if (ud === undefined || !budget(ud.sendCq, ud.sendDepth) || !budget(ud.receiveCq, ud.receiveDepth))
      return;
    const target = b % 3 === 0 ? QpState.ERROR : QpState.RESET;
    if (target === QpState.ERROR && ud.users > 0 && ud.real.state === QpState.RESET) return;
    const done = this.expect('modify of a datagram queue pair', [handle(ud)], () =>
      ud.real.modify({ qpState: target }, QpAttr.STATE),
    );
    if (done === undefined) return;
    if (target === QpState.RESET) ud.reset();
    else this.taint(ud);
  }

  protected createAh({ a, b }: Step): void {
    const pd = pick(this.pds, a)!;
    if (this.ahs.length >= MOST_OBJECTS) return;
    const choice = b % 8;
    const group = choice < 3 ? GROUPS[choice % GROUPS.length] : undefined;
    const destinationGid = group ?? (choice === 7 ? '::1' : ADDRESS);
    const expected = handle(pd) || (choice === 7 ? Status.INVALID_ADDRESS : Status.SUCCESS);
    const made = this.expect('createAddressHandle', [expected], () =>
      pd.real.createAddressHandle({ sourceGid: ADDRESS, destinationGid }),
    );
    if (made === undefined) return;
    this.coverage.add('address handle');
    this.ahs.push(this.keep(new Ah(pd, made.value, group)));
  }

  protected receiveDatagram({ a, b }: Step): void {
    const ud = pick(this.uds, a);
    if (ud !== undefined) this.postDatagramReceive(ud, b);
  }

  private postDatagramReceive(ud: Ud, b: number): void {
    const memory = this.memory(ud, b, GRH + MESSAGE_BYTES, true);
    if (memory === undefined) return;
    const request = this.newRequest('receive', true, [memory.region]);
    const allowed: number[] = [Status.SUCCESS];
    if (ud.receives.length >= ud.receiveDepth) allowed[0] = Status.NO_MORE_ENTRIES;
    if (ud.users > 0 && ud.real.state === QpState.RESET) allowed[0] = Status.INVALID_DEVICE_STATE;
    if (ud.users === 0) allowed[0] = Status.INVALID_HANDLE;
    const done = this.expect('postReceive', allowed, () => ud.real.postReceive(request, memory.sgl));
    if (done === undefined) return;
    ud.postedReceive(request);
    if (!memory.good) this.taint(ud);
  }

  protected sendDatagram({ a, b, c }: Step): void {
    const ud = (a % 8 === 0 ? undefined : pick(this.readyUds(), a >> 3)) ?? pick(this.uds, a);
    if (ud === undefined) return;
    const fitting = this.ahs.filter(({ pd, users }) => pd === ud.pd && users > 0);
    const ah = (b % 8 === 0 ? undefined : pick(fitting, b >> 3)) ?? pick(this.ahs, b);
    const to = ah?.group ?? pick(this.readyUds(), c) ?? pick(this.uds, c);
    if (ah === undefined || to === undefined) return;
    const hearers = typeof to === 'string' ? this.readyUds().filter(({ groups }) => groups.has(to)) : [to];
    // In most cases, the receiver has a Receive for it.
    for (const one of hearers)
      if (a % 16 !== 1 && one.receives.length === 0) this.postDatagramReceive(one, c);
    const tooLong = c % 32 === 1;
    const length = tooLong ? HALF_TOO_LONG : c % (MESSAGE_BYTES + 1);
    const memory = this.memory(ud, b, length, false);
    if (memory === undefined) return;
    const sgl: WvSge[] = tooLong ? [...memory.sgl, ...memory.sgl] : memory.sgl;
    const inline = !tooLong && c % 3 === 0;
    const flags =
      IMMEDIATE | (b % 5 === 0 ? 0 : SIGNALED) | (c % 5 === 0 ? SOLICITED : 0) | (inline ? INLINE : 0);
    const request = this.newRequest('datagram', (flags & SIGNALED) !== 0, [memory.region]);
    const state = ud.users > 0 ? ud.real.state : 0;
    const allowed: number[] = [Status.SUCCESS];
    if (ud.sends.length >= ud.sendDepth) allowed[0] = Status.NO_MORE_ENTRIES;
    if (state < QpState.RTS) allowed[0] = Status.INVALID_DEVICE_STATE;
    if (ud.users === 0) allowed[0] = Status.INVALID_HANDLE;
    // If there are two errors, either may be reported.
    if (ah.users === 0) allowed.splice(0, ud.users === 0 ? 0 : 1, Status.INVALID_HANDLE);
    if (ah.pd !== ud.pd) allowed.splice(0, ud.users === 0 ? 0 : 1, Status.INVALID_PARAMETER);
    const immediateData = this.mail.all.length;
    this.mail.all.push({ from: ud, to, length, got: new Set() });
    const destinationQpn = to instanceof Ud ? to.real.qpn : MULTICAST_QPN;
    const done = this.expect('sendMessage', allowed, () =>
      ud.real.sendMessage({
        context: request,
        addressHandle: ah.real,
        sgl,
        flags,
        immediateData,
        destinationQpn,
        destinationQkey: this.qkey,
      }),
    );
    if (done === undefined) return;
    ud.posted(request);
    if (state !== QpState.RTS) request.mayFail = true;
    if (tooLong || !(memory.good || inline)) this.taint(ud);
    else if (ud.tainted) request.mayFail = true;
  }

  protected async attach({ a, b }: Step): Promise<void> {
    const ud = pick(this.uds, a);
    if (ud === undefined) return;
    const group = pick(GROUPS, b)!;
    // The queue pair may receive datagrams as soon as the call begins.
    ud.heard.add(group);
    const expected = ud.groups.has(group) ? Status.ADDRESS_ALREADY_EXISTS : Status.SUCCESS;
    if (!(await this.groupCall('attachMulticast', ud, expected, () => ud.real.attachMulticast(group))))
      return;
    ud.groups.add(group);
    this.coverage.add('group joined');
  }

  protected async detach({ a, b }: Step): Promise<void> {
    const ud = pick(this.uds, a);
    if (ud === undefined) return;
    const group = pick(GROUPS, b)!;
    const expected = ud.groups.has(group) ? Status.SUCCESS : Status.NOT_FOUND;
    if (await this.groupCall('detachMulticast', ud, expected, () => ud.real.detachMulticast(group)))
      ud.groups.delete(group);
  }

  private async groupCall(
    what: string,
    ud: Ud,
    expected: number,
    call: () => PromiseLike<void>,
  ): Promise<boolean> {
    const made = this.expect(what, [handle(ud)], call);
    if (made === undefined) return false;
    const status = await outcome(what, made.value);
    if (status !== expected)
      throw new ModelError(`${what} must end in ${names([expected])}; got ${names([status])}.`);
    return status === Status.SUCCESS;
  }
}
