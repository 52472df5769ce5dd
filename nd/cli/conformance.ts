/** `nd conformance`: tests a provider against the rules of the SPI in one process, in two processes, or on two hosts. */
import { Command } from 'commander';
import * as z from 'zod';
import {
  type CaseResult,
  CONTROL_PORT,
  cases,
  formatResults,
  loadSubject,
  localParty,
  type Party,
  remoteParty,
  runCases,
  selectCases,
  spiVersions,
  totalsOf,
} from '../conformance/index.js';
import type { MutantResult } from '../conformance/mutants/index.js';
import { count, ipAddress } from './argument-schemas.js';
import { isWildcard, wrongArguments, wrongOptions } from './command-line.js';
import { halfOf, serveOtherHalf, startOtherHalf, TOKEN_VARIABLE } from './conformance-half.js';
import { exitInterrupted, onInterrupt } from './interrupts.js';

/** Time limit of a step in seconds. It is shorter for broken providers. */
const STEP_TIMEOUT = 10;
const MUTANT_STEP_TIMEOUT = 1.5;

const seconds = z.coerce
  .number('must be a number of seconds')
  .min(0.1, 'must be 0.1 or more')
  .max(600, 'must be 600 or less');

const conformanceOptions = z
  .object({
    provider: z.string().optional(),
    spi: z.enum(spiVersions, 'must be v1 or v2').default('v1'),
    address: ipAddress.default('127.0.0.1'),
    peer: z.string().min(1, 'must be a host, or host:port').optional(),
    processes: z.enum(['1', '2'], 'must be 1 or 2').default('1'),
    port: count(0, 65_535).default(CONTROL_PORT),
    token: z.string().min(1, 'must be the token that the side with --serve printed').optional(),
    only: z.string().optional(),
    memory: z.enum(['any', 'allocate'], 'must be any or allocate').default('any'),
    stepTimeout: seconds.optional(),
    serve: z.boolean().default(false),
    list: z.boolean().default(false),
    mutants: z.union([z.literal('all'), z.boolean()], "must have no value, or 'all'").default(false),
    bail: z.boolean().default(false),
    json: z.boolean().default(false),
  })
  .refine(({ serve, peer }) => !serve || peer === undefined, '--serve and --peer are mutually exclusive')
  .refine(
    ({ token, peer }) => token === undefined || peer !== undefined,
    '--token requires --peer; the side with --serve generates and prints it',
  )
  .refine(
    ({ serve, address }) => !serve || !isWildcard(address),
    '--address must be a single address of this host with --serve, which accepts commands at that address only',
  )
  .refine(
    ({ processes, peer }) => processes === '1' || peer === undefined,
    '--processes 2 and --peer are mutually exclusive; --peer always uses two processes',
  );

type Options = z.output<typeof conformanceOptions>;

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** The broken providers, which the packages do not contain. */
async function brokenProviders(): Promise<typeof import('../conformance/mutants/index.js')> {
  try {
    return await import('../conformance/mutants/index.js');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error(
      'The package does not contain the broken providers. Run --mutants in a clone of the repository.',
    );
  }
}

/** Runs the broken providers. Fails if every case passes for one of them. */
async function runMutants({ address, stepTimeout, only, mutants: which, json }: Options): Promise<void> {
  const { formatMutants, judge, mutants } = await brokenProviders();
  const chosen = mutants.filter(({ name }) => only === undefined || name.includes(only));
  if (chosen.length === 0) return wrongArguments([`--only must match a broken provider; got '${only}'`]);
  const results: MutantResult[] = [];
  using _ = onInterrupt(() => {
    progress('');
    if (!json) process.stdout.write(`${formatMutants(results)}\n`);
    exitInterrupted(true);
  });
  for (const [index, mutant] of chosen.entries()) {
    progress(`${index + 1} of ${chosen.length}  ${mutant.name}`);
    const result = await judge(mutant, {
      address,
      stepTimeoutMs: (stepTimeout ?? MUTANT_STEP_TIMEOUT) * 1000,
      all: which === 'all',
    });
    results.push(result);
    if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
  }
  progress('');
  if (!json) process.stdout.write(`${formatMutants(results)}\n`);
  // Resources that broken providers leak would keep the process alive.
  process.exit(results.every(({ caughtBy }) => caughtBy.length > 0) ? 0 : 1);
}

async function run(options: Options): Promise<void> {
  const { spi, address, peer, json, stepTimeout = STEP_TIMEOUT } = options;
  const selected = selectCases(cases, spi, options.only);
  if (options.list) {
    for (const { name, clause } of selected) {
      process.stdout.write(`${options.json ? JSON.stringify({ name, clause }) : `${name}  ${clause}`}\n`);
    }
    return;
  }
  if (selected.length === 0) {
    const text = `--only must match a case of SPI ${spi}, as --list prints them; got '${options.only}'`;
    return wrongArguments([text]);
  }
  const stepTimeoutMs = stepTimeout * 1000;
  const subject = await loadSubject(spi, options.provider);
  const provider = subject.open();
  const local = { provider, half: halfOf(subject, provider, options, stepTimeoutMs) };
  const begun = performance.now();
  const results: CaseResult[] = [];
  const print = (more: object): void => {
    progress('');
    const took = (performance.now() - begun) / 1000;
    const totals = { ...totalsOf(results), seconds: Number(took.toFixed(1)), ...more };
    process.stdout.write(`${json ? JSON.stringify(totals) : formatResults(results, took)}\n`);
  };
  using _ = onInterrupt(() => {
    print({ interrupted: true });
    exitInterrupted(true);
  });
  const runAgainst = (far: Party): Promise<CaseResult[]> =>
    runCases(selected, {
      local,
      far,
      stepTimeoutMs,
      bail: options.bail,
      onStart: ({ name }, index) => progress(`${index + 1} of ${selected.length}  ${name}`),
      onResult: (result) => {
        results.push(result);
        if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
      },
    });
  if (peer !== undefined) {
    const [host, port] = controlAddress(peer, options.port);
    const token = options.token ?? process.env[TOKEN_VARIABLE];
    if (token === undefined)
      throw new Error(
        `The other half requires the token that it printed. Set ${TOKEN_VARIABLE} or use --token.`,
      );
    await using remote = await remoteParty({ host, port, token, spi, stepTimeoutMs });
    await runAgainst(remote.party);
  } else if (options.processes === '2') {
    const { child, ...at } = await startOtherHalf(options);
    try {
      await using remote = await remoteParty({ host: address, ...at, spi, stepTimeoutMs });
      await runAgainst(remote.party);
    } finally {
      child.kill();
    }
  } else {
    await runAgainst(localParty(halfOf(subject, subject.open(), options, stepTimeoutMs)));
  }
  print({});
  process.exitCode = totalsOf(results).failed > 0 ? 1 : 0;
}

/** Parses `host`, `host:port` or `[host]:port`. */
function controlAddress(peer: string, port: number): [host: string, port: number] {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(peer);
  if (match === null) return [peer, port];
  return [(match[1] ?? match[2])!, Number(match[3])];
}

/** The command for `nd`; `fail` prints an error. */
export function conformanceCommand(fail: (error: unknown) => void): Command {
  return new Command('conformance')
    .description('test a provider against the rules of the NetworkDirect SPI')
    .option('--provider <module>', 'a module that exports openNetworkDirect (default: this package)')
    .option('--spi <version>', 'v1 or v2 (default: v1)')
    .option('--address <ip>', 'the address of the adapter (default: 127.0.0.1)')
    .option('--processes <n>', '2: run the other half of each connection in a separate process (default: 1)')
    .option(
      '--serve',
      'serve the other half to a run with --peer on another host; listens on --address (TCP) and prints the required token',
    )
    .option('--peer <host>', 'the host of the other half, where --serve runs')
    .option(
      '--token <token>',
      `the token that --serve printed; ${TOKEN_VARIABLE} hides it from other users of this host`,
    )
    .option('--port <n>', `TCP port between the halves (default: ${CONTROL_PORT})`)
    .option(
      '--memory <which>',
      "any: plain arrays; allocate: memory from the provider module's function 'allocate' (default: any)",
    )
    .option('--only <pattern>', "only cases whose name contains this; '*' matches any text")
    .option('--step-timeout <s>', 'time limit of each step in seconds (default: 10; with --mutants 1.5)')
    .option('--mutants [all]', 'check that the cases detect broken providers; all: run every case')
    .option('--bail', 'stop at the first failure')
    .option('--list', 'list the cases and their clauses')
    .option('--json', 'print a line of JSON for each case')
    .action(async (values: unknown) => {
      const parsed = conformanceOptions.safeParse(values);
      if (!parsed.success) return wrongOptions(parsed.error, values);
      try {
        const options = parsed.data;
        if (options.serve) await serveOtherHalf(options);
        else if (options.mutants !== false) await runMutants(options);
        else await run(options);
      } catch (error) {
        fail(error);
      }
    });
}
