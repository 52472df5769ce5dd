/** Cases of qperf's RC tests. qperf only connects by rdma_cm over IPv4, because its own handshake has LIDs but no GIDs. */

import { bothEnd, GUEST, HERE, type InteropCase } from './case.js';
import { TEST_NAMES, TESTS, type TestName } from './programs/qperf-meeting.js';
import { address, type Rig } from './rig.js';

const PORT = 19_765;
const SECONDS = 1;
const QUICK = 'server rc_bi_bw';

/** qperf's server serves one client after another until it is stopped. */
async function withServer(rig: Rig, run: () => Promise<void>): Promise<void> {
  const there = rig.guest(GUEST, 'qperf');
  await rig.listening(GUEST, 'tcp', PORT);
  try {
    await run();
    await rig.inGuest(GUEST, `qperf ${address(GUEST, 4)} quit`);
    await there.ok();
  } catch (error) {
    await rig.inGuest(GUEST, 'busybox killall -q qperf; true');
    throw new Error(`${(error as Error).message}\n${there.failure('said').message}`);
  }
}

/** qperf's result, as `latency  =  506 us`; zero is printed as 0 or omitted. */
function measured(lines: readonly string[]): string {
  const found = lines.map((line) => /(latency|bw|msg_rate) += +([0-9.]+) .*/.exec(line)).find(Boolean);
  if (!found || !(Number(found[2]) > 0)) throw new Error(`qperf has measured nothing: ${lines.join(' / ')}`);
  return found[0].replace(/ +/g, ' ');
}

const client = (test: TestName) => (rig: Rig) =>
  withServer(rig, async () => {
    const ours = rig.ours('qperf', '-t', test, '-a', address(GUEST, 4), '-T', String(SECONDS));
    rig.note((await ours.ok()).at(-1) ?? '');
  });

const server = (test: TestName) => async (rig: Rig) => {
  const ours = rig.ours('qperf');
  await ours.line(/^listening/);
  const theirs = rig.guest(GUEST, `qperf -t ${SECONDS} -cm 1 ${address(HERE, 4)} ${test}`);
  await bothEnd(theirs, ours);
  rig.note(measured(theirs.lines));
};

export const qperfCases: readonly InteropCase[] = TEST_NAMES.flatMap((test) =>
  (['client', 'server'] as const)
    // As a client, this side also checks the results of all atomics.
    .filter((role) => role === 'server' || !test.startsWith('ver_'))
    .map(
      (role): InteropCase => ({
        peer: `qperf ${test}`,
        operation: TESTS[test].bytes === 1 ? '1 byte' : `${TESTS[test].bytes.toLocaleString('en')} bytes`,
        role,
        family: 4,
        quick: `${role} ${test}` === QUICK,
        run: (role === 'client' ? client : server)(test),
      }),
    ),
);
