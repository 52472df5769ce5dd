// Runtimes that load addons for Node.js but lack functions that these call. The error is one sentence, before the addon is loaded.
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const index = new URL('../../nd/index.js', import.meta.url).href;

for (const [key, name] of [
  ['bun', 'Bun'],
  ['deno', 'Deno'],
])
  test(`${name} is rejected`, () => {
    const program = `
      Object.defineProperty(process, 'versions', { value: { ...process.versions, ${key}: '1.2.3' } });
      const { openNetworkDirect2 } = await import('${index}');
      try { openNetworkDirect2(); } catch (error) { console.log(error.message); }`;
    const args = ['--input-type=module', '-e', program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    assert.match(
      stdout,
      new RegExp(`^The runtime must be Node\\.js; got ${name} 1\\.2\\.3, .* Run the program with node\\.\n$`),
      stderr,
    );
  });

test.run();
