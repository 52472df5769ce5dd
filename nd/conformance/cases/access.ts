/** Accesses to a peer's memory, for cases. */
import { CANCELED, type CaseContext, type End, receives, SUCCESS, sends } from '../case-context.js';
import type { Post, Target } from '../half.js';

/** Returns a Read or Write with one scatter/gather entry. */
export function access(
  op: 'read' | 'write',
  target: Target,
  length: number,
  offset = 0,
  context = 'a',
): Post {
  return { op, context, pieces: [{ at: 0, length }], target, offset };
}

/** Number of bytes from the start of the memory that contain every region and window of these cases. */
const BYTES = 4096;

/**
 * The memory that an access targets (by default the first bytes of far's memory), and the part of it that the access
 * may change.
 */
interface Aim {
  readonly memory?: number;
  readonly open?: readonly [begin: number, end: number];
}

/**
 * Checks an access that the peer must refuse: it ends the connection on both sides, changes no memory that is not open
 * to it, and does not affect another connection.
 */
export async function mustFail(
  t: CaseContext,
  near: End,
  far: End,
  post: Post,
  what: string,
  { memory = far.memory, open = [0, 0] }: Aim = {},
): Promise<void> {
  const bystander = await t.pair();
  const kept = [
    [far, memory, 0, open[0]],
    [far, memory, open[1], BYTES - open[1]],
    [near, near.memory, 0, open[1] === 0 ? BYTES : 0],
  ] as const;
  for (const [i, [end, of, at, length]] of kept.entries()) await end.party.fill(of, at, length, i);
  const gone = await t.far.notifyDisconnect(far.link);
  await near.post(...receives(1));
  await far.post(...receives(1, 64, 0, 32_768));
  await t.near.post(near.link, [post, ...sends(1, 64, 77)]);
  t.results(
    await near.done(2),
    [
      ['a', t.statuses.remoteAccess],
      [77, CANCELED],
    ],
    `${what}, and the Send after it`,
  );
  t.run(await near.received(1), 1, CANCELED, 'Receive of the accessing side');
  t.run(await far.received(1), 1, CANCELED, 'Receive of the refusing side');
  await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect of the refusing side');
  for (const [i, [end, of, at, length]] of kept.entries()) {
    await t.holds(end, at, length, i, `Memory that was not open to the ${what}`, of);
  }
  await bystander.near.party.fill(bystander.near.memory, 0, BYTES, 3);
  await bystander.far.post(...receives(1, BYTES));
  await bystander.near.post({ op: 'send', context: 0, pieces: [{ at: 0, length: BYTES }] });
  t.run(await bystander.far.received(1), 1, SUCCESS, `Receive of another connection after the ${what}`);
  await t.holds(bystander.far, 0, BYTES, 3, 'Its message');
}
