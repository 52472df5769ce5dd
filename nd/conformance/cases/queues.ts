/** Work queues: depth, order, flags, silent requests, flush. */
import { Status } from '../../index.js';
import {
  CANCELED,
  End,
  READ_FENCE,
  receives,
  SEND_AND_SOLICIT_EVENT,
  SILENT_SUCCESS,
  SUCCESS,
  sends,
} from '../case-context.js';
import type { Piece, Post } from '../half.js';
import { Group } from './define.js';

const group = new Group('queue');
export const queueCases = group.cases;

group.add('receive-before-connection', '§IND2QueuePair::Receive, §INDEndpoint::Receive', async (t) => {
  const far = await End.make(t.far);
  await far.post(...receives(3));
  const near = await End.make(t.near);
  const { listener, address } = await t.listen('far');
  await t.join(near, far, listener, address);
  await near.post(...sends(3));
  t.run(await far.received(3), 3, SUCCESS, 'Receives posted before the connection');
});

for (const [op, post] of Object.entries({
  send: { op: 'send', pieces: [{ at: 0, length: 8 }] },
  read: { op: 'read', pieces: [{ at: 0, length: 8 }], target: { address: '4096', length: 8, key: 1 } },
  write: { op: 'write', pieces: [{ at: 0, length: 8 }], target: { address: '4096', length: 8, key: 1 } },
} satisfies Record<string, Post>)) {
  group.add(
    `${op}-before-connection`,
    `§IND2QueuePair::${op}, §INDEndpoint::${op}: CONNECTION_INVALID`,
    async (t) => {
      const near = await End.make(t.near);
      t.status(await near.postStatus(post), Status.CONNECTION_INVALID, `${op} before a connection`);
      // A refused request is not queued and has no effect.
      t.same(await t.near.poll(near.outbound, 8), [], 'Results of requests that were not queued');
    },
  );
}

group.add(
  'bind-before-connection',
  '§IND2QueuePair::Bind, §INDEndpoint::Bind: CONNECTION_INVALID',
  async (t) => {
    const near = await End.make(t.near);
    const window = await t.near.window();
    t.status(
      await near.postStatus({ op: 'bind', window, offset: 0, length: 64, flags: 8 }),
      Status.CONNECTION_INVALID,
      'Bind before a connection',
    );
    t.status(
      await near.postStatus({ op: 'invalidate', window }),
      Status.CONNECTION_INVALID,
      'Invalidate before a connection',
    );
  },
);

group.add('receive-order', '§IND2QueuePair::Receive: consumed in order', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...receives(16));
  await near.post(...sends(16, 64, 100));
  t.run(await far.received(16), 16, SUCCESS, 'Receives in posting order');
  t.run(await near.done(16), 16, SUCCESS, 'Sends in posting order', 100);
});

group.add(
  'initiator-order',
  '§IND2CompletionQueue::GetResults: results in the order of the requests',
  async (t) => {
    const { near, far } = await t.pair();
    const { target } = await far.open(24);
    await far.post(...receives(4));
    const pieces = [{ at: 0, length: 512 }];
    await near.post(
      { op: 'read', context: 0, pieces, target },
      ...sends(1, 64, 1),
      { op: 'write', context: 2, pieces, target },
      { op: 'read', context: 3, pieces, target },
      ...sends(2, 64, 4),
      { op: 'write', context: 6, pieces, target },
      { op: 'read', context: 7, pieces: [{ at: 0, length: 0 }], target },
    );
    t.run(await near.done(8), 8, SUCCESS, 'Sends, Reads and Writes in posting order');
  },
);

group.add('contexts', '§ND2_RESULT: RequestContext need not be unique', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...Array.from({ length: 5 }, () => receives(1, 64, 7)[0]!));
  await near.post(...Array.from({ length: 5 }, () => sends(1, 64, 9)[0]!));
  t.results(await far.received(5), Array(5).fill([7, SUCCESS]), 'Receives with one context');
  t.results(await near.done(5), Array(5).fill([9, SUCCESS]), 'Sends with one context');
});

for (const queue of ['receive', 'send'] as const) {
  group.add(`${queue}-depth`, `§IND2QueuePair::${queue}: NO_MORE_ENTRIES beyond the depth`, async (t) => {
    const near = await End.make(t.near, { receives: 5, requests: 5 });
    const far = await End.make(t.far);
    const { listener, address } = await t.listen('far');
    await t.join(near, far, listener, address);
    await far.post(...receives(10));
    const posts = queue === 'receive' ? receives(6) : sends(6);
    const posted = await t.near.post(near.link, posts);
    t.same(
      posted.map(({ status }) => status),
      [...Array(5).fill(SUCCESS), Status.NO_MORE_ENTRIES],
      'Six requests on a queue of five',
    );
    if (queue === 'receive') await far.post(...sends(5));
    const cq = queue === 'receive' ? near.inbound : near.outbound;
    t.run(await t.near.take(cq, 5), 5, SUCCESS, 'The five that were queued');
    t.same(await t.near.poll(cq, 8), [], 'Further results');
    // Taking results has freed entries.
    t.status(await near.postStatus(posts[5]!), SUCCESS, 'The next request');
  });
}

group.add('depth-of-one', '§IND2Adapter::CreateQueuePair: depths from 1', async (t) => {
  const near = await End.make(t.near, { receives: 1, requests: 1, receiveSge: 1, requestSge: 1 });
  const far = await End.make(t.far, { receives: 1, requests: 1, receiveSge: 1, requestSge: 1 });
  const { listener, address } = await t.listen('far');
  await t.join(near, far, listener, address);
  for (let i = 0; i < 3; i += 1) {
    await far.post(...receives(1, 64, i));
    await near.post(...sends(1, 64, i));
    t.run(await near.done(1), 1, SUCCESS, 'Send on a queue of one', i);
    t.run(await far.received(1), 1, SUCCESS, 'Receive on a queue of one', i);
  }
});

group.add('refused-is-not-queued', '§IND2QueuePair: a failed post has no effect', async (t) => {
  const { near, far } = await t.pair({ near: { requests: 4, requestSge: 2 } });
  await far.post(...receives(4));
  const pieces = Array<Piece>(near.requestSge + 1).fill({ at: 0, length: 1000 });
  t.status(
    await near.postStatus({ op: 'send', context: 'no', pieces }),
    Status.DATA_OVERRUN,
    'One entry more than granted',
  );
  await near.post(...sends(4));
  t.run(await near.done(4), 4, SUCCESS, 'Sends after a refused one');
  t.run(await far.received(4), 4, SUCCESS, 'Receives of the Sends');
});

group.add('silent-success', '§ND_OP_FLAG_SILENT_SUCCESS', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...receives(4));
  await near.post(...sends(3, 64, 0, SILENT_SUCCESS), { ...sends(1)[0]!, context: 'last' });
  t.results(await near.done(1), [['last', SUCCESS]], 'Only the Send that is not silent has a result');
  t.run(await far.received(4), 4, SUCCESS, 'Receives of silent Sends');
  t.same(await t.near.poll(near.outbound, 8), [], 'Results of silent Sends');
});

group.add('silent-slots', '§ND_OP_FLAG_SILENT_SUCCESS: a later result frees the entries', async (t) => {
  const { near, far } = await t.pair({ near: { requests: 4 }, far: { receives: 64 } });
  await far.post(...receives(40));
  for (let round = 0; round < 10; round += 1) {
    await near.post(...sends(3, 64, 0, SILENT_SUCCESS), ...sends(1, 64, round));
    t.run(await near.done(1), 1, SUCCESS, 'The result that frees the entries of silent requests', round);
  }
  t.run(await far.received(40), 40, SUCCESS, 'All messages');
});

group.add('silent-failure', '§ND_OP_FLAG_SILENT_SUCCESS: failures have a result', async (t) => {
  const { near, far } = await t.pair();
  const { target } = await far.open(8);
  await near.post({
    op: 'write',
    context: 'w',
    pieces: [{ at: 0, length: 512 }],
    target,
    flags: SILENT_SUCCESS,
  });
  t.results(await near.done(1), [['w', t.statuses.remoteAccess]], 'A silent Write that the peer refuses');
});

group.add('silent-flushed', '§ND_OP_FLAG_SILENT_SUCCESS: flushed requests have a result', async (t) => {
  const { near } = await t.pair();
  // Without a Receive, the first Send waits for the peer, and the others wait for the first.
  await near.party.inOneTurn([
    ['post', near.link, sends(4, 64, 0, SILENT_SUCCESS)],
    ['flush', near.link],
  ]);
  t.cancelledSends(await near.done(4), 4, 'Flushed silent Sends');
});

const flagCases: readonly [op: string, post: Post, known: number, argument: number][] = [
  [
    'send',
    { op: 'send', pieces: [{ at: 0, length: 8 }] },
    SILENT_SUCCESS | READ_FENCE | SEND_AND_SOLICIT_EVENT,
    4,
  ],
  ['write', { op: 'write', pieces: [{ at: 0, length: 8 }] }, SILENT_SUCCESS | READ_FENCE, 6],
];
for (const [op, post, known, argument] of flagCases) {
  group.add(
    `${op}-flags`,
    `§IND2QueuePair::${op}: INVALID_PARAMETER_${argument} for unknown flags`,
    async (t) => {
      const { near, far } = await t.pair();
      const { target } = await far.open(24);
      await far.post(...receives(2));
      const whole = op === 'write' ? { ...post, target } : post;
      for (const flags of [0x40, 0x1000, 0x4000_0000, known | 0x80]) {
        t.status(
          await near.postStatus({ ...whole, flags }),
          Status.INVALID_PARAMETER_1 + argument - 1,
          `${op} with flags 0x${flags.toString(16)}`,
        );
      }
      t.status(
        await near.postStatus({ ...whole, context: 'ok', flags: known & ~SILENT_SUCCESS }),
        SUCCESS,
        'Known flags',
      );
      t.results(await near.done(1), [['ok', SUCCESS]], 'The request with known flags');
    },
  );
}

group.add('flush-never-connected', '§IND2QueuePair::Flush: allowed in any state', async (t) => {
  const near = await End.make(t.near);
  await near.post(...receives(8));
  await t.near.flush(near.link);
  t.run(await near.received(8), 8, CANCELED, 'Receives of a queue pair that was never connected');
});

group.add('flush-nothing', '§IND2QueuePair::Flush', async (t) => {
  const near = await End.make(t.near);
  await t.near.flush(near.link);
  await t.near.flush(near.link);
  t.same(await t.near.poll(near.inbound, 8), [], 'Results of a flush with nothing outstanding');
});

group.add('flush-connected', '§IND2QueuePair::Flush: all requests of both queues, in order', async (t) => {
  const { near } = await t.pair();
  const [, flushed] = await near.party.inOneTurn([
    ['post', near.link, [...receives(6), ...sends(5, 64, 50)]],
    ['flush', near.link],
  ]);
  t.same('value' in flushed, true, 'Flush succeeds');
  t.run(await near.received(6), 6, CANCELED, 'Receives');
  t.cancelledSends(await near.done(5), 5, 'Sends without a Receive', 50);
  t.same(await t.near.poll(near.inbound, 8), [], 'A second result for any Receive');
  t.same(await t.near.poll(near.outbound, 8), [], 'A second result for any Send');
});

group.add(
  'flush-is-the-end',
  '§IND2QueuePair::Flush: the queue pair cannot be used afterwards',
  async (t) => {
    const { near } = await t.pair();
    await t.near.flush(near.link);
    await near.post(...receives(1, 64, 1));
    t.results(await near.received(1), [[1, CANCELED]], 'A Receive posted after Flush');
    const status = await near.postStatus(sends(1, 64, 2)[0]!);
    t.status(status, [SUCCESS, Status.CONNECTION_INVALID], 'A Send posted after Flush');
    if (status === SUCCESS) t.results(await near.done(1), [[2, CANCELED]], 'That Send');
  },
);

group.add('flush-ends-connection', '§IND2QueuePair::Flush: the peer can no longer reach it', async (t) => {
  const { near, far } = await t.pair();
  await near.post(...receives(1));
  await t.near.flush(near.link);
  await far.post(...sends(1));
  const [result] = await far.done(1);
  t.ok(
    result !== undefined && result.status !== SUCCESS,
    "The peer's Send to a flushed queue pair",
    'a failure',
    result === undefined ? 'nothing' : 'SUCCESS',
  );
});

group.add('flush-only-own', '§IND2QueuePair::Flush: only this queue pair', async (t) => {
  const shared = await t.near.cq(256);
  const one = await End.make(t.near, { inbound: shared, outbound: shared });
  const other = await End.make(t.near, { inbound: shared, outbound: shared });
  const far = await End.make(t.far);
  const { listener, address } = await t.listen('far');
  await t.join(other, far, listener, address);
  await one.post(...receives(3, 64, 10));
  await other.post(...receives(3, 64, 20));
  await t.near.flush(one.link);
  t.run(await t.near.take(shared, 3), 3, CANCELED, 'Receives of the flushed queue pair', 10);
  await far.post(...sends(3));
  t.run(await t.near.take(shared, 3), 3, SUCCESS, 'Receives of the other on the same completion queue', 20);
});

group.add('flush-many', '§IND2QueuePair::Flush: as many results as requests', async (t) => {
  const depth = Math.min(1000, t.nearInfo.limits.receives);
  const near = await End.make(t.near, { receives: depth, cqEntries: depth });
  await near.post(...receives(depth, 0));
  await t.near.flush(near.link);
  t.run(await near.received(depth), depth, CANCELED, 'Receives');
  t.same(await t.near.poll(near.inbound, 8), [], 'Further results');
});

group.add(
  'batch',
  '§INDEndpoint::StartRequestBatch, §INDEndpoint::SubmitRequestBatch',
  async (t) => {
    const { near, far } = await t.pair();
    await far.post({ op: 'startBatch' }, ...receives(8), { op: 'submitBatch' });
    await near.post({ op: 'startBatch' }, ...sends(8), { op: 'submitBatch' });
    t.run(await far.received(8), 8, SUCCESS, 'Receives of a batch');
    t.run(await near.done(8), 8, SUCCESS, 'Sends of a batch');
    // A batch may be empty, and ends with its submission.
    await near.post({ op: 'startBatch' }, { op: 'submitBatch' });
    await far.post(...receives(1, 64, 9));
    await near.post(...sends(1, 64, 9));
    t.results(await far.received(1), [[9, SUCCESS]], 'A Send after the batch');
  },
  ['v1'],
);

group.add(
  'v1-flags-of-others',
  '§INDEndpoint: flags that a request does not support',
  async (t) => {
    const { near, far } = await t.pair();
    const { target } = await far.open(24);
    const window = await t.near.window();
    const pieces = [{ at: 0, length: 8 }];
    const refused: [Post, number][] = [
      [{ op: 'sendInvalidate', pieces, target, flags: 0x100 }, Status.INVALID_PARAMETER_5],
      [{ op: 'read', pieces, target, flags: 0x100 }, Status.INVALID_PARAMETER_6],
      [{ op: 'bind', window, length: 8, flags: 0x108 }, Status.INVALID_PARAMETER_6],
      [{ op: 'invalidate', window, flags: 0x100 }, Status.INVALID_PARAMETER_3],
    ];
    for (const [post, status] of refused)
      t.status(await near.postStatus(post), status, `${post.op} with 0x100`);
  },
  ['v1'],
);
