/** `nd demo`: starts the two processes of the demo, or runs one role. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import * as z from 'zod';
import { count, hostAddress } from './argument-schemas.js';
import { addressOfHost, wrongOptions } from './command-line.js';
import { type ClientOptions, format, runClient, runServer } from './demo.js';
import { formatReport, type Report } from './demo-report.js';
import { EXIT_INTERRUPTED, exitInterrupted, onInterrupt } from './interrupts.js';

const demoOptions = z
  .object({
    server: z.boolean().default(false),
    client: z.boolean().default(false),
    address: hostAddress.default('127.0.0.1'),
    port: count(0, 65_535).default(0),
    iterations: count(1, 1_000_000).default(1000),
    rounds: count(1, 10_000).default(4),
    seed: count(0, 0x7fff_ffff).default(1),
    json: z.boolean().default(false),
  })
  .refine((options) => !(options.server && options.client), '--server and --client are mutually exclusive')
  .refine((options) => !options.client || options.port !== 0, {
    path: ['port'],
    message: "is required with --client: the server's port",
  });

type DemoOptions = z.output<typeof demoOptions>;

/** Next steps for a new user. */
const NEXT = `
What to try next:
  nd pingpong -s 127.0.0.1          half a round trip by message size: this in one terminal,
  nd pingpong -c 127.0.0.1          and this in another, or on another host with the server's address
  nd cat -s --file copy 127.0.0.1   a file from a client: nd cat -c --file original 127.0.0.1
  nd verbs-info                     the devices of this host
  nd --help                         all tools
A first program is in README.md, and the guides are in docs/guide.
`;

/** A message of a child process of the demo to its parent. */
type Message = { readonly listening: number } | { readonly report: Report };

/** Runs one role in this process. */
async function runRole(role: 'server' | 'client', options: DemoOptions): Promise<void> {
  // Ctrl-C reaches all processes of a terminal. The parent reports it and ends both children before either reports a lost peer.
  using _ =
    process.send === undefined
      ? undefined
      : onInterrupt((signal) => signal === 'SIGTERM' && process.exit(EXIT_INTERRUPTED));
  const report =
    role === 'server'
      ? await runServer(options, (address) => {
          if (process.send !== undefined) process.send({ listening: address.port } satisfies Message);
          else process.stderr.write(`Listening on ${format(address)}\n`);
        })
      : await runClient(options, progress);
  if (process.send !== undefined) {
    process.send({ report } satisfies Message, undefined, {}, () => process.disconnect());
  } else {
    print(report, options.json);
  }
}

/** Runs both roles, each in its own process. */
async function runBoth(options: DemoOptions): Promise<void> {
  const roles: Role[] = [];
  using _ = onInterrupt(() => {
    for (const role of roles.reverse()) role.process.kill('SIGKILL');
    exitInterrupted();
  });
  const server = startRole('server', options);
  roles.push(server);
  try {
    const serverReport = server.report;
    const port = await server.listening;
    const client = startRole('client', { ...options, port });
    roles.push(client);
    try {
      const report = await Promise.race([client.report, serverReport.then(() => client.report)]);
      const { disconnect } = await serverReport;
      // Both must exit on their own: a closed connection must not keep a process alive.
      await Promise.all([client.ended, server.ended]);
      print({ ...report, disconnect: [...report.disconnect, ...disconnect] }, options.json, NEXT);
    } finally {
      client.process.kill();
    }
  } finally {
    server.process.kill();
  }
}

interface Role {
  readonly process: ChildProcess;
  readonly listening: Promise<number>;
  readonly report: Promise<Report>;
  /** Resolves when the process has exited with code 0. */
  readonly ended: Promise<void>;
}

function startRole(role: 'server' | 'client', options: DemoOptions): Role {
  const { address, port, iterations, rounds, seed } = options;
  const values = Object.entries({ address, port, iterations, rounds, seed } satisfies ClientOptions);
  const child = fork(fileURLToPath(new URL('./nd.js', import.meta.url)), [
    'demo',
    `--${role}`,
    ...values.flatMap(([name, value]) => [`--${name}`, String(value)]),
  ]);
  const exited = new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const disconnected = new Promise<void>((resolve) => child.once('disconnect', resolve));
  const messageFrom = <T>(pick: (message: Message) => T | undefined): Promise<T> => {
    const promise = new Promise<T>((resolve, reject) => {
      child.on('message', (message) => {
        const value = pick(message as Message);
        if (value !== undefined) resolve(value);
      });
      // Its last messages arrive before the channel closes, but possibly after its exit.
      Promise.all([exited, disconnected]).then(
        ([how]) => reject(new Error(`The ${role} exited early (${how}).`)),
        reject,
      );
    });
    // The error concerns only callers that await the promise.
    promise.catch(() => {});
    return promise;
  };
  const ended = exited.then((how) => {
    if (how !== 'exit code 0') throw new Error(`The ${role} failed (${how}).`);
  });
  ended.catch(() => {});
  return {
    process: child,
    listening: messageFrom((message) => ('listening' in message ? message.listening : undefined)),
    report: messageFrom((message) => ('report' in message ? message.report : undefined)),
    ended,
  };
}

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

function print(report: Report, json: boolean, hints = ''): void {
  process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${formatReport(report)}\n${hints}`);
}

/** The command for `nd`; `fail` prints an error. */
export function demoCommand(fail: (error: unknown) => void): Command {
  return new Command('demo')
    .description('run messages, Writes and Reads between two processes and compare every byte')
    .option('--server', 'run the server only')
    .option('--client', 'run the client only')
    .option('--address <ip>', "the server's address (default: 127.0.0.1)")
    .option('--port <n>', "the server's port (default: a free one)")
    .option('--iterations <n>', 'round trips per message size (default: 1000)')
    .option('--rounds <n>', 'windows of 8 MiB per stream (default: 4)')
    .option('--seed <n>', 'seed of the test data (default: 1)')
    .option('--json', 'print the report as JSON')
    .action(async (values: unknown) => {
      const parsed = demoOptions.safeParse(values);
      if (!parsed.success) return wrongOptions(parsed.error, values);
      try {
        const options = { ...parsed.data, address: await addressOfHost(parsed.data.address) };
        if (options.server) await runRole('server', options);
        else if (options.client) await runRole('client', options);
        else await runBoth(options);
      } catch (error) {
        fail(error);
      }
    });
}
