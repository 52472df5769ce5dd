// Runs the compiled uvu tests, each file in a separate process, several at a time.
//
//   node scripts/run-tests.mjs [--jobs N] [--timeout SECONDS] [--list] [--all] [--no-skips] [--tests FOLDER] [filter …]
//
// Without a filter, the tests of the first tier run; with --all, those of both tiers. A filter is part of a path ("unit/ioctl",
// "integration") and selects all tests of the matching files. The total time of a file is not limited, but it is killed as hanging if no
// test finishes within `--timeout` seconds. Nothing is retried, even with CI=true; scripts/hunt.mjs finds tests that fail rarely. Tests
// that this machine cannot run are skipped, and their file prints a line `SKIP <reason>` for each reason (test/helpers/needs.ts). With
// `--no-skips` they count as failed. The last line is `N passed, N failed, N skipped`. The exit code is non-zero if a test failed, a file
// crashed, timed out or ran no test, or no file matched.
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { bundlePrograms } from './bundle-programs.mjs';
import { commandOf, nameOf, root, runCommand, testFiles } from './test-file.mjs';

const options = {
  // Tests wait for processes and timers, so running one more file than there are CPUs keeps the machine busy.
  jobs: { type: 'string', default: String(Math.min(availableParallelism() + 1, 4)) },
  timeout: { type: 'string', default: '120' },
  list: { type: 'boolean', default: false },
  all: { type: 'boolean', default: false },
  'no-skips': { type: 'boolean', default: false },
  tests: { type: 'string', default: join(root, 'dist/test') },
};
const { values, positionals } = commandLine();

function commandLine() {
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    const names = Object.keys(options).map((name) => `--${name}`);
    console.error(
      `error: ${error.message.split('. ')[0]}\nThe options are ${names.join(', ')}; see scripts/run-tests.mjs.`,
    );
    process.exit(2);
  }
}

for (const name of ['jobs', 'timeout']) {
  if (/^[1-9]\d*$/.test(values[name])) continue;
  console.error(`error: --${name} must be a number from 1 on; got '${values[name]}'`);
  process.exit(2);
}

const tests = resolve(values.tests);
const files = testFiles(tests, positionals);

if (values.list) {
  for (const file of files) console.log(relative(root, file));
  process.exit(0);
}

// test/helpers/tiers.ts
if (!values.all && positionals.length === 0) process.env.ND_TEST_TIER = 'first';
const bundleOf = await bundlePrograms(dirname(tests), files);

const totals = { passed: 0, failed: 0, skipped: 0, later: 0 };
const started = Date.now();
const queue = [...files];
await Promise.all(Array.from({ length: Number(values.jobs) }, worker));

console.log(`\n${files.length} files in ${((Date.now() - started) / 1000).toFixed(1)} s`);
if (totals.later > 0) console.log(`${totals.later} tests are left to the second tier: npm run test:all`);
console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exit(totals.failed > 0 || files.length === 0 ? 1 : 0);

async function worker() {
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) await run(file);
}

async function run(file) {
  const name = nameOf(tests, file);
  const { code, signal, output, timedOut, passed, failed, skipped, ...took } = await runCommand(
    commandOf(bundleOf(file)),
    Number(values.timeout),
  );
  const broken = code !== 0 && failed === 0;
  const later = (output.match(/^LATER /gm) ?? []).length;
  const empty = passed + failed + skipped + later === 0;
  totals.later += later;
  totals.passed += passed;
  totals.failed += failed + (broken || empty ? 1 : 0);
  totals[values['no-skips'] ? 'failed' : 'skipped'] += skipped;
  const seconds = took.seconds.toFixed(1);
  if (skipped > 0) {
    const why = [...new Set(output.match(/(?<=^SKIP ).+/gm) ?? ['no reason given'])].join('; ');
    console.log(`${values['no-skips'] ? 'FAIL ' : 'SKIP '} ${name}  ${skipped} skipped: ${why}`);
  }
  if (code === 0 && passed + failed > 0) {
    console.log(`ok    ${name}  ${passed} of ${passed + failed}  ${seconds} s`);
  } else if (code !== 0 || empty) {
    const why = timedOut
      ? `no test has ended for ${values.timeout} s`
      : code === 0
        ? 'ran no test'
        : (signal ?? `exit code ${code}`);
    console.log(`FAIL  ${name}  ${why}  ${seconds} s\n${output.trimEnd()}\n`);
  }
}
