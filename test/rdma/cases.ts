/** What is tried on the devices of Linux guests. */
import { PATIENCE, type Program } from '../interop/process.js';
import { address, type Rig } from '../interop/rig.js';

/** The guest with this library, and the one with Linux's own programs. */
export const [OURS, THEIRS] = [2, 3];
const [ours, theirs] = [address(OURS, 4), address(THEIRS, 4)];
const onDevice = { hca: 'rdma' } as const;

export interface HcaCase {
  readonly name: string;
  readonly quick?: boolean;
  run(rig: Rig): Promise<void>;
}

const example = (rig: Rig, program: string, ...args: string[]): Program =>
  rig.nodeInGuest(OURS, onDevice, `examples/interop/${program}.js`, ...args);

/** Our program as a client of theirs. */
async function asClient(
  rig: Rig,
  server: string,
  kind: 'rdma' | 'sidr',
  port: number,
  program: string,
  ...args: string[]
): Promise<void> {
  const there = rig.guest(THEIRS, server);
  if (kind === 'rdma') await rig.listening(THEIRS, 'rdma', port);
  // Ports of datagrams are not listed; the client asks again.
  await example(rig, program, ...args).ok(PATIENCE);
  await there.ok(PATIENCE);
}

/** Our program as the server. */
async function asServer(
  rig: Rig,
  port: number,
  client: string,
  program: string,
  ...args: string[]
): Promise<void> {
  const server = example(rig, program, ...args);
  await server.line(new RegExp(`listening on port ${port}`), PATIENCE);
  await rig.guest(THEIRS, client).ok(PATIENCE);
  await server.ok(PATIENCE);
}

/**
 * Cases of the conformance suite that fail on rdma_rxe for a reason of its own.
 */
export const knownOnRxe: Readonly<Record<string, string>> = {
  'cq.notify-errors': 'rxe 6.1 checks the region of a window, not its range (rxe_resp.c, check_rkey)',
  'queue.flush-ends-connection':
    'the peer of a queue pair in ERROR learns of it by its retries alone, which take half a minute',
};

interface Line {
  readonly name: string;
  readonly outcome: string;
  readonly what?: string;
  readonly expected?: string;
  readonly got?: string;
}

/**
 * The conformance suite, one half in each guest. In one guest rdma_rxe's packets to itself stay in the queue of a pair that is in
 * ERROR, and destroying the sender waits for them for 50 seconds (rxe_pool.c, __rxe_cleanup).
 */
async function conformance(rig: Rig, spi: string, seconds: number, ...only: string[]): Promise<void> {
  const run = (guest: number, env: string, ...args: string[]): Program =>
    rig.guest(
      guest,
      `cd /app && ND_OPTIONS='{"hca":"rdma","startTimeoutMs":120000}' ${env} exec node dist/examples/nd.js conformance --spi ${spi} ${args.join(' ')}`,
      seconds,
    );
  const serving = run(THEIRS, '', '--serve', '--address', theirs);
  const line = await serving.line(/ND_CONFORMANCE_TOKEN=/, PATIENCE);
  const [, token, peer] = /(ND_CONFORMANCE_TOKEN=[0-9a-f]+) .* --peer (\S+)$/.exec(line) ?? [];
  if (token === undefined || peer === undefined)
    throw serving.failure('does not say how to start the other side');
  const program = run(OURS, token, '--address', ours, '--peer', peer, '--patience', '30', '--json', ...only);
  await program.end(seconds + 30);
  serving.stop();
  const results = program.lines
    .filter((line) => line.startsWith('{"name"'))
    .map((line) => JSON.parse(line) as Line);
  const failed = results.filter(({ outcome }) => outcome === 'failed');
  const unknown = failed.filter(({ name }) => !(name in knownOnRxe));
  const passed = results.filter(({ outcome }) => outcome === 'passed').length;
  rig.note(`${passed} of ${results.length} passed; known: ${failed.length - unknown.length}`);
  if (results.length === 0) throw program.failure('has reported no case');
  if (unknown.length === 0) return;
  const text = unknown.map(
    ({ name, what, expected, got }) => `${name}: ${what}: expected ${expected}, got ${got}`,
  );
  throw new Error(text.join('\n'));
}

/** The device is taken away while a program uses it, and comes again. */
async function removal(rig: Rig): Promise<void> {
  const server = example(rig, 'rping', '--server', '--persistent');
  await server.line(/listening/, PATIENCE);
  await rig.inGuest(OURS, 'rdma link del rxe0');
  await rig.inGuest(OURS, 'rdma link add rxe0 type rxe netdev eth0');
  server.stop('SIGTERM');
  await asClient(
    rig,
    `rping -s -C 1 -a ${theirs}`,
    'rdma',
    7174,
    'rping',
    '--client',
    '--address',
    theirs,
    '--count',
    '1',
  );
}

export const cases: readonly HcaCase[] = [
  {
    name: 'rping, we are the client',
    quick: true,
    run: (rig) =>
      asClient(
        rig,
        `rping -s -v -C 3 -a ${theirs}`,
        'rdma',
        7174,
        'rping',
        '--client',
        '--address',
        theirs,
        '--count',
        '3',
        '--validate',
      ),
  },
  {
    name: 'rping, we are the server',
    quick: true,
    run: (rig) => asServer(rig, 7174, `rping -c -V -C 3 -a ${ours}`, 'rping', '--server', '--count', '3'),
  },
  {
    name: 'ucmatose with three connections, we are the client',
    run: (rig) =>
      asClient(
        rig,
        `ucmatose -b ${theirs} -c 3 -C 4`,
        'rdma',
        7471,
        'ucmatose',
        '-s',
        theirs,
        '-b',
        ours,
        '-c',
        '3',
        '-C',
        '4',
      ),
  },
  {
    name: 'udaddy (datagrams by SIDR), we are the server',
    quick: true,
    run: (rig) => asServer(rig, 7174, `udaddy -s ${ours}`, 'udaddy', '-b', ours),
  },
  {
    name: 'conformance v2, completion queues',
    quick: true,
    run: (rig) => conformance(rig, 'v2', 240, '--only', 'cq.notify'),
  },
  { name: 'a device that is taken away and comes again', run: removal },
  { name: 'conformance v2', run: (rig) => conformance(rig, 'v2', 1800) },
  { name: 'conformance v1', run: (rig) => conformance(rig, 'v1', 1800) },
];
