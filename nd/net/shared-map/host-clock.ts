/** Start of this thread on a clock that all processes on the host share, in ms. */
const began = ((): number => {
  const [seconds, nanoseconds] = process.hrtime();
  return 1000 * seconds + nanoseconds / 1e6 - performance.now();
})();

/** The host's monotonic clock, in ms. */
export function hostClock(): number {
  return began + performance.now();
}
