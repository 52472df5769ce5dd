// The tools with two sides, when the other side's process is killed: each ends with 3, which means a peer that was lost.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdTool, runNd, startServer } from '../helpers/nd-tool.js';

/** Ports of these tests. */
let port = 50_060;

const tools = ['ping', 'pingpong', 'rping', 'rpingpong'] as const;

/** When the peer is killed: after the warm-up, in one long round, and where rounds follow each other fast. */
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

for (const name of tools) {
  for (const { name: moment, way, args, printed } of moments) {
    for (const victim of ['server', 'client'] as const) {
      test(`${name} ${way.join(' ')}: a ${victim} that is killed ${moment}`, async () => {
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
        assert.match(stderr, /: The peer has ended the connection before the test was over\.$/m);
      });
    }
  }
}

test('conn: a client whose server is killed ends before its time, with what it has measured', async () => {
  const server = await startServer('conn', '127.0.0.1:50059');
  const client = new NdTool(['conn', '-c', '--delay', '0', '--seconds', '3600', '127.0.0.1:50059']);
  // Its output comes at the end: it is at work once the server's process has served it.
  await connected(server.process.pid!);
  server.process.kill('SIGKILL');
  const { code, stdout, stderr } = await client.ended;
  assert.is(code, 3, stderr);
  assert.match(stdout, /^[1-9][\d.]+ connections per second\n/);
  assert.match(stderr, /: The peer has ended the connection before the test was over\.$/m);
});

/** Waits until a process has had several connections. */
async function connected(pid: number): Promise<void> {
  for (;;) {
    const { stdout } = await runNd('stat', '--json', String(pid));
    if (Number(/"mad_rx":(\d+)/.exec(stdout)?.[1] ?? 0) >= 40) return;
  }
}

test.run();
