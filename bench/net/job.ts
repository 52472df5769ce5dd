/** Parameters of a measurement of `networkdirect/net` or of a peer. */
import * as z from 'zod';

export const netJobSchema = z.strictObject({
  /**
   * `request`: channel requests, or messages of the peer (length-prefixed over a socket), and their replies. `echo`: a stream message that
   * the peer returns before the next one. `stream`: writes of 64 KiB, read from a Duplex. `onread`: the same, read with `onread`. `copy`:
   * one existing file to another. `connect`: connect and close. `broadcast`: messages to subscribers in another process.
   */
  kind: z.enum(['request', 'echo', 'stream', 'onread', 'copy', 'connect', 'broadcast']),
  /** The last two only support requests. `MessagePort` connects two threads of one process. */
  over: z.enum(['networkdirect/net', 'node:net TCP', 'node:net UNIX', 'zeromq', 'MessagePort']),
  /** Size in bytes of a request or an echo. */
  size: z.int().min(1).default(64),
  /** Requests in flight, or concurrent connects. */
  inFlight: z.int().min(1).default(1),
  /** Number of subscribers of a broadcast. */
  subscribers: z.int().min(1).default(1),
  /**
   * For requests: requests per second, µs of CPU time of both sides per request, or requests per second of the warm-up only (`cold`).
   * Streams without a warm-up are also `cold`.
   */
  figure: z.enum(['rate', 'processor', 'cold']).default('rate'),
  /** Duration of requests, echoes and connects, in seconds. */
  seconds: z.number().min(0.001).default(1),
  /** Requests, echoes or connects before the measurement. Streams have their own warm-up. */
  warmUp: z.int().min(0).default(0),
  /** Length of the stream or file. */
  bytes: z
    .int()
    .min(1)
    .default(2 ** 20),
  /** Live heap of the stream's receiver, in MiB. */
  liveMib: z.int().min(0).default(0),
  /** Whether to run a busy loop on the CPU of each side. */
  busy: z.boolean().default(false),
});
/** A job with all defaults applied. */
export type NetJob = z.output<typeof netJobSchema>;
/** A job as specified in rows. */
export type NetJobInput = z.input<typeof netJobSchema>;

export const LOOPBACK = '127.0.0.1';
/** Size in bytes of a write to a stream. */
export const WRITE_BYTES = 65_536;
/** A message that requests the server's CPU time in µs. No measured request has this length. */
export const HOW_MUCH = 'how much CPU time?';

/** CPU time of this process, in µs. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

const kept: object[][] = [];

/** Fills about `mib` MiB of V8's heap with live objects. */
export function keepObjects(mib: number): void {
  // An object takes 48 bytes (map, properties, elements, three fields) and its array element 8.
  const count = Math.round((mib * 2 ** 20) / 56);
  kept.push(Array.from({ length: count }, (_, at) => ({ at, next: at + 1, text: '' })));
}
