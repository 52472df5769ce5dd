/** The halves of `nd conformance`: in this process, served to others (`--serve`), or in another process on this host (`--processes 2`). */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import {
  type Half,
  loadSubject,
  makeHalf,
  makeToken,
  type Spi,
  type Subject,
  serveHalf,
  spiVersions,
} from '../conformance/index.js';
import { isLoopback } from './command-line.js';
import { onInterrupt } from './interrupts.js';

/** The environment variable for the token. Other users can see command lines but not the environment. */
export const TOKEN_VARIABLE = 'ND_CONFORMANCE_TOKEN';

/** The command's options for a half. */
export interface HalfOptions {
  readonly provider?: string | undefined;
  readonly spi: Spi;
  readonly address: string;
  readonly port: number;
  readonly memory: 'any' | 'allocate';
}

/** Creates a half for the provider with the memory from the options. */
export function halfOf(
  subject: Subject,
  provider: unknown,
  { address, memory }: HalfOptions,
  stepTimeoutMs: number,
): Half {
  const { spi, allocated } = subject;
  if (memory === 'any') return makeHalf(spi, provider, address, stepTimeoutMs);
  if (allocated === undefined)
    throw new Error("--memory allocate: the provider's module must export a function 'allocate'.");
  return makeHalf(spi, provider, address, stepTimeoutMs, allocated());
}

/** Serves the other half for other processes until the user or the parent process ends it. */
export async function serveOtherHalf(options: HalfOptions): Promise<void> {
  const { provider, address, port } = options;
  // The provider is loaded now, so that errors are reported now.
  const subjects = new Map<string, Awaited<ReturnType<typeof loadSubject>>>();
  for (const spi of spiVersions) {
    if (options.spi === spi) subjects.set(spi, await loadSubject(spi, provider));
    else
      await loadSubject(spi, provider)
        .then((subject) => subjects.set(spi, subject))
        .catch(() => {});
  }
  onInterrupt(() => process.exit(0));
  const token = makeToken();
  const { port: bound } = await serveHalf({
    host: address,
    port,
    token,
    half: (spi, stepTimeoutMs) => {
      const subject = subjects.get(spi);
      if (subject === undefined) throw new Error(`The other side does not have a provider of SPI ${spi}.`);
      return halfOf(subject, subject.open(), options, stepTimeoutMs);
    },
    onError: (error) => process.stderr.write(`nd conformance: ${messageOf(error)}\n`),
  });
  if (process.send !== undefined) {
    process.send({ port: bound, token });
    process.on('disconnect', () => process.exit());
  } else {
    const peer = `${address.includes(':') ? `[${address}]` : address}:${bound}`;
    const there = isLoopback(address) ? address : '<its address>';
    process.stderr.write(
      `Serving the other half. On the other side, run: ${TOKEN_VARIABLE}=${token} nd conformance --spi ${options.spi} --address ${there} --peer ${peer}\n`,
    );
  }
}

/** A serving process's report to its parent. */
const served = z.object({ port: z.number(), token: z.string() });

/** Starts a process on this host that serves the other half on a free port. */
export async function startOtherHalf({
  provider,
  spi,
  address,
  memory,
}: HalfOptions): Promise<{ child: ChildProcess } & z.output<typeof served>> {
  const child = fork(fileURLToPath(new URL('./nd.js', import.meta.url)), [
    'conformance',
    '--serve',
    ...['--spi', spi, '--address', address, '--port', '0', '--memory', memory],
    ...(provider === undefined ? [] : ['--provider', provider]),
  ]);
  const at = await new Promise<z.output<typeof served>>((resolve, reject) => {
    child.once('message', (message) => resolve(served.parse(message)));
    child.once('error', reject);
    // 'exit' may be emitted before the message arrives.
    child.once('close', (code) =>
      reject(new Error(`The process of the other half exited with code ${code}.`)),
    );
  });
  return { child, ...at };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
