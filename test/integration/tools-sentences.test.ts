// Wrong command lines, and output that cannot be written: one sentence where the usage does not help, and JSON with --json.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ND, runNd } from '../helpers/nd-tool.js';

const UNKNOWN = 'no.such.host.invalid';

test('a host that is not found is one sentence, of every tool', async () => {
  for (const args of [['ping', '-c'], ['adapterinfo']]) {
    const { code, stdout, stderr } = await runNd(...args, UNKNOWN);
    assert.equal([code, stdout], [2, '']);
    assert.match(stderr, new RegExp(`^nd ${args[0]}: No host has the name '${UNKNOWN}': [^\\n]*\\n$`));
  }
  const nvme = await runNd('nvme', 'discover', '--json', UNKNOWN);
  assert.is(nvme.code, 2);
  assert.match(nvme.stderr, /^nd nvme discover: No host has the name [^\n]*\n$/);
  assert.match(JSON.parse(nvme.stdout).error.message, /^No host has the name/);
});

test('nvme without an address says so, and where its usage is; with --json in JSON, too', async () => {
  const plain = await runNd('nvme', 'discover');
  assert.equal([plain.code, plain.stdout], [2, '']);
  assert.match(
    plain.stderr,
    /^error: missing required argument 'host'\n\n?Its usage: nd nvme discover --help\n$/,
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

test('output that nobody reads ends the tool in silence, and that which cannot be written is one sentence', async () => {
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
  assert.match(stderr, /^nd: the output cannot be written: [^\n]*ENOSPC[^\n]*\n$/);
});

test.run();
