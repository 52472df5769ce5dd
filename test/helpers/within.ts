/**
 * The time limit of every wait in a test. An operation that has not completed by then hangs. No test measures durations with it, and none
 * has its own limit for busy machines.
 */
export const HANG_MS = 60_000;

/** Returns a promise's outcome, or fails with the error of `late` after the given time in ms. */
export async function within<T>(
  promise: PromiseLike<T>,
  milliseconds: number,
  late: () => Error,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), milliseconds);
  });
  try {
    return await Promise.race([promise, end]);
  } finally {
    clearTimeout(timer);
  }
}
