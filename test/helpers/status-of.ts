import { Status, StatusError } from '../../winverbs/index.js';

/** The final status of a request. */
export async function statusOf(request: PromiseLike<unknown>): Promise<number> {
  try {
    await request;
    return Status.SUCCESS;
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
}
