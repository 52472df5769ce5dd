/** The programs of the guides compile without errors, run, and print the output shown below them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  compiledFile,
  type GuideProgram,
  programsOf,
  readPrograms,
  writePrograms,
} from '../helpers/guides.js';
import { firstIf, long } from '../helpers/tiers.js';
import { HANG_MS } from '../helpers/within.js';

/** Maximum length of a program, in lines. */
const MOST_LINES = 90;

const programs = readPrograms();
test.before(() => writePrograms(programs));

interface Running {
  /** Settles when the program has written its first bytes or has ended. */
  readonly begun: Promise<void>;
  readonly ended: Promise<{ code: number | null; signal: string | null; output: string; errors: string }>;
  readonly child: ChildProcess;
}

function start(program: GuideProgram): Running {
  const child = spawn(process.execPath, [compiledFile(program)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: HANG_MS,
    killSignal: 'SIGKILL',
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const ended: Running['ended'] = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, output, errors }));
  });
  const begun = Promise.race([
    new Promise<void>((resolve) => child.stdout.once('data', () => resolve())),
    ended.then(() => undefined),
  ]);
  return { begun, ended, child };
}

async function checkEnd(program: GuideProgram, { ended }: Running): Promise<void> {
  const { code, signal, output, errors } = await ended;
  const at = `${program.file} of ${program.page}`;
  assert.is(code, 0, `${at} ended with ${signal ?? code}: ${errors}\n${output}`);
  assert.is(output, program.output, at);
}

test('every block of code is a program', () => {
  assert.throws(() => programsOf('page', '```ts\nlet a;\n```\n'), /must have a file name/);
  for (const { page, file, output, source } of programs) {
    assert.ok(output !== undefined || /^export /m.test(source), `${file} of ${page} has no output below it`);
  }
  for (const page of new Set(programs.map((program) => program.page))) {
    assert.ok(
      programs.some((program) => program.page === page && program.output !== undefined),
      `${page} has no program that is run`,
    );
  }
});

test('programs are short', () => {
  for (const { page, file, source } of programs) {
    const lines = source.trimEnd().split('\n').length;
    assert.ok(lines <= MOST_LINES, `${file} of ${page} must have at most ${MOST_LINES} lines; got ${lines}`);
  }
});

test('blocks with the same name are one program, and the text after the last one is its output', () => {
  const text = '```ts a.ts\none;\n```\n```cpp\nx\n```\n```ts a.ts with=b.ts\ntwo;\n```\n```text\nout\n```\n';
  assert.equal(programsOf('page', text), [
    { page: 'page', file: 'a.ts', source: 'one;\ntwo;\n', with: 'b.ts', output: 'out\n' },
  ]);
});

long(test, 'all programs compile without errors', async () => {
  const { checkPrograms } = await import('../helpers/checked-programs.js');
  assert.equal(checkPrograms(programs), []);
});

const servers = new Set(programs.map((program) => program.with));
/** Programs that are started directly. */
const runnable = programs.filter(({ file, output }) => output !== undefined && !servers.has(file));
/** The first tier runs one program of each page. */
const firstOfPages = new Set(new Map(runnable.map((program) => [program.page, program])).values());

for (const program of runnable) {
  firstIf(firstOfPages.has(program), test)(`${program.file} of ${program.page}`, async () => {
    const server = programs.find(({ file }) => file === program.with);
    if (program.with !== undefined) assert.ok(server, `there is no ${program.with}`);
    const serving = server && start(server);
    try {
      await serving?.begun;
      await checkEnd(program, start(program));
      if (server && serving) await checkEnd(server, serving);
    } finally {
      serving?.child.kill('SIGKILL');
    }
  });
}

test.run();
