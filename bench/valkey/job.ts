/** What a measurement of Valkey's protocol does: requests of a client to a server on another host, over RDMA or TCP. */
import * as z from 'zod';

export const valkeyJobSchema = z.strictObject({
  over: z.enum(['RDMA', 'TCP']),
  /** Bytes of the value that a request sends, and its reply brings back. */
  size: z.int().min(1),
  /** Requests that are sent at once; the next ones follow when all replies are there. */
  inFlight: z.int().min(1),
  seconds: z.number().min(0.001),
  /** The server's address. */
  host: z.ipv4(),
});
/** A job of the program. */
export type ValkeyJob = z.output<typeof valkeyJobSchema>;
