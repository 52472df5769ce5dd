import * as assert from 'uvu/assert';
import { take } from '../../nd/cli/sides/connected-side.js';
import { type INDCompletionQueue, Status, statusName } from '../../nd/index.js';

/** The status that a request is rejected with; SUCCESS if it is not. */
export async function outcome(request: PromiseLike<unknown>): Promise<number> {
  try {
    await request;
    return Status.SUCCESS;
  } catch (error) {
    return (error as { status: number }).status;
  }
}

/** The names of the statuses of the next `count` results. */
export async function statusesOf(queue: INDCompletionQueue, count: number): Promise<string[]> {
  return (await take(queue, count)).map(({ status }) => statusName(status));
}

/** Asserts that a request ends in a status, with a message that fits. */
export async function rejectsWith(
  request: PromiseLike<unknown>,
  status: number,
  text: RegExp,
): Promise<void> {
  const error = await Promise.resolve(request).then(
    () => undefined,
    (reason: Error & { status?: number }) => reason,
  );
  assert.is(error?.status, status, `${error}`);
  assert.match(error?.message ?? '', text);
}
