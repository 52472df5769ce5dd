/** Shared receive queues of SPI v2. */
import { Status } from '../../index.js';
import { CANCELED, type CaseContext, type End, receives, SUCCESS, sends } from '../case-context.js';
import type { Post } from '../half.js';
import { Group } from './define.js';

const group = new Group('srq');
export const sharedReceiveCases = group.cases;

const only = ['v2'] as const;
const { PENDING } = Status;

/** Returns Receives into the half's own memory. */
function into(memory: number, count: number, first = 0, length = 64): Post[] {
  return receives(count, length, first).map((post) => ({
    ...post,
    pieces: post.pieces!.map((piece) => ({ ...piece, memory })),
  }));
}

/** Creates a shared receive queue in far, its memory, and connections whose queue pairs use it. */
async function setup(t: CaseContext, count: number, options: { depth?: number; threshold?: number } = {}) {
  if (t.farInfo.limits.sharedReceives === 0) t.skip('This adapter does not support shared receive queues.');
  const { depth = 32, threshold = 0 } = options;
  const shared = await t.far.shared({ depth, threshold });
  const memory = await t.far.memory(65_536);
  const pairs: { near: End; far: End }[] = [];
  for (let i = 0; i < count; i += 1) {
    const { near, far } = await t.pair({ far: { shared, memory: 0 } });
    pairs.push({ near, far });
  }
  return { shared, memory, pairs };
}

async function post(t: CaseContext, shared: number, posts: Post[]): Promise<void> {
  const posted = await t.far.sharedReceive(shared, posts);
  t.same(
    posted.map(({ status }) => status),
    posts.map(() => SUCCESS),
    'Receives on the shared queue',
  );
}

group.add(
  'many-take-from-one',
  '§IND2SharedReceiveQueue::Receive: messages consume Receives in order of arrival',
  async (t) => {
    const { shared, memory, pairs } = await setup(t, 3);
    await post(t, shared, into(memory, 6));
    for (let i = 0; i < 6; i += 1) {
      const { near, far } = pairs[i % 3]!;
      await near.post(...sends(1, 64, i));
      const [result] = await far.received(1);
      t.same(
        [result?.context, result?.status, result?.bytes, result?.link],
        [i, SUCCESS, 64, far.link],
        'The Receive: its context, and that of its queue pair',
      );
    }
  },
  only,
);

group.add(
  'empty-queue-waits',
  '§IND2SharedReceiveQueue: a message waits for a Receive',
  async (t) => {
    const { shared, memory, pairs } = await setup(t, 1);
    const { near, far } = pairs[0]!;
    await near.post(...sends(1));
    t.same(await t.far.poll(far.inbound, 4), [], 'Results without a Receive');
    await post(t, shared, into(memory, 1));
    t.run(await far.received(1), 1, SUCCESS, 'The Receive');
    t.run(await near.done(1), 1, SUCCESS, 'The Send that waited');
  },
  only,
);

group.add(
  'limits',
  '§IND2Adapter::CreateSharedReceiveQueue: INVALID_PARAMETER_3, _4; limits work',
  async (t) => {
    const { sharedReceives: limit } = t.nearInfo.limits;
    if (limit === 0) {
      await t.refused(t.near.shared({ depth: 1 }), Status.NOT_SUPPORTED, 'CreateSharedReceiveQueue');
      return;
    }
    for (const depth of [-1, limit + 1]) {
      await t.refused(t.near.shared({ depth }), Status.INVALID_PARAMETER_3, `A depth of ${depth}`);
    }
    for (const sge of [-1, t.nearInfo.limits.receiveSge * 1000]) {
      await t.refused(t.near.shared({ depth: 8, sge }), Status.INVALID_PARAMETER_4, `${sge} entries`);
    }
    await t.near.release(await t.near.shared({ depth: limit, sge: 1 }));
  },
  only,
);

group.add(
  'depth',
  '§IND2SharedReceiveQueue::Receive: NO_MORE_ENTRIES, DATA_OVERRUN',
  async (t) => {
    if (t.nearInfo.limits.sharedReceives === 0)
      t.skip('This adapter does not support shared receive queues.');
    const shared = await t.near.shared({ depth: 4, sge: 2 });
    const memory = await t.near.memory(4096);
    const three: Post = {
      op: 'receive',
      pieces: Array.from({ length: 3 }, () => ({ memory, at: 0, length: 8 })),
    };
    const posted = await t.near.sharedReceive(shared, [three, ...into(memory, 5)]);
    t.same(
      posted.map(({ status }) => status),
      [Status.DATA_OVERRUN, SUCCESS, SUCCESS, SUCCESS, SUCCESS, Status.NO_MORE_ENTRIES],
      'A Receive of three entries with a limit of two, then five Receives on a queue of four',
    );
  },
  only,
);

group.add(
  'queue-pair-receive',
  '§IND2QueuePair::Receive: not on a queue pair with a shared receive queue',
  async (t) => {
    const { pairs, memory } = await setup(t, 1);
    const [receive] = into(memory, 1);
    t.status(
      await pairs[0]!.far.postStatus(receive!),
      [Status.INVALID_DEVICE_REQUEST, Status.UNSUCCESSFUL],
      'Receive on a queue pair with a shared receive queue',
    );
  },
  only,
);

group.add(
  'flush-leaves-shared',
  '§IND2QueuePair::Flush: Receives in the shared queue stay',
  async (t) => {
    const { shared, memory, pairs } = await setup(t, 2);
    await post(t, shared, into(memory, 2));
    await t.far.flush(pairs[0]!.far.link);
    t.same(await t.far.poll(pairs[0]!.far.inbound, 4), [], 'Results of the flushed queue pair');
    await pairs[1]!.near.post(...sends(2));
    t.run(await pairs[1]!.far.received(2), 2, SUCCESS, 'Receives of the other queue pair');
  },
  only,
);

group.add(
  'notify-threshold',
  '§IND2SharedReceiveQueue::Notify: fewer Receives than the threshold are left',
  async (t) => {
    const { shared, memory, pairs } = await setup(t, 1, { threshold: 3 });
    await post(t, shared, into(memory, 4));
    const waiting = [await t.far.sharedNotify(shared), await t.far.sharedNotify(shared)];
    for (const request of waiting)
      t.status(await t.far.statusNow(request), PENDING, 'Notify with four Receives left');
    const { near, far } = pairs[0]!;
    await near.post(...sends(2));
    t.run(await far.received(2), 2, SUCCESS, 'Receives');
    for (const request of waiting) await t.ends(t.far, request, SUCCESS, 'Notify with two Receives left');
    // The count is already below the threshold.
    await t.ends(t.far, await t.far.sharedNotify(shared), SUCCESS, 'Notify while below the threshold');
  },
  only,
);

group.add(
  'notify-off',
  '§IND2SharedReceiveQueue::Notify: a threshold of 0 requests no event',
  async (t) => {
    const { shared, memory, pairs } = await setup(t, 1);
    await post(t, shared, into(memory, 1));
    const waiting = await t.far.sharedNotify(shared);
    await pairs[0]!.near.post(...sends(1));
    t.run(await pairs[0]!.far.received(1), 1, SUCCESS, 'The last Receive');
    t.status(await t.far.statusNow(waiting), PENDING, 'Notify with threshold 0');
    t.same(await t.far.cancel(shared), [CANCELED], 'Notify, when Cancel has returned');
  },
  only,
);

group.add(
  'modify',
  '§IND2SharedReceiveQueue::Modify: zeros change nothing, BUFFER_OVERFLOW below the outstanding Receives',
  async (t) => {
    const { sharedReceives: limit } = t.nearInfo.limits;
    if (limit === 0) t.skip('This adapter does not support shared receive queues.');
    const depth = Math.min(64, limit);
    const shared = await t.near.shared({ depth });
    const memory = await t.near.memory(4096);
    await t.near.sharedReceive(shared, into(memory, depth, 0, 8));
    await t.near.sharedModify(shared, 0, 0);
    // A queue may have somewhat more entries than requested.
    await t.refused(
      t.near.sharedModify(shared, 3, 0),
      Status.BUFFER_OVERFLOW,
      'Modify below the outstanding Receives',
    );
    await t.refused(
      t.near.sharedModify(shared, limit + 1, 0),
      Status.INVALID_PARAMETER,
      'Modify beyond the limit',
    );
    if (limit < 2 * depth) return;
    await t.near.sharedModify(shared, 2 * depth, 2);
    const posted = await t.near.sharedReceive(shared, into(memory, depth, 0, 8));
    t.same(
      posted.map(({ status }) => status),
      Array(depth).fill(SUCCESS),
      'Receives after the depth was increased',
    );
  },
  only,
);

group.add(
  'released-first',
  '§IND2SharedReceiveQueue: queue pairs keep it alive',
  async (t) => {
    const { shared, memory, pairs } = await setup(t, 1);
    await post(t, shared, into(memory, 1));
    await t.far.release(shared);
    await pairs[0]!.near.post(...sends(1));
    t.run(await pairs[0]!.far.received(1), 1, SUCCESS, 'A Receive of a released shared queue');
  },
  only,
);
