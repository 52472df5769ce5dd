/**
 * ND through the whole stack: common behavior of both versions that the conformance suite does not require of every provider. Both sides
 * are in this process, over 127.0.0.1. T and G in names number the traps and gaps that nd2-coverage.test.ts lists.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, textOf } from '../../nd/cli/sides/connected-side.js';
import { type NdError, NdOpFlag, type Overlapped, Status } from '../../nd/index.js';
import { endsIn, statusOf } from '../helpers/nd-fixture.js';
import {
  type AnyHost,
  bind,
  connect,
  connected,
  deregister,
  invalidate,
  newSide,
  pair,
  queuePairOf,
  results,
  statuses,
  twoSides,
  unconnected,
  versions,
  window,
} from '../helpers/nd-sides.js';
import { outcome } from '../helpers/outcome.js';

const { ALLOW_READ, ALLOW_WRITE } = NdOpFlag;
const text = (value: string) => new TextEncoder().encode(value);

for (const { spi, says, open } of versions) {
  const test = suite<{ host: AnyHost }>(`ND ${spi} in one process`);

  test.before((context) => {
    context.host = open();
  });
  test.after(({ host }) => {
    host.release();
  });

  test(
    'G9 memory with a bound window cannot be deregistered until the window is released',
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
    'as the guides say: a Read with an outbound limit of 0 ends in a distinct error',
    connected(
      async ({ active, passive }) => {
        const remote = bind(passive, window(passive), ALLOW_READ, { length: 100 });
        active.read('r', active.sge(0, 8), remote, 0);
        assert.equal(await statuses(active, 'outbound'), [says.noReads]);
        await passive.notifyDisconnect();
      },
      [3, 0],
    ),
  );

  test(
    'N8 T21 G8 a Send waits for a late Receive; without a Receive it fails, and the receiver is not affected',
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

  test(
    'a Send after Flush, or after the end of its connection, ends as canceled',
    unconnected(async ({ host, active }) => {
      queuePairOf(active).flush();
      const two = await pair(host);
      await two.active.disconnect();
      for (const side of [active, two.active]) {
        side.send('late', side.sge(0, 10));
        assert.equal(await statuses(side, 'outbound'), ['CANCELED']);
        if (side !== active) side.release();
      }
      two.passive.release();
    }),
  );

  test(
    'local memory: requests may use a registration up to its end, but not beyond it',
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
    'a requester that gives up: its private data can be read, and Accept reports this',
    unconnected(async ({ host, active, passive }) => {
      const requested = host.listening.request(passive);
      const request = connect(active, host.listening.address);
      await requested;
      active.connector.cancelOverlappedRequests();
      assert.is(request.status, Status.CANCELED);
      endsIn(() => connect(active, host.listening.address), Status.INVALID_DEVICE_STATE);
      assert.instance(passive.privateData, Uint8Array);
      // The peer's message may arrive before or after the reply is sent.
      const over = await outcome(passive.accept());
      assert.ok([Status.CONNECTION_ABORTED, Status.CONNECTION_REFUSED].includes(over as never), String(over));
      endsIn(() => passive.connector.reject(), Status.CONNECTION_INVALID);
    }),
  );

  test(
    'the error for a peer without a port says so; a released connector rejects its request',
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
        await side.accept();
      }),
    );
    await Promise.all(
      active.map(async (side) => {
        const request = connect(side, own, own);
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

  test('a whole connection with blocking calls only, without a turn of the event loop', ({ host }) => {
    const { active, passive } = twoSides(host);
    const wait = { wait: true };
    passive.receive('r', passive.sge(0, 100));
    const requested = host.listening.request(passive);
    const connected = active.connect(host.listening.address);
    requested.getResult(wait);
    const accepted = passive.accept();
    connected.getResult(wait);
    active.connector.getOverlappedResult(active.completeConnect(), wait);
    // The result may be queried with another object.
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

  test('T19 releasing everything in the wrong order, with outstanding requests, does no harm', async () => {
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
    const reported = passive.notifyDisconnect();
    queuePairOf(active).release();
    assert.is(await outcome(reported), Status.SUCCESS, 'the queue pair’s release is a disconnect');
    active.connector.release();
    active.outbound.release();
    for (const request of waiting) assert.is.not(await outcome(request), Status.SUCCESS);
    assert.is(active.connector.release(), 0, 'releasing too often takes nothing');
    endsIn(() => queuePairOf(active).flush(), Status.INVALID_HANDLE);
    passive.release();
    another.release();
  });

  test.run();
}
