/** A measurement of Valkey's protocol: requests of a client to a server on another host, over RDMA or TCP. */
import * as z from 'zod';

export const valkeyJobSchema = z.strictObject({
  over: z.enum(['RDMA', 'TCP']),
  /** Size in bytes of the value in a request and in its reply. */
  size: z.int().min(1),
  /** Requests sent together. The next ones follow when all replies have arrived. */
  inFlight: z.int().min(1),
  seconds: z.number().min(0.001),
  /** The server's address. */
  host: z.ipv4(),
});
/** A job of the program. */
export type ValkeyJob = z.output<typeof valkeyJobSchema>;
