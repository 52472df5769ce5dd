/** Memory windows: Bind, Invalidate, tokens, lifetime. */
import { Status } from '../../index.js';
import {
  ALLOW_READ,
  ALLOW_WRITE,
  READ_FENCE,
  receives,
  SILENT_SUCCESS,
  SUCCESS,
  sends,
} from '../case-context.js';
import type { Post } from '../half.js';
import { access, mustFail } from './access.js';
import { Group } from './define.js';

const group = new Group('memory');
export const windowCases = group.cases;

const READ_WRITE = ALLOW_READ | ALLOW_WRITE;

group.add('bind-ranges', '§IND2QueuePair::Bind: the range must lie within the memory', async (t) => {
  const memory = 8192;
  const { near } = await t.pair({ near: { memory } });
  const window = await t.near.window();
  const bind = (offset: number, length: number): Post => ({
    op: 'bind',
    context: 'b',
    window,
    offset,
    length,
    flags: READ_WRITE,
  });
  for (const [offset, length] of [
    [0, memory + 1],
    [1, memory],
    [memory, 1],
    [memory - 1, 2],
    [-1, 10],
    [0, 0],
  ] as const) {
    t.status(
      await near.postStatus(bind(offset, length)),
      Status.INVALID_PARAMETER,
      `Bind of ${length} bytes at ${offset} of ${memory}`,
    );
  }
  await near.post(bind(0, memory));
  t.results(await near.done(1), [['b', SUCCESS]], 'Bind of all of the memory');
});

group.add('bind-bound', '§IND2QueuePair::Bind: INVALID_DEVICE_STATE for a bound window', async (t) => {
  const { near } = await t.pair();
  const { window } = await near.open(READ_WRITE);
  const bind: Post = { op: 'bind', context: 'b', window, length: 64, flags: READ_WRITE };
  t.status(await near.postStatus(bind), Status.INVALID_DEVICE_STATE, 'Bind of a bound window');
  await near.post({ op: 'invalidate', context: 'i', window });
  t.results(await near.done(1), [['i', SUCCESS]], 'Invalidate');
  await near.post(bind);
  t.results(await near.done(1), [['b', SUCCESS]], 'Bind after Invalidate');
});

group.add('bind-new-token', '§IND2MemoryWindow::GetRemoteToken: changes with every Bind', async (t) => {
  const { near, far } = await t.pair();
  const { window, target: first } = await far.open(READ_WRITE);
  const posted = await far
    .post(
      { op: 'invalidate', context: 0, window },
      { op: 'bind', context: 1, window, length: 4096, flags: READ_WRITE },
    )
    .catch(async () => {
      // The window may be bound again once the result of Invalidate has been taken, but not before.
      t.run(await far.done(1), 1, SUCCESS, 'Invalidate');
      return [
        undefined,
        ...(await far.post({ op: 'bind', context: 1, window, length: 4096, flags: READ_WRITE })),
      ];
    });
  const second = posted[1]!.target!;
  t.ok(first.key !== second.key, 'Tokens of two Binds', 'different tokens', 'the same');
  await near.post(access('read', second, 100));
  t.results(await near.done(1), [['a', SUCCESS]], 'Read with the new token');
  await mustFail(t, near, far, access('read', first, 100), 'Read with the old token');
});

group.add(
  'token-before-result',
  '§IND2QueuePair::Bind: the token may be used before the result of Bind',
  async (t) => {
    const { near, far } = await t.pair();
    const window = await t.far.window();
    await near.post(...receives(1));
    const [bound] = await far.post(
      { op: 'bind', context: 'b', window, length: 4096, flags: READ_WRITE },
      ...sends(1),
    );
    t.run(await near.received(1), 1, SUCCESS, 'The message with the token');
    await near.post(access('read', bound!.target!, 4096));
    t.results(await near.done(1), [['a', SUCCESS]], 'Read with a token whose Bind has not been polled');
    t.results(
      await far.done(2),
      [
        ['b', SUCCESS],
        [0, SUCCESS],
      ],
      'Bind and Send, in order',
    );
  },
);

group.add('bind-silent', '§ND_OP_FLAG_SILENT_SUCCESS with Bind and Invalidate', async (t) => {
  const { near, far } = await t.pair();
  const window = await t.far.window();
  const [bound] = await far.post({
    op: 'bind',
    context: 'no',
    window,
    length: 64,
    flags: READ_WRITE | SILENT_SUCCESS,
  });
  await near.post(...receives(2));
  await far.post(...sends(1));
  t.run(await far.done(1), 1, SUCCESS, 'Only the Send has a result');
  await near.post(access('write', bound!.target!, 64));
  t.results(await near.done(1), [['a', SUCCESS]], 'Write through a silently bound window');
  await far.post({ op: 'invalidate', context: 'no', window, flags: SILENT_SUCCESS }, ...sends(1, 64, 1));
  t.run(await far.done(1), 1, SUCCESS, 'Only the Send has a result', 1);
  await far.post({ op: 'bind', context: 'b', window, length: 64, flags: ALLOW_READ });
  t.results(await far.done(1), [['b', SUCCESS]], 'Bind after a silent Invalidate');
  t.run(await near.received(2), 2, SUCCESS, 'Receives of both Sends');
  await mustFail(t, near, far, access('write', bound!.target!, 64), 'Write with the previous token');
});

group.add(
  'invalidate-unbound',
  '§IND2QueuePair::Invalidate: INVALID_DEVICE_REQUEST for an unbound window',
  async (t) => {
    const { near, far } = await t.pair();
    const gone = await t.far.notifyDisconnect(far.link);
    await near.post({ op: 'invalidate', context: 'i', window: await t.near.window() });
    t.results(await near.done(1), [['i', Status.INVALID_DEVICE_REQUEST]], 'Invalidate of an unbound window');
    await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect of the peer');
  },
);

group.add('window-dies-with-connection', '§IND2MemoryWindow: it ends with its connection', async (t) => {
  const { near, far } = await t.pair();
  await near.open(READ_WRITE);
  const { window } = await near.open(READ_WRITE, 64);
  await t.disconnect(far);
  await t.ends(t.near, await t.near.disconnect(near.link), SUCCESS, 'Disconnect');
  await t.ends(
    t.near,
    await t.near.deregister(near.memory),
    SUCCESS,
    'Deregister of memory whose windows have ended',
  );
  const second = await t.pair();
  const [bound] = await second.near.post({ op: 'bind', context: 'b', window, length: 64, flags: READ_WRITE });
  t.results(await second.near.done(1), [['b', SUCCESS]], 'Bind of that window on another connection');
  await second.far.post(access('read', bound!.target!, 64));
  t.results(await second.far.done(1), [['a', SUCCESS]], 'Read through it');
});

group.add('window-dies-with-flush', '§IND2MemoryWindow: Flush ends its binding', async (t) => {
  const { near } = await t.pair();
  await near.open(READ_WRITE);
  await t.near.flush(near.link);
  await t.ends(t.near, await t.near.deregister(near.memory), SUCCESS, 'Deregister after Flush');
});

group.add(
  'send-and-invalidate',
  '§INDEndpoint::SendAndInvalidate, §INDAdapter::CreateMemoryWindow',
  async (t) => {
    const { near, far } = await t.pair();
    const window = await t.far.window('invalidated');
    const [bound] = await far.post({ op: 'bind', context: 'b', window, length: 4096, flags: READ_WRITE });
    t.results(await far.done(1), [['b', SUCCESS]], 'Bind');
    const target = bound!.target!;
    await far.post(...receives(2, 64, 1));
    await near.post(access('read', target, 100), {
      op: 'sendInvalidate',
      context: 's',
      pieces: [{ at: 0, length: 10 }],
      target,
      flags: READ_FENCE,
    });
    t.results(
      await near.done(2),
      [
        ['a', SUCCESS],
        ['s', SUCCESS],
      ],
      'Read and SendAndInvalidate',
    );
    t.results(
      await far.received(2),
      [
        [1, SUCCESS],
        ['invalidated', SUCCESS],
      ],
      "The peer's Receive and the result of its window",
    );
    // The owner may bind the window again, and the peer has lost its access.
    await far.post({ op: 'bind', context: 'b', window, length: 64, flags: READ_WRITE });
    t.results(await far.done(1), [['b', SUCCESS]], 'Bind of the window after SendAndInvalidate');
    await near.post(access('read', target, 100));
    t.results(await near.done(1), [['a', t.statuses.remoteAccess]], 'Read with the invalidated token');
  },
  ['v1'],
);

group.add(
  'send-and-invalidate-unknown',
  '§INDEndpoint::SendAndInvalidate: a window that is not bound',
  async (t) => {
    const { near, far } = await t.pair();
    const { target } = await far.open(READ_WRITE);
    await far.post(...receives(1));
    await near.post({
      op: 'sendInvalidate',
      context: 's',
      pieces: [{ at: 0, length: 10 }],
      target: { ...target, key: (target.key ^ 0x3c) >>> 0 },
    });
    const [result] = await near.done(1);
    t.ok(
      result !== undefined && result.status !== SUCCESS,
      'SendAndInvalidate of an unknown window',
      'a failure',
      result === undefined ? 'nothing' : 'SUCCESS',
    );
  },
  ['v1'],
);
