// Wrong command lines: one sentence where the usage does not help, and JSON with --json.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runNd } from '../helpers/nd-tool.js';

const UNKNOWN = 'no.such.host.invalid';

test('a host that is not found is one sentence, of every tool', async () => {
  for (const args of [['ping', '-c'], ['adapterinfo']]) {
    const { code, stdout, stderr } = await runNd(...args, UNKNOWN);
    assert.equal([code, stdout], [2, '']);
    assert.match(stderr, new RegExp(`^nd ${args[0]}: No host has the name '${UNKNOWN}': [^\\n]*\\n$`));
  }
  const nvme = await runNd('nvme', 'discover', '--json', UNKNOWN);
  assert.is(nvme.code, 1);
  assert.match(nvme.stderr, /^nd: No host has the name [^\n]*\n$/);
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

test.run();
