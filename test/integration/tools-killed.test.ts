// The tools with two sides, when the process of the other side is killed. Each exits with 3, which means a lost peer.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readProcesses } from '../../kernel-bridge/index.js';
import { NdTool, runNd, startServer } from '../helpers/nd-tool.js';
import { firstIf, long } from '../helpers/tiers.js';

/** Ports of these tests. */
let port = 50_060;

const tools = ['ping', 'pingpong', 'rping', 'rpingpong'] as const;

/** The moments when the peer is killed: in one long round after the warm-up, and between rounds that follow in quick succession. */
const moments = [
  { name: 'before the first round', way: ['--spi', 'v2', '-p'], args: ['--warmup', '5'], printed: /Using/ },
  {
    name: 'in a round',
    way: ['--spi', 'v1', '-b'],
    args: ['--warmup', '0', '--volume', '800000000000', '--iterations', '1000000000'],
    printed: /Latency/,
  },
  {
    name: 'between rounds',
    way: ['--spi', 'v2', '-b'],
    args: ['--warmup', '0', '--iterations', '3', '--sizes', Array(20_000).fill('8').join(',')],
    printed: /(\n +8 .*){3}/,
  },
] as const;

for (const [nth, name] of tools.entries()) {
  for (const [n, { name: moment, way, args, printed }] of moments.entries()) {
    for (const victim of ['server', 'client'] as const) {
      // The first tier has every tool, moment and victim, but not every combination.
      const isFirst = n === nth % moments.length && victim === (nth % 2 === 0 ? 'server' : 'client');
      firstIf(isFirst, test)(`${name} ${way.join(' ')}: a ${victim} that is killed ${moment}`, async () => {
        port += 1;
        const address = `127.0.0.1:${port}`;
        const server = await startServer(name, ...way, address);
        const client = new NdTool([name, '-c', ...way, ...args, address]);
        await client.printed(printed);
        const [dead, left] = victim === 'server' ? [server, client] : [client, server];
        dead.process.kill('SIGKILL');
        assert.is((await dead.ended).signal, 'SIGKILL');
        const { code, stderr } = await left.ended;
        assert.is(code, 3, stderr);
        assert.match(stderr, /: The peer ended the connection before the test was finished\.$/m);
      });
    }
  }
}

test('conn: a client whose server is killed ends early with its measurements', async () => {
  const server = await startServer('conn', '127.0.0.1:50059');
  const client = new NdTool(['conn', '-c', '--delay', '0', '--seconds', '3600', '127.0.0.1:50059']);
  // Its output appears at the end. It sends once on each connection, and each of its two threads has one connection that is not counted
  // yet.
  await counts(client.process.pid!, (hca) => hca.sent_pkts! >= 10);
  server.process.kill('SIGKILL');
  const { code, stdout, stderr } = await client.ended;
  assert.is(code, 3, stderr);
  assert.match(stdout, /^[1-9][\d.]+ connections per second\n/);
  assert.match(stderr, /: The peer ended the connection before the test was finished\.$/m);
});

for (const { at, args, packets } of [
  { at: 'ping-pong', args: ['--iterations', '1000000'], packets: 1000 },
  {
    at: 'RDMA',
    args: ['--iterations', '1', '--rounds', '10000'],
    packets: 20_000,
  },
]) {
  for (const victim of ['server', 'client'] as const) {
    long(test, `demo: a ${victim} that is killed during the steps of ${at}`, async () => {
      const server = new NdTool(['demo', '--server', '--json']);
      const port = (await server.printed(/^Listening on .*:(\d+)$/m))[1]!;
      const client = new NdTool(['demo', '--client', '--json', '--port', port, ...args]);
      await counts(client.process.pid!, (hca) => hca.sent_pkts! >= packets);
      const [dead, left] = victim === 'server' ? [server, client] : [client, server];
      dead.process.kill('SIGKILL');
      assert.is((await dead.ended).signal, 'SIGKILL');
      const { code, stdout, stderr } = await left.ended;
      assert.is(code, 3, stderr);
      const sentence = 'The peer ended the connection before the test was finished.';
      assert.is(stderr.trim().split('\n').at(-1), `nd: ${sentence}`);
      assert.equal(JSON.parse(stdout), { tool: 'nd demo', error: { message: sentence } });
    });
  }
}

const NQN = 'nqn.2026-11.io.example:killed';

test('nvme: a target that is killed and does not return', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nd-killed-'));
  const disk = join(folder, 'disk');
  const target = new NdTool(
    ['nvme', 'serve', '--nqn', NQN, '--size', '4', '--port', '0'].concat('--file', disk),
  );
  const port = (await target.printed(/^listening on .* port (\d+):/))[1]!;
  const options = ['--nqn', NQN, '--port', port, '--reconnect', '0', '--json'];
  const writer = new NdTool(['nvme', 'write', '127.0.0.1', ...options], Buffer.alloc(1_000_000, 1), true);
  while (readFileSync(disk)[0] !== 1) await setImmediate();
  rmSync(folder, { recursive: true });
  target.process.kill('SIGKILL');
  await target.ended;
  writer.process.stdin!.end(Buffer.alloc(1_000_000));
  const { code, stdout, stderr } = await writer.ended;
  assert.is(code, 3, stderr);
  const sentence = `The target at 127.0.0.1, port ${port} was lost and could not be reconnected within 0 s. Check that it is running; --reconnect sets the time limit.`;
  assert.is(stderr.trim().split('\n').at(-1), `nd: ${sentence}`);
  assert.equal(JSON.parse(stdout), { tool: 'nd nvme write', error: { message: sentence } });
});

test('nvme: a target that never existed is a different failure', async () => {
  const { code, stderr } = await runNd('nvme', 'info', '127.0.0.1', '--nqn', NQN, '--port', '50058');
  assert.is(code, 1, stderr);
});

/** Waits until the counters of a process's HCA satisfy a condition. */
async function counts(
  pid: number,
  enough: (hca: Readonly<Record<string, number>>) => boolean,
): Promise<void> {
  for (;;) {
    const [seen] = await readProcesses({ pid, timeoutMs: 20_000 });
    if (enough(seen?.statistics?.counters.hca ?? {})) return;
    await setImmediate();
  }
}

test.run();
