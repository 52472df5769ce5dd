/**
 * ND through the whole stack, in what both versions have in common: both sides in this process, over 127.0.0.1. T and G in
 * names number the traps and gaps that nd2-coverage.test.ts lists.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, type Piece, type Remote, textOf } from '../../nd/cli/sides/connected-side.js';
import { Nd2RequestType, NdOpFlag, type Overlapped, Status } from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import {
  type AnyHost,
  type AnySide,
  altered,
  bind,
  connected,
  deregister,
  invalidate,
  join,
  newSide,
  pair,
  post,
  queuePairOf,
  readLimits,
  results,
  statuses,
  twoSides,
  unconnected,
  versions,
  window,
} from '../helpers/nd-sides.js';
import { outcome } from '../helpers/outcome.js';

const { ALLOW_READ, ALLOW_WRITE, SILENT_SUCCESS, SEND_AND_SOLICIT_EVENT } = NdOpFlag;
const { SEND, RECEIVE, READ, WRITE, INVALIDATE } = Nd2RequestType;
const text = (value: string) => new TextEncoder().encode(value);

/** Accesses of a window of 64 bytes that it does not allow. */
const violations: [string, number, (side: AnySide, remote: ReturnType<typeof bind>) => void][] = [
  [
    'a Write where only reading is allowed',
    ALLOW_READ,
    (side, remote) => side.write('x', side.sge(0, 8), remote, 0),
  ],
  [
    'a Read where only writing is allowed',
    ALLOW_WRITE,
    (side, remote) => side.read('x', side.sge(0, 8), remote, 0),
  ],
  ['a Read where nothing is allowed', 0, (side, remote) => side.read('x', side.sge(0, 8), remote, 0)],
  ['a Read one byte beyond', ALLOW_READ, (side, remote) => side.read('x', side.sge(0, 8), remote, 57)],
  [
    'a Read one byte before',
    ALLOW_READ,
    (side, remote) => side.read('x', side.sge(0, 8), altered(remote, -1n), 0),
  ],
  [
    'a Write with a made-up token',
    ALLOW_WRITE,
    (side, remote) =>
      side.write('x', side.sge(0, 8), altered(remote, 0n, (remote.token ^ 0x5a5a5a00) >>> 0), 0),
  ],
];

for (const { spi, says, open } of versions) {
  const test = suite<{ host: AnyHost }>(`ND ${spi} in one process`);

  test.before((context) => {
    context.host = open();
  });
  test.after(({ host }) => {
    host.release();
  });

  test('the address list has what adapters can be opened by', ({ host }) => {
    const list = host.provider.queryAddressList();
    assert.ok(list.some(({ address }) => address === ADDRESS));
    for (const address of list) host.provider.openAdapter(address).release();
  });

  test('T12 T13 G15 what connecting tells: data, limits, addresses, in each side’s view', async ({
    host,
  }) => {
    const two = twoSides(host, { active: { limits: [3, 5] }, passive: { limits: [4, 16] } });
    const { active, passive } = two;
    const { port } = host.listening.address;
    await join(host, two, {
      connect: text('active'),
      accept: text('passive'),
      onRequest: () => {
        const data = passive.privateData;
        assert.is(textOf(data), 'active');
        assert.ok(
          data.subarray(6).every((byte) => byte === 0),
          'padded with zeros, if at all',
        );
        // Inbound here is the peer's outbound.
        assert.equal(readLimits(passive), [5, 3]);
        assert.is(passive.connector.getLocalAddress().port, port);
        assert.equal(passive.peerAddress, active.connector.getLocalAddress());
      },
      onReply: () => {
        assert.is(textOf(active.privateData), 'passive');
        assert.equal(readLimits(active), [3, 4]);
        assert.equal(active.peerAddress, { family: 4, address: ADDRESS, port });
      },
    });
    assert.is(textOf(passive.privateData), 'active', 'still there after Accept');
    active.release();
    passive.release();
  });

  test(
    'messages arrive in order, each in one Receive, with types, contexts and lengths',
    connected(async ({ active, passive }) => {
      const lengths = [0, 1, 64, 1000, 4096, 5000, 70_000];
      for (const i of lengths.keys()) passive.receive(i, passive.sge(i * 100_000, 100_000));
      for (const [i, length] of lengths.entries()) {
        const [at, half] = [i * 100_000, length >> 1];
        active.bytes.fill(i + 1, at, at + length);
        active.send(i, [...active.sge(at, half), ...active.sge(at + half, length - half)]);
      }
      const all = (kind: Nd2RequestType) =>
        lengths.map((bytes, context) => ({ context, kind, status: Status.SUCCESS, bytes }));
      assert.equal(await results(passive, 'inbound', lengths.length), all(RECEIVE));
      const sent = await results(active, 'outbound', lengths.length);
      assert.equal(
        sent.map(({ context, kind, status }) => [context, kind, status]),
        all(SEND).map(({ context, kind, status }) => [context, kind, status]),
      );
      for (const [i, length] of lengths.entries()) {
        const place = passive.bytes.subarray(i * 100_000, i * 100_000 + 100_000);
        assert.ok(place.subarray(0, length).every((byte) => byte === i + 1));
        assert.ok(place.subarray(length).every((byte) => byte === 0));
      }
    }),
  );

  test(
    'a window lets the peer write and read, silently and aloud',
    connected(async ({ active, passive }) => {
      const remote = bind(passive, window(passive), ALLOW_READ | ALLOW_WRITE, { length: 65_536 });
      for (let i = 0; i < 65_536; i += 1) active.bytes[i] = (i * 7) & 0xff;
      post(active, 'write', 'silent', active.sge(0, 30_000), { remote, flags: SILENT_SUCCESS });
      active.write('aloud', active.sge(30_000, 35_536), remote, 30_000);
      const [written] = await results(active, 'outbound');
      assert.equal([written!.context, written!.kind], ['aloud', WRITE]);
      assert.is(Buffer.compare(passive.bytes.subarray(0, 65_536), active.bytes.subarray(0, 65_536)), 0);

      passive.bytes.fill(0x5a, 100, 200);
      active.read('read', active.sge(500_000, 100), remote, 100);
      const [read] = await results(active, 'outbound');
      assert.equal(read, { context: 'read', kind: READ, status: Status.SUCCESS, bytes: read!.bytes });
      assert.ok(active.bytes.subarray(500_000, 500_100).every((byte) => byte === 0x5a));
      assert.is(active.bytes[500_100], 0);
    }),
  );

  for (const [what, flags, violate] of violations) {
    test(
      `G9 windows: ${what} is refused, whatever the memory allows, and ends the connection on both sides`,
      connected(async ({ active, passive }) => {
        active.receive('a', active.sge(0, 100));
        passive.receive('p', passive.sge(600_000, 100));
        const gone = passive.notifyDisconnect();
        passive.bytes.fill(0x11, 0, 1000);
        const remote = bind(passive, window(passive), flags, { offset: 64, length: 64 });
        assert.equal(await statuses(passive, 'outbound'), ['SUCCESS']);
        violate(active, remote);
        active.send('after', active.sge(0, 8));
        assert.equal(await statuses(active, 'outbound', 2), [says.remoteAccess, 'CANCELED']);
        assert.equal(await statuses(active, 'inbound'), ['CANCELED']);
        assert.equal(await statuses(passive, 'inbound'), ['CANCELED']);
        await gone;
        assert.ok(
          passive.bytes.subarray(0, 1000).every((byte) => byte === 0x11),
          'nothing was written',
        );
      }),
    );
  }

  test(
    'after Invalidate the token is worth nothing',
    connected(async ({ active, passive }) => {
      const one = window(passive);
      const range = { length: 100 };
      const first = bind(passive, one, ALLOW_READ, range);
      invalidate(passive, one);
      const second = bind(passive, one, ALLOW_READ, range);
      assert.is.not(first.token, second.token);
      assert.equal(await statuses(passive, 'outbound', 3), ['SUCCESS', 'SUCCESS', 'SUCCESS']);
      active.read('new', active.sge(0, 100), second, 0);
      assert.equal(await statuses(active, 'outbound'), ['SUCCESS']);
      active.read('old', active.sge(0, 100), first, 0);
      assert.equal(await statuses(active, 'outbound'), [says.remoteAccess]);
    }),
  );

  test(
    'Invalidate of an unbound window is INVALID_DEVICE_REQUEST and ends the connection',
    connected(async ({ active, passive }) => {
      const gone = passive.notifyDisconnect();
      invalidate(active, window(active));
      const [result] = await results(active, 'outbound');
      const { status, kind } = result!;
      assert.equal([active.statusName(status), kind], ['INVALID_DEVICE_REQUEST', INVALIDATE]);
      await gone;
    }),
  );

  test(
    'G9 a window is for the peer of the queue pair it was bound on, and for no other',
    connected(async ({ host, active, passive }) => {
      const two = await pair(host);
      const own = window(passive);
      const remote = bind(passive, own, ALLOW_READ, { length: 64 });
      assert.equal(await statuses(passive, 'outbound'), ['SUCCESS']);
      active.read('mine', active.sge(0, 8), remote, 0);
      assert.equal(await statuses(active, 'outbound'), ['SUCCESS']);
      two.active.read('not mine', two.active.sge(0, 8), remote, 0);
      assert.equal(await statuses(two.active, 'outbound'), [says.remoteAccess]);
      for (const side of [two.active, two.passive]) side.release();
    }),
  );

  test(
    'G9 memory with a bound window cannot be deregistered until the window is gone',
    connected(async ({ host, passive }) => {
      const own = window(passive);
      const memory = await host.register(new Uint8Array(128));
      bind(passive, own, ALLOW_READ | ALLOW_WRITE, { length: 100, memory });
      assert.equal(await statuses(passive, 'outbound'), ['SUCCESS']);
      for (let call = 0; call < 300; call++) {
        const { completed, status } = deregister(passive, memory);
        assert.equal([completed, status], [true, Status.DEVICE_BUSY], `call ${call}: there when it returns`);
      }
      invalidate(passive, own);
      assert.equal(await statuses(passive, 'outbound'), ['SUCCESS']);
      assert.is(await outcome(deregister(passive, memory)), Status.SUCCESS);
      assert.is.not(
        statusOf(() => deregister(passive, memory)),
        Status.SUCCESS,
      );
    }),
  );

  test(
    'G9 a window dies with its connection: its memory is free, and it can be bound on another',
    connected(async ({ host, passive }) => {
      const own = window(passive);
      bind(passive, own, ALLOW_READ, { length: 100 });
      assert.equal(await statuses(passive, 'outbound'), ['SUCCESS']);
      queuePairOf(passive).flush();
      assert.is(await outcome(deregister(passive)), Status.SUCCESS);
      const second = await pair(host);
      const remote = bind(second.passive, own, ALLOW_READ, { length: 100 });
      second.active.read('r', second.active.sge(0, 100), remote, 0);
      assert.equal(await statuses(second.active, 'outbound'), ['SUCCESS']);
      for (const side of [second.active, second.passive]) side.release();
    }),
  );

  test(
    'as the guides say: a Read with an outbound limit of 0 ends in an error of its own',
    connected(
      async ({ active, passive }) => {
        const remote = bind(passive, window(passive), ALLOW_READ, { length: 100 });
        active.read('r', active.sge(0, 8), remote, 0);
        assert.equal(await statuses(active, 'outbound'), [says.noReads]);
        await passive.notifyDisconnect();
      },
      { active: { limits: [3, 0] } },
    ),
  );

  test(
    'T6 a message longer than its Receive: DATA_OVERRUN there, an error here, and the end',
    connected(async ({ active, passive }) => {
      active.receive('mine', active.sge(0, 10));
      passive.receive('short', passive.sge(0, 99));
      passive.receive('next', passive.sge(0, 99));
      active.send('long', active.sge(0, 100));
      assert.equal(await statuses(passive, 'inbound', 2), ['DATA_OVERRUN', 'CANCELED']);
      assert.equal(await statuses(active, 'outbound'), [says.remoteInvalid]);
      assert.equal(await statuses(active, 'inbound'), ['CANCELED']);
    }),
  );

  test(
    'N8 T21 G8 a late Receive is waited for; a Send that nobody receives ends, and the receiver sees nothing of it',
    connected(async ({ active, passive }) => {
      active.send('late', active.sge(0, 100));
      passive.receive('r', passive.sge(0, 100));
      assert.equal(await statuses(active, 'outbound'), ['SUCCESS']);
      assert.is((await results(passive, 'inbound'))[0]!.context, 'r');
      active.send('never', active.sge(0, 100));
      assert.equal(await statuses(active, 'outbound'), [says.unreceived]);
      assert.is(passive.take('inbound'), false);
    }),
  );

  for (const [where, offset, length] of [
    ['ends one byte beyond', 25, 1000],
    ['begins at the end of', 1024, 1],
    ['begins beyond', 1025, 64],
  ] as const) {
    for (const op of ['send', 'receive', 'read', 'write'] as const) {
      test(
        `local memory that ${where} its registration: a ${op} is queued, and its result is ACCESS_VIOLATION`,
        connected(async ({ host, active, passive }) => {
          const memory = await host.register(new Uint8Array(1024));
          const beyond: readonly Piece[] = memory.sge(offset, length);
          if (op === 'receive') {
            active.receive('beyond', beyond as never);
            passive.send('message', passive.sge(0, length));
            assert.equal(await statuses(active, 'inbound'), ['ACCESS_VIOLATION']);
          } else {
            const remote: Remote = bind(passive, window(passive), ALLOW_READ | ALLOW_WRITE, { length: 1024 });
            passive.receive('message', passive.sge(0, 1000));
            if (op === 'send') active.send('beyond', beyond as never);
            else active[op]('beyond', beyond as never, remote, 0);
            active.send('after', active.sge(0, 4));
            assert.equal(await statuses(active, 'outbound', 2), ['ACCESS_VIOLATION', 'CANCELED']);
            assert.equal(await statuses(passive, 'inbound'), ['CANCELED']);
          }
          memory.release();
        }),
      );
    }
  }

  test(
    'local memory: up to the end of a registration, and no bytes beyond it',
    connected(async ({ host, active, passive }) => {
      const memory = await host.register(new Uint8Array(64).fill(9));
      const remote = bind(passive, window(passive), ALLOW_WRITE, { length: 64 });
      passive.receive('r', passive.sge(100, 4));
      active.send('up to the end', memory.sge(60, 4) as never);
      active.write('up to the end', memory.sge(60, 4) as never, remote, 0);
      active.write('no bytes', memory.sge(100, 0) as never, remote, 0);
      assert.equal(await statuses(active, 'outbound', 3), ['SUCCESS', 'SUCCESS', 'SUCCESS']);
      assert.equal(await statuses(passive, 'inbound'), ['SUCCESS']);
      assert.equal([...passive.bytes.subarray(0, 5)], [9, 9, 9, 9, 0]);
      memory.release();
    }),
  );

  test(
    'T14 before the connection Receives are taken, all else is CONNECTION_INVALID; Flush works',
    unconnected(async ({ active }) => {
      for (let i = 0; i < 3; i += 1) active.receive(i, active.sge(0, 10));
      for (const call of [
        () => active.send('s', active.sge(0, 10)),
        () => active.read('r', active.sge(0, 10), active.remoteAt(0n, 10, 1), 0),
        () => bind(active, window(active), ALLOW_READ, { length: 1 }),
      ]) {
        assert.is(statusOf(call), Status.CONNECTION_INVALID);
      }
      queuePairOf(active).flush();
      queuePairOf(active).flush();
      active.receive('late', active.sge(0, 10));
      active.send('late', active.sge(0, 10));
      assert.equal(
        (await results(active, 'inbound', 4)).map(({ context, status }) => [context, status]),
        [0, 1, 2, 'late'].map((context) => [context, Status.CANCELED]),
      );
      assert.equal(await statuses(active, 'outbound'), ['CANCELED']);
    }),
  );

  test(
    'as many requests as a queue pair has entries, and no more',
    connected(
      async ({ active, passive }) => {
        for (let i = 0; i < 3; i += 1) active.receive(i, active.sge(0, 100));
        assert.is(
          statusOf(() => active.receive(3, active.sge(0, 100))),
          Status.NO_MORE_ENTRIES,
        );
        for (let i = 0; i < 6; i += 1) passive.receive(i, passive.sge(0, 100));
        for (let i = 0; i < 5; i += 1) active.send(i, active.sge(0, 100));
        assert.is(
          statusOf(() => active.send(5, active.sge(0, 100))),
          Status.NO_MORE_ENTRIES,
        );
        assert.equal(
          (await results(active, 'outbound', 5)).map(({ context }) => context),
          [0, 1, 2, 3, 4],
        );
        active.send(6, active.sge(0, 0));
        assert.equal(await statuses(active, 'outbound'), ['SUCCESS']);
      },
      { active: { receives: 3, requests: 5 } },
    ),
  );

  test(
    'notify: solicited events and any',
    connected(async ({ active, passive }) => {
      passive.receive(1, passive.sge(0, 100));
      passive.receive(2, passive.sge(0, 100));
      const solicited = passive.inbound.notify('solicited');
      active.send('s', active.sge(0, 10));
      assert.equal(await statuses(active, 'outbound'), ['SUCCESS']);
      assert.is(solicited.completed, false);
      post(active, 'send', 's', active.sge(0, 10), { flags: SEND_AND_SOLICIT_EVENT });
      await solicited;
      const pending = active.inbound.notify('errors');
      active.inbound.cancelOverlappedRequests();
      assert.is(pending.completed, true);
      assert.is(await outcome(pending), Status.CANCELED);
    }),
  );

  test('a whole connection with blocking calls only: no turn of the event loop', ({ host }) => {
    const { active, passive } = twoSides(host);
    const wait = { wait: true };
    passive.receive('r', passive.sge(0, 100));
    const requested = host.listening.request(passive);
    const connected = active.connect(host.listening.address);
    requested.getResult(wait);
    const accepted = passive.accept();
    connected.getResult(wait);
    active.connector.getOverlappedResult(active.completeConnect(), wait);
    // Another object may be queried.
    active.inbound.getOverlappedResult(accepted, wait);
    active.bytes.set(text('hello'));
    active.send('s', active.sge(0, 10));
    passive.notify('inbound').getResult(wait);
    assert.is(textOf(passive.bytes), 'hello');
    const gone = passive.notifyDisconnect();
    active.disconnect().getResult(wait);
    gone.getResult(wait);
    passive.disconnect().getResult(wait);
    active.release();
    passive.release();
  });

  test(
    'what is left in a queue after its queue pair went can still be read',
    connected(async ({ active }) => {
      for (let i = 0; i < 4; i += 1) active.receive(i, active.sge(0, 100));
      queuePairOf(active).release();
      assert.equal(await statuses(active, 'inbound', 4), Array(4).fill('CANCELED'));
    }),
  );

  test('T19 everything released in the wrong order, with requests outstanding, harms nobody', async () => {
    const host = open();
    const { active, passive } = await pair(host);
    const another = newSide(host);
    const waiting: Overlapped<unknown>[] = [
      active.notify('inbound'),
      active.notifyDisconnect(),
      host.listening.request(another),
    ];
    for (let i = 0; i < 5; i += 1) active.receive(i, active.sge(0, 10));
    host.provider.release();
    host.adapter.release();
    active.inbound.release();
    host.listening.release();
    const told = passive.notifyDisconnect();
    queuePairOf(active).release();
    assert.is(await outcome(told), Status.SUCCESS, 'the queue pair’s release is a disconnect');
    active.connector.release();
    active.outbound.release();
    for (const request of waiting) assert.is.not(await outcome(request), Status.SUCCESS);
    assert.is(active.connector.release(), 0, 'releasing too often takes nothing');
    assert.is(
      statusOf(() => queuePairOf(active).flush()),
      Status.INVALID_HANDLE,
    );
    passive.release();
    another.release();
  });

  test.run();
}
