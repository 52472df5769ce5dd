/** The `nd` command as users run it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Report } from '../../nd/cli/demo-report.js';
import { LOOPBACK as ADDRESS } from '../../nd/cli/sides/connected-side.js';
import { HostV1 } from '../../nd/cli/sides/v1-side.js';
import { ND } from '../helpers/nd-tool.js';
import { firstIf, long } from '../helpers/tiers.js';

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function nd(...args: string[]): ChildProcess {
  return spawn(process.execPath, [ND, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
}

async function ended(child: ChildProcess): Promise<Ended> {
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...text };
}

/** Starts a server process of the demo. Returns the process and its port. */
async function startServer(): Promise<{ child: ChildProcess; port: string }> {
  const child = nd('demo', '--server', '--address', ADDRESS, '--json');
  const lines = createInterface({ input: child.stderr! });
  const [line] = (await once(lines, 'line')) as [string];
  const port = /:(\d+)$/.exec(line)?.[1];
  assert.ok(port !== undefined, line);
  return { child, port: port! };
}

long(test, 'nd demo: both roles, every byte equal, nothing lost, exit code 0', async () => {
  const { code, stdout, stderr } = await ended(
    nd('demo', '--json', '--iterations', '20', '--rounds', '1', '--seed', '7'),
  );
  assert.is(code, 0, stderr);
  const report = JSON.parse(stdout) as Report;
  assert.is(report.privateData, 'welcome');
  assert.equal(
    report.latency.map(({ bytes, messages }) => [bytes, messages]),
    [8, 64, 1024, 4096, 65_536].map((bytes) => [bytes, 20]),
  );
  for (const { median, p99 } of report.latency) assert.ok(median > 0 && p99 >= median);
  assert.equal(
    report.bandwidth.map(({ operation, requestBytes }) => [operation, requestBytes]),
    [
      ['RDMA Write', 65_536],
      ['RDMA Write', 1 << 20],
      ['RDMA Read', 65_536],
      ['RDMA Read', 1 << 20],
    ],
  );
  assert.is(report.disconnect.length, 3);
  for (const { outstanding, succeeded, canceled } of report.disconnect) {
    assert.ok(canceled > 0);
    assert.is(succeeded + canceled, outstanding);
  }
  assert.equal(
    report.disconnect.filter(({ requests }) => requests === 'Receive').map(({ canceled }) => canceled),
    [8, 8],
  );
});

test('nd demo --server and --client, as on two machines', async () => {
  const { child, port } = await startServer();
  const server = ended(child);
  const options = ['--address', ADDRESS, '--port', port, '--iterations', '5', '--rounds', '1'];
  const client = await ended(nd('demo', '--client', ...options));
  assert.is(client.code, 0, client.stderr);
  assert.match(client.stdout, 'RDMA Write');
  assert.match(client.stdout, 'welcome');
  const { code, stdout } = await server;
  assert.is(code, 0);
  assert.is((JSON.parse(stdout) as Report).privateData, 'hello, seed 1');
});

test('without a server, the client says so and how to start one', async () => {
  const host = new HostV1();
  const { port } = host.listener;
  host.release();
  const { code, stdout, stderr } = await ended(nd('demo', '--client', '--port', String(port)));
  assert.is(code, 1);
  assert.is(stdout, '');
  assert.match(stderr, `No demo server responds at ${ADDRESS}, port ${port}`);
  assert.match(stderr, 'nd demo --server');
});

/** Invalid options. */
const cases: [string[], RegExp][] = [
  [['demo', '--client'], /--port is required/],
  [['demo', '--server', '--client', '--port', '5'], /are mutually exclusive/],
  [['demo', '--port', '70000'], /--port must be 65535 or less/],
  [['demo', '--iterations', '0'], /--iterations must be 1 or more/],
  [['demo', '--iterations', 'many'], /--iterations must be a number/],
  [['demo', '--rounds', '1.5'], /--rounds must be an integer/],
  [['demo', '--address', '300.1.1.1'], /--address must be an IP address/],
  [['demo', '--iteration', '5'], /unknown option '--iteration'/],
  [['conformance', '--address', '300.1.1.1'], /--address must be an IP address/],
  [['conformance', '--port', '70000'], /--port must be 65535 or less/],
  [['conformance', '--step-timeout', '0'], /--step-timeout must be 0\.1 or more/],
  [['conformance', '--nonsense'], /unknown option '--nonsense'/],
  [['verbs-info', '--nonsense'], /unknown option '--nonsense'/],
  [['nonsense'], /unknown command 'nonsense'.*\n {2}pingpong /s],
];
const firstCases = /exclude|unknown command/;

for (const [args, text] of cases) {
  firstIf(firstCases.test(text.source), test)(
    `nd ${args.join(' ')}: the error names the option, with exit code 2`,
    async () => {
      const { code, stderr } = await ended(nd(...args));
      assert.is(code, 2, stderr);
      assert.match(stderr, text);
    },
  );
}

test('invalid options of the demo are also reported as JSON with --json', async () => {
  const { code, stdout } = await ended(nd('demo', '--json', '--port', '70000'));
  assert.is(code, 2);
  assert.equal(JSON.parse(stdout), {
    tool: 'nd demo',
    error: { message: "--port must be 65535 or less; got '70000'" },
  });
});

test('a server address of another host is rejected with the reason', async () => {
  const { code, stderr } = await ended(nd('demo', '--server', '--address', '192.0.2.1'));
  assert.is(code, 1);
  assert.match(stderr, 'INVALID_ADDRESS');
});

test('a port on which another process listens is in use', async () => {
  const { child, port } = await startServer();
  const { code, stderr } = await ended(nd('demo', '--server', '--port', port));
  assert.is(code, 1);
  assert.match(stderr, 'ADDRESS_ALREADY_EXISTS');
  const server = ended(child);
  child.kill('SIGKILL');
  await server;
});

test.run();
