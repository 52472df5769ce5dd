// Finds tests that fail rarely: runs selected tests many times, under selected loads, in random order.
//
//   node scripts/hunt.mjs [--runs N] [--loads none,busy,realtime,single] [--jobs N] [--seed N] [--timeout SECONDS]
//                         [--table FILE] [--tests FOLDER] [filter …] [-- command …]
//
// Filters select compiled test files as in run-tests.mjs; the tests of both tiers run. A command after `--` runs instead of tests, and
// fails if its exit code is not 0. Each of the N rounds (default 10) runs all of them once under each load:
//
//   none      no other load
//   busy      two busy loops
//   realtime  two busy loops with real-time priority that occupy both CPUs from time to time for up to 0.3 s (root, chrt)
//   single    all of them on one CPU (taskset)
//
// The order of the files depends on the seed, which is printed. All processes have the lowest priority. The table is written to FILE after
// each run (default: .cache/hunt.txt) and printed at the end, even if hunt is stopped with Ctrl-C or SIGTERM. It has the runs, failures,
// fastest and slowest run of each file, the failures of each test, and the output of the first failure. The exit code is 1 if anything
// failed or nothing was run.
import { spawn } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { constants, cpus, setPriority } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { bundlePrograms } from './bundle-programs.mjs';
import { commandOf, killGroup, nameOf, root, runCommand, testFiles } from './test-file.mjs';

const BURST_MS = { shortest: 20, longest: 300 };
const PAUSE_MS = { shortest: 100, longest: 2000 };

const split = process.argv.indexOf('--', 2);
const command = split < 0 ? [] : process.argv.slice(split + 1);
const { values, positionals } = parsed({
  args: process.argv.slice(2, split < 0 ? undefined : split),
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '10' },
    loads: { type: 'string', default: 'none,busy' },
    jobs: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    timeout: { type: 'string', default: '120' },
    table: { type: 'string', default: join(root, '.cache/hunt.txt') },
    tests: { type: 'string', default: join(root, 'dist/test') },
  },
});

/** Each load: the programs that cause it, and the prefix of the command of a test. */
const loads = {
  none: {},
  busy: { loops: () => [loop(100, 0), loop(100, 0)] },
  realtime: {
    loops: () => [0, 1].map(() => loop(between(BURST_MS), between(PAUSE_MS), ['chrt', '-f', '1'])),
  },
  single: { prefix: ['taskset', '-c', String(cpus().length - 1)] },
};
const between = ({ shortest, longest }) => `${shortest} + Math.random() * ${longest - shortest}`;

/** Starts a program that alternates between busy and idle as long as this process lives. */
function loop(busyMs, pauseMs, prefix = []) {
  const program = `
    const word = new Int32Array(new SharedArrayBuffer(4));
    while (process.ppid === ${process.pid}) {
      const end = performance.now() + ${busyMs};
      while (performance.now() < end);
      Atomics.wait(word, 0, 0, ${pauseMs});
    }`;
  const [name, ...args] = [...prefix, process.execPath, '-e', program];
  return spawn(name, args, { stdio: 'inherit' }).on('error', fail);
}

function parsed(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    return fail(new Error(`${error.message}. The options are described at the top of scripts/hunt.mjs`));
  }
}

function fail(error) {
  console.error(`error: ${error.message}`);
  process.exit(2);
}

const chosenLoads = values.loads.split(',');
for (const name of chosenLoads) {
  if (!(name in loads)) fail(new Error(`--loads must be of ${Object.keys(loads).join(', ')}; got '${name}'`));
}
if (!/^\d+$/.test(values.seed)) fail(new Error(`--seed must be a number; got '${values.seed}'`));
for (const name of ['runs', 'jobs', 'timeout']) {
  if (!/^[1-9]\d*$/.test(values[name]))
    fail(new Error(`--${name} must be a number from 1 on; got '${values[name]}'`));
}

const tests = resolve(values.tests);

async function testsOf(files) {
  const bundleOf = await bundlePrograms(dirname(tests), files);
  return files.map((file) => ({ name: nameOf(tests, file), command: commandOf(bundleOf(file)) }));
}

const subjects =
  command.length > 0 ? [{ name: command.join(' '), command }] : await testsOf(testFiles(tests, positionals));

// Mulberry32.
let state = Number(values.seed);
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
function shuffled(list) {
  const left = [...list];
  return list.map(() => left.splice(Math.floor(random() * left.length), 1)[0]);
}

/** The results by subject and load. */
const rows = new Map();
const running = new Set();
let loops = [];
let ending = false;
const begun = new Date();

function note({ name }, load, { code, signal, output, seconds, timedOut }) {
  const key = `${name} ${load}`;
  const row = rows.get(key) ?? {
    name,
    load,
    runs: 0,
    failures: 0,
    fastest: Infinity,
    slowest: 0,
    cases: new Map(),
  };
  rows.set(key, row);
  row.runs += 1;
  row.fastest = Math.min(row.fastest, seconds);
  row.slowest = Math.max(row.slowest, seconds);
  if (code !== 0) {
    row.failures += 1;
    row.first ??= output.trimEnd();
    // uvu: `FAIL  suite  "name"`
    const cases = [...output.matchAll(/^ *FAIL +(.*".*")$/gm)].map(([, text]) => text.trim());
    const what = timedOut
      ? [`no test has ended for ${values.timeout} s`]
      : cases.length > 0
        ? cases
        : [signal ?? `exit code ${code}`];
    for (const one of new Set(what)) row.cases.set(one, (row.cases.get(one) ?? 0) + 1);
    console.log(`FAIL  ${name} (${load}): ${what.join('; ')}`);
  }
}

function report() {
  const all = [...rows.values()].sort((a, b) => b.failures - a.failures || (a.name < b.name ? -1 : 1));
  const sum = (of) => all.reduce((total, row) => total + row[of], 0);
  const width = Math.max(4, ...all.map(({ name }) => name.length));
  const columns = (name, ...rest) =>
    [name.padEnd(width), ...rest.map((text) => String(text).padStart(10))].join('').trimEnd();
  return [
    `hunt of ${begun.toISOString().slice(0, 16)}, seed ${values.seed}, ${values.jobs} at a time, ${cpus().length} CPUs (${cpus()[0].model.trim()})`,
    columns('test', 'load', 'runs', 'failures', 'fastest', 'slowest'),
    ...all.flatMap(({ name, load, runs, failures, fastest, slowest, cases }) => [
      columns(name, load, runs, failures, `${fastest.toFixed(1)} s`, `${slowest.toFixed(1)} s`),
      ...[...cases].map(([text, times]) => `    ${times} times: ${text}`),
    ]),
    `${sum('runs')} runs, ${sum('failures')} failures`,
    ...all
      .filter(({ first }) => first !== undefined)
      .map(({ name, load, first }) => `\n── the first failure of ${name} (${load})\n${first}`),
  ].join('\n');
}

function keepTable() {
  mkdirSync(dirname(values.table), { recursive: true });
  writeFileSync(`${values.table}.new`, `${report()}\n`);
  renameSync(`${values.table}.new`, values.table); // the file is complete whenever hunt is killed
}

function endLoops() {
  for (const one of loops) one.kill('SIGKILL');
  loops = [];
}

function finish() {
  endLoops();
  const failed = [...rows.values()].some(({ failures }) => failures > 0);
  console.log(report());
  process.exit(failed || rows.size === 0 ? 1 : 0);
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    ending = true;
    for (const { pid } of running) killGroup(pid); // processes killed here are not counted
    finish();
  });
}

setPriority(constants.priority.PRIORITY_LOW); // inherited by the child processes
console.log(
  `seed ${values.seed}: ${subjects.length} to run, ${values.runs} times under: ${chosenLoads.join(', ')}`,
);
for (let round = 0; round < Number(values.runs); round++) {
  for (const load of chosenLoads) {
    const { prefix = [] } = loads[load];
    loops = loads[load].loops?.() ?? [];
    const queue = shuffled(subjects);
    const worker = async () => {
      for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
        let started;
        const ended = await runCommand([...prefix, ...one.command], Number(values.timeout), (child) => {
          started = child;
          running.add(child);
        });
        running.delete(started);
        if (ending) return;
        note(one, load, ended);
        keepTable();
      }
    };
    await Promise.all(Array.from({ length: Number(values.jobs) }, worker));
    endLoops();
  }
}
finish();
