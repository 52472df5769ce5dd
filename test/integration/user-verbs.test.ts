/** Applications supply user-mode verbs providers, under the library name that the device returns. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { PROVIDER_ABI } from '../../kernel-bridge/index.js';
import {
  openProvider,
  registerUserVerbs,
  SOFT_USER_LIBRARY,
  Status,
  type UserVerbs,
  WcStatus,
  WvSend,
} from '../../winverbs/index.js';
import { connect, openSide, take } from '../helpers/loopback.js';
import { throwsWv } from '../helpers/outcome.js';

/** A provider that passes all calls on, and counts posted requests and polled completions. */
function counting(previous: () => UserVerbs, counts: Map<string, number>): UserVerbs {
  const inner = previous();
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        counts.set(String(name), (counts.get(String(name)) ?? 0) + 1);
        return value.apply(target, args) as unknown;
      };
    },
  });
}

test('a provider of an application serves devices that are opened later, on top of the previous provider', async () => {
  const counts = new Map<string, number>();
  const provider = openProvider();
  const before = openSide(provider);
  const mine = registerUserVerbs(SOFT_USER_LIBRARY, (previous) => counting(previous!, counts));
  const after = openSide(provider);
  assert.ok((counts.get('preCreateQp') ?? 0) > 0, 'its hooks are called');
  await connect(provider, after, before);
  counts.clear();
  before.qp.postReceive('r', [{ region: before.region, offset: 0, length: 8 }]);
  assert.is(counts.size, 0, 'a device that was open keeps its provider');
  after.qp.send('s', [{ region: after.region, offset: 0, length: 8 }], WvSend.SIGNALED);
  assert.is((await take(after.cq, 1))[0]!.status, WcStatus.SUCCESS);
  assert.is(counts.get('postSend'), 1);
  assert.ok((counts.get('pollCq') ?? 0) > 0);
  mine[Symbol.dispose]();
  mine[Symbol.dispose]();
  counts.clear();
  const last = openSide(provider);
  assert.is(counts.size, 0, 'it was withdrawn');
  for (const side of [last, after, before]) side.release();
  provider.release();
});

test('a provider that lacks a required function, or throws, is rejected when the device is opened', () => {
  const provider = openProvider();
  const { deviceGuid } = provider.translateAddress('127.0.0.1');
  for (const [make, text] of [
    [() => ({}), /lacks postSend/],
    [() => undefined as never, /which does not exist/],
  ] as const) {
    using _bad = registerUserVerbs(SOFT_USER_LIBRARY, make);
    throwsWv(() => provider.openDevice(deviceGuid), Status.NOT_SUPPORTED, text);
  }
  provider.openDevice(deviceGuid).release();
  provider.release();
});

test('a provider for another version of rings is rejected, and gets the driver’s version', () => {
  const provider = openProvider();
  const { deviceGuid } = provider.translateAddress('127.0.0.1');
  const reported: number[][] = [];
  let command = PROVIDER_ABI;
  using _mine = registerUserVerbs(SOFT_USER_LIBRARY, (previous) => {
    const inner = previous!();
    const preOpenCa: UserVerbs['preOpenCa'] = (guid, umv) => {
      const ca = inner.preOpenCa!(guid, umv);
      umv.command = command;
      return ca;
    };
    const postOpenCa: UserVerbs['postOpenCa'] = (guid, status, ca, umv) => {
      reported.push([status, umv.status]);
      inner.postOpenCa!(guid, status, ca, umv);
    };
    return Object.assign(Object.create(inner) as UserVerbs, { preOpenCa, postOpenCa });
  });
  provider.openDevice(deviceGuid).release();
  command++;
  throwsWv(() => provider.openDevice(deviceGuid), Status.NOT_SUPPORTED);
  assert.equal(reported, [
    [Status.SUCCESS, PROVIDER_ABI],
    [Status.NOT_SUPPORTED, 0],
  ]);
  provider.release();
});

test('invalid names and factories are rejected', () => {
  for (const name of ['', ' ', 'a b', 'x'.repeat(32), 7 as unknown as string, 'z\u0100'])
    throwsWv(() => registerUserVerbs(name, () => ({})), Status.INVALID_PARAMETER);
  throwsWv(() => registerUserVerbs('mine', {} as never), Status.INVALID_PARAMETER);
  // A name that no device uses does no harm, and has no previous provider.
  let reported: unknown = 'not called';
  registerUserVerbs('mine', (previous) => {
    reported = previous;
    return {};
  })[Symbol.dispose]();
  assert.is(reported, 'not called');
});

test.run();
