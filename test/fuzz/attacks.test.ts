/** Packet attacks with a fixed seed and small counts. `npm run test:attack` runs more of them (docs/internals/bounds.md). */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { attacks } from '../attack/attacks.js';
import { endAll } from '../attack/process.js';
import { runApart } from '../helpers/apart.js';
import { needing } from '../helpers/needs.js';
import { firstIf } from '../helpers/tiers.js';

const SEED = 7;
const counts = { wire: 2000, sidr: 800, cm: 800 } as const;

runApart(import.meta.url, () => {
  const test = suite('attacks');
  test.after.each(() => endAll());
  for (const [name, count] of Object.entries(counts)) {
    const attack = attacks.find((one) => one.name === name)!;
    firstIf(name === 'wire', needing(test, ...(attack.needs ?? [])))(`${name}: ${attack.what}`, async () => {
      const { findings, done } = await attack.run({ build: 'plain', seed: SEED, count, progress: () => {} });
      assert.equal(findings, []);
      assert.ok(done >= count);
    });
  }
  test.run();
});
