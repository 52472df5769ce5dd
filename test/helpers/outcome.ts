import { Status } from '../../nd/index.js';

/** The status that a request is rejected with; SUCCESS if it is not. */
export async function outcome(request: PromiseLike<unknown>): Promise<number> {
  try {
    await request;
    return Status.SUCCESS;
  } catch (error) {
    return (error as { status: number }).status;
  }
}
