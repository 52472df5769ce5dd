// Ctrl-C: an interrupted job exits with 130 and prints its measurements so far. A command that runs until it is stopped exits with 0.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type KernelStatistics, readProcesses } from '../../kernel-bridge/index.js';
import { memoryStore, NvmeTarget } from '../../nd/cli/nvme/index.js';
import { type Ended, ND, NdTool, runNd, startServer } from '../helpers/nd-tool.js';
import { root } from '../helpers/root.js';
import { firstIf } from '../helpers/tiers.js';

type Counters = KernelStatistics['counters'];

/** Waits until a running tool shows some activity. @throws Error if it exits first */
async function untilSeen(tool: NdTool, seen: () => boolean | Promise<boolean>): Promise<void> {
  let ended: Ended | undefined;
  tool.ended.then((one) => {
    ended = one;
  });
  while (!(await seen())) {
    if (ended !== undefined) throw new Error(`It ended before: ${JSON.stringify(ended)}`);
    await setImmediate();
  }
}

/** Waits until the counters of a process satisfy a condition. */
function until(tool: NdTool, enough: (counters: Counters) => boolean): Promise<void> {
  return untilSeen(tool, async () => {
    // A process with Workers has several HCAs.
    const seen = await readProcesses({ pid: tool.process.pid!, timeoutMs: 20_000 });
    return seen.some(({ statistics }) => enough(statistics?.counters ?? {}));
  });
}

const interrupt = (tool: NdTool): Promise<Ended> => {
  tool.process.kill('SIGINT');
  return tool.ended;
};

/** Commands that a test of this file interrupts, by name. */
const tested = new Set<string>();

let port = 50_200;
const ENDLESS = ['--warmup', '0', '--sizes', '8', '--iterations', '1000000000', '--volume', '800000000000'];

for (const [nth, name] of ['ping', 'pingpong', 'rping', 'rpingpong'].entries()) {
  tested.add(name);
  for (const json of [true, false]) {
    firstIf((nth % 2 === 0) === json, test)(
      `${name}${json ? ' --json' : ''}: the iterations so far are a row`,
      async () => {
        port += 1;
        const address = `127.0.0.1:${port}`;
        const server = await startServer(name, '-b', address);
        const client = new NdTool([name, '-c', '-b', ...(json ? ['--json'] : []), ...ENDLESS, address]);
        await until(client, ({ hca }) => (hca?.sent_pkts ?? 0) + (hca?.direct_write ?? 0) > 1000);
        const { code, stdout, stderr } = await interrupt(client);
        assert.equal([code, stderr], [130, `nd ${name}: interrupted\n`]);
        assert.is((await server.ended).code, 3);
        if (json) {
          const { interrupted, rows, tool } = JSON.parse(stdout);
          assert.equal([tool, interrupted, rows.length, rows[0].size], [`nd ${name}`, true, 1, 8]);
          assert.ok(rows[0].iterations > 100 && rows[0].iterations < 1e9, stdout);
          assert.ok(rows[0].latency > 0);
        } else assert.match(stdout, /Latency[^\n]*\n +8 +\d{3,8} +\d+\.\d\d [^\n]*\n$/);
      },
    );
  }
}

for (const json of [true, false]) {
  tested.add('mrlat');
  firstIf(json, test)(`mrlat${json ? ' --json' : ''}: the iterations so far are a row`, async () => {
    const tool = new NdTool(['mrlat', ...(json ? ['--json'] : []), ...ENDLESS.slice(2, 6), '127.0.0.1']);
    await until(tool, ({ io }) => (io?.requests ?? 0) > 2000);
    const { code, stdout, stderr } = await interrupt(tool);
    assert.equal([code, stderr], [130, 'nd mrlat: interrupted\n']);
    if (json) {
      const { interrupted, sections } = JSON.parse(stdout);
      assert.equal([interrupted, Object.keys(sections)], [true, ['Event Driven']]);
      assert.ok(sections['Event Driven'][0].iterations > 100, stdout);
    } else assert.match(stdout, /Size +call +total +call +total\n +8( +\d+\.\d\d){5}\n$/);
  });
}

test('mrrate: the finished sizes are rows', async () => {
  tested.add('mrrate');
  const args = ['--sizes', Array(2000).fill('8').join(','), '--iterations', '100', '127.0.0.1'];
  const [lines, json] = [new NdTool(['mrrate', ...args]), new NdTool(['mrrate', '--json', ...args])];
  await lines.printed(/(\n +8 +100 .*){3}\n/);
  const first = await interrupt(lines);
  assert.equal([first.code, first.stderr], [130, 'nd mrrate: interrupted\n']);
  await until(json, ({ io }) => (io?.requests ?? 0) > 2000);
  const { code, stdout } = await interrupt(json);
  const { interrupted, rows } = JSON.parse(stdout);
  assert.equal([code, interrupted], [130, true]);
  assert.ok(rows.length > 0 && rows.length < 2000, stdout);
});

test('conn: the established connections are counted on both sides', async () => {
  tested.add('conn');
  const server = await startServer('conn', '--json', '127.0.0.1:50231');
  const client = new NdTool(['conn', '-c', '--json', '--delay', '0', '--seconds', '3600', '127.0.0.1:50231']);
  await until(client, ({ cm }) => (cm?.['sent.RTU'] ?? 0) > 10);
  for (const tool of [client, server]) {
    const { code, stdout, stderr } = await interrupt(tool);
    assert.is(code, 130, stderr);
    const { interrupted, connections } = JSON.parse(stdout);
    assert.is(interrupted, true);
    assert.ok(connections > 0);
  }
});

for (const [nth, who] of (['server', 'client'] as const).entries()) {
  test(`cat: the bytes so far are counted, with an interrupt of the ${who}`, async () => {
    tested.add('cat');
    const folder = mkdtempSync(join(tmpdir(), 'nd-cat-'));
    const address = `127.0.0.1:${50_233 + nth}`;
    const server = await startServer('cat', '--json', '--file', join(folder, 'copy'), address);
    const client = new NdTool(['cat', '-c', '--json', address], Buffer.from('a line\n'), true);
    await untilSeen(client, () => readFileSync(join(folder, 'copy')).length > 0);
    rmSync(folder, { recursive: true });
    const [one, other] = who === 'server' ? [server, client] : [client, server];
    const { code, stdout, stderr } = await interrupt(one);
    assert.is(code, 130, stderr);
    assert.match(stderr, /^(Received|Sent) 7 bytes\nnd cat: interrupted$/m);
    assert.equal(JSON.parse(stdout), { tool: 'nd cat', spi: 'v2', bytes: 7, interrupted: true });
    assert.is((await other.ended).code, 3);
  });
}

test('a tool that has measured nothing reports the interrupt, as JSON with --json', async () => {
  const server = await startServer('pingpong', '--json', '127.0.0.1:50232');
  const { code, stdout, stderr } = await interrupt(server);
  assert.equal([code, stderr.split('\n').at(-2)], [130, 'nd pingpong: interrupted']);
  assert.equal(JSON.parse(stdout), { tool: 'nd pingpong', error: { message: 'Interrupted.' } });
});

test('conformance: the finished cases are reported; the other half runs until it is stopped', async () => {
  tested.add('conformance');
  const run = new NdTool(['conformance', '--json']);
  await run.printed(/^\{"name".*\n\{"name"/m);
  const { code, stdout, stderr } = await interrupt(run);
  assert.equal([code, stderr], [130, 'nd conformance: interrupted\n']);
  const lines = stdout.trim().split('\n');
  const { interrupted, passed } = JSON.parse(lines.at(-1)!);
  assert.equal([interrupted, passed], [true, lines.length - 1]);
  const half = new NdTool(['conformance', '--serve', '--port', '0']);
  await half.printed(/Serving the other half/);
  assert.is((await interrupt(half)).code, 0);
});

test('demo: a single role, and both roles with --json', async () => {
  tested.add('demo');
  const server = new NdTool(['demo', '--server']);
  await server.printed(/Listening on/);
  const role = await interrupt(server);
  assert.equal([role.code, role.stderr.split('\n').at(-2), role.stdout], [130, 'nd demo: interrupted', '']);
  for (const words of [['--server'], ['--iterations', '1000000']]) {
    const tool = new NdTool(['demo', '--json', ...words]);
    if (words.length === 1) await tool.printed(/Listening on/);
    else await untilSeen(tool, async () => childrenOf(tool.process.pid!).length === 2);
    const { code, stdout } = await interrupt(tool);
    assert.equal([code, JSON.parse(stdout)], [130, { tool: 'nd demo', error: { message: 'Interrupted.' } }]);
  }
});

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);

for (const { name, all } of [
  { name: 'the process that was started', all: false },
  { name: 'all processes, as at a terminal', all: true },
]) {
  test(`demo: a signal to ${name} ends all of them, with one line`, async () => {
    const whole = spawn(process.execPath, [ND, 'demo', '--iterations', '1000000'], {
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const pid = whole.pid!;
    const seen = async (): Promise<Set<number>> =>
      new Set((await readProcesses({ timeoutMs: 20_000 })).map((one) => one.pid));
    let roles: number[] = [];
    for (let there = await seen(); roles.length < 2; there = await seen()) {
      assert.is(whole.exitCode, null, 'it ended before');
      roles = childrenOf(pid).filter((one) => there.has(one));
    }
    const closed = once(whole, 'close');
    process.kill(all ? -pid : pid, 'SIGINT');
    assert.is(await text(whole.stderr), 'nd demo: interrupted\n');
    assert.equal(await closed, [130, null]);
    for (let left = roles; left.length > 0; await setImmediate()) {
      const there = await seen();
      left = roles.filter((one) => there.has(one));
    }
  });
}

const NQN = 'nqn.2026-11.io.example:interrupted';

test('nvme: an interrupted copy reports how much it has written; a target runs until it is stopped', async () => {
  tested.add('nvme');
  const target = new NdTool(['nvme', 'serve', '--json', '--nqn', NQN, '--size', '4', '--port', '0']);
  const at = JSON.parse((await target.printed(/^\{.*"listening".*\}$/m))[0]);
  assert.equal([at.nqn, at.bytes], [NQN, 4 << 20]);
  const found = await runNd('nvme', 'info', '127.0.0.1', '--nqn', NQN, '--port', String(at.port));
  assert.is(found.code, 0, found.stderr);
  await target.printed(/"event":"gone"/);
  const ended = await interrupt(target);
  assert.equal([ended.code, ended.stderr], [0, '']);
  // A disk that has finished the first write but not the second when the copy is interrupted.
  const memory = memoryStore(4 << 20);
  const writes: number[] = [];
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const store = {
    ...memory,
    write(from: Uint8Array, position: number) {
      writes.push(from.length);
      return writes.length === 1 ? memory.write(from, position) : held;
    },
  };
  const slow = NvmeTarget.listen({
    port: 0,
    subsystems: [{ nqn: NQN, namespaces: [{ store, blockSize: 512 }] }],
  });
  try {
    const options = ['127.0.0.1', '--nqn', NQN, '--port', String(slow.port), '--json'];
    const writer = new NdTool(['nvme', 'write', ...options], Buffer.alloc(1024, 1), true);
    await untilSeen(writer, () => writes.length === 1);
    writer.process.stdin!.write(Buffer.alloc(1536, 2));
    await untilSeen(writer, () => writes.length === 2);
    assert.equal(writes, [1024, 1536]);
    const { code, stdout, stderr } = await interrupt(writer);
    assert.is(code, 130, stderr);
    assert.equal(JSON.parse(stdout), { tool: 'nd nvme write', bytes: 1024, interrupted: true });
    assert.is(stderr, 'Wrote 1024 bytes starting at 0\nnd nvme write: interrupted\n');
  } finally {
    release();
    await slow.close();
  }
});

test('top runs until it is stopped', async () => {
  tested.add('top');
  const top = new NdTool(['top', '--json', '-d', '0.1']);
  await top.printed(/^\{/);
  assert.is((await interrupt(top)).code, 0);
});

/** These commands exit on their own without delay and have no exit code for Ctrl-C (`nd build` has: test/unit/build-sources.test.ts). */
const short = ['adapterinfo', 'verbs-info', 'stat', 'completion', 'build', 'help'];

test('every command has its test here; its help, the README and the docs document its exit status', async () => {
  const { stdout } = await runNd('--help');
  const names = [...stdout.matchAll(/^ {2}([a-z][\w-]*) (?:\[|<| )/gm)].map(([, name]) => name!);
  assert.ok(names.length > 15, stdout);
  assert.equal(
    names.filter((name) => !tested.has(name) && !short.includes(name)),
    [],
  );
  const page = (name: string): string => readFileSync(join(root, name), 'utf8');
  const reference = page('docs/reference/cli.md');
  for (const name of names.filter((one) => one !== 'help'))
    assert.match(reference, new RegExp(`^\\|.*\`${name}[\` ].*\\|$`, 'm'));
  for (const words of ['| 130 | interrupted with Ctrl-C |', '`top`, `nvme serve` and `conformance --serve`'])
    assert.match(reference.replaceAll('\n', ' '), words);
  assert.match(
    page('README.md').replaceAll('\n', ' '),
    'a command exits with status 130, or with 0 if it normally runs until it is stopped',
  );
  const helps = await Promise.all(
    [['top'], ['ping'], ['nvme', 'serve']].map((one) => runNd(...one, '--help')),
  );
  for (const help of helps) {
    assert.match(help.stdout, /\nExit status:\n {2}0 +success\n(.*\n)* {2}130 +interrupted with Ctrl-C;/);
  }
});

test.run();
