// The tools over a vendor's provider: which provider an adapter belongs to, and the report about a NIC.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { programFile } from '../../helpers/programs.js';
import { PROVIDER } from './nd2-standin.js';
import { onlyProvider } from './vendor-host.js';

onlyProvider();
const program = programFile(new URL('../../../nd/cli/nd.js', import.meta.url));

/** Runs a tool of `nd` and returns its output. */
async function outputOf(...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [program, ...args])).stdout;
}

test('adapterinfo prints the limits of the adapter, and the provider with its path', async () => {
  const output = await outputOf('adapterinfo', '--spi', 'v2', '127.0.0.1');
  assert.match(output, /^AdapterId: 0x8123456789ABCDEF$/m);
  assert.match(output, /^MaxReadSge: 8$/m);
  assert.ok(output.includes(`Provider: standin-nd2.dll, version unknown, at ${PROVIDER}`), output);
});

test('the report of verbs-info has the providers with their limits, without ids and folders', async () => {
  const output = await outputOf('verbs-info', '--report');
  assert.match(output, /^providers:\s+1:\s+library: standin-nd2\.dll$/m);
  assert.match(output, /^ +maxReadSge: 8$/m);
  assert.not.match(output, /adapterId|system32|advice/);
});

test('the report has the reason why a provider cannot be loaded', async () => {
  onlyProvider('C:\\none\\no-nd.dll');
  try {
    assert.match(
      await outputOf('verbs-info', '--report'),
      /^ +library: no-nd\.dll$[\s\S]*^ +failure: .*no-nd\.dll/m,
    );
  } finally {
    onlyProvider();
  }
});

test.run();
