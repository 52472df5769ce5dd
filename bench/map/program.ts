/**
 * Measures a shared map or a peer between an owner and readers. `server JOB` prints the location of the map; `client JOB WHERE` prints the
 * sample and starts `reader JOB WHERE` for each reader of the job.
 */
import { mapJobSchema } from './job.js';
import { measure, read } from './measure.js';
import { serve } from './serve.js';

const [role, text = '', where = ''] = process.argv.slice(2);
const job = mapJobSchema.parse(JSON.parse(text));
// Exits normally, so that child processes also end.
process.on('SIGTERM', () => process.exit());
if (role === 'server') await serve(job);
else if (role === 'reader') await read(job, where);
else {
  console.log(JSON.stringify(await measure(job, where)));
  process.exit();
}
