/** What a measurement of `networkdirect/net`, or of `node:net`, does. */
import * as z from 'zod';

export const netJobSchema = z.strictObject({
  /** Requests of 64 bytes with their answers; writes of 64 KiB; a file that is copied into a file. */
  kind: z.enum(['request', 'stream', 'copy']),
  over: z.enum(['networkdirect/net', 'node:net']),
  /** Requests under way. */
  inFlight: z.int().min(1).default(1),
  /** Of requests: how many in a second, or µs of both processes' processor time for each. */
  figure: z.enum(['rate', 'processor']).default('rate'),
  /** Seconds of requests. */
  seconds: z.number().min(0.001).default(1),
  /** Of a stream or a file. */
  bytes: z
    .int()
    .min(1)
    .default(2 ** 20),
  /** A busy loop runs on the processor of each side. */
  busy: z.boolean().default(false),
});
/** As it is after its defaults. */
export type NetJob = z.output<typeof netJobSchema>;
/** As rows give it. */
export type NetJobInput = z.input<typeof netJobSchema>;

export const LOOPBACK = '127.0.0.1';
/** Bytes of a request, and of a write. */
export const REQUEST_BYTES = 64;
export const WRITE_BYTES = 65_536;
/** This request asks for the server's processor time, in µs. */
export const HOW_MUCH = 'processor time?';
