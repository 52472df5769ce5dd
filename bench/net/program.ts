/**
 * Measures `networkdirect/net` or a peer between two processes started by measurePair(): `server JOB` prints its location, `client JOB
 * PORT` prints the sample. A client over a MessagePort has a thread instead of a server: `worker JOB`.
 */
import { spawn } from 'node:child_process';
import { type MessagePort, workerData } from 'node:worker_threads';
import { netJobSchema } from './job.js';
import { measure } from './measure.js';
import { servePort } from './message-port.js';
import { serve } from './serve.js';

/** Keeps one CPU busy until the parent process exits. */
const BUSY = 'const parent = process.ppid; while (process.ppid === parent);';

const [role, text = '', where = ''] = process.argv.slice(2);
const job = netJobSchema.parse(JSON.parse(text));
if (role === 'worker') servePort(workerData as MessagePort);
else {
  const sides = job.over === 'MessagePort' ? 2 : 1;
  const loops = Array.from({ length: job.busy ? sides : 0 }, () =>
    spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }),
  );
  process.on('exit', () => {
    for (const loop of loops) loop.kill();
  });
  process.on('SIGTERM', () => process.exit());
}
if (role === 'server') await serve(job);
else if (role === 'client') {
  console.log(JSON.stringify({ mean: await measure(job, where) }));
  process.exit();
}
