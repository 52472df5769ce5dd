/** Memory: registration, bounds, windows, rights. */
import { Status } from '../../index.js';
import { ALLOW_READ, ALLOW_WRITE, receives, SUCCESS, sends } from '../case-context.js';
import type { Post } from '../half.js';
import { access, mustFail } from './access.js';
import { Group } from './define.js';

const group = new Group('memory');
export const memoryCases = group.cases;

const READ_WRITE = ALLOW_READ | ALLOW_WRITE;

group.add('register-whole', '§IND2MemoryRegion::Register, §INDAdapter::RegisterMemory', async (t) => {
  const { near, far } = await t.pair();
  // Registers the same memory three times, in parts that overlap.
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
    t.same(await t.far.peek(far.memory, i * 50, 50), expected, `Bytes of registration ${i}`);
  }
  // One registration ends; the others remain.
  await t.ends(t.near, await t.near.deregister(again[0]!), SUCCESS, 'Deregister');
  await far.post(...receives(1, 50, 3));
  await near.post({ op: 'send', context: 3, pieces: [{ memory: again[1]!, at: 0, length: 50 }] });
  t.run(await far.received(1), 1, SUCCESS, 'A message from a remaining registration', 3);
});

for (const op of ['send', 'receive', 'read', 'write'] as const) {
  for (const [where, at] of [
    ['end', 0],
    ['one-byte-beyond', 1],
    ['far-beyond', 1 << 20],
  ] as const) {
    group.add(
      `${op}-local-${where}`,
      `§ND2_RESULT: ACCESS_VIOLATION for a ${op} with local memory beyond its registration`,
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
        const status = await near.postStatus(post);
        // The HCA detects the violation, not the call.
        t.status(status, SUCCESS, `Posting a ${op} whose local memory ends ${at} bytes beyond it`);
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
      const { target } = await far.open(READ_WRITE, 1000, 500);
      // Anything inside the window may have changed, but nothing outside it.
      await mustFail(
        t,
        near,
        far,
        access(op, target, length, offset),
        `${op} of ${length} bytes at ${offset} of 1000`,
        offset < 1000 ? { open: [500, 1500] } : {},
      );
    });
  }

  group.add(`window-before-its-start-${op}`, '§IND2QueuePair::Bind: bounds of a window', async (t) => {
    const { near, far } = await t.pair();
    const { target } = await far.open(READ_WRITE, 1000, 500);
    const before = { ...target, address: (BigInt(target.address) - 1n).toString() };
    await mustFail(t, near, far, access(op, before, 10), `${op} one byte before a window`, {
      open: [500, 1500],
    });
  });

  group.add(
    `made-up-token-${op}`,
    '§IND2QueuePair::Read, ::Write: a token that was never granted',
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
        `${op} through a window bound on another connection`,
        { memory: first.far.memory },
      );
      await first.near.post(access(op, target, 100));
      t.results(await first.near.done(1), [['a', SUCCESS]], `${op} on the connection it was bound on`);
    },
  );

  group.add(`window-released-${op}`, '§IND2MemoryWindow: it ends with its last reference', async (t) => {
    const { near, far } = await t.pair();
    const { target, window } = await far.open(READ_WRITE);
    await t.far.release(window);
    await mustFail(t, near, far, access(op, target, 100), `${op} through a released window`);
  });
}

group.add('deregister-bound', '§IND2MemoryRegion::Deregister: DEVICE_BUSY with bound windows', async (t) => {
  const { near } = await t.pair();
  const { window } = await near.open(READ_WRITE);
  await t.ends(
    t.near,
    await t.near.deregister(near.memory),
    Status.DEVICE_BUSY,
    'Deregister with a bound window',
  );
  // The memory stays registered.
  await near.post({ op: 'invalidate', context: 'i', window });
  t.results(await near.done(1), [['i', SUCCESS]], 'Invalidate');
  await t.ends(t.near, await t.near.deregister(near.memory), SUCCESS, 'Deregister after Invalidate');
});

group.add('deregister-twice', '§IND2MemoryRegion::Deregister, §INDAdapter::DeregisterMemory', async (t) => {
  const memory = await t.near.memory(4096);
  await t.ends(t.near, await t.near.deregister(memory), SUCCESS, 'Deregister');
  await t.ends(
    t.near,
    await t.near.deregister(memory),
    t.spi === 'v1' ? Status.INVALID_HANDLE : Status.INVALID_DEVICE_STATE,
    'Deregister without a registration',
  );
});

group.add(
  'use-after-deregister',
  '§IND2MemoryRegion::Deregister: the memory can no longer be used',
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
      t.results(await near.done(1), [['a', Status.ACCESS_VIOLATION]], 'Send from deregistered memory');
    } else {
      t.status(status, Status.INVALID_HANDLE, 'Send from deregistered memory');
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
    t.results(await near.received(1), [['r', Status.ACCESS_VIOLATION]], 'A Receive into deregistered memory');
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
