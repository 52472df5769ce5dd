// Datagrams between processes and hosts: GRH, Q_Keys, sizes, address handles, multicast, and leftovers.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { openProvider, QpAttr, QpState, Status, StatusError, WcStatus, WvWc } from '../../winverbs/index.js';
import { needing } from '../helpers/needs.js';
import { outcome } from '../helpers/outcome.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { firstIf, long } from '../helpers/tiers.js';
import { endUdProcesses, UdProcess } from '../helpers/ud-process.js';
import { UdSocket } from '../helpers/ud-socket.js';

const QKEY = 0x1111_1111;

test.after.each(() => endUdProcesses());

interface Opened {
  readonly one: UdProcess;
  readonly qpn: number;
  readonly mtu: number;
}

async function started(local: string, by: readonly string[] = []): Promise<Opened> {
  const one = await UdProcess.start(by);
  return { one, ...(await one.call('open', { local, qkey: QKEY })) };
}

/** Live objects, without rings, whose memory is freed with its JavaScript buffers. */
function left() {
  return { ...readCounters().objects, ring: 0 };
}

const pair = (local: string): Promise<[Opened, Opened]> => Promise.all([started(local), started(local)]);

for (const [family, local] of [
  [4, '127.0.0.1'],
  [6, '::1'],
] as const) {
  firstIf(family === 6, needing(test, local))(
    `IPv${family}: ping-pong between two processes, addressed with GRH and source QPN`,
    async () => {
      const [{ one: ping, qpn: pingQpn }, { one: pong, qpn }] = await pair(local);
      for (let round = 0; round < 20; round++) {
        const text = `ping ${round}`;
        assert.is(await ping.call('send', { to: local, qpn, text }), 'SUCCESS');
        const came = await pong.call('receive', {});
        const { GRH_VALID, IMMEDIATE, SOLICITED } = WvWc;
        assert.equal(came, {
          text,
          status: 'SUCCESS',
          address: local,
          qpn: pingQpn,
          flags: GRH_VALID | IMMEDIATE | SOLICITED,
          immediateData: text.length,
          ipVersion: family,
        });
        assert.is(await pong.call('reply', { text: `pong ${round}` }), 'SUCCESS');
        const answer = await ping.call('receive', {});
        assert.equal([answer.text, answer.qpn], [`pong ${round}`, qpn]);
      }
      for (const one of [ping, pong]) {
        await one.call('close', {});
        const { objects } = await one.call('counters', {});
        assert.ok(
          Object.entries(objects).every(([kind, count]) => kind === 'ring' || count === 0),
          JSON.stringify(objects),
        );
      }
    },
  );
}

test('a datagram with a wrong Q_Key is dropped and counted, and does not consume a Receive', async () => {
  const [{ one: from }, { one: to, qpn }] = await pair('127.0.0.1');
  assert.is(await from.call('send', { to: '127.0.0.1', qpn, text: 'stranger', qkey: QKEY + 1 }), 'SUCCESS');
  assert.is(await from.call('send', { to: '127.0.0.1', qpn, text: 'friend' }), 'SUCCESS');
  assert.is((await to.call('receive', {})).text, 'friend');
  // The high bit selects the sender's own Q_Key.
  await from.call('send', { to: '127.0.0.1', qpn, text: 'by its own key', qkey: 0x8000_0005 });
  assert.is((await to.call('receive', {})).text, 'by its own key');
  assert.is((await to.call('counters', {})).hca.bad_qkey, 1);
});

test('a datagram of the port’s MTU arrives; one more byte fails and stops the send queue until it is restarted', async () => {
  const [{ one: from, mtu }, { one: to, qpn }] = await pair('127.0.0.1');
  assert.is(mtu, 4096);
  for (const length of [0, 1, mtu]) {
    assert.is(await from.call('send', { to: '127.0.0.1', qpn, length }), 'SUCCESS');
    const came = await to.call('receive', {});
    assert.equal([came.text.length, came.immediateData, came.status], [length, length, 'SUCCESS']);
    assert.ok(/^x*$/.test(came.text));
  }
  assert.is(await from.call('send', { to: '127.0.0.1', qpn, length: mtu + 1 }), 'LOCAL_LENGTH_ERROR');
  assert.is(await from.call('state', {}), QpState.SQERROR);
  assert.is(await from.call('send', { to: '127.0.0.1', qpn, text: 'too early' }), 'FLUSHED');
  assert.is(await from.call('recover', {}), QpState.RTS);
  await from.call('send', { to: '127.0.0.1', qpn, text: 'again' });
  assert.is((await to.call('receive', {})).text, 'again');
});

long(test, 'a process that is killed: datagrams to it are sent and lost, and others arrive', async () => {
  const [{ one: from }, { one: killed, qpn }] = await pair('127.0.0.1');
  const { one: third, qpn: thirdQpn } = await started('127.0.0.1');
  await from.call('send', { to: '127.0.0.1', qpn, text: 'alive' });
  await killed.call('receive', {});
  await killed.kill();
  for (let n = 0; n < 5; n++) {
    assert.is(await from.call('send', { to: '127.0.0.1', qpn, text: 'nobody' }), 'SUCCESS');
  }
  await from.call('send', { to: '127.0.0.1', qpn: thirdQpn, text: 'somebody' });
  assert.is((await third.call('receive', {})).text, 'somebody');
  assert.is(await from.call('state', {}), QpState.RTS);
});

test('an address handle in use keeps its protection domain; once released, its number is invalid', async () => {
  const before = left();
  const provider = openProvider();
  const a = new UdSocket(provider, '127.0.0.1', QKEY);
  const b = new UdSocket(provider, '127.0.0.1', QKEY);
  const handle = a.handleFor('127.0.0.1');
  assert.is(await a.sendBy(handle, b.qp.qpn, Buffer.from('one'), QKEY), WcStatus.SUCCESS);
  assert.is((await b.receive()).payload.toString(), 'one');
  assert.is(left().ah, before.ah + 1);
  handle.release();
  assert.is(left().ah, before.ah);
  assert.is(await outcome(a.sendBy(handle, b.qp.qpn, Buffer.from('two'), QKEY)), Status.INVALID_HANDLE);
  // The request is posted while the send queue is drained (SQD), and the handle is released before it is sent.
  const late = a.handleFor('127.0.0.1');
  a.qp.modify({ qpState: QpState.SQD }, QpAttr.STATE);
  const sent = a.sendBy(late, b.qp.qpn, Buffer.from('three'), QKEY);
  late.release();
  a.qp.modify({ qpState: QpState.RTS }, QpAttr.STATE);
  assert.is(await sent, WcStatus.LOCAL_OP_ERROR);
  assert.is(a.qp.state, QpState.SQERROR);
  // The protection domain is released first, but the handle keeps it.
  const last = a.handleFor('127.0.0.1');
  a.close();
  assert.is(left().pd, before.pd + 2);
  last.release();
  b.close();
  provider.release();
  assert.equal(left(), before);
});

test('a list of datagrams arrives in order', async () => {
  const provider = openProvider();
  const [a, b] = [new UdSocket(provider, '127.0.0.1', QKEY), new UdSocket(provider, '127.0.0.1', QKEY)];
  const handle = a.handleFor('127.0.0.1');
  const texts = ['first', 'second', 'third'];
  await a.sendList(
    handle,
    b.qp.qpn,
    texts.map((text) => Buffer.from(text)),
  );
  for (const text of texts) assert.is((await b.receive()).payload.toString(), text);
  handle.release();
  for (const one of [a, b]) one.close();
  provider.release();
});

test('programs cannot use a controlled Q_Key', () => {
  const provider = openProvider();
  assert.throws(
    () => new UdSocket(provider, '127.0.0.1', 0x8001_0000),
    (error: unknown) => error instanceof StatusError && error.status === Status.ACCESS_DENIED,
  );
  provider.release();
});

// ── Several hosts ───────────────────────────────────────────────────────────────────────────────────────────

async function withHosts(body: (two: TwoHosts) => Promise<void>): Promise<void> {
  const two = await TwoHosts.start();
  try {
    for (const [index, host] of two.hosts.entries()) {
      two.run(host, [
        ...['ip', '-6', 'address', 'add', `fd99::${index + 1}/64`, 'dev', host.interface, 'nodad'],
      ]);
    }
    await body(two);
  } finally {
    await endUdProcesses();
    two.end();
  }
}

for (const [family, addresses, group, other] of [
  [4, ['10.99.0.1', '10.99.0.2'], '239.1.2.3', '239.1.2.4'],
  [6, ['fd99::1', 'fd99::2'], 'ff15::1:2:3', 'ff15::1:2:4'],
] as const) {
  firstIf(family === 4, needing(test, 'namespaces'))(
    `IPv${family}: datagrams and a multicast group of processes on two hosts`,
    async () => {
      await withHosts(async ({ hosts }) => {
        const start = (index: 0 | 1): Promise<Opened> => started(addresses[index], hosts[index].by);
        const sender = await start(0);
        const neighbour = await start(0);
        const far = [await start(1), await start(1)] as const;
        const outsider = await start(1);
        assert.is(sender.mtu, 1024);

        // A full datagram is sent directly between two members.
        await sender.one.call('send', { to: addresses[1], qpn: far[0].qpn, length: 1024 });
        const direct = await far[0].one.call('receive', {});
        assert.equal([direct.text.length, direct.address, direct.ipVersion], [1024, addresses[0], family]);
        await far[0].one.call('reply', { text: 'back' });
        assert.is((await sender.one.call('receive', {})).address, addresses[1]);

        for (const { one } of [sender, neighbour, ...far])
          assert.is(await one.call('attach', { group }), 'SUCCESS');
        assert.is(await outsider.one.call('attach', { group: other }), 'SUCCESS');
        assert.is(await far[0].one.call('attach', { group }), 'ADDRESS_ALREADY_EXISTS');
        const toGroup = (text: string) => sender.one.call('send', { to: group, qpn: 0xff_ffff, text });
        assert.is(await toGroup('everybody'), 'SUCCESS');
        for (const { one } of [sender, neighbour, ...far]) {
          const { text, address, qpn } = await one.call('receive', {});
          assert.equal([text, address, qpn], ['everybody', addresses[0], sender.qpn]);
        }
        // A member replies only to the sender.
        await far[1].one.call('reply', { text: 'one of many' });
        assert.is((await sender.one.call('receive', {})).text, 'one of many');

        assert.is(await far[0].one.call('detach', { group }), 'SUCCESS');
        assert.is(await far[0].one.call('detach', { group }), 'NOT_FOUND');
        await neighbour.one.kill();
        assert.is(await toGroup('those who are left'), 'SUCCESS');
        assert.is((await far[1].one.call('receive', {})).text, 'those who are left');
        assert.is((await sender.one.call('receive', {})).text, 'those who are left');
        // The first datagram that non-members get is a later one, sent to them directly.
        for (const { one, qpn } of [far[0], outsider]) {
          await sender.one.call('send', { to: addresses[1], qpn, text: 'you' });
          assert.is((await one.call('receive', {})).text, 'you');
        }
      });
    },
  );
}

test.run();
