/** Importing this shortens the interval at which `networkdirect/net` probes idle connections, so that tests need not wait for it. */
import { EventEmitter, once } from 'node:events';

/** PROBE_MS of local-context.ts. */
const PROBE_MS = 10_000;
const SHORT_MS = 5;
const { setInterval } = globalThis;
const intervals = new EventEmitter();

globalThis.setInterval = ((run: () => void, ms?: number) =>
  ms === PROBE_MS
    ? setInterval(() => {
        run();
        intervals.emit('probed');
      }, SHORT_MS)
    : setInterval(run, ms)) as typeof setInterval;

/** Waits until idle connections were probed `count` times. */
export async function probed(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await once(intervals, 'probed');
}
