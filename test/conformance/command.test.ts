/** The command of the conformance suite. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { command, conformance } from './command.js';
import { cases } from './index.js';

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

test('--list tells names and clauses, with --json a line of JSON for each', async () => {
  const text = await conformance('--list', '--spi', 'v2');
  const json = await conformance('--list', '--spi', 'v2', '--json');
  assert.equal([text.code, json.code], [0, 0]);
  const told = json.lines.map((line) => JSON.parse(line) as { name: string; clause: string });
  assert.ok(told.length > 100);
  for (const [index, { name, clause }] of told.entries()) {
    assert.is(text.lines[index], `${name}  ${clause}`);
    assert.is(cases.find((one) => one.name === name)?.clause, clause);
  }
});

test('what cannot be run is told, with how to do it right', async () => {
  const wrong: [args: string[], code: number, text: RegExp][] = [
    [['--spi', 'v3'], 2, /--spi must be v1 or v2/],
    [['--serve', '--peer', 'here'], 2, /exclude each other/],
    [['--only', 'no-such-case'], 1, /No case of SPI v1/],
    [
      ['--provider', 'no-such-module'],
      1,
      /The provider 'no-such-module' cannot be loaded: .*installed package/,
    ],
    [['--provider', './no-such-module.js'], 1, /cannot be loaded: .*no-such-module\.js'/],
    [['--provider', './package.json'], 1, /The provider '.\/package.json' cannot be loaded/],
    [['--provider', 'node:fs'], 1, /node:fs has no provider of SPI v1/],
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
