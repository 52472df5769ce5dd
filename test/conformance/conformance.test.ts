/** Our own provider keeps every rule, in one process and in two; and the command tells it as it says it does. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type CaseResult, cases, type Spi, selectCases, spiVersions } from './index.js';

const command = fileURLToPath(new URL('../../examples/nd.js', import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly lines: string[];
  readonly errors: string;
}

async function conformance(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [command, 'conformance', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, lines: output.trimEnd().split('\n'), errors };
}

/** Runs all cases of a version; none may fail, and none be skipped. */
async function passesAll(spi: Spi, ...args: string[]): Promise<void> {
  const { code, lines, errors } = await conformance('--json', '--spi', spi, ...args);
  const results = lines.slice(0, -1).map((line) => JSON.parse(line) as CaseResult);
  const failures = results.filter(({ outcome }) => outcome !== 'passed');
  assert.equal(failures, [], errors);
  const { passed } = JSON.parse(lines.at(-1)!) as { passed: number };
  assert.is(passed, selectCases(cases, spi).length);
  assert.is(code, 0);
}

for (const spi of spiVersions) {
  test(`SPI ${spi}, both halves in one process`, () => passesAll(spi));

  test(`SPI ${spi}, in two processes`, () => passesAll(spi, '--processes', '2'));
}

test('the halves meet by --serve and --peer', async () => {
  const server = spawn(process.execPath, [command, 'conformance', '--serve', '--port', '0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [line] = (await once(createInterface({ input: server.stderr }), 'line')) as [string];
  const port = /port (\d+)$/.exec(line)?.[1];
  const ended = once(server, 'close');
  try {
    const { code, lines } = await conformance('--peer', `127.0.0.1:${port}`, '--only', 'connect.*-connects');
    assert.is(code, 0, lines.join('\n'));
    assert.match(lines.join('\n'), /connect +│ +2 │ +0 │/);
  } finally {
    server.kill();
    await ended;
  }
});

test('names of cases differ, and each has its clause', () => {
  const names = cases.map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  for (const { name, clause } of cases) assert.match(clause, /^ND SPI §/, name);
});

test('what cannot be run is told, with how to do it right', async () => {
  const wrong: [args: string[], code: number, text: RegExp][] = [
    [['--spi', 'v3'], 2, /--spi must be v1 or v2/],
    [['--serve', '--peer', 'here'], 2, /exclude each other/],
    [['--only', 'no-such-case'], 1, /No case of SPI v1/],
    [['--provider', 'no-such-module'], 1, /no-such-module/],
    [['--provider', './package.json'], 1, /./],
    [['--peer', '127.0.0.1:1'], 1, /ECONNREFUSED/],
    [['--address', '192.0.2.1', '--only', 'cq.unarmed'], 1, /./],
  ];
  for (const [args, expected, text] of wrong) {
    const { code, lines, errors } = await conformance(...args);
    assert.is(code, expected, `${args.join(' ')}: ${errors}${lines.join('\n')}`);
    assert.match(errors + lines.join('\n'), text);
  }
});

test.run();
