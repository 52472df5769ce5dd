/** Memory regions of SPI v2: rights, bounds, lifetime. */
import { Nd2MrFlag, Status } from '../../index.js';
import { ALLOW_READ, ALLOW_WRITE, receives, SUCCESS, sends, statusOf, steadyBytes } from '../case-context.js';
import type { Post } from '../half.js';
import { access, mustFail } from './access.js';
import { Group } from './define.js';

const group = new Group('v2');
export const regionCases = group.cases;

const only = ['v2'] as const;
const { ALLOW_LOCAL_WRITE, ALLOW_REMOTE_READ, ALLOW_REMOTE_WRITE } = Nd2MrFlag;

const thrown = (call: () => unknown): Promise<number> => statusOf((async () => call())());

group.add(
  'region-states',
  '§IND2MemoryRegion::Register, ::Deregister: one buffer at a time',
  async (t) => {
    const region = t.v2.adapter.createMemoryRegion();
    const register = (bytes: Uint8Array, flags: number = ALLOW_LOCAL_WRITE) =>
      thrown(() => region.register(bytes, flags));
    t.status(
      await thrown(() => region.getRemoteToken()),
      Status.INVALID_DEVICE_STATE,
      'A token before Register',
    );
    t.status(
      await thrown(() => region.deregister()),
      Status.INVALID_DEVICE_STATE,
      'Deregister before Register',
    );
    t.status(await register(new Uint8Array(0)), Status.INVALID_BUFFER_SIZE, 'Register of an empty buffer');
    t.status(await register(steadyBytes(64), ALLOW_REMOTE_READ), SUCCESS, 'Register');
    const first = region.getRemoteToken();
    t.same(region.length, 64, 'The length');
    t.status(await register(steadyBytes(64)), Status.INVALID_DEVICE_STATE, 'Register of a registered region');
    await region.deregister();
    t.status(
      await thrown(() => region.getLocalToken()),
      Status.INVALID_DEVICE_STATE,
      'A token after Deregister',
    );
    await region.register(steadyBytes(128), ALLOW_REMOTE_READ);
    t.ok(region.getRemoteToken() !== first, 'The token of another registration', 'a new one', 'the same');
    region.release();
  },
  only,
);

const rights = {
  none: 0,
  local: ALLOW_LOCAL_WRITE,
  read: ALLOW_REMOTE_READ,
  write: ALLOW_REMOTE_WRITE,
  both: ALLOW_REMOTE_READ | ALLOW_REMOTE_WRITE,
} as const;

for (const op of ['read', 'write'] as const) {
  const bit = op === 'read' ? 0x2 : 0x4;
  for (const [name, flags] of Object.entries(rights)) {
    group.add(
      `region-${name}-${op}`,
      '§IND2MemoryRegion::Register: rights of peers',
      async (t) => {
        const { near, far } = await t.pair();
        const memory = await t.far.memory(4096, flags);
        const post = access(op, await t.far.target(memory), 4096);
        const what = `${op} of a region with rights '${name}'`;
        if ((flags & bit) === 0) return await mustFail(t, near, far, post, what, { memory });
        await near.post(post);
        t.results(await near.done(1), [['a', SUCCESS]], what);
      },
      only,
    );
  }

  group.add(
    `region-bounds-${op}`,
    '§IND2MemoryRegion::Register: bounds',
    async (t) => {
      for (const [at, length, allowed] of [
        [0, 4096, true],
        [4095, 1, true],
        [1, 4096, false],
        [4096, 1, false],
        [-1, 10, false],
      ] as const) {
        const { near, far } = await t.pair();
        const memory = await t.far.memory(4096, rights.both);
        const region = await t.far.target(memory);
        const target = { ...region, address: (BigInt(region.address) + BigInt(at)).toString() };
        const post = access(op, target, length);
        const what = `${op} of ${length} bytes at ${at} of 4096`;
        if (allowed) {
          await near.post(post);
          t.results(await near.done(1), [['a', SUCCESS]], what);
        } else {
          // Anything inside the region may have changed.
          await mustFail(t, near, far, post, what, at < 4096 ? { memory, open: [0, 4096] } : { memory });
        }
      }
    },
    only,
  );

  group.add(
    `region-deregistered-${op}`,
    '§IND2MemoryRegion::Deregister: ends remote access',
    async (t) => {
      const { near, far } = await t.pair();
      const memory = await t.far.memory(4096, rights.both);
      const post = access(op, await t.far.target(memory), 100);
      await t.ends(t.far, await t.far.deregister(memory), SUCCESS, 'Deregister');
      await mustFail(t, near, far, post, `${op} of deregistered memory`, { memory });
    },
    only,
  );
}

group.add(
  'region-every-connection',
  '§IND2MemoryRegion::GetRemoteToken: on every queue pair of the adapter',
  async (t) => {
    const memory = await t.far.memory(4096, rights.both);
    const target = await t.far.target(memory);
    for (let i = 0; i < 2; i += 1) {
      const { near } = await t.pair();
      await near.post({ op: 'read', context: 'a', pieces: [{ at: 0, length: 100 }], target });
      t.results(await near.done(1), [['a', SUCCESS]], `Read on connection ${i}`);
    }
  },
  only,
);

group.add(
  'no-local-write',
  '§IND2MemoryRegion::Register: without ALLOW_LOCAL_WRITE',
  async (t) => {
    for (const op of ['receive', 'read'] as const) {
      const { near, far } = await t.pair();
      const memory = await t.near.memory(4096, 0);
      const source = await t.far.memory(4096, rights.both);
      const target = await t.far.target(source);
      await near.post({
        op,
        context: 'a',
        pieces: [{ memory, at: 0, length: 64 }],
        ...(op === 'read' ? { target } : {}),
      });
      if (op === 'receive') await far.post(...sends(1));
      const cq = op === 'receive' ? near.inbound : near.outbound;
      t.results(
        await t.near.take(cq, 1),
        [['a', Status.ACCESS_VIOLATION]],
        `${op} into memory that is read-only for local requests`,
      );
    }
    const { near, far } = await t.pair();
    const memory = await t.near.memory(4096, 0);
    await far.post(...receives(1));
    await near.post({ op: 'send', context: 's', pieces: [{ memory, at: 0, length: 64 }] });
    t.results(await near.done(1), [['s', SUCCESS]], 'Send from memory that is read-only for local requests');
  },
  only,
);

group.add(
  'window-needs-local-write',
  '§IND2QueuePair::Bind: ALLOW_WRITE needs ALLOW_LOCAL_WRITE',
  async (t) => {
    const { near } = await t.pair();
    const memory = await t.near.memory(4096, 0);
    const window = await t.near.window();
    const bind = (flags: number): Post => ({ op: 'bind', context: 'b', memory, window, length: 64, flags });
    const status = await near.postStatus(bind(ALLOW_WRITE));
    if (status === SUCCESS) {
      t.results(await near.done(1), [['b', Status.ACCESS_VIOLATION]], 'Bind with ALLOW_WRITE');
    } else {
      t.status(status, Status.ACCESS_VIOLATION, 'Bind with ALLOW_WRITE');
      t.status(await near.postStatus(bind(ALLOW_READ)), SUCCESS, 'Bind with ALLOW_READ');
    }
  },
  only,
);

group.add(
  'window-own-rights',
  '§IND2QueuePair::Bind: a window has its own rights',
  async (t) => {
    const { near, far } = await t.pair({ far: { rights: rights.both } });
    const { target } = await far.open(ALLOW_READ);
    await mustFail(
      t,
      near,
      far,
      access('write', target, 64),
      'Write through a read-only window of a readable and writable region',
    );
  },
  only,
);
