// Partitions between two processes, each with its own P_Key table: which tables can connect, with which entries, and which counters change.
// Runs in a private network namespace, because any process counts the P_Keys of strangers' requests for unknown services.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KernelOptionsInput } from '../../kernel-bridge/index.js';
import { QpAttr, QpState, WcStatus, WvSend } from '../../winverbs/index.js';
import { runApart } from '../helpers/apart.js';
import { connectedPair, take } from '../helpers/loopback.js';
import type { PkeyPort, PkeyReport } from '../helpers/pkey-peer.js';
import { programFile } from '../helpers/programs.js';
import { firstIf } from '../helpers/tiers.js';
import { HANG_MS } from '../helpers/within.js';

const program = programFile(new URL('../helpers/pkey-peer.js', import.meta.url));
const children = new Set<ChildProcess>();
test.after.each(() => {
  for (const child of children) child.kill('SIGKILL');
});

/** REQs without a reply time out soon. */
const hasty: KernelOptionsInput = { cm: { responseTimeoutCode: 14, maxRetries: 2 } };

function start(
  pkeys: KernelOptionsInput['pkeys'],
  args: readonly string[],
  more: KernelOptionsInput = {},
): ChildProcess {
  const options: KernelOptionsInput = { pkeys, ...more };
  const env = { ...process.env, ND_OPTIONS: JSON.stringify(options) };
  const child = fork(program, args, { env });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

async function told<T>(child: ChildProcess): Promise<T> {
  // 'exit' may be emitted before the last messages.
  const ended = once(child, 'close').then(() => {
    throw new Error('the process has ended');
  });
  ended.catch(() => {});
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [T];
  return message;
}

async function portOf(child: ChildProcess): Promise<PkeyPort> {
  const answer = told<PkeyPort>(child);
  child.send('port');
  return await answer;
}

/** Whether a counter reaches this value. Messages in flight when their sender gives up are counted a moment later. */
async function comesTo(count: number, counter: () => number | Promise<number>): Promise<boolean> {
  for (const timeout = AbortSignal.timeout(HANG_MS); !timeout.aborted; ) {
    if ((await counter()) >= count) return true;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return false;
}

type Table = number[] | Record<string, number[]>;

async function meet(server: Table, client: Table, index: number, more?: KernelOptionsInput) {
  const passive = start(server, ['server']);
  const port = await told<number>(passive);
  const accepted = told<PkeyReport>(passive);
  accepted.catch(() => {});
  const active = start(client, ['client', String(port), String(index)], more);
  const report = await told<PkeyReport>(active);
  // A server that gets a request reports it, otherwise only its port.
  const served = report.connected === 'SUCCESS' ? await accepted : undefined;
  return { report, served, badPkeys: async () => (await portOf(passive)).badPkeys };
}

/** The server's table, the client's table, the entry that the client uses, and the entry that the server must use. */
const connects: Record<string, [server: Table, client: Table, clientIndex: number, serverIndex: number]> = {
  'full and full': [[0xffff], [0xffff], 0, 0],
  'full and full, outside the default partition': [[0x8001], [0x8002, 0x8001], 1, 0],
  'full and limited': [[0xffff, 0x8001], [0xffff, 1], 1, 1],
  'limited and full': [[0xffff, 1], [0xffff, 0x8001], 1, 1],
  'full and limited of the default partition': [[0x7fff, 0x8005], [0xffff], 0, 0],
  'a table of the interface alone': [{ lo: [0x8003] }, { lo: [3] }, 0, 0],
  'an entry for full members before one for limited ones': [[0xffff, 1, 0x8001], [0xffff, 0x8001], 1, 2],
};

for (const [what, [server, client, clientIndex, serverIndex]] of Object.entries(connects)) {
  firstIf(/outside|limited and full/.test(what), test)(
    `${what}: connected, each side with its entry`,
    async () => {
      const { report, served, badPkeys } = await meet(server, client, clientIndex);
      assert.equal(report, { connected: 'SUCCESS', message: 0, pkeyIndex: clientIndex });
      assert.equal(served, { connected: 'SUCCESS', message: 0, pkeyIndex: serverIndex });
      assert.is(await badPkeys(), 0);
    },
  );
}

const refused: Record<string, [server: Table, client: Table, clientIndex: number]> = {
  'limited and limited': [[0xffff, 1], [0xffff, 1], 1],
  'a partition that the listener is not in': [[0xffff, 0x8001], [0xffff, 0x8002], 1],
};

for (const [what, [server, client, index]] of Object.entries(refused)) {
  firstIf(what.startsWith('a partition'), test)(
    `${what}: refused, as reported in the default partition`,
    async () => {
      const { report, badPkeys } = await meet(server, client, index);
      assert.equal(report, { connected: 'CONNECTION_REFUSED' });
      assert.is(await badPkeys(), 0);
    },
  );
}

const unheard: Record<string, [server: Table, client: Table]> = {
  'limited and limited': [[1], [1]],
  'different partitions': [[0x8001], [0x8002]],
};

for (const [what, [server, client]] of Object.entries(unheard)) {
  firstIf(what.startsWith('different'), test)(
    `${what}, without a default partition: dropped and counted`,
    async () => {
      const { report, badPkeys } = await meet(server, client, 0, hasty);
      assert.equal(report, { connected: 'TIMEOUT' });
      // The side that gives up has its own timers, so the other side may not have processed the last message yet.
      assert.ok(await comesTo(3, badPkeys), 'a REQ and its two retries were counted');
    },
  );
}

for (const link of ['auto', 'wire'] as const) {
  test(`${link}: packets of a connection whose P_Key does not match are dropped and counted until the sender gives up`, async () => {
    const options: KernelOptionsInput = { link, pkeys: [0xffff, 0x8001] };
    process.env.ND_OPTIONS = JSON.stringify(options);
    const { a, b, release } = await connectedPair();
    const sgl = (side: typeof a) => [{ region: side.region, offset: 0, length: 8 }];
    b.qp.postReceive('r', sgl(b));
    a.qp.send('fits', sgl(a), WvSend.SIGNALED);
    assert.is((await take(a.cq, 1))[0]!.status, WcStatus.SUCCESS);
    assert.is((await take(b.cq, 1))[0]!.context, 'r');
    const before = b.device.queryPort(1).badPkeyCounter;
    // The other partition counts one packet and two retransmissions.
    a.qp.modify({ qpState: QpState.SQD }, QpAttr.STATE);
    a.qp.modify(
      { pkeyIndex: 1, localAckTimeout: 8, retryCount: 2 },
      QpAttr.PKEY_INDEX | QpAttr.ACK_TIMEOUT | QpAttr.ERROR_RETRY_COUNT,
    );
    a.qp.modify({ qpState: QpState.RTS }, QpAttr.STATE);
    b.qp.postReceive('never', sgl(b));
    a.qp.send('foreign', sgl(a), WvSend.SIGNALED);
    const [lost] = await take(a.cq, 1);
    assert.equal([lost!.context, lost!.status], ['foreign', WcStatus.TIMEOUT_RETRY_ERROR]);
    const badPkeys = () => b.device.queryPort(1).badPkeyCounter - before;
    // On the local link, only packets that the other side has received are retransmitted. Over the network, the disconnect may overtake the
    // retransmissions, which a queue pair in ERROR does not count. The engine's tests cover how many are counted (engine_pkeys.cc).
    assert.ok(await comesTo(1, badPkeys), 'the packet was counted');
    assert.ok(badPkeys() <= 3, `${badPkeys()} were counted`);
    const [never] = await take(b.cq, 1);
    assert.equal([never!.context, never!.status], ['never', WcStatus.FLUSHED]);
    release();
  });
}

test('table, first entry and index are reported; other interfaces have the default partition', async () => {
  const child = start([0x8001, 0xffff, 0x0002], ['server']);
  await told<number>(child);
  assert.equal(await portOf(child), { table: [0x8001, 0xffff, 2], pkey: 0x8001, badPkeys: 0 });
  const other = start({ nothing0: [0x8001] }, ['server']);
  await told<number>(other);
  assert.equal(await portOf(other), { table: [0xffff], pkey: 0xffff, badPkeys: 0 });
});

runApart(import.meta.url, () => test.run());
