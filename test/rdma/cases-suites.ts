/** Complete suites on a device: the conformance suite between two guests, and this package's WinVerbs tests within one. */
import { type Program, TIMEOUT_SECONDS } from '../interop/process.js';
import type { Rig } from '../interop/rig.js';
import { type Device, OURS, onDevice, type RdmaCase, rxe, THEIRS } from './case.js';

/** Cases that fail because of the device, by the start of their names, with the reason. */
type Known = Readonly<Record<string, string>>;

const knownOf = (known: Known, name: string): string | undefined =>
  Object.entries(known).find(([start]) => name.startsWith(start))?.[1];

interface Line {
  readonly name: string;
  readonly outcome: string;
  readonly what?: string;
  readonly expected?: string;
  readonly got?: string;
}

/** A suite's program that runs for more seconds than this counts as hanging. Each case has its own time limit. */
const SUITE_SECONDS = 900;

interface Suite {
  readonly device: Device;
  readonly spi: 'v1' | 'v2';
  readonly known: Known;
  /** Time limit of the suite for steps that should take no time, in seconds. */
  readonly stepTimeout: number;
  readonly only?: string;
}

/** Judges a suite's results. Failures must be known, and for each known one, at least one case must have failed if any ran. */
function judge(rig: Rig, known: Known, program: Program, results: readonly Line[]): void {
  const failed = results.filter(({ outcome }) => outcome === 'failed');
  const unknown = failed.filter(({ name }) => knownOf(known, name) === undefined);
  const passed = results.filter(({ outcome }) => outcome === 'passed').length;
  rig.note(`${passed} of ${results.length} passed; known: ${failed.length - unknown.length}`);
  if (results.length === 0) throw program.failure('has reported no case');
  const text = unknown.map(
    ({ name, what, expected, got }) => `${name}: ${what}: expected ${expected}, got ${got}`,
  );
  for (const start of Object.keys(known)) {
    const ran = results.filter(({ name, outcome }) => name.startsWith(start) && outcome !== 'skipped');
    if (ran.length === 0 || ran.some(({ outcome }) => outcome === 'failed')) continue;
    if (start in knownOfSpeed) rig.note(`${start}: passed this time`);
    else text.push(`${start}: passes, although it is listed as failing: ${known[start]}`);
  }
  if (text.length > 0) throw new Error(text.join('\n'));
}

/**
 * The conformance suite, one half in each guest. In one guest rdma_rxe's packets to itself stay in the queue of a pair that is in
 * ERROR, and destroying the sender waits for them for 50 seconds (rxe_pool.c:247, __rxe_cleanup).
 */
async function conformance(rig: Rig, { device, spi, known, stepTimeout, only }: Suite): Promise<void> {
  const script = 'nd/cli/nd.js';
  const run = (guest: number, ...args: string[]): Program =>
    rig.nodeInGuestFor(guest, SUITE_SECONDS, onDevice, script, 'conformance', '--spi', spi, ...args);
  const serving = run(THEIRS, '--serve', '--address', device.at(THEIRS));
  const line = await serving.line(/ND_CONFORMANCE_TOKEN=/, TIMEOUT_SECONDS);
  const [, token, peer] = /ND_CONFORMANCE_TOKEN=([0-9a-f]+) .* --peer (\S+)$/.exec(line) ?? [];
  if (token === undefined || peer === undefined)
    throw serving.failure('does not say how to start the other side');
  const program = run(
    OURS,
    ...[
      '--token',
      token,
      '--address',
      device.at(OURS),
      '--peer',
      peer,
      '--step-timeout',
      String(stepTimeout),
      '--json',
    ],
    ...(only === undefined ? [] : ['--only', `'${only}'`]),
  );
  const code = await program.end(SUITE_SECONDS + 30);
  serving.stop();
  const results = program.lines
    .filter((line) => line.startsWith('{"name"'))
    .map((line) => JSON.parse(line) as Line);
  judge(rig, known, program, results);
  if (code > 1) throw program.failure(`ended with exit code ${code}`);
}

/** Observations with rdma_rxe. References are to drivers/infiniband/sw/rxe (and core/cma.c) of Debian's linux-source-6.1 6.1.192-2. */
const windowRange =
  'the range of a window is not checked, only that of its region (rxe_resp.c:508, check_rkey)';

const deadReceive =
  'a Receive whose memory may not be written ends as a malformed request: LOC_QP_OP_ERR (rxe_resp.c:557, send_data_in)';
const boundWindow =
  'a window stays bound to its region until its queue pair has ended, as IBA 1 §10.6.7.2.6 specifies (rxe_mr.c:608, rxe_dereg_mr)';

/** Cases that fail in slow guests and pass in fast ones. */
const knownOfSpeed: Known = {
  'transfer.read-fence': '256 MB within a minute are more than an emulated guest transfers',
  'queue.flush-ends-connection':
    'packets to a queue pair in ERROR are dropped (rxe_recv.c:42, check_type_state), so the peer learns of it from its retries, which take half a minute',
};

/** The conformance suite's cases that fail because of rdma_rxe. */
const knownOnRxe: Known = {
  ...knownOfSpeed,
  'cq.notify-errors': windowRange,
  'memory.window-one-byte-': windowRange,
  'memory.window-across-': windowRange,
  'memory.window-before-': windowRange,
  'disconnect.error-ends-both': windowRange,
  'transfer.receive-too-short':
    'a Receive that is too short ends as a malformed request (rxe_mr.c:383, copy_data)',
  'memory.send-and-invalidate-unknown':
    'a Send whose key cannot be invalidated is acknowledged before its queue pair ends (rxe_resp.c:1415, class J)',
  'v2.no-local-write': deadReceive,
  'cq.overrun-by-sends':
    "the device's queue is longer than the program's (hca/verbs/completion_queues.cc), so an overrun shows when results are requested",
  'memory.window-dies-with-': boundWindow,
  "connect.listener's-port-for-connectors":
    'librdmacm binds nothing to the port of a listener; connectors are at another (cma.c:3748, cma_check_port)',
};

/** The same for v2, which reports the reason of a failed Receive. v1 only reports the failure. */
const knownOnRxe2: Known = {
  ...knownOnRxe,
  'memory.deregister-under-receive': deadReceive,
  'memory.receive-local-one-byte-beyond': deadReceive,
  'memory.receive-local-far-beyond': deadReceive,
  'disconnect.local-error-ends-both': deadReceive,
};

const onRxe = { device: rxe, stepTimeout: 20 } as const;

/** A test file of this package, with both sides on one device. */
async function tests(rig: Rig, device: Device, file: string, known: Known): Promise<void> {
  const script = 'test/rdma/programs/tests.js';
  const program = rig.nodeInGuestFor(OURS, SUITE_SECONDS, onDevice, script, device.at(OURS), file);
  await program.end(SUITE_SECONDS + 30);
  const total = Number(program.lines.map((line) => /Total: +(\d+)/.exec(line)?.[1]).find(Boolean) ?? 0);
  const failed = program.lines.flatMap((line) => /^\s*FAIL\s+(?:\S+\s+)?"(.*)"$/.exec(line)?.[1] ?? []);
  const unknown = failed.filter((name) => knownOf(known, name) === undefined);
  rig.note(`${total - failed.length} of ${total} passed; known: ${failed.length - unknown.length}`);
  if (total === 0) throw program.failure('has run no test');
  if (unknown.length > 0) throw new Error(`${unknown.join('\n')}\n${program.lines.join('\n')}`);
}

/** Failures of the WinVerbs tests on rdma_rxe, by the test's name. */
const knownTests: Known = {};

export const suiteCases: readonly RdmaCase[] = [
  ...['winverbs-loopback', 'winverbs-srq', 'winverbs-whole'].map(
    (file): RdmaCase => ({
      name: `${rxe.name}: ${file}`,
      run: (rig) => tests(rig, rxe, file, knownTests),
    }),
  ),
  {
    name: `${rxe.name}: conformance v2, notification`,
    quick: true,
    run: (rig) => conformance(rig, { ...onRxe, known: knownOnRxe2, spi: 'v2', only: 'cq.notify' }),
  },
  {
    name: `${rxe.name}: conformance v2`,
    run: (rig) => conformance(rig, { ...onRxe, known: knownOnRxe2, spi: 'v2' }),
  },
  {
    name: `${rxe.name}: conformance v1`,
    run: (rig) => conformance(rig, { ...onRxe, known: knownOnRxe, spi: 'v1' }),
  },
];
