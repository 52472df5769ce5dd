/**
 * The limit of every wait in a test: what has not happened by then hangs. No test checks how long something takes by it, and none has a
 * limit of its own for busy machines.
 */
export const HANG_MS = 60_000;

/** A promise's outcome, or the error of `late` after so many milliseconds. */
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
