/** Cases against Linux's own programs, on a device of the guests. */
import { asClient, asServer, type Device, type Meeting, OURS, type RdmaCase, THEIRS } from './case.js';

/** Ports on which the programs listen. */
const [RPING, CMA, PERFTEST] = [7174, 7471, 18_515];
/** rping's programs report the peer's disconnect as an error of their last wait. */
const RPING_ENDS = [0, 255];

interface Peer {
  readonly name: string;
  readonly quick?: true;
  /** Undefined: we are the server. */
  readonly port?: number;
  /** Linux's program, and our counterpart. */
  readonly ends: (ours: string, theirs: string, device: Device) => Meeting;
}

/** Programs that run on every device. */
const connections: readonly Peer[] = [
  {
    name: 'rping -s',
    quick: true,
    port: RPING,
    ends: (ours, theirs) => ({
      theirs: `rping -s -v -C 3 -a ${theirs}`,
      ours: ['rping', '-c', '-a', theirs, '-I', ours, '-C', '3', '-V'],
      ends: RPING_ENDS,
    }),
  },
  {
    name: 'rping -c',
    quick: true,
    ends: (ours) => ({
      theirs: `rping -c -V -C 3 -a ${ours}`,
      ours: ['rping', '-s', '-C', '3'],
      ends: RPING_ENDS,
    }),
  },
  {
    name: 'ucmatose with three connections, as the server',
    port: CMA,
    ends: (ours, theirs) => ({
      theirs: `ucmatose -b ${theirs} -c 3 -C 4`,
      ours: ['ucmatose', '-s', theirs, '-b', ours, '-c', '3', '-C', '4'],
    }),
  },
  {
    name: 'ucmatose with three connections, as the client',
    ends: (ours) => ({
      theirs: `ucmatose -s ${ours} -c 3 -C 4`,
      ours: ['ucmatose', '-b', ours, '-c', '3', '-C', '4'],
    }),
  },
  {
    name: 'rdma_server',
    port: CMA,
    ends: (ours, theirs) => ({
      theirs: 'rdma_server',
      ours: ['rdma-client', '-s', theirs, '-I', ours],
    }),
  },
  {
    name: 'rdma_client',
    ends: (ours) => ({ theirs: `rdma_client -s ${ours}`, ours: ['rdma-client', '-I', ours] }),
  },
];

const perftest = (test: string, role: 'client' | 'server', ...flags: string[]): Peer => ({
  name: `ib_${test} -R, as the ${role}`,
  ...(role === 'server' ? { port: PERFTEST } : {}),
  ends: (ours, theirs, { name }) => {
    const all = ['-n', '200', ...flags, '-R'];
    const there = ['-d', name, ...all, ...(role === 'client' ? [ours] : [])];
    return {
      theirs: `ib_${test} ${there.join(' ')}`,
      ours: ['perftest', '-t', test, ...all, ...(role === 'server' ? ['-a', theirs] : ['-I', ours])],
    };
  },
});

const qperfClient = (test: string): Peer => ({
  name: `qperf ${test}, as the client`,
  ends: (ours) => ({ theirs: `qperf -t 1 -cm 1 ${ours} ${test}`, ours: ['qperf', '-I', ours] }),
});

/** Programs for features of RoCE that iWARP lacks: datagrams, atomics, immediate data. */
const roceOnly: readonly Peer[] = [
  {
    name: 'udaddy (datagrams by SIDR), as the client',
    quick: true,
    ends: (ours) => ({ theirs: `udaddy -s ${ours}`, ours: ['udaddy', '-b', ours] }),
  },
  {
    name: 'udaddy (datagrams by SIDR), as the server',
    port: 0,
    ends: (ours, theirs) => ({ theirs: `udaddy -b ${theirs}`, ours: ['udaddy', '-s', theirs, '-b', ours] }),
  },
  perftest('send_lat', 'client'),
  perftest('send_bw', 'server', '-s', '65536'),
  perftest('write_lat', 'client'),
  perftest('atomic_bw', 'server', '-A', 'FETCH_AND_ADD'),
  perftest('atomic_bw', 'client', '-A', 'CMP_AND_SWAP'),
  qperfClient('rc_lat'),
  qperfClient('rc_rdma_read_bw'),
  qperfClient('rc_compare_swap_mr'),
];

/** perftest's tests that every device supports. */
const transfers: readonly Peer[] = [
  perftest('write_bw', 'server', '-s', '5000'),
  perftest('read_bw', 'server', '-s', '65536'),
  perftest('read_lat', 'client', '-s', '3001'),
];

/** One connection for each of many queue pairs, all at the same time. */
const MANY = 200;
const many: readonly Peer[] = [
  {
    name: `ucmatose with ${MANY} connections, as the server`,
    port: CMA,
    ends: (ours, theirs) => ({
      theirs: `ucmatose -b ${theirs} -c ${MANY} -C 2`,
      ours: ['ucmatose', '-s', theirs, '-b', ours, '-c', String(MANY), '-C', '2'],
    }),
  },
  {
    name: `ucmatose with ${MANY} connections, as the client`,
    ends: (ours) => ({
      theirs: `ucmatose -s ${ours} -c ${MANY} -C 2`,
      ours: ['ucmatose', '-b', ours, '-c', String(MANY), '-C', '2'],
    }),
  },
];

const caseOf =
  (device: Device, ready: RdmaCase['run'], quickToo: boolean) =>
  ({ name, quick, port, ends }: Peer): RdmaCase => ({
    name: `${device.name}: ${name}`,
    quick: quickToo && quick === true,
    run: async (rig) => {
      await ready(rig);
      const meeting = ends(device.at(OURS), device.at(THEIRS), device);
      await (port === undefined ? asServer(rig, meeting) : asClient(rig, device, meeting, port));
    },
  });

/** Cases on RoCE. */
export const roceCases = (device: Device, ready: RdmaCase['run']): readonly RdmaCase[] =>
  [...connections, ...roceOnly, ...transfers, ...many].map(caseOf(device, ready, true));

/**
 * Cases on iWARP, which require an idle machine. If other programs keep it busy, connections of siw hang: Linux's rping hung in 23 of 25
 * runs, with itself on both sides. In these cases, the connecting side sends first. In ucmatose, the server sends first, in Linux's program
 * and in ours. If its message arrives before the other side has read the MPA reply, that side gives up (siw_cm.c:569, siw_recv_mpa_rr).
 */
export const iwarpCases = (device: Device, ready: RdmaCase['run']): readonly RdmaCase[] =>
  [...connections, ...transfers]
    .filter(({ name }) => !name.startsWith('ucmatose'))
    .map((peer) => ({ ...peer, name: `${peer.name} (idle machine)` }))
    .map(caseOf(device, ready, false));
