// Datagram endpoints between processes: lookup, accept and messages in both directions; groups; and all errors.
import { type ChildProcess, fork } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import {
  type KernelOptionsInput,
  openProvider,
  Status,
  statusName,
  WvDatagram,
} from '../../winverbs/index.js';
import { openDatagramSide, socketAddressOf } from '../helpers/datagram-side.js';
import { needing } from '../helpers/needs.js';
import { outcomeName } from '../helpers/outcome.js';
import { programFile } from '../helpers/programs.js';
import { firstIf, long } from '../helpers/tiers.js';

const program = programFile(new URL('../helpers/datagram-program.js', import.meta.url));
const SIDR_REQ = '23';
const SIDR_REP = '24';
/** Lookups are repeated after 0.27 s, so that a missing reply costs little time. */
const cm = { responseTimeoutCode: 16, maxRetries: 5 };
const AGAIN_MS = 268;
const GROUP = '239.77.1.3';

interface Report {
  ready?: number;
  qpn?: number;
  ms?: number;
  asked?: number;
  port?: number;
  text?: string;
  counters?: ReturnType<typeof readCounters>;
}

/** Another process that runs datagram-program. */
class Other {
  readonly #child: ChildProcess;
  readonly #unread: Report[] = [];
  #onMessage: (() => void) | undefined;
  port = 0;
  qpn = 0;
  /** Duration of the lookup in ms. */
  ms = 0;

  private constructor(args: string[], kernel: KernelOptionsInput) {
    this.#child = fork(program, args, { env: { ...process.env, ND_OPTIONS: JSON.stringify(kernel) } });
    this.#child.on('message', (message: Report) => {
      this.#unread.push(message);
      this.#onMessage?.();
    });
    others.add(this);
  }

  static async start(args: string[], kernel: KernelOptionsInput = {}): Promise<Other> {
    const other = new Other(args, { cm, ...kernel });
    const { ready, qpn, ms = 0 } = await other.next('ready');
    other.port = ready!;
    other.qpn = qpn!;
    other.ms = ms;
    return other;
  }

  /** The oldest unread message of a kind. */
  async next(kind: keyof Report): Promise<Report> {
    for (;;) {
      const at = this.#unread.findIndex((one) => one[kind] !== undefined);
      if (at >= 0) return this.#unread.splice(at, 1)[0]!;
      await new Promise<void>((resolve) => {
        this.#onMessage = resolve;
      });
    }
  }

  counters(): Promise<Report> {
    this.#child.send('counters');
    return this.next('counters');
  }

  kill(): Promise<void> {
    others.delete(this);
    return new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.kill('SIGKILL');
    });
  }
}

const others = new Set<Other>();

/** Two lost lookups were retransmitted, and more only if the reply was slow. */
function assertTwiceAgain(again: number, ms: number): void {
  assert.ok(again >= 2, `${again} again`);
  assert.ok(again === 2 || ms >= again * AGAIN_MS, `${again} again within ${ms} ms`);
}

/** The test's own side at an address. */
function open(address = '127.0.0.1') {
  const provider = openProvider({ cm });
  const side = openDatagramSide(provider, address);
  return {
    ...side,
    provider,
    close() {
      side.release();
      provider.release();
    },
  };
}

for (const address of ['127.0.0.1', '::1'] as const) {
  firstIf(address === '::1', needing(test, address))(
    `looked up, accepted, and messages in both directions (${address})`,
    async () => {
      const server = await Other.start(['serve', address]);
      const me = open(address);
      const found = await me.endpoint.lookup(socketAddressOf(address, server.port), Buffer.from('\x07hello'));
      assert.is(found.qpn, server.qpn);
      assert.is(found.qkey, WvDatagram.QKEY);
      assert.is(Buffer.from(found.privateData.subarray(1, 6)).toString(), 'hello');
      assert.is(found.privateData.length, 136);
      const asked = await server.next('asked');
      assert.equal([asked.asked, asked.port], [7, me.endpoint.query().localAddress.port]);
      me.send(found.addressVector!, found.qpn, found.qkey, 'over here');
      const answer = await me.arrived();
      assert.equal([answer.text, answer.sourceQpn], ['over here, too', server.qpn]);
      assert.equal(me.endpoint.query(socketAddressOf(address, server.port)), found);
      // A datagram with another Q_Key does not arrive, but later ones do.
      me.send(found.addressVector!, found.qpn, 0x77, 'wrong key');
      me.send(found.addressVector!, found.qpn, found.qkey, 'right key');
      assert.is((await me.arrived()).text, 'right key, too');
      await server.kill();
      me.close();
    },
  );
}

test('a rejection has its reason and data; a lookup without a listener is refused, and one without a decision times out', async () => {
  const server = await Other.start(['serve', '127.0.0.1']);
  const me = open();
  const peer = socketAddressOf('127.0.0.1', server.port);
  assert.is(await outcomeName(me.endpoint.lookup(peer, Uint8Array.of(1))), 'CONNECTION_REFUSED');
  const { sidrStatus, privateData, qpn } = me.endpoint.query(peer);
  assert.equal([sidrStatus, privateData[0], qpn], [2, 99, 0]);
  const nobody = socketAddressOf('127.0.0.1', 9);
  assert.is(await outcomeName(me.endpoint.lookup(nobody)), 'CONNECTION_REFUSED');
  assert.is(me.endpoint.query(nobody).sidrStatus, 1);
  assert.is(await outcomeName(me.endpoint.lookup(peer, Uint8Array.of(2))), 'TIMEOUT');
  await server.kill();
  me.close();
});

long(
  test,
  'a pending lookup can be cancelled individually, and is cancelled by releasing its endpoint',
  async () => {
    const server = await Other.start(['serve', '127.0.0.1']);
    const me = open();
    const peer = socketAddressOf('127.0.0.1', server.port);
    const [first, second] = [2, 2].map((byte) => me.endpoint.lookup(peer, Uint8Array.of(byte)));
    await server.next('asked');
    first!.cancel();
    assert.is(await outcomeName(first!), 'CANCELED');
    assert.not.ok(second!.completed);
    const third = await me.endpoint.lookup(peer);
    assert.is(third.qpn, server.qpn);
    me.close();
    assert.is(await outcomeName(second!), 'CANCELED');
    await server.kill();
  },
);

test('lost requests and lost replies are retransmitted without the application', async () => {
  const server = await Other.start(['serve', '127.0.0.1'], { faults: { dropMads: { [SIDR_REP]: 2 } } });
  const me = open();
  const begun = performance.now();
  const found = await me.endpoint.lookup(socketAddressOf('127.0.0.1', server.port), Uint8Array.of(5));
  const ms = performance.now() - begun;
  assert.is(found.qpn, server.qpn);
  const { counters } = await server.counters();
  // The lookup was sent three times and accepted once.
  assert.is(counters!.cm['sent.SIDR_REP'], 1);
  assertTwiceAgain(counters!.cm['retransmitted.SIDR_REP']!, ms);
  const asker = await Other.start(['ask', '127.0.0.1', String(server.port)], {
    faults: { dropMads: { [SIDR_REQ]: 2 } },
  });
  assert.is(asker.qpn, server.qpn);
  const asked = await asker.counters();
  assert.is(asked.counters!.cm['sent.SIDR_REQ'], 1);
  assertTwiceAgain(asked.counters!.cm['retransmitted.SIDR_REQ']!, asker.ms);
  await asker.kill();
  await server.kill();
  me.close();
});

long(test, 'a killed process no longer replies, and its port is free at once', async () => {
  const server = await Other.start(['serve', '127.0.0.1']);
  const me = open();
  const peer = socketAddressOf('127.0.0.1', server.port);
  const waiting = me.endpoint.lookup(peer, Uint8Array.of(2));
  await server.next('asked');
  await server.kill();
  // The lookup is retransmitted. Now it has no listener, which any process on the host reports.
  assert.is(await outcomeName(waiting), 'CONNECTION_REFUSED');
  assert.is(me.endpoint.query(peer).sidrStatus, 1);
  const listener = me.provider.createDatagramEndpoint();
  listener.bindAddress(peer);
  listener.listen(1);
  listener.release();
  me.close();
});

test('several processes join a group, and each member gets a copy', async () => {
  const members = await Promise.all([1, 2, 3].map(() => Other.start(['join', '127.0.0.1', GROUP])));
  const stranger = await Other.start(['serve', '127.0.0.1']);
  const me = open();
  const group = socketAddressOf(GROUP);
  const joined = await me.endpoint.joinMulticast(group);
  assert.equal([joined.qpn, joined.qkey], [WvDatagram.MULTICAST_QPN, WvDatagram.QKEY]);
  me.send(joined.addressVector!, joined.qpn, joined.qkey, 'to all');
  for (const member of members) assert.is((await member.next('text')).text, 'to all');
  // The first message of the non-member is about a datagram sent to it alone.
  const found = await me.endpoint.lookup(socketAddressOf('127.0.0.1', stranger.port));
  me.send(found.addressVector!, found.qpn, found.qkey, 'to one');
  assert.is((await stranger.next('text')).text, 'to one');
  assert.is((await me.arrived()).text, 'to one, too');
  await me.endpoint.leaveMulticast(group);
  assert.is(await outcomeName(me.endpoint.leaveMulticast(group)), statusName(Status.NOT_FOUND));
  await Promise.all([...members, stranger].map((one) => one.kill()));
  me.close();
});

test('no objects are left', () => {
  const provider = openProvider();
  const { cm: counted, objects } = readCounters();
  assert.equal([counted.lookups, counted.sidrWaiting], [0, 0]);
  assert.equal([objects.qp, objects.cq, objects.pd, objects.mr], [0, 0, 0, 0]);
  provider.release();
});

test.after(async () => {
  await Promise.all([...others].map((one) => one.kill()));
});

test.run();
