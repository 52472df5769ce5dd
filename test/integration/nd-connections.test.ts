/** Connections of both versions established, refused, abandoned and ended, both sides in this process. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, textOf } from '../../nd/cli/sides/connected-side.js';
import { type NdError, NdOpFlag, Status, statusName } from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import {
  type AnyHost,
  accept,
  connect,
  connected,
  newSide,
  pair,
  post,
  results,
  statuses,
  unconnected,
  versions,
} from '../helpers/nd-sides.js';
import { outcome } from '../helpers/outcome.js';
import { HANG_MS } from '../helpers/within.js';

const text = (value: string) => new TextEncoder().encode(value);

for (const { spi, says, open } of versions) {
  const test = suite<{ host: AnyHost }>(`ND ${spi} connections in one process`);

  test.before((context) => {
    context.host = open();
  });
  test.after(({ host }) => {
    host.release();
  });

  test(
    'T11 G2 after refusals: the data of the last, the same connector, port and queue pair, and the Receives posted before',
    unconnected(async ({ host, active, passive }) => {
      active.receive('posted before', active.sge(0, 10));
      const listener = host.listen();
      const dead = listener.address;
      listener.release();
      assert.is(await outcome(connect(active, dead)), Status.CONNECTION_REFUSED);
      assert.is(textOf(active.privateData), '', 'nobody said anything');
      const { port } = active.connector.getLocalAddress();

      const rejector = newSide(host);
      const requested = host.listening.request(rejector);
      const refused = connect(active, host.listening.address);
      await requested;
      rejector.connector.reject(new Uint8Array(56).fill(0x42));
      assert.is(await outcome(refused), Status.CONNECTION_REFUSED);
      assert.equal(active.privateData.subarray(0, 56), new Uint8Array(56).fill(0x42));

      const again = host.listening.request(passive);
      const joined = connect(active, host.listening.address);
      await again;
      const accepted = accept(passive);
      await joined;
      assert.is(active.connector.getLocalAddress().port, port, 'G4 the port stays');
      await active.completeConnect();
      await accepted;
      passive.send('s', passive.sge(0, 10));
      const [{ context, status } = { context: '', status: -1 }] = await results(active, 'inbound');
      assert.equal([context, status], ['posted before', Status.SUCCESS]);
      rejector.release();
    }),
  );

  test(
    'T11 the active side turns the reply down: Accept is CONNECTION_REFUSED, its queue pair flushed, both ended',
    unconnected(async ({ host, active, passive }) => {
      passive.receive('r', passive.sge(0, 10));
      const requested = host.listening.request(passive);
      const replied = connect(active, host.listening.address);
      await requested;
      const accepted = accept(passive);
      await replied;
      active.connector.reject(text('no, thanks'));
      assert.is(await outcome(accepted), Status.CONNECTION_REFUSED);
      assert.is(textOf(passive.privateData), 'no, thanks');
      assert.equal(await statuses(passive, 'inbound'), ['CANCELED']);
      assert.is(
        statusOf(() => accept(passive)),
        Status.CONNECTION_ABORTED,
      );
      assert.is(
        statusOf(() => active.completeConnect()),
        Status.CONNECTION_ABORTED,
      );
    }),
  );

  for (const method of ['accept', 'reject'] as const) {
    test(
      `a requester that gives up: ${method} of the other side, and its private data, say so`,
      unconnected(async ({ host, active, passive }) => {
        const requested = host.listening.request(passive);
        const request = connect(active, host.listening.address);
        await requested;
        active.connector.cancelOverlappedRequests();
        assert.is(request.status, Status.CANCELED);
        assert.is(
          statusOf(() => connect(active, host.listening.address)),
          Status.INVALID_DEVICE_STATE,
        );
        let status = 0;
        for (const patience = AbortSignal.timeout(HANG_MS); status === 0 && !patience.aborted; ) {
          // The peer's message is under way.
          status = statusOf(() => passive.privateData);
          await new Promise((resolve) => setImmediate(resolve));
        }
        assert.is(status, Status.CONNECTION_ABORTED);
        const call = async () => {
          if (method === 'reject') passive.connector.reject();
          else await accept(passive);
        };
        const over = method === 'accept' ? Status.CONNECTION_ABORTED : Status.CONNECTION_INVALID;
        assert.is(await outcome(call()), over);
      }),
    );
  }

  test(
    'an Accept that a canceled Connect overtakes fails',
    unconnected(async ({ host, active, passive }) => {
      const requested = host.listening.request(passive);
      const request = connect(active, host.listening.address);
      await requested;
      active.connector.cancelOverlappedRequests();
      assert.is(await outcome(request), Status.CANCELED);
      const accepted = await outcome(accept(passive));
      assert.ok(
        accepted === Status.CONNECTION_ABORTED || accepted === Status.CONNECTION_REFUSED,
        statusName(accepted),
      );
    }),
  );

  test(
    'a peer without a port is refused at once; a released connector refuses its request',
    unconnected(async ({ host, active, passive }) => {
      const { address } = host.listening;
      for (const peer of [ADDRESS, { ...address, port: 0 }, { ...address, port: 65_536 }]) {
        assert.throws(
          () => connect(active, peer),
          ({ status, message }: NdError) =>
            status === Status.INVALID_ADDRESS && message.includes('from 1 to 65535'),
        );
      }
      const requested = host.listening.request(passive);
      const request = connect(active, address);
      await requested;
      passive.connector.release();
      assert.is(await outcome(request), Status.CONNECTION_REFUSED);
    }),
  );

  test('a port is taken once on a host, and free again after its listener', ({ host }) => {
    const other = open();
    const { port } = host.listening.address;
    for (const taker of [host, other]) {
      const taken = statusOf(() => taker.listen(port));
      assert.ok(
        taken === Status.ADDRESS_ALREADY_EXISTS || (spi === 'v2' && taken === Status.SHARING_VIOLATION),
        statusName(taken),
      );
    }
    const first = host.listen();
    const free = first.address.port;
    first.release();
    const again = other.listen(free);
    assert.is(again.address.port, free);
    again.release();
    other.release();
  });

  test('T10 many connectors on the listener’s own address and port, at once', async ({ host }) => {
    const own = host.listening.address;
    const [active, passive] = [0, 1].map(() => Array.from({ length: 8 }, () => newSide(host))) as [
      ReturnType<typeof newSide>[],
      ReturnType<typeof newSide>[],
    ];
    const served = Promise.all(
      passive.map(async (side) => {
        await host.listening.request(side);
        assert.equal(side.peerAddress, own);
        await accept(side);
      }),
    );
    await Promise.all(
      active.map(async (side) => {
        const request = connect(side, own, undefined, own);
        assert.equal(side.connector.getLocalAddress(), own);
        await request;
        await side.completeConnect();
      }),
    );
    await served;
    for (const [i, side] of passive.entries()) side.receive(i, side.sge(0, 10));
    for (const side of active) side.send('s', side.sge(0, 10));
    for (const side of passive) assert.equal(await statuses(side, 'inbound'), ['SUCCESS']);
    for (const side of [...active, ...passive]) side.release();
  });

  test(
    'a released listener cancels what waits on it',
    unconnected(async ({ host, passive }) => {
      const listener = host.listen();
      const waiting = listener.request(passive);
      listener.release();
      assert.is(await outcome(waiting), Status.CANCELED);
    }),
  );

  for (const ender of ['active', 'passive'] as const) {
    test(
      `T5 G6 G12 G13 disconnect by the ${ender} side: told, delivered, flushed, without a call of the other`,
      connected(async (two) => {
        const [mine, other] = ender === 'active' ? [two.active, two.passive] : [two.passive, two.active];
        for (let i = 0; i < 4; i += 1) other.receive(i, other.sge(0, 10));
        mine.receive('mine', mine.sge(0, 10));
        mine.send('last words', mine.sge(0, 10));
        // Requests that completed before the disconnect are delivered at the peer.
        assert.equal(await statuses(mine, 'outbound'), ['SUCCESS']);
        const [own, told] = [mine.notifyDisconnect(), other.notifyDisconnect()];
        const disconnected = mine.disconnect();
        // Disconnecting, or disconnected already if the peer was that fast.
        const again = statusOf(() => mine.disconnect());
        assert.ok(
          again === Status.INVALID_DEVICE_STATE || again === Status.CONNECTION_INVALID,
          statusName(again),
        );
        assert.is(await outcome(disconnected), Status.SUCCESS);
        assert.is(await outcome(own), says.ownDisconnect);
        assert.is(await outcome(told), Status.SUCCESS);
        assert.equal(await statuses(mine, 'inbound'), ['CANCELED']);
        assert.equal(
          (await results(other, 'inbound', 4)).map(({ context, status }) => [context, statusName(status)]),
          [
            [0, 'SUCCESS'],
            [1, 'CANCELED'],
            [2, 'CANCELED'],
            [3, 'CANCELED'],
          ],
        );
        // A post after the end comes back canceled.
        mine.send('late', mine.sge(0, 10));
        assert.equal(await statuses(mine, 'outbound'), ['CANCELED']);
        assert.is(await outcome(other.notifyDisconnect()), Status.SUCCESS);
        assert.is(await outcome(other.disconnect()), Status.SUCCESS);
        for (const side of [mine, other]) {
          assert.is(
            statusOf(() => side.disconnect()),
            Status.CONNECTION_INVALID,
          );
          assert.is(
            statusOf(() => side.notifyDisconnect()),
            Status.CONNECTION_DISCONNECTED,
          );
        }
      }),
    );
  }

  test('T15 both sides disconnect at once, and both succeed', async ({ host }) => {
    for (let round = 0; round < 5; round += 1) {
      const { active, passive } = await pair(host);
      for (const side of [active, passive]) for (let i = 0; i < 3; i += 1) side.receive(i, side.sge(0, 100));
      for (const request of [active.disconnect(), passive.disconnect()])
        assert.is(await outcome(request), Status.SUCCESS);
      for (const side of [active, passive]) {
        assert.equal(await statuses(side, 'inbound', 3), Array(3).fill('CANCELED'));
        side.release();
      }
    }
  });

  test(
    'disconnect with Sends outstanding: each comes back once',
    connected(async ({ active }) => {
      const disconnected = active.disconnect();
      // The queue pair is in ERROR, or is about to be, so these are not received.
      for (let i = 0; i < 20; i += 1)
        post(active, 'send', i, active.sge(0, 1000), { flags: NdOpFlag.SILENT_SUCCESS });
      const all = await results(active, 'outbound', 20);
      assert.equal(
        all.map(({ context }) => context),
        Array.from({ length: 20 }, (_, i) => i),
      );
      assert.ok(all.slice(1).every(({ status }) => status === Status.CANCELED));
      await disconnected;
    }),
  );

  test(
    'releasing a connected connector is a disconnect for the peer',
    connected(async ({ active, passive }) => {
      passive.receive('r', passive.sge(0, 100));
      const gone = passive.notifyDisconnect();
      active.connector.release();
      assert.is(await outcome(gone), Status.SUCCESS);
      assert.equal(await statuses(passive, 'inbound'), ['CANCELED']);
    }),
  );

  test.run();
}
