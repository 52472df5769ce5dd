/** What a measurement of `networkdirect/net`, or of `node:net`, does. */
import * as z from 'zod';

export const netJobSchema = z.strictObject({
  /**
   * `request`: requests of a channel with their answers, or messages with a length before each; `echo`: bytes of a stream that come back, awaited;
   * `stream`: writes of 64 KiB to a reader of a Duplex; `onread`: the same, to a client that reads by `onread`; `copy`: a file into another one, both
   * of which exist; `connect`: connections that are made and closed.
   */
  kind: z.enum(['request', 'echo', 'stream', 'onread', 'copy', 'connect']),
  over: z.enum(['networkdirect/net', 'node:net TCP', 'node:net UNIX']),
  /** Bytes of a request or an echo. */
  size: z.int().min(1).default(64),
  /** Requests under way, or connections that are made at once. */
  inFlight: z.int().min(1).default(1),
  /** Of requests: how many in a second, or µs of both processes' processor time for each. */
  figure: z.enum(['rate', 'processor']).default('rate'),
  /** Seconds of requests, echoes and connections. */
  seconds: z.number().min(0.001).default(1),
  /** Requests, echoes or connections before those that count. */
  warmUp: z.int().min(0).default(0),
  /** Of a stream or a file. */
  bytes: z
    .int()
    .min(1)
    .default(2 ** 20),
  /** MiB of objects that the receiver of a stream keeps, as a program has them. */
  liveMib: z.int().min(0).default(0),
  /** A busy loop runs on the processor of each side. */
  busy: z.boolean().default(false),
});
/** As it is after its defaults. */
export type NetJob = z.output<typeof netJobSchema>;
/** As rows give it. */
export type NetJobInput = z.input<typeof netJobSchema>;

export const LOOPBACK = '127.0.0.1';
/** Bytes of a write to a stream. */
export const WRITE_BYTES = 65_536;
/** This request asks for the server's processor time, in µs. No request that is measured is as long. */
export const HOW_MUCH = 'how much processor time?';

/** Processor time of this process, in µs. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

const kept: object[][] = [];

/** Keeps objects of about so many MiB on V8's heap. */
export function keepObjects(mib: number): void {
  // Map, properties, elements and three fields take 48 bytes, an element of the array 8.
  const count = Math.round((mib * 2 ** 20) / 56);
  kept.push(Array.from({ length: count }, (_, at) => ({ at, next: at + 1, text: '' })));
}
