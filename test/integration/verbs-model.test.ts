// Compares random sequences of verbs with a model: first in one thread, then in several threads of two processes at the same time. If only
// the first tier runs, the seed is fixed and the time is shorter. ND_MODEL_RUNS=n makes n runs per thread without a time limit,
// ND_MODEL_SEED=n repeats a failure's seed, and ND_MODEL_SHRINK=1 searches for the shortest failing sequence.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { collect } from '../helpers/collect.js';
import { programFile } from '../helpers/programs.js';
import { perTier } from '../helpers/tiers.js';
import { runPlans } from '../helpers/verbs-model.js';
import { Coverage, covered } from '../helpers/verbs-model-coverage.js';

const long = process.env.ND_MODEL_RUNS !== undefined;
const runs = long ? Number(process.env.ND_MODEL_RUNS) : 10_000;
const seed = Number(process.env.ND_MODEL_SEED ?? perTier(1, Date.now() % 0x7fff_0000));
const milliseconds = long ? 0x7fff_ffff : perTier(2500, 8000);

test('one thread: statuses, completions and leftovers are as the model predicts', async () => {
  const coverage = new Coverage();
  const done = await runPlans({ seed, runs, milliseconds, alone: true, coverage });
  assert.ok(done > 0);
  // Each event must occur in every hundredth run or more often.
  for (const what of covered) {
    const least = Math.floor(done / 100);
    assert.ok(
      coverage.counts[what] >= least,
      `${what}: ${coverage.counts[what]} in ${done} runs (seed ${seed})`,
    );
  }
  // Rings are shared with JavaScript and freed with its garbage.
  for (let n = 0; n < 20 && readCounters().objects.ring > 0; n++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { ring, range } = readCounters().objects;
  assert.is(range, 0);
  assert.is(ring, 0);
});

test('three threads in each of two processes: the same, and neither process can access objects of the other', async () => {
  const program = programFile(new URL('../helpers/verbs-model-program.js', import.meta.url));
  const processes = [1, 2].map(async (n) => {
    const child = fork(program, [String(seed + n * 100), String(runs), String(milliseconds)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let errors = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    let done = 0;
    child.on('message', (count) => {
      done = Number(count);
    });
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    assert.equal([code, signal], [0, null], errors);
    assert.ok(done >= 3);
  });
  await Promise.all(processes);
});

test.run();
