/** Memory: registration, bounds, windows, rights. */
import { Status } from '../../../nd/index.js';
import {
  ALLOW_READ,
  ALLOW_WRITE,
  CANCELED,
  type CaseContext,
  type End,
  READ_FENCE,
  receives,
  SILENT_SUCCESS,
  SUCCESS,
  sends,
} from '../context.js';
import { type Post, patternByte, type Target } from '../half.js';
import { Group } from './define.js';

const group = new Group('memory');
export const memoryCases = group.cases;

const READ_WRITE = ALLOW_READ | ALLOW_WRITE;

/** A Read or Write of one piece. */
function access(op: 'read' | 'write', target: Target, length: number, offset = 0, context = 'a'): Post {
  return { op, context, pieces: [{ at: 0, length }], target, offset };
}

/** An access that the peer must refuse, and what it does to both sides. */
async function mustFail(t: CaseContext, near: End, far: End, post: Post, what: string): Promise<void> {
  const gone = await t.far.notifyDisconnect(far.link);
  await near.post(...receives(1));
  await far.post(...receives(1, 64, 0, 32_768));
  await t.near.post(near.link, [post, ...sends(1, 64, 77)]);
  t.results(
    await near.done(2),
    [
      ['a', t.says.remoteAccess],
      [77, CANCELED],
    ],
    `${what}, and the Send behind it`,
  );
  t.run(await near.received(1), 1, CANCELED, 'Receive of the side that did it');
  t.run(await far.received(1), 1, CANCELED, 'Receive of the side that refused it');
  await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect of the side that refused it');
}

group.add('register-whole', '§IND2MemoryRegion::Register, §INDAdapter::RegisterMemory', async (t) => {
  const { near, far } = await t.pair();
  // The same memory, registered three times, in parts that overlap.
  const again = [
    await t.near.registerAgain(near.memory, 0, 65_536),
    await t.near.registerAgain(near.memory, 100, 3000),
    await t.near.registerAgain(near.memory, 50, 100),
  ];
  await t.near.fill(near.memory, 0, 4096, 1);
  await far.post(...receives(3, 50));
  await near.post(
    { op: 'send', context: 0, pieces: [{ memory: again[0]!, at: 100, length: 50 }] },
    { op: 'send', context: 1, pieces: [{ memory: again[1]!, at: 0, length: 50 }] },
    { op: 'send', context: 2, pieces: [{ memory: again[2]!, at: 50, length: 50 }] },
  );
  t.run(await far.received(3), 3, SUCCESS, 'Messages from three registrations');
  const expected = await t.near.peek(near.memory, 100, 50);
  for (let i = 0; i < 3; i += 1) {
    t.same(await t.far.peek(far.memory, i * 50, 50), expected, `Bytes by registration ${i}`);
  }
  // One of them ends; the others stay.
  await t.ends(t.near, await t.near.deregister(again[0]!), SUCCESS, 'Deregister');
  await far.post(...receives(1, 50, 3));
  await near.post({ op: 'send', context: 3, pieces: [{ memory: again[1]!, at: 0, length: 50 }] });
  t.run(await far.received(1), 1, SUCCESS, 'A message from a registration that is left', 3);
});

for (const op of ['send', 'receive', 'read', 'write'] as const) {
  for (const [where, at] of [
    ['end', 0],
    ['one-byte-beyond', 1],
    ['far-beyond', 1 << 20],
  ] as const) {
    group.add(
      `${op}-local-${where}`,
      `§ND2_RESULT: ACCESS_VIOLATION for local memory that ${op} names beyond its registration`,
      async (t) => {
        const memory = 8192;
        const length = 1000;
        const { near, far } = await t.pair({ near: { memory } });
        const { target } = await far.open(READ_WRITE);
        const piece = { at: memory - length + at, length };
        const post: Post = {
          op,
          context: 'a',
          pieces: [piece],
          ...(op === 'read' || op === 'write' ? { target } : {}),
        };
        if (op === 'send') await far.post(...receives(1, 1000));
        await near.post(post);
        if (op === 'receive') await far.post(...sends(1, length));
        const cq = op === 'receive' ? near.inbound : near.outbound;
        t.results(
          await t.near.take(cq, 1),
          [['a', at === 0 ? SUCCESS : Status.ACCESS_VIOLATION]],
          `${op} whose local memory ends ${at === 0 ? 'with the registration' : `${at} bytes beyond it`}`,
        );
      },
    );
  }
}

const rights = { none: 0, read: ALLOW_READ, write: ALLOW_WRITE, both: READ_WRITE } as const;
for (const op of ['read', 'write'] as const) {
  for (const [name, flags] of Object.entries(rights)) {
    const allowed = (flags & (op === 'read' ? ALLOW_READ : ALLOW_WRITE)) !== 0;
    group.add(`window-${name}-${op}`, `§IND2QueuePair::Bind: rights of a window`, async (t) => {
      const { near, far } = await t.pair();
      if (flags === 0) {
        const window = await t.far.window();
        const status = await far.postStatus({ op: 'bind', window, length: 64, flags: 0 });
        if (status !== SUCCESS) {
          t.status(status, [Status.INVALID_PARAMETER_6, Status.INVALID_PARAMETER], 'Bind without rights');
          return;
        }
        await far.done(1);
      }
      await t.far.fill(far.memory, 0, 4096, 1);
      await t.near.fill(near.memory, 0, 4096, 2);
      const { target } = await far.open(flags);
      if (allowed) {
        await near.post(access(op, target, 1000));
        t.results(await near.done(1), [['a', SUCCESS]], `${op} through a window with rights '${name}'`);
      } else {
        await mustFail(
          t,
          near,
          far,
          access(op, target, 1000),
          `${op} through a window with rights '${name}'`,
        );
        await t.holds(far, 0, 4096, 1, 'Memory that was not open');
      }
    });
  }

  group.add(`window-to-its-end-${op}`, '§IND2QueuePair::Bind: bounds of a window', async (t) => {
    const { near, far } = await t.pair();
    const { target } = await far.open(READ_WRITE, 1000, 500);
    await near.post(access(op, target, 1000), access(op, target, 1, 999, 'b'));
    t.results(
      await near.done(2),
      [
        ['a', SUCCESS],
        ['b', SUCCESS],
      ],
      `${op} of a window from its first to its last byte`,
    );
  });

  for (const [where, length, offset] of [
    ['one-byte-too-long', 1001, 0],
    ['one-byte-beyond', 1, 1000],
    ['across-its-end', 100, 901],
    ['far-beyond', 100, 1 << 30],
  ] as const) {
    group.add(`window-${where}-${op}`, '§IND2QueuePair::Bind: bounds of a window', async (t) => {
      const { near, far } = await t.pair();
      await t.far.fill(far.memory, 0, 4096, 1);
      await t.near.fill(near.memory, 0, 4096, 2);
      const { target } = await far.open(READ_WRITE, 1000, 500);
      await mustFail(
        t,
        near,
        far,
        access(op, target, length, offset),
        `${op} of ${length} bytes at ${offset} of 1000`,
      );
      // Inside the window anything may have happened, outside nothing.
      await t.holds(far, 0, 500, 1, 'Memory before the window');
      const behind = await t.far.peek(far.memory, 1500, 200);
      t.ok(
        behind.every((byte, i) => byte === patternByte(1500 + i, 1)),
        'Memory behind the window',
        'unchanged',
        'changed',
      );
    });
  }

  group.add(`window-before-its-start-${op}`, '§IND2QueuePair::Bind: bounds of a window', async (t) => {
    const { near, far } = await t.pair();
    const { target } = await far.open(READ_WRITE, 1000, 500);
    const before = { ...target, address: (BigInt(target.address) - 1n).toString() };
    await mustFail(t, near, far, access(op, before, 10), `${op} one byte before a window`);
  });

  group.add(
    `made-up-token-${op}`,
    '§IND2QueuePair::Read, ::Write: a token that nobody has given',
    async (t) => {
      const { near, far } = await t.pair();
      const { target } = await far.open(READ_WRITE);
      const forged = { ...target, key: (target.key ^ 0x5a) >>> 0 };
      await mustFail(t, near, far, access(op, forged, 100), `${op} with a made-up token`);
    },
  );

  group.add(`window-invalidated-${op}`, '§IND2QueuePair::Invalidate: ends remote access', async (t) => {
    const { near, far } = await t.pair();
    const { target, window } = await far.open(READ_WRITE);
    await near.post(access(op, target, 100));
    t.results(await near.done(1), [['a', SUCCESS]], `${op} before Invalidate`);
    await far.post({ op: 'invalidate', context: 'i', window });
    t.results(await far.done(1), [['i', SUCCESS]], 'Invalidate');
    await mustFail(t, near, far, access(op, target, 100), `${op} after Invalidate`);
  });

  group.add(
    `window-of-another-connection-${op}`,
    '§IND2QueuePair::Bind: a window belongs to its queue pair',
    async (t) => {
      const first = await t.pair();
      const second = await t.pair();
      const { target } = await first.far.open(READ_WRITE);
      await mustFail(
        t,
        second.near,
        second.far,
        access(op, target, 100),
        `${op} through a window that was bound on another connection`,
      );
      await first.near.post(access(op, target, 100));
      t.results(await first.near.done(1), [['a', SUCCESS]], `${op} on the connection it was bound on`);
    },
  );

  group.add(`window-released-${op}`, '§IND2MemoryWindow: it dies with its last reference', async (t) => {
    const { near, far } = await t.pair();
    const { target, window } = await far.open(READ_WRITE);
    await t.far.release(window);
    await mustFail(t, near, far, access(op, target, 100), `${op} through a window that was released`);
  });
}

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

group.add(
  'bind-bound',
  '§IND2QueuePair::Bind: INVALID_DEVICE_STATE for a window that is bound',
  async (t) => {
    const { near } = await t.pair();
    const { window } = await near.open(READ_WRITE);
    const bind: Post = { op: 'bind', context: 'b', window, length: 64, flags: READ_WRITE };
    t.status(await near.postStatus(bind), Status.INVALID_DEVICE_STATE, 'Bind of a window that is bound');
    await near.post({ op: 'invalidate', context: 'i', window });
    t.results(await near.done(1), [['i', SUCCESS]], 'Invalidate');
    await near.post(bind);
    t.results(await near.done(1), [['b', SUCCESS]], 'Bind after Invalidate');
  },
);

group.add('bind-new-token', '§IND2MemoryWindow::GetRemoteToken: changes with every Bind', async (t) => {
  const { near, far } = await t.pair();
  const { window, target: first } = await far.open(READ_WRITE);
  const posted = await far
    .post(
      { op: 'invalidate', context: 0, window },
      { op: 'bind', context: 1, window, length: 4096, flags: READ_WRITE },
    )
    .catch(async () => {
      // It may be bound again when the result of Invalidate has been taken, and not before.
      t.run(await far.done(1), 1, SUCCESS, 'Invalidate');
      return [
        undefined,
        ...(await far.post({ op: 'bind', context: 1, window, length: 4096, flags: READ_WRITE })),
      ];
    });
  const second = posted[1]!.target!;
  t.ok(first.key !== second.key, 'Tokens of two Binds', 'two', 'the same');
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
    t.run(await near.received(1), 1, SUCCESS, 'The message that tells the token');
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
  t.results(await near.done(1), [['a', SUCCESS]], 'Write through a window that was bound silently');
  await far.post({ op: 'invalidate', context: 'no', window, flags: SILENT_SUCCESS }, ...sends(1, 64, 1));
  t.run(await far.done(1), 1, SUCCESS, 'Only the Send has a result', 1);
  await far.post({ op: 'bind', context: 'b', window, length: 64, flags: ALLOW_READ });
  t.results(await far.done(1), [['b', SUCCESS]], 'Bind after a silent Invalidate');
  t.run(await near.received(2), 2, SUCCESS, 'Receives of both Sends');
  await mustFail(t, near, far, access('write', bound!.target!, 64), 'Write with the token before');
});

group.add(
  'invalidate-unbound',
  '§IND2QueuePair::Invalidate: INVALID_DEVICE_REQUEST for an unbound window',
  async (t) => {
    const { near, far } = await t.pair();
    const gone = await t.far.notifyDisconnect(far.link);
    await near.post({ op: 'invalidate', context: 'i', window: await t.near.window() });
    t.results(
      await near.done(1),
      [['i', Status.INVALID_DEVICE_REQUEST]],
      'Invalidate of a window that was never bound',
    );
    await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect of the peer');
  },
);

group.add('deregister-bound', '§IND2MemoryRegion::Deregister: DEVICE_BUSY with bound windows', async (t) => {
  const { near } = await t.pair();
  const { window } = await near.open(READ_WRITE);
  await t.ends(
    t.near,
    await t.near.deregister(near.memory),
    Status.DEVICE_BUSY,
    'Deregister with a bound window',
  );
  // It stays registered.
  await near.post({ op: 'invalidate', context: 'i', window });
  t.results(await near.done(1), [['i', SUCCESS]], 'Invalidate');
  await t.ends(t.near, await t.near.deregister(near.memory), SUCCESS, 'Deregister after Invalidate');
});

group.add('window-dies-with-connection', '§IND2MemoryWindow: it dies with its connection', async (t) => {
  const { near, far } = await t.pair();
  await near.open(READ_WRITE);
  const { window } = await near.open(READ_WRITE, 64);
  await t.disconnect(far);
  await t.ends(t.near, await t.near.disconnect(near.link), SUCCESS, 'Disconnect');
  await t.ends(
    t.near,
    await t.near.deregister(near.memory),
    SUCCESS,
    'Deregister of memory whose windows are dead',
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

group.add('deregister-twice', '§IND2MemoryRegion::Deregister, §INDAdapter::DeregisterMemory', async (t) => {
  const memory = await t.near.memory(4096);
  await t.ends(t.near, await t.near.deregister(memory), SUCCESS, 'Deregister');
  await t.ends(
    t.near,
    await t.near.deregister(memory),
    t.spi === 'v1' ? Status.INVALID_HANDLE : Status.INVALID_DEVICE_STATE,
    'Deregister of what is not registered',
  );
});

group.add(
  'use-after-deregister',
  '§IND2MemoryRegion::Deregister: the memory cannot be used any more',
  async (t) => {
    const { near, far } = await t.pair();
    const memory = await t.near.memory(4096);
    await t.ends(t.near, await t.near.deregister(memory), SUCCESS, 'Deregister');
    await far.post(...receives(1, 4096));
    const status = await near.postStatus({
      op: 'send',
      context: 'a',
      pieces: [{ memory, at: 0, length: 4096 }],
    });
    if (status === SUCCESS) {
      t.results(
        await near.done(1),
        [['a', Status.ACCESS_VIOLATION]],
        'Send from memory that was deregistered',
      );
    } else {
      t.status(status, Status.INVALID_HANDLE, 'Send from memory that was deregistered');
    }
  },
);

group.add(
  'deregister-under-receive',
  '§IND2MemoryRegion::Deregister: requests that use it fail',
  async (t) => {
    const { near, far } = await t.pair();
    const memory = await t.near.memory(4096);
    await near.post({ op: 'receive', context: 'r', pieces: [{ memory, at: 0, length: 4096 }] });
    await t.ends(t.near, await t.near.deregister(memory), SUCCESS, 'Deregister under a Receive');
    await far.post(...sends(1));
    t.results(
      await near.received(1),
      [['r', Status.ACCESS_VIOLATION]],
      'A Receive whose memory was deregistered',
    );
    const [sent] = await far.done(1);
    t.ok(
      sent !== undefined && sent.status !== SUCCESS,
      'The Send to it',
      'a failure',
      sent ? 'SUCCESS' : 'nothing',
    );
  },
);

group.add('register-many', '§IND2MemoryRegion::Register: many registrations at once', async (t) => {
  const { near, far } = await t.pair();
  const ids: number[] = [];
  for (let i = 0; i < 200; i += 1) ids.push(await t.near.registerAgain(near.memory, i * 300, 300));
  await t.near.fill(near.memory, 0, 65_536, 8);
  await far.post(...receives(1, 60_000));
  const chosen = ids[137]!;
  await near.post({ op: 'send', context: 's', pieces: [{ memory: chosen, at: 0, length: 300 }] });
  const [result] = await far.received(1);
  t.same([result?.status, result?.bytes], [SUCCESS, 300], 'A message from one of 200 registrations');
  t.same(await t.far.peek(far.memory, 0, 300), await t.near.peek(near.memory, 137 * 300, 300), 'Its bytes');
  for (const id of ids) t.status(await t.near.settled(await t.near.deregister(id)), SUCCESS, 'Deregister');
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
    // The owner may bind it again, and the peer has lost its access.
    await far.post({ op: 'bind', context: 'b', window, length: 64, flags: READ_WRITE });
    t.results(await far.done(1), [['b', SUCCESS]], 'Bind of the window after SendAndInvalidate');
    await near.post(access('read', target, 100));
    t.results(await near.done(1), [['a', t.says.remoteAccess]], 'Read with the invalidated token');
  },
  ['v1'],
);

group.add(
  'send-and-invalidate-unknown',
  '§INDEndpoint::SendAndInvalidate: a window that the peer has not bound',
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
      'SendAndInvalidate of a window that does not exist',
      'a failure',
      result === undefined ? 'nothing' : 'SUCCESS',
    );
  },
  ['v1'],
);
