/** `nd stat`: queue pairs, connections, registrations and counters of running processes, like `rdma resource` and `rdma statistic`. */
import { statSync } from 'node:fs';
import { Command } from 'commander';
import * as z from 'zod';
import { type KernelStatistics, type ObservedKernel, readProcesses } from '../../../kernel-bridge/index.js';
import { count } from '../argument-schemas.js';
import { wrongOptions } from '../command-line.js';
import { bytes, qpnText, short } from './number-text.js';
import { problemText, type Row, Sampler, type Seen, wireText } from './sample.js';
import { table } from './text-table.js';

const MOST_PID = 2 ** 22;

const options = z.object({
  pid: count(1, MOST_PID).optional(),
  all: z.boolean().default(false),
  verbose: z.boolean().default(false),
  json: z.boolean().default(false),
});

/** One line for each software HCA of a process. */
export function formatProcesses(rows: readonly Row[]): string {
  const heads = ['PID', 'SLOT', '<PROGRAM', '<UDP', 'QPS', 'CONNECTED', 'LISTENING', 'REGIONS', 'REGISTERED'];
  const lines = rows.map(({ pid, slot, program, problem, totals, ...row }) =>
    problem
      ? [pid, slot, `${program} (${problemText[problem]})`, ...Array.from({ length: 11 }, () => '')]
      : [
          ...[
            pid,
            slot,
            program,
            row.wire,
            row.queuePairs,
            row.connections,
            row.listeners,
            row.regions,
            bytes(row.registered),
          ],
          ...[
            bytes(totals.bytesOut),
            bytes(totals.bytesIn),
            short(totals.retransmits),
            short(totals.naks),
            short(totals.rnr),
          ],
        ],
  );
  return table([...heads, 'SENT', 'RECEIVED', 'RESENT', 'NAKS', 'RNR'], lines);
}

function formatPairs({ queuePairs }: KernelStatistics): string {
  const heads = [
    'QPN',
    '<TYPE',
    '<STATE',
    '<LOCAL',
    '<REMOTE',
    'REMOTE QPN',
    '<LINK',
    'MTU',
    'SEND QUEUE',
    'RECEIVES',
  ];
  return table(
    [...heads, 'COMPLETED', 'RECEIVED', 'IN FLIGHT', 'RETRIES', 'RTT'],
    queuePairs.map((pair) => [
      ...[qpnText(pair.qpn), pair.type, pair.state, pair.local, pair.remote, qpnText(pair.remoteQpn)],
      ...[pair.link, pair.mtu, `${pair.sendWaiting}/${pair.sendEntries}`],
      pair.sharedReceives ? 'shared' : `${pair.receiveWaiting}/${pair.receiveEntries}`,
      ...[short(pair.sent), short(pair.received), `${pair.inFlight}/${pair.window}`],
      pair.rnrWaiting ? `${pair.rnrRetries} RNR` : pair.retries,
      pair.roundTripNs === 0 ? '' : `${(pair.roundTripNs / 1000).toFixed(0)} µs`,
    ]),
  );
}

/** Identical registrations share a line. */
function formatMemory({ memory }: KernelStatistics): string {
  const alike = new Map<string, { row: string[]; number: number; sum: number }>();
  for (const { kind, live, allocated, length, access } of memory) {
    const row = [
      live ? kind : `${kind}, not ${kind === 'window' ? 'bound' : 'registered'}`,
      allocated ? 'allocate()' : 'other',
      access.join(' ') || 'local read',
    ];
    const entry = alike.get(row.join('/')) ?? { row, number: 0, sum: 0 };
    entry.number += 1;
    entry.sum += length;
    alike.set(row.join('/'), entry);
  }
  return table(
    ['NUMBER', 'BYTES', '<KIND', '<MEMORY', '<ACCESS'],
    [...alike.values()].map(({ row, number, sum }) => [number, bytes(sum), ...row]),
  );
}

function formatCounters({ counters }: KernelStatistics, verbose: boolean): string {
  return Object.entries(counters)
    .flatMap(([group, values]) =>
      Object.entries(values).flatMap(([name, value]) =>
        verbose || value !== 0 ? [`${`${group}.${name}`.padEnd(36)}${value}`] : [],
      ),
    )
    .join('\n');
}

/** Formats all data of a software HCA. */
export function formatKernel({ pid, slot, program, problem, statistics }: Seen, verbose: boolean): string {
  const head = `Process ${pid}, slot ${slot}${program === '' ? '' : `: ${program}`}`;
  if (statistics === undefined) return `${head}\n  ${problem ? problemText[problem] : ''}`;
  const { node, uptime, devices, wire, connections, queuePairs, memory, omitted } = statistics;
  const lines = [
    head,
    `Node.js ${node}, since ${uptime} s; devices ${devices.map(({ name }) => name).join(', ') || 'none'}`,
    `UDP port 4791: ${wireText[wire]}`,
  ];
  const part = (title: string, number: number, left: number, text: () => string): void => {
    const more = left > 0 ? `, and ${left} more` : '';
    lines.push('', `${title}: ${number}${more}`, ...(number > 0 ? [text()] : []));
  };
  part('Queue pairs', queuePairs.length, omitted.queuePairs, () => formatPairs(statistics));
  part('Endpoints', connections.length, omitted.connections, () =>
    table(
      ['<TYPE', '<STATE', '<LOCAL', '<REMOTE', 'QPN'],
      connections.map((one) => [one.type, one.state, one.local, one.remote, qpnText(one.qpn)]),
    ),
  );
  part('Memory', memory.length, omitted.memory, () => formatMemory(statistics));
  const counters = formatCounters(statistics, verbose);
  lines.push('', verbose ? 'Counters' : 'Counters that are not 0', counters === '' ? 'none' : counters);
  return lines.join('\n');
}

/** Other processes that may use this package. */
const REAL =
  "Processes that only use real HCAs (hca: 'rdma') are not listed; see `rdma resource` and `rdma statistic`.";

/** Explains why a process was not found. */
function absence(pid: number): string {
  let user: number;
  try {
    user = statSync(`/proc/${pid}`).uid;
  } catch {
    return `Process ${pid} does not exist.`;
  }
  // This also applies to root, which can only observe processes of root.
  if (user !== process.geteuid?.())
    return `Process ${pid} belongs to another user; only processes of this user can be observed.`;
  return `Process ${pid} does not use the software HCA. \`nd stat\` lists the processes that do. ${REAL}`;
}

async function run(values: z.output<typeof options>): Promise<void> {
  const { pid, all, verbose, json } = values;
  const kernels: ObservedKernel[] = await readProcesses(pid === undefined ? {} : { pid });
  if (pid !== undefined && kernels.length === 0) throw new Error(absence(pid));
  const rows = new Sampler().take(kernels);
  if (json) {
    const processes = rows.map(({ statistics, problem, program, ...row }) => ({
      ...{ pid: row.pid, slot: row.slot, program },
      ...(problem ? { problem } : { statistics }),
    }));
    process.stdout.write(`${JSON.stringify({ processes })}\n`);
  } else if (rows.length === 0) {
    process.stdout.write(`No process of this user uses the software HCA. ${REAL}\n`);
  } else if (pid !== undefined || all || verbose) {
    process.stdout.write(`${rows.map((row) => formatKernel(row, verbose)).join('\n\n')}\n`);
  } else {
    process.stdout.write(`${formatProcesses(rows)}\n`);
  }
}

/** The command; `fail` prints an error. */
export function statCommand(fail: (error: unknown) => void): Command {
  return new Command('stat')
    .description('show queue pairs, connections, registrations and counters of running processes')
    .argument('[pid]', 'only this process, with all details')
    .option('-a, --all', 'all processes, with all details')
    .option('-v, --verbose', 'as --all, including counters that are 0')
    .option('--json', 'print JSON')
    .allowExcessArguments(false)
    .action(async (pid: string | undefined, given: Record<string, unknown>) => {
      const values = { ...given, ...(pid !== undefined && { pid }) };
      const parsed = options.safeParse(values);
      if (!parsed.success) return wrongOptions(parsed.error, values);
      try {
        await run(parsed.data);
      } catch (error) {
        fail(error);
      }
    });
}
