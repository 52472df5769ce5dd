/** Accesses to a peer's memory, for cases. */
import { CANCELED, type CaseContext, type End, receives, SUCCESS, sends } from '../case-context.js';
import type { Post, Target } from '../half.js';

/** A Read or Write of one piece. */
export function access(
  op: 'read' | 'write',
  target: Target,
  length: number,
  offset = 0,
  context = 'a',
): Post {
  return { op, context, pieces: [{ at: 0, length }], target, offset };
}

/** An access that the peer must refuse, and what it does to both sides. */
export async function mustFail(t: CaseContext, near: End, far: End, post: Post, what: string): Promise<void> {
  const gone = await t.far.notifyDisconnect(far.link);
  await near.post(...receives(1));
  await far.post(...receives(1, 64, 0, 32_768));
  await t.near.post(near.link, [post, ...sends(1, 64, 77)]);
  t.results(
    await near.done(2),
    [
      ['a', t.says.remoteAccess],
      [77, CANCELED],
    ],
    `${what}, and the Send behind it`,
  );
  t.run(await near.received(1), 1, CANCELED, 'Receive of the side that did it');
  t.run(await far.received(1), 1, CANCELED, 'Receive of the side that refused it');
  await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect of the side that refused it');
}
