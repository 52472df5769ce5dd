// nd stat and nd top observe another process.
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type KernelStatistics, readProcesses, Status, StatusError } from '../../kernel-bridge/index.js';
import { Heard } from '../helpers/heard.js';
import { ND, NdTool, runNd } from '../helpers/nd-tool.js';
import { programFile } from '../helpers/programs.js';
import { long } from '../helpers/tiers.js';

const program = programFile(new URL('../helpers/observed-program.js', import.meta.url));

interface Report {
  readonly secret: string;
  readonly keys: readonly number[];
  readonly local: { readonly address: string; readonly port: number };
  readonly remote: { readonly address: string; readonly port: number };
}

const running = new Set<ChildProcess>();
test.after.each(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

async function observed(
  options: object = {},
): Promise<{ child: ChildProcess; pid: number; reported: Report }> {
  const child = fork(program, { env: { ...process.env, ND_OPTIONS: JSON.stringify(options) } });
  running.add(child);
  const [reported] = (await once(child, 'message')) as [Report];
  return { child, pid: child.pid!, reported };
}

/** A process without options, shared by tests that do not stop it. */
let shared: ReturnType<typeof observed> | undefined;

async function sharedOne(): ReturnType<typeof observed> {
  shared ??= observed();
  const one = await shared;
  running.delete(one.child);
  return one;
}
test.after(async () => {
  (await shared)?.child.kill('SIGKILL');
});

async function exchange(child: ChildProcess, count: number): Promise<void> {
  child.send(count);
  const [answer] = await once(child, 'message');
  assert.equal(answer, { exchanged: count });
}

async function statisticsOf(pid: number): Promise<KernelStatistics> {
  const [kernel, ...more] = await readProcesses({ pid, timeoutMs: 20_000 });
  assert.equal([kernel?.pid, more.length, kernel?.problem], [pid, 0, undefined]);
  return kernel!.statistics!;
}

test('a process is observed from outside: queue pairs, connections, registrations and counters', async () => {
  const { child, pid, reported } = await sharedOne();
  const before = await statisticsOf(pid);
  assert.equal([before.form, before.pid, before.node], [1, pid, process.versions.node]);
  assert.is(before.queuePairs.length, 2);
  for (const pair of before.queuePairs) {
    assert.equal([pair.type, pair.state, pair.local, pair.remote], ['RC', 'RTS', '127.0.0.1', '127.0.0.1']);
    assert.ok(before.queuePairs.some(({ remoteQpn }) => remoteQpn === pair.qpn));
  }
  const ends = [reported.local, reported.remote].map(({ address, port }) => `${address}:${port}`);
  assert.equal(
    before.connections.map(({ state, local }) => [state, local]).sort(),
    ends.map((end) => ['connected', end]).sort(),
  );
  assert.equal(
    before.connections.map(({ qpn }) => qpn).sort(),
    before.queuePairs.map(({ qpn }) => qpn).sort(),
  );
  assert.equal(before.memory.map(({ kind, length, live }) => [kind, length, live]).sort(), [
    ['region', 4096, true],
    ['region', 8192, true],
  ]);
  assert.equal(before.omitted, { queuePairs: 0, connections: 0, memory: 0 });
  await exchange(child, 25);
  const after = await statisticsOf(pid);
  const sum = (all: KernelStatistics, name: 'sent' | 'received'): number =>
    all.queuePairs.reduce((total, pair) => total + pair[name], 0);
  assert.equal(
    [sum(after, 'sent') - sum(before, 'sent'), sum(after, 'received') - sum(before, 'received')],
    [25, 25],
  );
  assert.ok(after.counters.hca!.sent_pkts! >= before.counters.hca!.sent_pkts! + 25);
  assert.ok(after.at > before.at);
});

test('keys, memory addresses and data are never reported', async () => {
  const { pid, reported } = await sharedOne();
  const text = JSON.stringify(await statisticsOf(pid));
  assert.not.ok(text.includes(reported.secret.slice(0, 8)));
  assert.ok(reported.keys.length === 4 && reported.keys.every((key) => key > 0));
  for (const key of reported.keys) {
    assert.not.match(text, new RegExp(`\\b(${key}|0x0*${key.toString(16)})\\b`, 'i'));
  }
  // Memory addresses have twelve hexadecimal digits here; no number is that large.
  for (const [number] of text.matchAll(/\b\d{14,}\b/g)) assert.unreachable(`${number} may be an address`);
});

test('the option statistics prevents a process from being observed', async () => {
  const { pid } = await observed({ statistics: false });
  assert.equal(
    (await readProcesses({ pid, timeoutMs: 20_000 })).map(({ problem, statistics }) => [problem, statistics]),
    [['refused', undefined]],
  );
  const { code, stdout } = await runNd('stat', String(pid));
  assert.is(code, 0);
  assert.match(stdout, 'its option statistics is false');
});

/** Stops a process. Its threads continue until the one that got the signal runs. */
async function stop(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  const threads = `/proc/${child.pid}/task`;
  const isStopped = (id: string): boolean => /\) T /.test(readFileSync(`${threads}/${id}/stat`, 'utf8'));
  while (!readdirSync(threads).every(isStopped)) await new Promise((resolve) => setImmediate(resolve));
}

test('a stopped process is reported after the timeout', async () => {
  const { child, pid } = await observed();
  await stop(child);
  const [kernel] = await readProcesses({ pid, timeoutMs: 200 });
  assert.is(kernel?.problem, 'silent');
  child.kill('SIGCONT');
  assert.is((await statisticsOf(pid)).queuePairs.length, 2);
});

test('the observer is not listed unless it uses RDMA itself', async () => {
  const { pid } = await sharedOne();
  const seen = await readProcesses({ timeoutMs: 20_000 });
  assert.ok(seen.some((one) => one.pid === pid));
  assert.not.ok(seen.some((one) => one.pid === process.pid));
});

test('invalid arguments are reported by name', async () => {
  for (const [options, text] of [
    [{ pid: 0 }, '`pid` must be a process id; got 0.'],
    [{ timeoutMs: 0 }, '`timeoutMs` must be an integer from 1 to 60000; got 0.'],
    [{ timeoutMs: 1.5 }, '`timeoutMs` must be an integer from 1 to 60000; got 1.5.'],
  ] as const) {
    const error = await readProcesses(options).catch((reason: unknown) => reason);
    assert.ok(error instanceof StatusError && error.status === Status.INVALID_PARAMETER);
    assert.match((error as Error).message, text);
  }
  const [word, port, none] = await Promise.all([
    runNd('stat', 'init'),
    runNd('top', '--port', '4', '--json'),
    runNd('stat', '4194304'),
  ]);
  assert.equal([word.code, word.stderr], [2, "nd stat: the process id must be a number; got 'init'\n"]);
  assert.equal([port.code, port.stderr], [2, 'nd top: --port requires --web\n']);
  assert.match(port.stdout, '"error"');
  assert.equal([none.code, none.stderr], [1, 'nd: Process 4194304 does not exist.\n']);
});

test('nd stat: a line for each process, all details of one process, JSON', async () => {
  const { pid, reported } = await sharedOne();
  const [all, one, json] = await Promise.all([
    runNd('stat'),
    runNd('stat', String(pid)),
    runNd('stat', '--json'),
  ]);
  assert.equal([all.code, one.code, json.code], [0, 0, 0]);
  assert.match(all.stdout, /^ *PID +SLOT +PROGRAM +UDP +QPS/);
  assert.match(
    all.stdout,
    new RegExp(`^ *${pid} +\\d+ +observed-program\\.m?js +unused +2 +2 +0 +2 +12 KiB `, 'm'),
  );
  assert.match(one.stdout, `Process ${pid}, slot `);
  assert.match(one.stdout, /^Queue pairs: 2$/m);
  assert.match(
    one.stdout,
    new RegExp(`^connect +connected +127\\.0\\.0\\.1:${reported.local.port} +127\\.0\\.0\\.1:`, 'm'),
  );
  assert.match(one.stdout, /^objects\.qp +2$/m);
  const { processes } = JSON.parse(json.stdout) as {
    processes: { pid: number; statistics: KernelStatistics }[];
  };
  assert.is(processes.find((row) => row.pid === pid)?.statistics.queuePairs.length, 2);
});

interface TopRow {
  readonly pid: number;
  readonly rates?: Readonly<Record<string, number>>;
}

test('nd top --json: a line for each update, with the current rates', async () => {
  const { child, pid } = await sharedOne();
  const top = new NdTool(['top', '--json', '--delay', '0.2']);
  let busy = true;
  const work = (async () => {
    while (busy) await exchange(child, 20);
  })();
  const found = await top.printed(
    new RegExp(`^\\{"at".*"pid":${pid},[^\\n]*"messagesOut":[1-9][^\\n]*$`, 'm'),
  );
  busy = false;
  await work;
  const { processes } = JSON.parse(found[0]) as { processes: TopRow[] };
  const { rates } = processes.find((row) => row.pid === pid)!;
  assert.ok(rates!.messagesOut! > 0 && rates!.messagesIn! > 0);
  assert.is(rates!.rnr, 0);
  top.process.kill('SIGINT');
  assert.is((await top.ended).code, 0);
});

long(test, 'nd top without a terminal prints one view and ends', async () => {
  const { pid } = await sharedOne();
  const { code, stdout, stderr } = await runNd('top', '-d', '0.1');
  assert.equal([code, stderr], [0, '']);
  assert.match(stdout, /^ *PID +SLOT +QPS +CONN +UDP +MSG\/S OUT/);
  assert.match(stdout, new RegExp(`^ *${pid} .* observed-program\\.m?js$`, 'm'));
  assert.is(stdout.match(/PID/g)!.length, 1);
  assert.not.match(stdout, '\x1b');
});

test('nd top on a terminal redraws, sorts by a key, and restores the screen', async () => {
  const { pid } = await sharedOne();
  const line = `${process.execPath} ${ND} top -d 0.1`;
  const top = spawn('script', ['-qec', line, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
  if (await Promise.race([once(top, 'error'), once(top, 'spawn').then(() => undefined)])) {
    return console.log('SKIP script is not installed (apt-get install bsdutils)');
  }
  const screen = new Heard(top.stdout!);
  await screen.until(`${pid} `);
  assert.ok(screen.text.startsWith('\x1b[?1049h\x1b[?25l'));
  top.stdin!.write('b');
  await screen.until('[bytes]');
  top.stdin!.write('q');
  await screen.until('\x1b[?25h\x1b[?1049l');
  const [code] = await once(top, 'close');
  assert.is(code, 0);
});

test('nd top --web serves its page and the samples', async () => {
  const { pid } = await sharedOne();
  const top = new NdTool(['top', '--web', '--json', '-d', '0.1']);
  const { url } = JSON.parse((await top.printed(/^\{.*\}$/m))[0]) as { url: string };
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{24}\/$/);
  assert.match(await (await fetch(url)).text(), '<title>nd top');
  const [response] = await once(get(`${url}events`), 'response');
  const page = new Heard(response);
  await page.until(new RegExp(`event: view\\ndata: .*"pid":${pid},`));
  assert.ok(page.text.startsWith('event: history\ndata: ['));
  top.process.kill('SIGINT');
  assert.is((await top.ended).code, 0);
});

test.run();
