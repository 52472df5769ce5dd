/**
 * The benchmark: this library and `node:net` TCP doing the same work between two processes of this host, in one run.
 *
 *   npm run bench -- [--address A] [--only PATTERN] [--scale X] [--json]
 *
 * Figures of a shared machine are noisy: read the ratios, not the numbers.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import Table from 'cli-table3';
import { Command } from 'commander';
import { z } from 'zod';
import { measureNd, serveNd } from './nd.js';
import { jobName, type Measurement, plan } from './plan.js';
import { bytesText } from './statistics.js';
import { measureTcp, serveTcp } from './tcp.js';

const optionsSchema = z.object({
  address: z.string().default('127.0.0.1'),
  only: z
    .string()
    .default('')
    .transform((text) => new RegExp(text)),
  scale: z.coerce.number().positive().default(1),
  json: z.boolean().default(false),
});

async function serve(address: string): Promise<void> {
  const nd = await serveNd(address);
  const tcp = await serveTcp(address);
  process.send!({ nd: nd.port, tcp: tcp.port });
  process.on('disconnect', () => process.exit(0));
}

async function main(): Promise<void> {
  const command = new Command('bench')
    .description('Measures latency, bandwidth and message rate, next to TCP by node:net.')
    .option('--address <address>', 'local address both processes use', '127.0.0.1')
    .option('--only <pattern>', 'only jobs whose name ("nd latency 8", "tcp write 65536" …) matches')
    .option('--scale <factor>', 'more or fewer messages', '1')
    .option('--json', 'one JSON line a measurement')
    .parse();
  const options = optionsSchema.parse(command.opts());
  const jobs = plan(options.scale, options.only);
  if (jobs.length === 0) throw new Error(`No job matches /${options.only.source}/.`);

  const server = fork(fileURLToPath(import.meta.url), [], {
    env: { ...process.env, ND_BENCH_SERVER: options.address },
  });
  const ports = await firstMessage(server);
  const measurements: Measurement[] = [];
  for (const [index, job] of jobs.entries()) {
    if (process.stderr.isTTY && !options.json) {
      process.stderr.write(`\r\x1b[K${index + 1} of ${jobs.length}: ${jobName(job)}`);
    }
    const measure = job.transport === 'nd' ? measureNd : measureTcp;
    const measurement = await measure(options.address, ports[job.transport], job);
    measurements.push(measurement);
    if (options.json) console.log(JSON.stringify(measurement));
  }
  if (process.stderr.isTTY && !options.json) process.stderr.write('\r\x1b[K');
  server.disconnect();
  if (!options.json) console.log(report(measurements));
}

async function firstMessage(server: ChildProcess): Promise<{ nd: number; tcp: number }> {
  const failed = once(server, 'exit').then(([code]) => {
    throw new Error(`The benchmark's server process ended with exit code ${code}.`);
  });
  const [message] = await Promise.race([once(server, 'message'), failed]);
  failed.catch(() => {});
  return message as { nd: number; tcp: number };
}

function report(measurements: Measurement[]): string {
  const table = new Table({
    head: ['what', 'bytes', 'NetworkDirect', 'p99', 'node:net TCP', 'ratio'],
    colAligns: ['left', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  const find = (transport: string, kind: string, size: number) =>
    measurements.find((m) => m.transport === transport && m.kind === kind && m.size === size);
  for (const nd of measurements.filter((m) => m.transport === 'nd')) {
    const tcp = find('tcp', nd.kind === 'read' ? 'write' : nd.kind, nd.size);
    const [value, unit, better] = figure(nd);
    const other = tcp ? figure(tcp)[0] : Number.NaN;
    table.push([
      titles[nd.kind],
      bytesText(nd.size),
      `${value.toFixed(2)} ${unit}`,
      nd.p99 === undefined ? '' : `${nd.p99.toFixed(2)} ${unit}`,
      tcp ? `${other.toFixed(2)} ${unit}` : '',
      tcp ? `${(better === 'less' ? other / value : value / other).toFixed(1)} ×` : '',
    ]);
  }
  return table.toString();
}

const titles = {
  latency: 'ping-pong, half round trip',
  write: 'RDMA Write (TCP: stream)',
  read: 'RDMA Read (TCP: stream)',
  rate: 'messages one way',
} as const;

function figure(m: Measurement): [value: number, unit: string, better: 'less' | 'more'] {
  if (m.kind === 'latency') return [m.median ?? Number.NaN, 'µs', 'less'];
  if (m.kind === 'rate') return [(m.rate ?? Number.NaN) / 1e6, 'M/s', 'more'];
  return [(m.bandwidth ?? Number.NaN) / 1e9, 'GB/s', 'more'];
}

if (process.env.ND_BENCH_SERVER) await serve(process.env.ND_BENCH_SERVER);
else await main();
