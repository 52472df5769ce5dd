// Finds compiled test files and runs one in a separate process, for run-tests.mjs and hunt.mjs.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
/** Short files come last, so that all workers are busy to the end. */
const folders = ['conformance', 'integration', 'fuzz', 'unit'];

/** The files in `tests` whose paths contain one of the filters; all of them if there are none. */
export function testFiles(tests, filters) {
  return folders
    .flatMap((folder) => filesBelow(join(tests, folder)))
    .filter(
      (file) => filters.length === 0 || filters.some((filter) => relative(tests, file).includes(filter)),
    );
}

function filesBelow(folder) {
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

/** The name of a test file in reports, such as `integration/loss`. */
export const nameOf = (tests, file) => relative(tests, file).replace(/\.test\.js$/, '');

/** The command that runs a test file. */
export const commandOf = (file) => [process.execPath, '--enable-source-maps', file];

/**
 * Runs a command in a separate process group, which ends with it. If it prints nothing on stdout for `idleSeconds`, it is killed; uvu
 * prints a mark for each finished test.
 *
 * Resolves to the exit code (`null` with a signal), the signal, the output, the duration, whether it was killed for being idle, and the
 * totals reported by uvu.
 */
export function runCommand([program, ...args], idleSeconds, onStart = () => {}) {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a separate process group, so that a test's child processes end with it
    });
    onStart(child);
    let output = '';
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      killGroup(child.pid);
    }, idleSeconds * 1000);
    child.stdout.on('data', (chunk) => {
      output += chunk;
      timer.refresh();
    });
    child.stderr.on('data', (chunk) => (output += chunk));
    child.on('error', reject);
    // Leftover child processes of a test would keep the pipes open, and `close` would wait for them.
    child.on('exit', () => killGroup(child.pid));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const seconds = (performance.now() - begun) / 1000;
      const passed = count(output, 'Passed');
      const failed = count(output, 'Total') - passed; // the total counts the tests that ran
      // uvu exits with 0 if a hook threw, although tests of its suite did not finish.
      const result = code === 0 && failed > 0 ? 1 : code;
      const skipped = count(output, 'Skipped');
      resolve({ code: result, signal, output, seconds, timedOut, passed, failed, skipped });
    });
  });
}

/** Sums the totals, which uvu prints once for every `test.run()` of a file. */
function count(output, label) {
  let sum = 0;
  for (const match of output.matchAll(new RegExp(`^\\s*${label}:\\s+(\\d+)`, 'gm'))) sum += Number(match[1]);
  return sum;
}

export function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // the process has already exited
  }
}
