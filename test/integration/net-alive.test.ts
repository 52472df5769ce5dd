/** Which objects keep a process alive: `ref` and `unref` of sockets, servers and channels, as in `node:net`. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { layers } from '../helpers/net-layers.js';
import { programFile } from '../helpers/programs.js';
import { firstIf } from '../helpers/tiers.js';

const program = programFile(new URL('../helpers/net-alive-program.js', import.meta.url));

/** The output of a process that exits on its own. Otherwise it reaches its timeout or prints that it is alive. */
async function printed(layer: string, which: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, layer, which], {
    timeout: 60_000,
  });
  return stdout.split('\n').filter((line) => line !== '');
}

const expected: Readonly<Record<string, string[]>> = {
  unref: [],
  ref: ['alive'],
  'server unref': [],
  'server ref': ['alive'],
  'before connect': ['connected'],
  write: ['written'],
  traffic: ['answered'],
};

const firstOnes = new Set(['unref', 'server ref', 'before connect', 'traffic']);

for (const [which, lines] of Object.entries(expected))
  for (const layer of Object.keys(layers))
    firstIf(layer !== 'node:net' && firstOnes.has(which), test)(
      `a process lives as long as something keeps it alive: ${which}, ${layer}`,
      async () => {
        assert.equal(await printed(layer, which), lines);
      },
    );

test('a channel that does not keep the process alive, with a pending request', async () => {
  assert.equal(await printed('networkdirect/net', 'channel'), ['answered']);
});

test.run();
