/** Both sides of Valkey over RDMA: valkey-server and rdma-test in a guest, and examples/valkey on this side. */
import type { Program } from './process.js';
import type { Rig } from './rig.js';

export const VALKEY_PORT = 6379;
/** Time limit of a server in seconds. */
const LONG = 600;
/** Size in bytes of the server's buffer for each client by default, and the minimum. */
const DEFAULT_BYTES = 1 << 20;
const LEAST_BYTES = 1 << 16;
/** The server's log after a failed assertion or a crash. */
const CRASHED = /VALKEY BUG REPORT START/;

/** A behaviour of programs/valkey.ts. */
interface Behaviour {
  readonly name: string;
  readonly operation: string;
  readonly bufferBytes?: number;
  /** Whether valkey-server 8.1.1 may crash because of its own defect (docs/reference/interop.md). */
  readonly mayCrash?: true;
}

export const valkeyBehaviours: readonly Behaviour[] = [
  { name: 'pipelines', operation: 'pipelines of 10,000 commands' },
  {
    name: 'crossings',
    operation: 'values of 1 byte to 8 MiB across the ends of buffers',
    bufferBytes: LEAST_BYTES,
  },
  { name: 'blocked-pops', operation: 'blocked pops' },
  { name: 'publications', operation: 'pub/sub' },
  { name: 'monitor', operation: 'MONITOR with a slow reader' },
  { name: 'given-up', operation: 'more replies than the server keeps', mayCrash: true },
  { name: 'many-clients', operation: '100 clients', bufferBytes: LEAST_BYTES },
  { name: 'killed-clients', operation: 'CLIENT KILL' },
];

/** The guest with valkey-server, and a function that starts clients. */
export interface ValkeyEnds {
  readonly rig: Rig;
  readonly guest: number;
  /** The address of the guest. */
  readonly address: string;
  /** Starts programs/valkey.ts. */
  client(...args: string[]): Program;
}

async function start({ rig, guest, address }: ValkeyEnds, bufferBytes = DEFAULT_BYTES): Promise<Program> {
  const rdma = `--rdma-port ${VALKEY_PORT} --rdma-bind ${address} --rdma-rx-size ${bufferBytes}`;
  const server = rig.guest(
    guest,
    `cd /tmp && exec valkey-server --port 0 ${rdma} --protected-mode no --save ''`,
    LONG,
  );
  await server.line(/Ready to accept connections rdma/);
  return server;
}

const kill = ({ rig, guest }: ValkeyEnds) =>
  rig.inGuest(guest, 'busybox killall -q -KILL valkey-server; true');

const clientOf = ({ client, address }: ValkeyEnds, name: string, bufferBytes = DEFAULT_BYTES): Program =>
  client(name, address, String(VALKEY_PORT), String(bufferBytes));

/** Waits until the client has succeeded. Its server continues until it is killed. */
async function bothWell(ends: ValkeyEnds, client: Program, server: Program, mayCrash = false): Promise<void> {
  try {
    for (const line of await client.ok()) ends.rig.note(line);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${server.failure('said').message}`);
  }
  await kill(ends);
  await server.end();
  if (!server.lines.some((line) => CRASHED.test(line))) return;
  if (!mayCrash) throw server.failure('has crashed');
  ends.rig.note('valkey-server has crashed');
}

/** Calls `run` in a guest that has valkey-server, and ends the servers that are still running afterwards. */
async function prepared(ends: ValkeyEnds, run: () => Promise<void>): Promise<void> {
  await ends.rig.addValkey(ends.guest);
  try {
    await run();
  } finally {
    await kill(ends);
  }
}

/** Runs a behaviour with its own server. */
export const behaves = (ends: ValkeyEnds, { name, bufferBytes, mayCrash }: Behaviour): Promise<void> =>
  prepared(ends, async () => {
    const server = await start(ends, bufferBytes);
    await bothWell(ends, clientOf(ends, name, bufferBytes), server, mayCrash);
  });

/** The server is killed while a client works, and restarted. */
export const survives = (ends: ValkeyEnds): Promise<void> =>
  prepared(ends, async () => {
    await start(ends);
    const client = clientOf(ends, 'survive');
    await client.line(/^working/);
    await kill(ends);
    await client.line(/^lost/);
    await bothWell(ends, client, await start(ends));
  });

/** A defect of valkey-server 8.1.1 (docs/reference/interop.md). This case fails if the defect is fixed. */
export const crashes = (ends: ValkeyEnds): Promise<void> =>
  prepared(ends, async () => {
    const server = await start(ends);
    await clientOf(ends, 'leaves').line(/^the server is gone/);
    await server.line(CRASHED);
    ends.rig.note('valkey-server has crashed, as it is known to');
  });

/**
 * On a device without Write with immediate data, our client reports this before it connects. Upstream's client fails. Neither harms the
 * server.
 */
export const refused = (ends: ValkeyEnds): Promise<void> =>
  prepared(ends, async () => {
    const { rig, guest, address } = ends;
    const server = await start(ends);
    const theirs = rig.guest(guest, `rdma-test -h ${address} -p ${VALKEY_PORT}`);
    // Which of its steps fails first depends on which side is faster (docs/reference/interop.md).
    rig.note(await theirs.line(/connect failed|RDMA write failed|read timeout/));
    await theirs.end();
    const ours = clientOf(ends, 'refused');
    await bothWell(ends, ours, server);
    if (ours.lines.includes('connected')) throw ours.failure('has connected');
  });

/**
 * Runs rdma-test in a guest against our server, with one connection for each thread. Requires an idle machine, because rdma-test aborts
 * when a connection or a reply takes longer than a second.
 */
export async function judged(
  rig: Rig,
  guest: number,
  address: string,
  server: Program,
  { threads, runs, keys = '' }: { readonly threads: number; readonly runs: number; readonly keys?: string },
): Promise<void> {
  await rig.addValkey(guest);
  await server.line(/^port/);
  const begun = performance.now();
  for (let run = 1; run <= runs; run += 1) {
    const test = rig.guest(guest, `rdma-test -h ${address} -p ${VALKEY_PORT} -t ${threads} ${keys}`, LONG);
    try {
      await test.ok(LONG);
    } catch (error) {
      throw new Error(`Run ${run}: ${(error as Error).message}\n${server.failure('said').message}`);
    }
    if (!test.lines.includes('Valkey Over RDMA test [OK]')) throw test.failure('does not report success');
  }
  rig.note(`${runs} runs of rdma-test, ${((performance.now() - begun) / 1000 / runs).toFixed(0)} s each`);
}
