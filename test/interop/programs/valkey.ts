/** Clients of a Valkey server over RDMA, one behaviour per run: `valkey BEHAVIOUR ADDRESS PORT BYTES-OF-ITS-BUFFER`. */

import type { Target } from './iovalkey.js';
import { killedClients, manyClients, refused, survive } from './valkey-losses.js';
import { givenUp, leaves } from './valkey-unread.js';
import { crossings, pipelines } from './valkey-values.js';
import { blockedPops, monitor, publications } from './valkey-waiters.js';

const behaviours: Record<string, (target: Target) => Promise<void>> = {
  pipelines,
  crossings,
  'blocked-pops': blockedPops,
  publications,
  monitor,
  leaves,
  'given-up': givenUp,
  'many-clients': manyClients,
  survive,
  'killed-clients': killedClients,
  refused,
};

const [behaviour = '', host = '', port = '', bytes = ''] = process.argv.slice(2);
const run = behaviours[behaviour];
if (run === undefined) throw new Error(`Unknown behaviour '${behaviour}'.`);
await run({ host, port: Number(port), bufferBytes: Number(bytes) });
