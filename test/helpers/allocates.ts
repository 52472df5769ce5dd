/** Measures the heap allocation of a round of calls. */
import * as assert from 'uvu/assert';
import type { WvCompletion } from '../../winverbs/index.js';
import { type FakeQp, noCompletion } from './fake-winverbs.js';

/** Returns the bytes that a round leaves on the heap. Stops when these are fewer than `enough`, or after 40 runs of `rounds`. */
export function bytesPerRound(round: () => void, enough: number, rounds = 20_000): number {
  for (let i = 0; i < 4 * rounds; i += 1) round();
  // The lowest of several runs counts, because V8 may compile or collect garbage in any of them. On a busy machine it compiles late, and
  // code that is not yet compiled allocates numbers.
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 40 && least >= rounds * enough; run += 1) {
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < rounds; i += 1) round();
    const grown = process.memoryUsage().heapUsed - before;
    if (grown >= 0) least = Math.min(least, grown);
  }
  return least / rounds;
}

export function allocatesNothing(round: () => void): void {
  const bytes = bytesPerRound(round, 4);
  assert.ok(bytes < 4, `the heap grew by ${bytes.toFixed(1)} bytes per round`);
}

/**
 * Makes an in-memory WinVerbs queue pair complete the Receive and all requests of a round except the first. The logging of the fakes is
 * off, because it must not be measured. Returns the function that begins a round.
 */
export function completing(qp: FakeQp): () => void {
  const sent: unknown[] = [undefined, undefined, undefined];
  let [received, posted, next]: [unknown, number, number] = [undefined, 0, 0];
  const keep = (context: unknown): void => {
    sent[posted++] = context;
  };
  qp.send = keep;
  qp.write = keep;
  qp.read = keep;
  qp.postReceive = (context) => {
    received = context;
  };
  const completion: WvCompletion = { ...noCompletion, length: 16 };
  const { sendCq, receiveCq } = qp.create;
  sendCq.poll = (completions: WvCompletion[]) => {
    if (++next >= posted) return 0;
    completion.context = sent[next];
    completions[0] = completion;
    return 1;
  };
  receiveCq.poll = (completions: WvCompletion[]) => {
    if (received === undefined) return 0;
    completion.context = received;
    received = undefined;
    completions[0] = completion;
    return 1;
  };
  return () => {
    posted = 0;
    next = 0;
  };
}
