/** The command of the conformance suite. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { cases } from '../../nd/conformance/index.js';
import { command, conformance, conformanceAt, serving } from '../helpers/conformance-command.js';
import { firstIf } from '../helpers/tiers.js';

test('--serve and --peer connect the halves of clients that know the printed token', async () => {
  const { child, peer, token } = await serving({ by: [] }, '--port', '0');
  const ended = once(child, 'close');
  try {
    const only = ['--peer', peer, '--only', 'connect.*-connects'];
    for (const [wrong, why] of [
      [[], /requires the token.*ND_CONFORMANCE_TOKEN/],
      [['--token', token.replace(/./g, '0')], /The token is missing or wrong/],
    ] as const) {
      const { code, errors } = await conformance(...only, ...wrong);
      assert.is(code, 1);
      assert.match(errors, why);
    }
    const { code, lines } = await conformance(...only, '--token', token);
    assert.is(code, 0, lines.join('\n'));
    assert.match(lines.join('\n'), /connect +│ +2 │ +0 │/);
    const byVariable = await conformanceAt({ by: ['env', `ND_CONFORMANCE_TOKEN=${token}`] }, ...only);
    assert.is(byVariable.code, 0, byVariable.errors);
  } finally {
    child.kill();
    await ended;
  }
});

test('--processes 2: the other half also requires a token, which is on no command line', async () => {
  const run = spawn(process.execPath, [command, 'conformance', '--processes', '2', '--json'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    await once(run.stdout, 'data'); // a case has ended: the halves are connected
    const children = readFileSync(`/proc/${run.pid}/task/${run.pid}/children`, 'utf8').trim().split(' ');
    const other = children
      .map((pid) => ({ pid, words: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0') }))
      .find(({ words }) => words.includes('--serve'));
    assert.ok(other !== undefined, 'a process of the other half exists');
    assert.not.match(other.words.join(' '), /[0-9a-f]{32}/);
    const ports = listeningPorts(other.pid);
    assert.is(ports.length, 1);
    const socket = connect(ports[0]!, '127.0.0.1');
    socket.write('{"id":1,"method":"info","args":[]}\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(String(answer), 'The token is missing or wrong');
    socket.destroy();
  } finally {
    const ended = once(run, 'close');
    run.kill();
    await ended;
  }
});

/** TCP ports on which a process listens, all of them at 127.0.0.1. */
function listeningPorts(pid: string): number[] {
  const LISTEN = '0A';
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).map(
      (fd) => /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1],
    ),
  );
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((row) => row.trim().split(/\s+/))
      .filter((row) => row[3] === LISTEN && inodes.has(row[9]))
      .map((row) => {
        const [address, port] = row[1]!.split(':');
        assert.is(address, '0100007F');
        return Number.parseInt(port!, 16);
      }),
  );
}

test('case names are unique, and each case has a clause', () => {
  const names = cases.map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  for (const { name, clause } of cases) assert.match(clause, /^ND SPI §/, name);
});

test('--list prints names and clauses, with --json one line of JSON each', async () => {
  const text = await conformance('--list', '--spi', 'v2');
  const json = await conformance('--list', '--spi', 'v2', '--json');
  assert.equal([text.code, json.code], [0, 0]);
  const reported = json.lines.map((line) => JSON.parse(line) as { name: string; clause: string });
  assert.ok(reported.length > 100);
  for (const [index, { name, clause }] of reported.entries()) {
    assert.is(text.lines[index], `${name}  ${clause}`);
    assert.is(cases.find((one) => one.name === name)?.clause, clause);
  }
});

/** Arguments that cannot be run, the exit code, and a part of the message with the cure. */
const wrong: [args: string[], code: number, text: RegExp][] = [
  [['--spi', 'v3'], 2, /--spi must be v1 or v2/],
  [['--memory', 'some'], 2, /--memory must be any or allocate/],
  [['--serve', '--peer', 'here'], 2, /are mutually exclusive/],
  [['--serve', '--token', 'mine'], 2, /--token requires --peer/],
  [['--serve', '--address', '0.0.0.0'], 2, /single address of this host/],
  [['--serve', '--address', '0::0'], 2, /single address of this host/],
  [['--only', 'no-such-case'], 2, /--only must match a case of SPI v1/],
  [['--provider', 'no-such-module'], 1, /Cannot load the provider 'no-such-module': .*installed package/],
  [['--provider', './no-such-module.js'], 1, /Cannot load the provider .*no-such-module\.js'/],
  [['--provider', './package.json'], 1, /Cannot load the provider '.\/package.json'/],
  [['--provider', 'node:fs'], 1, /node:fs must export a function '\w+', which opens a provider of SPI v1/],
  [['--peer', '127.0.0.1:1', '--token', 'some'], 1, /ECONNREFUSED/],
  [['--address', '192.0.2.1', '--only', 'cq.unarmed'], 1, /./],
];

test('conformance --json: errors are also reported in JSON', async () => {
  for (const args of [['--provider', './no-such-module.js'], ['--spi', 'v3'], ['--no-such-option']]) {
    const { code, lines, errors } = await conformance(...args, '--json');
    assert.not(code === 0);
    assert.is(lines.length, 1, errors);
    const { tool, error } = JSON.parse(lines[0]!) as { tool: string; error: { message: string } };
    assert.is(tool, 'nd conformance');
    assert.ok(errors.includes(error.message), errors);
  }
});

for (const [args, expected, text] of wrong) {
  const isFirst = /v3|no-such-(case|module$)/.test(args.join(' '));
  firstIf(isFirst, test)(`conformance ${args.join(' ')}: cannot be run`, async () => {
    const { code, lines, errors } = await conformance(...args);
    assert.is(code, expected, `${errors}${lines.join('\n')}`);
    assert.match(errors + lines.join('\n'), text);
  });
}

test.run();
