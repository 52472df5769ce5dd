// The test runner, and hunt, which runs tests many times: their results and exit codes for files that pass, fail, are skipped or have no
// tests.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { long } from '../helpers/tiers.js';

const runner = fileURLToPath(new URL('../../../scripts/run-tests.mjs', import.meta.url));
const hunter = fileURLToPath(new URL('../../../scripts/hunt.mjs', import.meta.url));
const needs = new URL('../helpers/needs.js', import.meta.url).href;
const tiers = new URL('../helpers/tiers.js', import.meta.url).href;
const begin = `
  import { test } from '${new URL('../../../node_modules/uvu/dist/index.mjs', import.meta.url)}';
  import { needing } from '${needs}';
  const pass = () => {};
  const fail = () => { throw new Error('as it should'); };`;

/** Test files by name, which all start with the lines above. None of these programs is on their PATH. */
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
  hooks: `test.before(fail); test('a', pass); test('b', pass); test.run();`,
  crashes: `needing(test, 'tshark')('a', pass); test('b', () => process.exit(7)); test.run();`,
  'fails-once': `
    import { existsSync, writeFileSync } from 'node:fs';
    const mark = new URL('mark', import.meta['url']);
    const again = existsSync(mark);
    writeFileSync(mark, '');
    needing(test, 'tshark')('a', fail);
    test('b', again ? pass : fail); test.run();`,
};

/** Test files of both tiers, in a folder without other files. */
const tierFiles: Record<string, string> = {
  tiers: `import { long } from '${tiers}'; test('a', pass); long(test, 'b', fail); test.run();`,
  'all-later': `import { long } from '${tiers}'; long(test, 'a', pass); test.run();`,
};

interface Ended {
  readonly code: number | null;
  readonly lines: readonly string[];
  /** The last line of the output. */
  readonly totals: string | undefined;
}

function writeTests(folder: string, of: Record<string, string>): void {
  mkdirSync(join(folder, 'unit'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const [name, source] of Object.entries(of))
    writeFileSync(join(folder, 'unit', `${name}.test.js`), `${begin}${source}`);
}

const test = suite<{ folder: string }>('test runner');
test.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'nd-runner-'));
  writeTests(context.folder, files);
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true }));

function runScript(script: string, folder: string, args: readonly string[]): Ended {
  const { status, stdout } = spawnSync(process.execPath, [script, '--tests', folder, ...args], {
    encoding: 'utf8',
    env: { PATH: folder, CI: 'true' },
  });
  const lines = stdout.trimEnd().split('\n');
  return { code: status, lines, totals: lines.at(-1) };
}
const run = (folder: string, ...args: string[]) => runScript(runner, folder, args);
const hunt = (folder: string, ...args: string[]) => runScript(hunter, folder, args);
const linesOf = ({ lines }: Ended, mark: string): string[] =>
  lines.filter((line) => line.startsWith(`${mark} `)).map((line) => line.replace(/ +[\d.]+ s$/, ''));

test('tests that the machine cannot run are skipped, with the reason and a cure; the exit code is 0', ({
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

test('--no-skips: each skipped test is a failure', ({ folder }) => {
  const all = run(folder, '--no-skips', 'passes', 'cannot-run');
  assert.equal([all.code, all.totals], [1, '2 passed, 2 failed, 0 skipped']);
  assert.equal(linesOf(all, 'FAIL'), [
    'FAIL  unit/cannot-run  2 skipped: tshark is not installed (apt-get install tshark)',
  ]);
  const whole = run(folder, '--no-skips', 'passes');
  assert.equal([whole.code, whole.totals], [0, '2 passed, 0 failed, 0 skipped']);
});

test('invalid numbers are rejected, and a run without tests does not pass', ({ folder }) => {
  for (const script of [run, hunt])
    for (const [option, value] of [
      ['--jobs', '0'],
      ['--jobs', 'x'],
      ['--timeout', '0'],
    ] as const)
      assert.is(script(folder, option, value, 'passes').code, 2, `${option} ${value}`);
  assert.is(run(folder, 'no-such-file').code, 1);
});

test('failures, crashes and files without a test are counted, in addition to skipped tests', ({ folder }) => {
  const failed = run(folder, 'fails.');
  assert.equal([failed.code, failed.totals], [1, '1 passed, 2 failed, 2 skipped']);
  const crashed = run(folder, 'crashes');
  assert.equal([crashed.code, crashed.totals], [1, '0 passed, 1 failed, 0 skipped']);
  const empty = run(folder, 'empty');
  assert.equal([empty.code, empty.totals], [1, '0 passed, 1 failed, 0 skipped']);
  assert.equal(linesOf(empty, 'FAIL'), ['FAIL  unit/empty  ran no test']);
  // In this case, uvu itself exits with 0.
  const hooked = run(folder, 'hooks');
  assert.equal([hooked.code, hooked.totals], [1, '0 passed, 2 failed, 0 skipped']);
  assert.equal(linesOf(hooked, 'FAIL'), ['FAIL  unit/hooks  exit code 1']);
  assert.is(
    hunt(folder, '--runs', '1', '--loads', 'none', '--table', join(folder, 'hooks.txt'), 'hooks').code,
    1,
  );
  assert.equal(run(folder, 'no-such-file').code, 1);
});

test('a test that is skipped without a reason is reported as such', ({ folder }) => {
  const ended = run(folder, 'unexplained');
  assert.equal([ended.code, ended.totals], [0, '1 passed, 0 failed, 1 skipped']);
  assert.equal(linesOf(ended, 'SKIP'), ['SKIP  unit/unexplained  1 skipped: no reason given']);
});

test('tests of the second tier run with --all or a filter, and are otherwise counted', ({ folder }) => {
  const both = join(folder, 'both');
  writeTests(both, tierFiles);
  const first = run(both);
  assert.ok(first.lines.includes('2 tests are left to the second tier: npm run test:all'));
  assert.equal([first.code, first.totals], [0, '1 passed, 0 failed, 0 skipped']);
  for (const ended of [run(both, '--all'), run(both, 'tiers', 'all-later')]) {
    assert.equal([ended.code, ended.totals], [1, '2 passed, 1 failed, 0 skipped']);
    assert.equal(linesOf(ended, 'FAIL'), ['FAIL  unit/tiers  exit code 1']);
  }
});

test('a test that only fails the first time has failed, even with CI=true', ({ folder }) => {
  const ended = run(folder, 'fails-once');
  assert.equal([ended.code, ended.totals], [1, '0 passed, 1 failed, 1 skipped']);
  assert.equal(linesOf(ended, 'FAIL'), ['FAIL  unit/fails-once  exit code 1']);
});

test('hunt: runs, failures and their tests, and the first output; the same seed causes the same order', ({
  folder,
}) => {
  const table = join(folder, 'table.txt');
  const all = ['--loads', 'none', '--jobs', '1', '--seed', '7', '--table', table];
  const ended = hunt(folder, ...all, '--runs', '3', 'fails-once', 'passes');
  assert.is(ended.code, 1);
  const text = readFileSync(table, 'utf8');
  assert.match(text, /^unit\/fails-once +none +3 +1 +[\d.]+ s +[\d.]+ s\n {4}1 times: .*"b"$/m);
  assert.match(text, /^unit\/passes +none +3 +0 /m);
  assert.match(text, /^6 runs, 1 failures$/m);
  assert.match(text, /── the first failure of unit\/fails-once \(none\)\n[\s\S]*as it should/);
  assert.is(hunt(folder, ...all, '--runs', '1', 'passes').code, 0);
  assert.is(hunt(folder, ...all, 'no-such-file').code, 1);
});

long(test, 'hunt: the exit code of any other command counts', ({ folder }) => {
  const all = ['--loads', 'none', '--runs', '2', '--table', join(folder, 'table.txt'), '--'];
  assert.is(hunt(folder, ...all, process.execPath, '-e', '0').code, 0);
  const ended = hunt(folder, ...all, process.execPath, '-e', 'process.exit(3)');
  assert.is(ended.code, 1);
  assert.match(ended.lines.join('\n'), /^ {4}2 times: exit code 3$/m);
});

long(test, 'hunt: its table outlives it, however it is ended', async ({ folder }) => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const table = join(folder, `${signal}.txt`);
    const child = spawn(
      process.execPath,
      [
        hunter,
        '--tests',
        folder,
        '--table',
        table,
        '--jobs',
        '1',
        '--loads',
        'busy',
        '--runs',
        '1000',
        'passes',
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    const ended = once(child, 'close');
    while (!existsSync(table)) await setTimeout(10);
    child.kill(signal);
    await ended;
    assert.match(readFileSync(table, 'utf8'), /^unit\/passes +busy +\d+ +0 /m);
    if (signal === 'SIGTERM') assert.match(output, /^unit\/passes +busy +\d+ +0 /m);
  }
});

test.run();
