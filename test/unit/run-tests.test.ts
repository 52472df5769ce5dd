// The test runner: its results for files that pass, fail, are skipped or have no test, and its exit code.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const runner = fileURLToPath(new URL('../../../scripts/run-tests.mjs', import.meta.url));
const needs = new URL('../helpers/needs.js', import.meta.url).href;
const begin = `
  import { test } from '${import.meta.resolve('uvu')}';
  import { needing } from '${needs}';
  const pass = () => {};
  const fail = () => { throw new Error('as it should'); };`;

/** Test files by name, which share the lines above. None of these programs is on their PATH. */
const files: Record<string, string> = {
  passes: `test('a', pass); test('b', pass); test.run();`,
  fails: `test('a', pass); test('b', fail); test('c', fail); test.skip(); test.skip(); test.run();`,
  'cannot-run': `
    const all = needing(test, 'tshark');
    all.before(fail);
    all.after.each(fail);
    all('a', fail); all('b', fail); all.run();`,
  partly: `test('a', pass); needing(test, 'setpriv')('b', fail); needing(test, 'namespaces')('c', fail); test.run();`,
  unexplained: `test('a', pass); test.skip('b', fail); test.run();`,
  empty: `test.run();`,
  crashes: `needing(test, 'tshark')('a', pass); test('b', () => process.exit(7)); test.run();`,
  'fails-once': `
    import { existsSync, writeFileSync } from 'node:fs';
    const mark = new URL('mark', import.meta.url);
    const again = existsSync(mark);
    writeFileSync(mark, '');
    needing(test, 'tshark')('a', fail);
    test('b', again ? pass : fail); test.run();`,
};

interface Ended {
  readonly code: number | null;
  readonly lines: readonly string[];
  /** The last line. */
  readonly totals: string | undefined;
}

const test = suite<{ folder: string }>('test runner');
test.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'nd-runner-'));
  const unit = join(context.folder, 'unit');
  mkdirSync(unit);
  writeFileSync(join(context.folder, 'package.json'), '{"type":"module"}');
  for (const [name, source] of Object.entries(files)) {
    writeFileSync(join(unit, `${name}.test.js`), `${begin}${source}`);
  }
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true }));

function run(folder: string, ...args: string[]): Ended {
  const { status, stdout } = spawnSync(process.execPath, [runner, '--tests', folder, ...args], {
    encoding: 'utf8',
    env: { PATH: folder },
  });
  const lines = stdout.trimEnd().split('\n');
  return { code: status, lines, totals: lines.at(-1) };
}
const linesOf = ({ lines }: Ended, mark: string): string[] =>
  lines.filter((line) => line.startsWith(`${mark} `)).map((line) => line.replace(/ +[\d.]+ s$/, ''));

test('what the machine cannot run is skipped, with its reason and how to get it; the exit code is 0', ({
  folder,
}) => {
  const all = run(folder, 'passes', 'cannot-run', 'partly');
  assert.is(all.code, 0, all.lines.join('\n'));
  assert.is(all.totals, '3 passed, 0 failed, 4 skipped');
  assert.equal(linesOf(all, 'SKIP').sort(), [
    'SKIP  unit/cannot-run  2 skipped: tshark is not installed (apt-get install tshark)',
    'SKIP  unit/partly  2 skipped: setpriv is not installed (apt-get install util-linux); unshare is not installed (apt-get install util-linux)',
  ]);
  assert.equal(linesOf(all, 'ok').sort(), ['ok    unit/partly  1 of 1', 'ok    unit/passes  2 of 2']);
  const alone = run(folder, 'cannot-run');
  assert.equal([alone.code, alone.totals], [0, '0 passed, 0 failed, 2 skipped']);
});

test('--no-skips: each is a failure', ({ folder }) => {
  const all = run(folder, '--no-skips', 'passes', 'cannot-run');
  assert.equal([all.code, all.totals], [1, '2 passed, 2 failed, 0 skipped']);
  assert.equal(linesOf(all, 'FAIL'), [
    'FAIL  unit/cannot-run  2 skipped: tshark is not installed (apt-get install tshark)',
  ]);
  const whole = run(folder, '--no-skips', 'passes');
  assert.equal([whole.code, whole.totals], [0, '2 passed, 0 failed, 0 skipped']);
});

test('a failure is counted beside what is skipped, and a crash, and a file without a test', ({ folder }) => {
  const failed = run(folder, 'fails.');
  assert.equal([failed.code, failed.totals], [1, '1 passed, 2 failed, 2 skipped']);
  const crashed = run(folder, 'crashes');
  assert.equal([crashed.code, crashed.totals], [1, '0 passed, 1 failed, 0 skipped']);
  const empty = run(folder, 'empty');
  assert.equal([empty.code, empty.totals], [1, '0 passed, 1 failed, 0 skipped']);
  assert.equal(linesOf(empty, 'FAIL'), ['FAIL  unit/empty  ran no test']);
  assert.equal(run(folder, 'no-such-file').code, 1);
});

test('a test that is skipped without a reason is said to be', ({ folder }) => {
  const ended = run(folder, 'unexplained');
  assert.equal([ended.code, ended.totals], [0, '1 passed, 0 failed, 1 skipped']);
  assert.equal(linesOf(ended, 'SKIP'), ['SKIP  unit/unexplained  1 skipped: no reason given']);
});

test('--retry: a file that fails is run once more, and its second run counts', ({ folder }) => {
  const ended = run(folder, '--retry', 'fails-once', 'fails.');
  assert.is(ended.code, 1);
  assert.equal(linesOf(ended, 'AGAIN').sort(), [
    'AGAIN unit/fails  exit code 1',
    'AGAIN unit/fails-once  exit code 1',
  ]);
  assert.is(ended.totals, '2 passed, 2 failed, 3 skipped');
});

test.run();
