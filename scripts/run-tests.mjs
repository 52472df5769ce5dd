// Runs the compiled uvu tests, each file in a process of its own, a few at a time.
//
//   node scripts/run-tests.mjs [--jobs N] [--timeout SECONDS] [--list] [--retry] [--no-skips] [--tests FOLDER] [filter …]
//
// A filter is a part of a path ("unit/ioctl", "integration"). A file may take any time in total; it counts as hanging
// and is killed if no test has ended for `--timeout` seconds. Tests that this machine cannot run are skipped; their
// file writes a line `SKIP <reason>` for each reason (test/helpers/needs.ts). With `--no-skips` they count as failed.
// The last line is `N passed, N failed, N skipped`; the exit code is non-zero when a test failed, a file crashed, ran
// out of time or had no test, or there was no file.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: 'string', default: '2' },
    timeout: { type: 'string', default: '120' },
    list: { type: 'boolean', default: false },
    retry: { type: 'boolean', default: process.env.CI === 'true' },
    'no-skips': { type: 'boolean', default: false },
    tests: { type: 'string', default: join(root, 'dist/test') },
  },
});

const tests = resolve(values.tests);
const folders = ['unit', 'integration', 'fuzz', 'conformance'];
const files = folders
  .flatMap((folder) => listTests(join(tests, folder)))
  .filter(
    (file) =>
      positionals.length === 0 || positionals.some((filter) => relative(tests, file).includes(filter)),
  );

if (values.list) {
  for (const file of files) console.log(relative(root, file));
  process.exit(0);
}

const totals = { passed: 0, failed: 0, skipped: 0 };
const started = Date.now();
const queue = [...files];
await Promise.all(Array.from({ length: Number(values.jobs) }, worker));

console.log(`\n${files.length} files in ${((Date.now() - started) / 1000).toFixed(1)} s`);
console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exit(totals.failed > 0 || files.length === 0 ? 1 : 0);

function listTests(folder) {
  try {
    return readdirSync(folder, { recursive: true })
      .filter((name) => name.endsWith('.test.js'))
      .map((name) => join(folder, name))
      .sort();
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

async function worker() {
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) await run(file);
}

// A failed file is run once more and reported as AGAIN with its errors: processes and timers can race on a busy
// machine.
function run(file, again = false) {
  const name = relative(tests, file).replace(/\.test\.js$/, '');
  const begun = Date.now();
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--enable-source-maps', '--expose-gc', file], {
      cwd: root,
      env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a group of its own, so that a test's child processes end with it
    });
    let output = '';
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child.pid);
    }, Number(values.timeout) * 1000);
    child.stdout.on('data', (chunk) => {
      output += chunk;
      timer.refresh(); // a test has ended: each prints a mark
    });
    child.stderr.on('data', (chunk) => (output += chunk));
    // Leftovers of a test would hold the pipes open, and `close` would wait for them.
    child.on('exit', () => killGroup(child.pid));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const total = count(output, 'Total'); // of the tests that ran
      const passed = count(output, 'Passed');
      const skipped = count(output, 'Skipped');
      const failed = total - passed;
      const broken = code !== 0 && failed === 0;
      const empty = total + skipped === 0;
      if (code !== 0 && !timedOut && !again && values.retry) {
        console.log(`AGAIN ${name}  exit code ${code ?? signal}\n${output.trimEnd()}\n`);
        resolve(run(file, true));
        return;
      }
      totals.passed += passed;
      totals.failed += failed + (broken || empty ? 1 : 0);
      totals[values['no-skips'] ? 'failed' : 'skipped'] += skipped;
      const seconds = ((Date.now() - begun) / 1000).toFixed(1);
      if (skipped > 0) {
        const why = [...new Set(output.match(/(?<=^SKIP ).+/gm) ?? ['no reason given'])].join('; ');
        console.log(`${values['no-skips'] ? 'FAIL ' : 'SKIP '} ${name}  ${skipped} skipped: ${why}`);
      }
      if (code === 0 && total > 0) {
        console.log(`ok    ${name}  ${passed} of ${total}  ${seconds} s`);
      } else if (code !== 0 || empty) {
        const why = timedOut
          ? `no test has ended for ${values.timeout} s`
          : code === 0
            ? 'ran no test'
            : (signal ?? `exit code ${code}`);
        console.log(`FAIL  ${name}  ${why}  ${seconds} s\n${output.trimEnd()}\n`);
      }
      resolve();
    });
  });
}

/** uvu prints its totals once for every `test.run()` of a file. */
function count(output, label) {
  let sum = 0;
  for (const match of output.matchAll(new RegExp(`^\\s*${label}:\\s+(\\d+)`, 'gm'))) sum += Number(match[1]);
  return sum;
}

function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // already gone
  }
}
