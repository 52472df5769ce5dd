// Invalid command lines, and output that cannot be written: the error is one sentence where the usage would not help, and JSON with --json.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ND, NdTool, runNd, startServer } from '../helpers/nd-tool.js';

const UNKNOWN = 'no.such.host.invalid';

test('an unknown host is reported as one sentence by every tool', async () => {
  for (const args of [['ping', '-c'], ['adapterinfo']]) {
    const { code, stdout, stderr } = await runNd(...args, UNKNOWN);
    assert.equal([code, stdout], [2, '']);
    assert.match(stderr, new RegExp(`^nd ${args[0]}: Host name '${UNKNOWN}' cannot be resolved[^\\n]*\\n$`));
  }
  const nvme = await runNd('nvme', 'discover', '--json', UNKNOWN);
  assert.is(nvme.code, 2);
  assert.match(nvme.stderr, /^nd nvme discover: Host name [^\n]*\n$/);
  assert.match(JSON.parse(nvme.stdout).error.message, /^Host name .* cannot be resolved/);
});

test('nvme without an address reports that and its usage; also as JSON with --json', async () => {
  const plain = await runNd('nvme', 'discover');
  assert.equal([plain.code, plain.stdout], [2, '']);
  assert.match(
    plain.stderr,
    /^error: missing required argument 'host'\n\n?Usage: nd nvme discover --help\n$/,
  );
  const asJson = await runNd('nvme', 'discover', '--json');
  assert.is(asJson.code, 2);
  assert.equal(JSON.parse(asJson.stdout), {
    tool: 'nd nvme discover',
    error: { message: "missing required argument 'host'" },
  });
  assert.is(
    JSON.parse((await runNd('ping', '--json')).stdout).error.message,
    "missing required argument 'host[:port]'",
  );
});

test('errors of nvme are one sentence with cause and cure, also as JSON with --json', async () => {
  const NQN = 'nqn.2026-11.io.example:sentences';
  const target = new NdTool(['nvme', 'serve', '--nqn', NQN, '--size', '1', '--port', '0']);
  const port = (await target.printed(/^listening on .* port (\d+):/))[1]!;
  const other = await startServer('pingpong', '127.0.0.1:50401');
  const here = ['127.0.0.1', '--nqn', NQN, '--port', port];
  const cases = [
    [2, ['info', '300.1.1.1', '--nqn', NQN], /^Host must be an IP address .*; got '300\.1\.1\.1'\.$/],
    [2, ['info', '0.0.0.0', '--nqn', NQN], /^Host must be the address of a single host; got '0\.0\.0\.0'\.$/],
    [2, ['info', '127.0.0.1', '--nqn', 'disk'], /^--nqn must be an NVMe qualified name such as nqn\./],
    [2, ['info', ...here, '--host-name', 'me'], /^--host-name must be an NVMe qualified name such as nqn\./],
    [2, ['serve', '--nqn', NQN, '--size', '1', '--block-size', '100'], /^--block-size must be 512, .*$/],
    [
      1,
      ['info', '127.0.0.1', '--nqn', NQN, '--port', '50402'],
      /^No target responds at 127\.0\.0\.1, port 50402\. .*--port\.$/,
    ],
    [
      3,
      ['info', '127.0.0.1', '--nqn', NQN, '--port', '50401'],
      /^The server at .*, port 50401 .* Check that it is an NVMe target: /,
    ],
    [
      1,
      ['info', '127.0.0.1', '--nqn', `${NQN}2`, '--port', port],
      /^The target at .* does not have a subsystem '.*'\. .*: nd nvme discover /,
    ],
    [
      1,
      ['read', ...here, '--namespace', '7'],
      /^Subsystem '.*' does not have a namespace 7\. .*: nd nvme info /,
    ],
    [
      1,
      ['read', ...here, '--start', '1048576'],
      /^--start must be less than the 1048576 bytes of namespace 1; got 1048576$/,
    ],
    [
      1,
      ['write', ...here, '--input', '/dev/zero'],
      /^The input must fit .* which has 1048576 bytes\. It is longer\.$/,
    ],
    [
      1,
      ['serve', '--nqn', NQN, '--size', '1', '--port', port],
      /^Port \d+ of 127\.0\.0\.1 is in use\. Choose another with --port/,
    ],
  ] as const;
  for (const [code, args, sentence] of cases) {
    const reported = await runNd('nvme', ...args, '--json');
    assert.equal([reported.code, reported.stderr.split('\n').length], [code, 2], reported.stderr);
    const { tool, error } = JSON.parse(reported.stdout);
    assert.is(tool, `nd nvme ${args[0]}`);
    assert.match(error.message, sentence);
    assert.ok(reported.stderr.includes(error.message), reported.stderr);
  }
  for (const one of [target, other]) one.process.kill();
  assert.is((await target.ended).code, 0);
});

test('a closed output ends the tool silently; output that cannot be written is reported as one sentence', async () => {
  const ended = async (stdout: 'pipe' | number): Promise<{ code: number; stderr: string }> => {
    const tool = spawn(process.execPath, [ND, 'stat', '--all'], { stdio: ['ignore', stdout, 'pipe'] });
    tool.stdout?.destroy();
    const closed = once(tool, 'close');
    const stderr = await text(tool.stderr!);
    return { code: (await closed)[0], stderr };
  };
  assert.equal(await ended('pipe'), { code: 0, stderr: '' });
  const full = openSync('/dev/full', 'w');
  const { code, stderr } = await ended(full);
  closeSync(full);
  assert.is(code, 1);
  assert.match(stderr, /^nd: cannot write the output: [^\n]*ENOSPC[^\n]*\n$/);
});

test.run();
