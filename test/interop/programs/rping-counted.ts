/** rping of test/interop/programs; SIGTERM ends it with the HCA's counters as JSON. */
import { readCounters } from '../../../kernel-bridge/index.js';

process.once('SIGTERM', () => {
  console.log(JSON.stringify(readCounters().hca));
  process.exit(0);
});
await import('./rping.js');
