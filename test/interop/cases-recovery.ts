/** Cases of a stream whose link loses packets for a while: its throughput comes back. */
import { FAMILIES, GUEST, HERE, type InteropCase, queueCounter, withNetem } from './case.js';
import type { Program } from './process.js';
import { address, type Rig } from './rig.js';

const VERBS_PORT = 18_516;
/** Rounds that a rate is taken of. */
const ROUNDS = 7;
/** The part of its throughput that a stream has to have again; other work on the machine may take some. */
const AGAIN = 0.6;
/** Rounds that it may take until then: 20 MB. */
const PATIENCE = 40;
const ROUND_SECONDS = 10;

const rate = (line: string): number => Number(/([0-9.]+) MB\/s/.exec(line)?.[1]);
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const rounds = ({ lines }: Program): number[] => lines.filter((line) => line.startsWith('round')).map(rate);

/** The rates of the next rounds. */
async function next(program: Program, count: number): Promise<number[]> {
  const begin = rounds(program).length;
  const enough = () => rounds(program).length >= begin + count;
  await program.until(enough, `${count} more rounds`, count * ROUND_SECONDS);
  return rounds(program).slice(begin);
}

async function recovery(rig: Rig, role: 'client' | 'server', family: 4 | 6): Promise<void> {
  rig.guest(GUEST, 'python3 /share/verbs-peer.py', 300);
  await rig.listening(GUEST, 'tcp', VERBS_PORT);
  const behaviour = role === 'client' ? 'recovery-of-ours' : 'recovery-of-theirs';
  const program = rig.verbs(behaviour, address(HERE, family), address(GUEST, family));
  await next(program, 2);
  const before = median(await next(program, ROUNDS));
  let during = 0;
  let dropped = 0;
  await withNetem(rig, 'loss 5%', async () => {
    during = median(await next(program, ROUNDS));
    dropped = await queueCounter(rig, 'eth0', 'dropped');
  });
  if (dropped === 0) throw new Error('The link has lost nothing.');
  const after: number[] = [];
  const latest = () => median(after.slice(-ROUNDS));
  do {
    if (after.length >= PATIENCE)
      throw new Error(
        `The stream had ${before} MB/s, ${during} MB/s with 5 % lost, and has ${latest()} MB/s since, after ${after.length} rounds.`,
      );
    after.push(...(await next(program, ROUNDS)));
  } while (latest() < AGAIN * before);
  program.stop('SIGTERM');
  rig.note((await program.ok()).at(-1) ?? '');
  rig.note(`MB/s: ${before} before, ${during} with 5 % lost (${dropped} packets), ${latest()} after`);
}

export const recoveryCases: readonly InteropCase[] = FAMILIES.flatMap((family) =>
  (['client', 'server'] as const).map(
    (role): InteropCase => ({
      peer: 'verbs-peer.py',
      operation: 'throughput of WRITE and READ recovers',
      role,
      family,
      loss: '5 % lost for a while',
      quick: role === 'client' && family === 4,
      run: (rig) => recovery(rig, role, family),
    }),
  ),
);
