/** `nd nvme`: the initiator and the target as commands. */
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import * as z from 'zod';
import { WvError } from '../../../winverbs/index.js';
import { Status } from '../../index.js';
import { count, hostAddress, ipAddress } from '../argument-schemas.js';
import { addressOfHost, endsInTwo, isWildcard, wrongArguments, wrongOptions } from '../command-line.js';
import { Interrupted, onInterrupt } from '../interrupts.js';
import { NQN_BYTES, NVME_PORT } from './capsules.js';
import { NvmeController } from './controller.js';
import type { Disk, DiskWriter } from './disk.js';
import { meaningOf, type Phase, RECONNECT_SECONDS, type Target } from './nvme-failures.js';
import { fileStore, memoryStore } from './store.js';
import { NvmeTarget } from './target.js';

const MEGABYTE = 1 << 20;
const bytes = count(0, Number.MAX_SAFE_INTEGER);
const json = z.boolean().default(false);
const nqn = z
  .string()
  .max(NQN_BYTES, `must have at most ${NQN_BYTES} bytes`)
  .regex(/^nqn\./, 'must be an NVMe qualified name such as nqn.2026-11.io.example:disk');
const where = { port: count(1, 65_535).default(NVME_PORT), hostName: nqn.optional(), json };
const ofController = { ...where, nqn, reconnect: count(0, 86_400).optional() };
const disk = {
  ...ofController,
  namespace: count(1, 0xffff_fffe).default(1),
  start: bytes.default(0),
};

const discoverOptions = z.object(where);
const infoOptions = z.object(ofController);
const readOptions = z.object({ ...disk, length: bytes.optional(), output: z.string().optional() });
const writeOptions = z.object({ ...disk, input: z.string().optional() });
const serveOptions = z
  .object({
    address: ipAddress.default('127.0.0.1'),
    port: count(0, 65_535).default(NVME_PORT),
    nqn,
    file: z.string().optional(),
    size: count(1, 1 << 30).optional(),
    json,
    blockSize: z.coerce
      .number()
      .pipe(z.literal([512, 1024, 2048, 4096], 'must be 512, 1024, 2048 or 4096'))
      .default(512),
    hosts: z.array(nqn).optional(),
  })
  .refine(({ file, size }) => file !== undefined || size !== undefined, 'requires --file or --size');

/** Command-line state of a command in addition to its options. */
interface Given {
  readonly host: string;
  /** Aborts when the user interrupts the command. */
  readonly signal: AbortSignal;
  /** Called when the controller is connected. */
  readonly connected: () => void;
}

async function discover(
  { host }: Given,
  { port, hostName, json }: z.output<typeof discoverOptions>,
): Promise<void> {
  const entries = await NvmeController.discover({ host, port, ...named(hostName) });
  if (json) console.log(JSON.stringify({ tool: 'nd nvme discover', entries }));
  else
    for (const { subsystem, address, service } of entries)
      console.log(`${subsystem} at ${address} port ${service}`);
}

async function connected<T>(
  { host, signal, connected: onConnected }: Given,
  { port, nqn, hostName, reconnect }: z.output<typeof infoOptions>,
  use: (controller: NvmeController) => Promise<T>,
): Promise<T> {
  const retryOptions = reconnect === undefined ? {} : { reconnectForMs: 1000 * reconnect };
  const controller = await NvmeController.connect({
    ...{ host, port, subsystem: nqn },
    ...named(hostName),
    ...retryOptions,
  });
  onConnected();
  controller.on('lost', (error) => console.error(`nd nvme: ${messageOf(error)} Reconnecting.`));
  controller.on('reconnected', () => console.error('nd nvme: Reconnected.'));
  const end = (): void => void controller.close();
  signal.addEventListener('abort', end);
  try {
    if (signal.aborted) throw new Interrupted();
    return await use(controller);
  } finally {
    await controller.close();
  }
}

const named = (hostName: string | undefined) => (hostName === undefined ? {} : { hostName });

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function info(given: Given, values: z.output<typeof infoOptions>): Promise<void> {
  return connected(given, values, async (controller) => {
    const { model, serial, firmware, subsystem } = controller.identity;
    const { ioQueues, transferBytes } = controller;
    const namespaces: { id: number; blocks: number; blockSize: number }[] = [];
    for (const id of await controller.namespaces()) {
      const { blocks, blockSize } = await controller.open(id);
      namespaces.push({ id, blocks, blockSize });
    }
    if (values.json) {
      const found = { subsystem, model, serial, firmware, ioQueues, transferBytes, namespaces };
      console.log(JSON.stringify({ tool: 'nd nvme info', ...found }));
      return;
    }
    console.log(`${model}, serial ${serial}, firmware ${firmware}`);
    console.log(`${ioQueues} I/O queues, ${transferBytes} bytes in one command`);
    for (const { id, blocks, blockSize } of namespaces)
      console.log(`namespace ${id}: ${blocks} blocks of ${blockSize} bytes`);
  });
}

/** Copies a stream. If the user interrupts it, prints the progress: for a disk, the bytes that the target has written. */
async function copy(
  { signal }: Given,
  { json, start }: { json: boolean; start: number },
  verb: 'Read' | 'Wrote',
  from: NodeJS.ReadableStream,
  to: NodeJS.WritableStream | DiskWriter,
  end = true,
): Promise<void> {
  let taken = 0;
  async function* counted(source: AsyncIterable<string | Uint8Array>) {
    for await (const piece of source) {
      yield piece;
      taken += Buffer.byteLength(piece);
    }
  }
  try {
    await pipeline(from, counted, to, { end, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    const tool = verb === 'Read' ? 'nd nvme read' : 'nd nvme write';
    const bytes = verb === 'Wrote' ? (to as DiskWriter).bytesWritten : taken;
    console.error(`${verb} ${bytes} bytes starting at ${start}`);
    if (json && to !== process.stdout) console.log(JSON.stringify({ tool, bytes, interrupted: true }));
    throw new Interrupted();
  }
}

/** @throws Error if the first byte to copy is beyond the end of the namespace */
function checkStart({ id, size }: Disk, start: number): void {
  if (start < size || size === 0) return;
  throw new Error(`--start must be less than the ${size} bytes of namespace ${id}; got ${start}`);
}

function read(given: Given, values: z.output<typeof readOptions>): Promise<void> {
  const { namespace, start, length, output } = values;
  return connected(given, values, async (controller) => {
    const opened = await controller.open(namespace);
    checkStart(opened, start);
    const part = { start, ...(length === undefined ? {} : { end: start + length }) };
    const to = output === undefined ? process.stdout : createWriteStream(output);
    await copy(given, values, 'Read', opened.createReadStream(part), to, output !== undefined);
  });
}

function write(given: Given, values: z.output<typeof writeOptions>): Promise<void> {
  const { namespace, start, input } = values;
  return connected(given, values, async (controller) => {
    const opened = await controller.open(namespace);
    checkStart(opened, start);
    const from = input === undefined ? process.stdin : createReadStream(input, { highWaterMark: MEGABYTE });
    await copy(given, values, 'Wrote', from, opened.createWriteStream({ start })).catch((error: unknown) => {
      if (!(error instanceof RangeError)) throw error;
      throw new Error(
        `The input must fit between --start and the end of namespace ${namespace}, which has ${opened.size} bytes. It is longer.`,
        { cause: error },
      );
    });
  });
}

/** Serves until the user stops it. */
async function serve({ signal }: Given, values: z.output<typeof serveOptions>): Promise<void> {
  const { address, port, nqn, file, size, blockSize, hosts } = values;
  const sizeBytes = size === undefined ? undefined : size * MEGABYTE;
  const store = file === undefined ? memoryStore(sizeBytes!) : await fileStore(file, sizeBytes);
  const subsystem = { nqn, namespaces: [{ store, blockSize }], ...(hosts === undefined ? {} : { hosts }) };
  let target: NvmeTarget;
  try {
    target = NvmeTarget.listen({ address, port, subsystems: [subsystem] });
  } catch (error) {
    if (!(error instanceof WvError) || error.status !== Status.ADDRESS_ALREADY_EXISTS) throw error;
    throw new Error(
      `Port ${port} of ${address} is in use. Choose another with --port, or 0 for a free one.`,
      {
        cause: error,
      },
    );
  }
  const report = (event: object, line: string): void =>
    console.log(values.json ? JSON.stringify({ tool: 'nd nvme serve', ...event }) : line);
  target.on('host', (name, from) => report({ event: 'host', host: name, from }, `host ${name} from ${from}`));
  target.on('gone', (name) => report({ event: 'gone', host: name }, `gone ${name}`));
  target.on('failure', (error) => console.error(`nd nvme: ${messageOf(error)}`));
  const { size: bytes } = store;
  report(
    { event: 'listening', address, port: target.port, nqn, bytes },
    `listening on ${address} port ${target.port}: ${nqn}, ${bytes} bytes`,
  );
  if (!signal.aborted) await once(signal, 'abort');
  await target.close();
}

/** Option of commands that keep a controller. */
const RECONNECT = [
  '--reconnect <s>',
  `how long to try to reconnect, in seconds (default: ${RECONNECT_SECONDS})`,
] as const;

/** `nd nvme` and its commands. */
export function nvmeCommand(fail: (error: unknown) => void): Command {
  const nvme = new Command('nvme').description(
    'NVMe over RDMA: read and write the disk of a target, or serve one',
  );
  const add = (name: string, description: string): Command => {
    const command = endsInTwo(nvme.command(name))
      .description(description)
      .option('--json', 'print errors, results of discover and info, and events of serve as JSON')
      .showHelpAfterError(`Usage: nd nvme ${name.split(' ')[0]} --help`);
    const ofInitiator = command.registeredArguments.length > 0;
    if (ofInitiator)
      command.option('--host-name <nqn>', 'NVMe qualified name of this host (default: a random one)');
    return command.option('--port <n>', `the target's port (default: ${NVME_PORT})`);
  };
  const onDisk = (command: Command): Command =>
    command
      .requiredOption('--nqn <name>', "the subsystem's name")
      .option(...RECONNECT)
      .option('--namespace <n>', 'the namespace (default: 1)')
      .option('--start <bytes>', 'offset of the first byte (default: 0)');
  add('discover <host>', 'list the subsystems of a target').action(
    checked(discoverOptions, (values, given) => discover(given, values)),
  );
  add('info <host>', 'describe a controller and its namespaces')
    .requiredOption('--nqn <name>', "the subsystem's name")
    .option(...RECONNECT)
    .action(checked(infoOptions, (values, given) => info(given, values)));
  onDisk(add('read <host>', 'copy bytes of a namespace to a file'))
    .option('--length <bytes>', 'number of bytes (default: to the end)')
    .option('--output <file>', 'the file (default: standard output)')
    .action(checked(readOptions, (values, given) => read(given, values)));
  onDisk(add('write <host>', 'copy a file to a namespace'))
    .option('--input <file>', 'the file (default: standard input)')
    .action(checked(writeOptions, (values, given) => write(given, values)));
  add('serve', 'serve a file, a block device or memory as a namespace')
    .option('--address <ip>', 'address to listen on (default: 127.0.0.1)')
    .requiredOption('--nqn <name>', "the subsystem's name")
    .option('--file <path>', 'the file or block device (default: memory)')
    .option('--size <MiB>', 'size of the namespace (default: size of the file)')
    .option('--block-size <bytes>', '512 to 4096 (default: 512)')
    .option('--hosts <nqn...>', 'the hosts that may connect (default: all)')
    .action(checked(serveOptions, (values, given) => serve(given, values)));
  return nvme;

  /** Creates an action with validated options. A command with an argument gets it first. */
  function checked<S extends z.ZodType>(
    schema: S,
    run: (values: z.output<S>, given: Given) => Promise<void>,
  ): (...given: unknown[]) => Promise<void> {
    return async (...given) => {
      const named = typeof given[0] === 'string' ? given[0] : undefined;
      const options = given[named === undefined ? 0 : 1];
      const parsed = schema.safeParse(options);
      if (!parsed.success) return wrongOptions(parsed.error, options);
      let host = '';
      if (named !== undefined) {
        const address = await addressGiven(named).catch((error: unknown) => error as Error);
        if (address instanceof Error) return wrongArguments([address.message]);
        host = address;
      }
      const abort = new AbortController();
      const { signal } = abort;
      using _ = onInterrupt(() => abort.abort());
      let phase: Phase = 'connecting';
      const connected = (): void => {
        phase = 'connected';
      };
      try {
        await run(parsed.data, { host, signal, connected });
      } catch (error) {
        if (signal.aborted) fail(new Interrupted());
        else if (named === undefined) fail(error);
        else fail(meaningOf(error, { ...(parsed.data as Omit<Target, 'host'>), host: named }, phase));
      }
    };
  }
}

/** Resolves the host that the user has named. @throws Error */
async function addressGiven(host: string): Promise<string> {
  const { error } = hostAddress.safeParse(host);
  if (error !== undefined) throw new Error(`Host ${error.issues[0]!.message}; got '${host}'.`);
  const address = await addressOfHost(host);
  if (isWildcard(address)) throw new Error(`Host must be the address of a single host; got '${host}'.`);
  return address;
}
