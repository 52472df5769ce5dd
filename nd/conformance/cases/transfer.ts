/** Messages, Reads and Writes: lengths, lists, contents, order, errors. */
import { Status } from '../../index.js';
import {
  ALLOW_READ,
  ALLOW_WRITE,
  CANCELED,
  End,
  READ_FENCE,
  receives,
  SUCCESS,
  sends,
} from '../case-context.js';
import { type Post, patternByte } from '../half.js';
import { Group } from './define.js';

const group = new Group('transfer');
export const transferCases = group.cases;

/** ND_OP_FLAG_INLINE of v2; v1 selects inline by itself. */
const INLINE = { v1: 0, v2: 0x20 } as const;

const lengths = [0, 1, 3, 64, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 65_536, 300_001];

group.add('send-lengths', '§IND2QueuePair::Send: each message arrives whole in one Receive', async (t) => {
  const memory = { memory: 1 << 20 };
  const { near, far } = await t.pair({ near: memory, far: memory });
  for (const [i, length] of lengths.entries()) {
    t.step(`sending ${length} bytes`);
    await t.near.fill(near.memory, 0, length, i);
    await t.far.fill(far.memory, 0, length + 16, i + 100);
    await far.post({ op: 'receive', context: i, pieces: [{ at: 0, length: 300_100 }] });
    await near.post({ op: 'send', context: i, pieces: [{ at: 0, length }] });
    const [result] = await far.received(1);
    t.same([result?.status, result?.bytes], [SUCCESS, length], `Receive of ${length} bytes: status, bytes`);
    const [sent] = await near.done(1);
    t.same(sent?.status, SUCCESS, 'Send');
    if (t.spi === 'v1') t.same(sent?.bytes, length, 'Bytes of the Send');
    await t.holds(far, 0, length, i, `The message of ${length} bytes`);
    // Memory after the message is unchanged.
    const tail = await t.far.peek(far.memory, length, 16);
    const kept = Array.from({ length: 16 }, (_, k) => patternByte(length + k, i + 100));
    t.same(tail, kept, `Memory after the message of ${length} bytes`);
  }
});

group.add('both-directions', '§IND2QueuePair::Send: either side may send at any time', async (t) => {
  const { near, far } = await t.pair();
  for (const end of [near, far]) await end.post(...receives(16));
  await Promise.all([near.post(...sends(16)), far.post(...sends(16))]);
  for (const end of [near, far]) {
    t.run(await end.received(16), 16, SUCCESS, 'Receives');
    t.run(await end.done(16), 16, SUCCESS, 'Sends');
  }
});

group.add('passive-sends-first', '§IND2Connector::Accept: the accepting side may send first', async (t) => {
  const { near, far } = await t.pair({ active: 'far' });
  await far.post(...receives(1));
  await near.post(...sends(1));
  t.run(await far.received(1), 1, SUCCESS, 'Receive of the connecting side');
});

group.add('gather-scatter', '§ND2_SGE, §ND_SGE: entries in order, empty ones allowed', async (t) => {
  const { near, far } = await t.pair();
  await t.near.fill(near.memory, 1000, 600, 3);
  await far.post({
    op: 'receive',
    context: 'r',
    pieces: [
      { at: 100, length: 7 },
      { at: 0, length: 0 },
      { at: 5000, length: 300 },
      { at: 2000, length: 1000 },
    ],
  });
  await near.post({
    op: 'send',
    context: 's',
    pieces: [
      { at: 1000, length: 250 },
      { at: 1250, length: 1 },
      { at: 0, length: 0 },
      { at: 1251, length: 349 },
    ],
  });
  const [result] = await far.received(1);
  t.same([result?.status, result?.bytes], [SUCCESS, 600], 'The message of four entries: status, bytes');
  const all = await t.near.peek(near.memory, 1000, 600);
  const got = [
    ...(await t.far.peek(far.memory, 100, 7)),
    ...(await t.far.peek(far.memory, 5000, 300)),
    ...(await t.far.peek(far.memory, 2000, 293)),
  ];
  t.same(got, all, 'Bytes in the order of the entries');
});

group.add('no-pieces', '§IND2QueuePair::Send: an empty list sends a message of 0 bytes', async (t) => {
  const { near, far } = await t.pair();
  await far.post({ op: 'receive', context: 'r', pieces: [] });
  await near.post({ op: 'send', context: 's', pieces: [] });
  const [result] = await far.received(1);
  t.same([result?.context, result?.status, result?.bytes], ['r', SUCCESS, 0], 'An empty message');
  t.results(await near.done(1), [['s', SUCCESS]], 'The empty Send');
});

for (const op of ['send', 'receive', 'read', 'write'] as const) {
  group.add(
    `${op}-pieces-limit`,
    `§IND2QueuePair::${op}: DATA_OVERRUN beyond the granted entries`,
    async (t) => {
      const { near, far } = await t.pair({ near: { receiveSge: 2, requestSge: 2 } });
      const { target } = await far.open(ALLOW_READ | ALLOW_WRITE);
      await far.post(...receives(1));
      const with_ = (count: number): Post => ({
        op,
        context: count,
        pieces: Array.from({ length: count }, (_, i) => ({ at: i * 8, length: Math.ceil(16 / count) })),
        ...(op === 'read' || op === 'write' ? { target } : {}),
      });
      const granted = op === 'receive' ? near.receiveSge : near.requestSge;
      t.same(granted >= 2, true, `${op}: at least the 2 requested entries are granted; got ${granted}`);
      // Small Sends and Writes may be inline, where the limit does not apply.
      const pieces = Array.from({ length: granted + 1 }, (_, i) => ({ at: i * 8, length: 1000 }));
      t.status(
        await near.postStatus({ ...with_(0), pieces }),
        Status.DATA_OVERRUN,
        `${op} of ${granted + 1} entries with ${granted} granted`,
      );
      t.status(await near.postStatus(with_(granted)), SUCCESS, `${op} of ${granted} entries`);
      if (op === 'receive') await far.post(...sends(1, 16));
      t.results(
        op === 'receive' ? await near.received(1) : await near.done(1),
        [[granted, SUCCESS]],
        `${op} of ${granted} entries`,
      );
    },
  );
}

group.add(
  'pieces-at-the-limit',
  '§ND2_ADAPTER_INFO: MaxInitiatorSge, MaxReceiveSge and MaxReadSge are usable',
  async (t) => {
    const { requestSge, receiveSge } = t.nearInfo.limits;
    const sge = Math.min(requestSge, t.farInfo.limits.receiveSge, receiveSge, 500);
    const reads = Math.min(t.nearInfo.limits.readSge, sge);
    const options = { receiveSge: sge, requestSge: sge };
    const { near, far } = await t.pair({ near: options, far: options });
    const spread = (count: number) => Array.from({ length: count }, (_, i) => ({ at: i * 100, length: 40 }));
    const { target } = await far.open(ALLOW_READ, 65_536);
    await far.post({ op: 'receive', context: 'r', pieces: spread(sge) });
    await near.post({ op: 'send', context: 's', pieces: spread(sge) });
    const [result] = await far.received(1);
    t.same([result?.status, result?.bytes], [SUCCESS, sge * 40], 'A message of as many entries as allowed');
    await near.post({ op: 'read', context: 'd', pieces: spread(reads), target });
    t.results(
      await near.done(2),
      [
        ['s', SUCCESS],
        ['d', SUCCESS],
      ],
      'Send and Read of as many entries as allowed',
    );
  },
);

group.add('receive-fits-exactly', '§IND2QueuePair::Receive: a message as long as its Receive', async (t) => {
  const { near, far } = await t.pair();
  await far.post({ op: 'receive', context: 'r', pieces: [{ at: 0, length: 1000 }] });
  await near.post(...sends(1, 1000));
  const [result] = await far.received(1);
  t.same([result?.status, result?.bytes], [SUCCESS, 1000], 'A message that fits exactly');
});

group.add(
  'receive-too-short',
  '§ND2_RESULT: a message one byte longer than its Receive fails on both sides',
  async (t) => {
    const { near, far } = await t.pair();
    const gone = await t.far.notifyDisconnect(far.link);
    await far.post(
      { op: 'receive', context: 'short', pieces: [{ at: 0, length: 999 }] },
      ...receives(2, 64, 1, 1024),
    );
    await near.post(...sends(1, 1000), ...sends(2, 64, 1));
    t.results(
      await far.received(3),
      [
        ['short', t.statuses.tooLong],
        [1, CANCELED],
        [2, CANCELED],
      ],
      'Receives of the side whose Receive was too short',
    );
    t.results(
      await near.done(3),
      [
        [0, t.statuses.remoteInvalid],
        [1, CANCELED],
        [2, CANCELED],
      ],
      'Sends of the other side',
    );
    await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect of a connection ended by an error');
  },
);

group.add('no-receive', '§ND2_RESULT: a Send without a Receive ends in bounded time', async (t) => {
  const { near, far } = await t.pair();
  await near.post(...sends(2));
  t.results(
    await near.done(2),
    [
      [0, t.statuses.timeout],
      [1, CANCELED],
    ],
    'A Send without a Receive, and the next',
  );
  t.same(await t.far.poll(far.inbound, 8), [], 'Results of the side without a Receive');
});

group.add('inline', '§ND_OP_FLAG_INLINE, §INDConnector::CreateEndpoint: inline bytes', async (t) => {
  const { near, far } = await t.pair();
  const { maxInline } = near;
  if (maxInline === 0) t.skip('This adapter does not support inline requests.');
  const flags = INLINE[t.spi];
  const plain = Array.from({ length: maxInline }, (_, i) => (i * 3 + 1) & 0xff);
  await far.post(...receives(2, 4096));
  // The caller may change the bytes as soon as the call has returned.
  await near.post({
    op: 'send',
    context: 1,
    pieces: [{ at: 0, length: maxInline, plain }],
    flags,
    scribble: true,
  });
  const [result] = await far.received(1);
  t.same([result?.status, result?.bytes], [SUCCESS, maxInline], 'An inline message of maximum length');
  t.same(await t.far.peek(far.memory, 0, maxInline), plain, 'Its bytes');
  t.run(await near.done(1), 1, SUCCESS, 'The inline Send', 1);
  const { target } = await far.open(ALLOW_WRITE, 4096, 8192);
  await near.post({
    op: 'write',
    context: 2,
    pieces: [{ at: 4, length: 8, plain }],
    target,
    offset: 100,
    flags,
    scribble: true,
  });
  t.run(await near.done(1), 1, SUCCESS, 'The inline Write', 2);
  t.same(await t.far.peek(far.memory, 8292, 8), plain.slice(4, 12), 'Bytes of the inline Write');
  const long = [...plain, 0];
  t.status(
    await near.postStatus({ op: 'send', pieces: [{ at: 0, length: maxInline + 1, plain: long }], flags }),
    t.spi === 'v1' ? Status.INVALID_HANDLE : [Status.BUFFER_OVERFLOW, Status.DATA_OVERRUN],
    'An unregistered message one byte above the inline limit',
  );
});

group.add('inline-nothing-elsewhere', '§ND_SGE: other requests need registered memory', async (t) => {
  const { near, far } = await t.pair();
  const { target } = await far.open(ALLOW_READ);
  const pieces = [{ at: 0, length: 8, plain: Array(8).fill(1) as number[] }];
  for (const post of [
    { op: 'receive', pieces },
    { op: 'read', pieces, target },
  ] satisfies Post[]) {
    t.status(await near.postStatus(post), Status.INVALID_HANDLE, `${post.op} into unregistered memory`);
  }
});

for (const op of ['send', 'receive', 'read', 'write'] as const) {
  group.add(
    `${op}-longer-than-anything`,
    `§IND2QueuePair::${op}: BUFFER_OVERFLOW above MaxTransferLength`,
    async (t) => {
      const { transfer } = t.nearInfo.limits;
      if (transfer >= 2 ** 32)
        t.skip('Two entries cannot exceed the maximum transfer length of this adapter.');
      const { near, far } = await t.pair();
      const { target } = await far.open(ALLOW_READ | ALLOW_WRITE);
      const half = Math.ceil(transfer / 2);
      const post: Post = {
        op,
        pieces: [
          { at: 0, length: half },
          { at: 0, length: transfer - half + 1 },
        ],
        ...(op === 'read' || op === 'write' ? { target } : {}),
      };
      t.status(await near.postStatus(post), Status.BUFFER_OVERFLOW, `${op} of ${transfer + 1} bytes`);
    },
  );
}

for (const op of ['read', 'write'] as const) {
  group.add(`${op}-contents`, `§IND2QueuePair::${op}`, async (t) => {
    const memory = { memory: 1 << 20 };
    const { near, far } = await t.pair({ near: memory, far: memory });
    const flags = op === 'read' ? ALLOW_READ : ALLOW_WRITE;
    const { target } = await far.open(flags, 1 << 20);
    const [source, sink] = op === 'read' ? [far, near] : [near, far];
    for (const [i, length] of lengths.entries()) {
      const remoteAt = 500_000 + i * 13;
      const [from, to] = op === 'read' ? [remoteAt, 7 + i] : [7 + i, remoteAt];
      await source.party.fill(source.memory, from, length, i);
      const before = (await sink.party.peek(sink.memory, to + length, 1))[0];
      await near.post({ op, context: i, pieces: [{ at: 7 + i, length }], target, offset: remoteAt });
      const [result] = await near.done(1);
      t.same([result?.context, result?.status], [i, SUCCESS], `${op} of ${length} bytes`);
      if (t.spi === 'v1') t.same(result?.bytes, length, `Bytes of the ${op}`);
      await t.holds(sink, to, length, i, `${op} of ${length} bytes`);
      t.same(
        (await sink.party.peek(sink.memory, to + length, 1))[0],
        before,
        `The byte after ${length} bytes`,
      );
    }
    t.same(await t.far.poll(far.inbound, 4), [], `Results at the peer of a ${op}`);
  });
}

group.add(
  'zero-bytes-need-no-memory',
  '§IND2QueuePair::Read, ::Write: 0 bytes need no valid token',
  async (t) => {
    const { near } = await t.pair();
    const target = { address: '12345', length: 0, key: 0x1234_5678 };
    await near.post(
      { op: 'read', context: 0, pieces: [], target },
      { op: 'write', context: 1, pieces: [], target },
    );
    t.run(await near.done(2), 2, SUCCESS, 'Read and Write of 0 bytes with a made-up token');
  },
);

group.add('write-then-send', '§IND2QueuePair::Write: a Send arrives after earlier Writes', async (t) => {
  const memory = { memory: 1 << 20 };
  const { near, far } = await t.pair({ near: memory, far: memory });
  const { target } = await far.open(ALLOW_WRITE, 400_000);
  for (let round = 0; round < 5; round += 1) {
    await t.near.fill(near.memory, 0, 400_000, round);
    await far.post({ op: 'receive', context: round, pieces: [{ at: 500_000, length: 64 }] });
    await near.post(
      { op: 'write', context: 'w', pieces: [{ at: 0, length: 400_000 }], target },
      ...sends(1, 8, round),
    );
    t.run(await far.received(1), 1, SUCCESS, 'Receive', round);
    await t.holds(far, 0, 400_000, round, 'Data written before the Send');
    await near.done(2);
  }
});

group.add('last-byte-last', '§ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED', async (t) => {
  const memory = { memory: 256 << 10 };
  const { near, far } = await t.pair({ near: memory, far: memory });
  const length = 200_000;
  const { target } = await far.open(ALLOW_WRITE, length);
  await t.near.fill(near.memory, 0, length, 4);
  const last = (await t.near.peek(near.memory, length - 1, 1))[0]!;
  // The byte has changed to another value by now.
  if ((await t.far.peek(far.memory, length - 1, 1))[0] === last)
    await t.far.fill(far.memory, length - 1, 1, last);
  await near.post({ op: 'write', context: 'w', pieces: [{ at: 0, length }], target });
  const seen = await t.far.spinUntil(far.memory, length - 1, last);
  t.same(seen, true, 'The last byte of a Write becomes visible when polling the memory');
  await t.holds(far, 0, length, 4, 'The whole Write once its last byte is visible');
});

group.add('read-fence', '§ND_OP_FLAG_READ_FENCE', async (t) => {
  const length = 4 << 20;
  // The request is short, so that a provider without the fence executes it immediately.
  const tail = 256;
  // There are several, so that the last one is still outstanding when a provider without the fence executes the request
  // after it.
  const reads = 8;
  const { near, far } = await t.pair({
    near: { memory: length, requests: 2 * reads },
    far: { memory: length + tail },
  });
  const { target } = await far.open(ALLOW_READ | ALLOW_WRITE, length + tail);
  for (let round = 0; round < 8; round += 1) {
    await t.far.fill(far.memory, length - tail, tail, round + 1);
    await t.near.fill(near.memory, length - tail, tail, round + 101);
    // The fenced Write sends the last byte that the last Read delivers.
    await near.post(
      ...Array.from(
        { length: reads },
        (_, context): Post => ({
          op: 'read',
          context,
          pieces: [{ at: 0, length: context < reads - 1 ? length - tail : length }],
          target,
        }),
      ),
      {
        op: 'write',
        context: reads,
        pieces: [{ at: length - tail, length: tail }],
        target,
        offset: length,
        flags: READ_FENCE,
      },
    );
    t.run(await near.done(reads + 1), reads + 1, SUCCESS, 'Reads and fenced Write');
    await t.holds(far, length, tail, round + 1, 'Bytes of the last Read, sent by the fenced Write');
  }
});

group.add('many-reads', '§IND2Connector::Connect: more Reads than the limit are queued', async (t) => {
  const { near, far } = await t.pair({ near: { outboundReads: 2, requests: 32 }, far: { inboundReads: 2 } });
  await t.far.fill(far.memory, 0, 32_768, 9);
  const { target } = await far.open(ALLOW_READ, 32_768);
  await near.post(
    ...Array.from(
      { length: 32 },
      (_, i): Post => ({
        op: 'read',
        context: i,
        pieces: [{ at: i * 1024, length: 1024 }],
        target,
        offset: i * 1024,
      }),
    ),
  );
  t.run(await near.done(32), 32, SUCCESS, 'Reads with a limit of two in flight');
  await t.holds(near, 0, 32_768, 9, 'The bytes read');
});

group.add('no-reads-allowed', '§IND2Connector::Connect: an outbound limit of 0', async (t) => {
  const { near, far } = await t.pair({ near: { outboundReads: 0 } });
  const { target } = await far.open(ALLOW_READ);
  const status = await near.postStatus({ op: 'read', context: 'r', pieces: [{ at: 0, length: 64 }], target });
  if (status === SUCCESS) {
    const [result] = await near.done(1);
    t.ok(
      result !== undefined && result.status !== SUCCESS,
      'A Read with an outbound limit of 0',
      'a failure',
      result === undefined ? 'nothing' : 'SUCCESS',
    );
  } else {
    t.status(
      status,
      [Status.CONNECTION_INVALID, Status.UNSUCCESSFUL, Status.INVALID_DEVICE_REQUEST],
      'That Read',
    );
  }
});

group.add('large', '§ND2_ADAPTER_INFO: messages, Reads and Writes of many MiB', async (t) => {
  const size = Math.min(16 << 20, t.nearInfo.limits.transfer, t.farInfo.limits.transfer);
  const memory = { memory: size };
  const { near, far } = await t.pair({ near: memory, far: memory });
  const { target } = await far.open(ALLOW_READ | ALLOW_WRITE, size);
  await t.near.fill(near.memory, 0, size, 1);
  await near.post({ op: 'write', context: 'w', pieces: [{ at: 0, length: size }], target });
  t.results(await near.done(1), [['w', SUCCESS]], `A Write of ${size} bytes`);
  await t.holds(far, 0, size, 1, 'The bytes written');
  await t.far.fill(far.memory, 0, size, 2);
  await near.post({ op: 'read', context: 'r', pieces: [{ at: 0, length: size }], target });
  t.results(await near.done(1), [['r', SUCCESS]], `A Read of ${size} bytes`);
  await t.holds(near, 0, size, 2, 'The bytes read');
  await far.post({ op: 'receive', context: 'm', pieces: [{ at: 0, length: size }] });
  await t.near.fill(near.memory, 0, size, 3);
  await near.post({ op: 'send', context: 's', pieces: [{ at: 0, length: size }] });
  const [result] = await far.received(1);
  t.same([result?.status, result?.bytes], [SUCCESS, size], `A message of ${size} bytes`);
  await t.holds(far, 0, size, 3, 'The message');
});

group.add('one-to-itself', '§ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED', async (t) => {
  const one = await End.make(t.near);
  const cqs = { inbound: one.inbound, outbound: one.outbound };
  const other = await End.make(t.near, cqs);
  const { listener, address } = await t.listen('near');
  await t.join(one, other, listener, address);
  await other.post(...receives(2));
  await one.post(...sends(2));
  t.run(await t.near.take(one.inbound, 2), 2, SUCCESS, 'Receives');
  t.run(await t.near.take(one.outbound, 2), 2, SUCCESS, 'Sends');
});
