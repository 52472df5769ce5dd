import { take } from '../../examples/sides/side.js';
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
