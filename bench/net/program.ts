/**
 * Measures `networkdirect/net` or `node:net` between two processes, as measurePair() starts them: `server JOB` prints where it listens, `client
 * JOB PORT` prints the sample.
 */
import { spawn } from 'node:child_process';
import { netJobSchema } from './job.js';
import { measure } from './measure.js';
import { serve } from './serve.js';

/** Keeps one CPU busy until the parent process has ended. */
const BUSY = 'const parent = process.ppid; while (process.ppid === parent);';

const [role, text = '', where = ''] = process.argv.slice(2);
const job = netJobSchema.parse(JSON.parse(text));
const loop = job.busy ? spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }) : undefined;
process.on('exit', () => loop?.kill());
process.on('SIGTERM', () => process.exit());
if (role === 'server') serve(job);
else {
  console.log(JSON.stringify({ mean: await measure(job, where) }));
  process.exit();
}
