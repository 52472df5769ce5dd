// Measures a Send and a GetResults of a vendor's provider in node.exe: call-cost-program.js PROVIDER WHAT SECONDS. WHAT is
// `bare` for calls from compiled code, or `over` for the difference between calls through koffi and those. The provider is
// the stand-in, whose hollow objects do nothing. Prints microseconds.
import { argumentMemory } from '../../../kernel-bridge/windows/nd-provider/index.js';
import { BareAdapter } from './bare-side.js';
import { Nd2Standin } from './nd2-standin.js';

const [path = '', what = '', seconds = '1'] = process.argv.slice(2);
const ROUNDS = 20_000;

const standin = new Nd2Standin(path);
standin.set({ hollow: 1 });
const at = new BareAdapter(path);
const queue = at.completionQueue();
const queuePair = at.queuePair(queue, 7);
const sge = argumentMemory(16);
const results = argumentMemory(32);

/** Returns the time of one Send, including its list, and one GetResults, including a check of the result, in ns. */
function byLibrary(): number {
  const { Send } = queuePair.slots;
  const { GetResults } = queue.slots;
  const { words, address: list } = sge;
  const begun = process.hrtime.bigint();
  for (let i = 0; i < ROUNDS; i++) {
    words[0] = 4096 * i;
    words[2] = 64;
    words[3] = 5;
    Send(queuePair.address, i, list, 1, 0);
    if (GetResults(queue.address, results.address, 1) !== 1 || results.words[4] !== i)
      throw new Error('GetResults must return the result of this Send.');
  }
  return Number(process.hrtime.bigint() - begun) / ROUNDS;
}

const byMachineCode = (): number =>
  standin.bare(queuePair.address, queue.address, sge.address, results.address, ROUNDS);

// Alternating, so that other load on the machine affects both.
const differences: number[] = [];
const bare: number[] = [];
const end = performance.now() + 1000 * Number(seconds);
for (let round = 0; round < 5 || performance.now() < end; round++) {
  const [library, machine] = [byLibrary(), byMachineCode()];
  // The first rounds are a warm-up.
  if (round < 3) continue;
  differences.push(library - machine);
  bare.push(machine);
}
const figures = (what === 'bare' ? bare : differences).sort((a, b) => a - b);
const mean = figures.reduce((sum, one) => sum + one, 0) / figures.length;
console.log(JSON.stringify({ mean: mean / 1000, median: figures[figures.length >> 1]! / 1000 }));
at.release();
