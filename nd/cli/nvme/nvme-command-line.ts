/** `nd nvme`: the initiator and the target as commands. */
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import * as z from 'zod';
import { count, ipAddress } from '../argument-schemas.js';
import { addressOfHost, endsInTwo, wrongOptions } from '../command-line.js';
import { ConnectionEnded } from '../peer-lost.js';
import { NVME_PORT, NvmeConnectionError, NvmeRefusedError } from './capsules.js';
import { NvmeController } from './controller.js';
import { fileStore, memoryStore } from './store.js';
import { NvmeTarget } from './target.js';

const MEGABYTE = 1 << 20;
const bytes = count(0, Number.MAX_SAFE_INTEGER);
const json = z.boolean().default(false);
const where = { port: count(1, 65_535).default(NVME_PORT), hostName: z.string().optional(), json };
const ofController = { ...where, nqn: z.string(), reconnect: count(0, 86_400).optional() };
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
    nqn: z.string(),
    file: z.string().optional(),
    size: count(1, 1 << 30).optional(),
    json,
    blockSize: z.coerce
      .number()
      .pipe(z.union([z.literal(512), z.literal(1024), z.literal(2048), z.literal(4096)]))
      .default(512),
    hosts: z.array(z.string()).optional(),
  })
  .refine(({ file, size }) => file !== undefined || size !== undefined, 'needs --file or --size');

async function discover(
  host: string,
  { port, hostName, json }: z.output<typeof discoverOptions>,
): Promise<void> {
  const entries = await NvmeController.discover({ host, port, ...named(hostName) });
  if (json) console.log(JSON.stringify({ tool: 'nd nvme discover', entries }));
  else
    for (const { subsystem, address, service } of entries)
      console.log(`${subsystem} at ${address} port ${service}`);
}

async function connected<T>(
  host: string,
  { port, nqn, hostName, reconnect }: z.output<typeof infoOptions>,
  use: (controller: NvmeController) => Promise<T>,
): Promise<T> {
  const patience = reconnect === undefined ? {} : { reconnectForMs: 1000 * reconnect };
  const controller = await NvmeController.connect({
    ...{ host, port, subsystem: nqn },
    ...named(hostName),
    ...patience,
  });
  controller.on('lost', (error) => console.error(`nd nvme: ${String(error)} It is looked for.`));
  controller.on('reconnected', () => console.error('nd nvme: It is there again.'));
  try {
    return await use(controller);
  } finally {
    await controller.close();
  }
}

const named = (hostName: string | undefined) => (hostName === undefined ? {} : { hostName });

function info(host: string, values: z.output<typeof infoOptions>): Promise<void> {
  return connected(host, values, async (controller) => {
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

function read(host: string, values: z.output<typeof readOptions>): Promise<void> {
  const { namespace, start, length, output } = values;
  return connected(host, values, async (controller) => {
    const opened = await controller.open(namespace);
    const part = { start, ...(length === undefined ? {} : { end: start + length }) };
    const to = output === undefined ? process.stdout : createWriteStream(output);
    await pipeline(opened.createReadStream(part), to, { end: output !== undefined });
  });
}

function write(host: string, values: z.output<typeof writeOptions>): Promise<void> {
  const { namespace, start, input } = values;
  return connected(host, values, async (controller) => {
    const opened = await controller.open(namespace);
    await pipeline(
      input === undefined ? process.stdin : createReadStream(input, { highWaterMark: MEGABYTE }),
      opened.createWriteStream({ start }),
    );
  });
}

async function serve(values: z.output<typeof serveOptions>): Promise<void> {
  const { address, port, nqn, file, size, blockSize, hosts } = values;
  const sizeBytes = size === undefined ? undefined : size * MEGABYTE;
  const store = file === undefined ? memoryStore(sizeBytes!) : await fileStore(file, sizeBytes);
  const subsystem = { nqn, namespaces: [{ store, blockSize }], ...(hosts === undefined ? {} : { hosts }) };
  const target = NvmeTarget.listen({ address, port, subsystems: [subsystem] });
  target.on('host', (name, from) => console.log(`host ${name} from ${from}`));
  target.on('gone', (name) => console.log(`gone ${name}`));
  target.on('failure', (error) => console.error(`nd nvme: ${String(error)}`));
  console.log(`listening on ${address} port ${target.port}: ${nqn}, ${store.size} bytes`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await target.close();
}

/** A {@link ConnectionEnded} for the loss of a target. One that was never there, or has refused, is another failure. */
function meaningOf(error: unknown): unknown {
  const lost = error instanceof NvmeConnectionError && !(error instanceof NvmeRefusedError);
  return lost ? new ConnectionEnded(error, error.message) : error;
}

/** Of commands that keep a controller. */
const RECONNECT = ['--reconnect <s>', 'how long a lost target is looked for (default: 60)'] as const;

/** `nd nvme` and its commands. */
export function nvmeCommand(fail: (error: unknown) => void): Command {
  const nvme = new Command('nvme').description(
    'NVMe over RDMA: reads and writes the disk of a target, and serves one',
  );
  const add = (name: string, description: string): Command => {
    const command = endsInTwo(nvme.command(name))
      .description(description)
      .option('--json', 'print errors as JSON, and what discover and info find')
      .showHelpAfterError(`Its usage: nd nvme ${name.split(' ')[0]} --help`);
    const ofInitiator = command.registeredArguments.length > 0;
    if (ofInitiator) command.option('--host-name <nqn>', "this host's name (default: a random one)");
    return command.option('--port <n>', `the target's port (default: ${NVME_PORT})`);
  };
  const onDisk = (command: Command): Command =>
    command
      .requiredOption('--nqn <name>', "the subsystem's name")
      .option(...RECONNECT)
      .option('--namespace <n>', 'the namespace (default: 1)')
      .option('--start <bytes>', 'where to begin (default: 0)');
  add('discover <host>', 'names the subsystems of a target').action(
    checked(discoverOptions, (values, host) => discover(host!, values)),
  );
  add('info <host>', 'tells what a controller and its namespaces are')
    .requiredOption('--nqn <name>', "the subsystem's name")
    .option(...RECONNECT)
    .action(checked(infoOptions, (values, host) => info(host!, values)));
  onDisk(add('read <host>', 'copies bytes of a namespace to a file'))
    .option('--length <bytes>', 'how many (default: to the end)')
    .option('--output <file>', 'the file (default: standard output)')
    .action(checked(readOptions, (values, host) => read(host!, values)));
  onDisk(add('write <host>', 'copies a file to a namespace'))
    .option('--input <file>', 'the file (default: standard input)')
    .action(checked(writeOptions, (values, host) => write(host!, values)));
  add('serve', 'serves a file, a block device or memory as a namespace')
    .option('--address <ip>', 'where to listen (default: 127.0.0.1)')
    .requiredOption('--nqn <name>', "the subsystem's name")
    .option('--file <path>', 'the file or block device (default: memory)')
    .option('--size <MiB>', 'its size (default: as it is)')
    .option('--block-size <bytes>', '512 to 4096 (default: 512)')
    .option('--hosts <nqn...>', 'the hosts that may connect (default: all)')
    .action(checked(serveOptions, (values) => serve(values)));
  return nvme;

  /** An action with checked options; a command with an argument gets it first. */
  function checked<S extends z.ZodType>(
    schema: S,
    run: (values: z.output<S>, host: string | undefined) => Promise<void>,
  ): (...given: unknown[]) => Promise<void> {
    return async (...given) => {
      const host = typeof given[0] === 'string' ? given[0] : undefined;
      const values = given[host === undefined ? 0 : 1];
      const parsed = schema.safeParse(values);
      if (!parsed.success) return wrongOptions(parsed.error);
      try {
        await run(parsed.data, host === undefined ? undefined : await addressOfHost(host));
      } catch (error) {
        fail(meaningOf(error));
      }
    };
  }
}
