/**
 * The limit of every wait in a test: what has not completed by then hangs. No test uses it to measure durations, and none has a separate
 * limit for busy machines.
 */
export const HANG_MS = 60_000;

/** A promise's outcome, or the error of `late` after the given time in ms. */
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
