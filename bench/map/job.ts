/** Parameters of a measurement of a shared map or of a peer. */
import * as z from 'zod';

export const mapJobSchema = z.strictObject({
  /**
   * Measured at readers: `get`, `getInto`, `latency` (the 99th percentile of get, in µs), `set` (awaited), `add` (to one counter),
   * `readSync` (of exposed memory, without a map, in µs). Measured at the owner: `store`. Figures are per second unless they are in µs.
   */
  kind: z.enum(['get', 'getInto', 'latency', 'set', 'add', 'readSync', 'store']),
  /** `Map` is a Map in the reader's process, without a writer. */
  over: z.enum(['networkdirect/net', 'lmdb', 'Redis', 'Map']),
  /** Size of a value in bytes. */
  size: z.int().min(1).default(64),
  keys: z.int().min(1).default(10_000),
  /** Values that the owner stores per second while others read. */
  stores: z.int().min(0).default(0),
  /** Number of reading processes; the figure is their sum. */
  readers: z.int().min(1).default(1),
  /** Requests in flight per reader, if they are awaited. */
  inFlight: z.int().min(1).default(1),
  seconds: z.number().min(0.001).default(1),
});
/** A job with all defaults applied. */
export type MapJob = z.output<typeof mapJobSchema>;
/** A job as specified in rows. */
export type MapJobInput = z.input<typeof mapJobSchema>;

/** The keys in insertion order. */
export function keysOf({ keys }: MapJob): string[] {
  return Array.from({ length: keys }, (_, at) => `key:${at}`);
}

/** The keys in an order that separates neighbors. */
export function scattered(keys: readonly string[]): string[] {
  const order = keys.map((key, at) => ({ key, rank: Math.imul(at + 1, 0x9e3779b1) >>> 0 }));
  return order.sort((a, b) => a.rank - b.rank).map(({ key }) => key);
}
