/** Cases of the matrix with the programs of perftest: bandwidth and latency of every RC operation. */
import {
  askGuest,
  GUEST,
  gidIndex,
  HERE,
  type InteropCase,
  serveGuest,
  TCP_PORT,
  withNetem,
} from './case.js';
import { address, type Rig } from './rig.js';

const ITERATIONS = '200';

interface Variant {
  readonly test: string;
  readonly operation: string;
  /** Options of both sides. */
  readonly flags: readonly string[];
  /** This library's role in the short run with rdma_cm. */
  readonly quick?: 'client' | 'server';
}

const size = (bytes: number): readonly string[] => ['-s', String(bytes)];
const VARIANTS: readonly Variant[] = [
  { test: 'send_bw', operation: '65,536 bytes', flags: [], quick: 'server' },
  { test: 'send_lat', operation: '2 bytes', flags: [] },
  { test: 'write_bw', operation: '5,000 bytes', flags: size(5000), quick: 'client' },
  { test: 'write_lat', operation: '2 bytes', flags: [], quick: 'server' },
  { test: 'read_bw', operation: '65,536 bytes', flags: [] },
  { test: 'read_lat', operation: '3,001 bytes', flags: size(3001) },
  { test: 'atomic_bw', operation: 'fetch and add', flags: ['-A', 'FETCH_AND_ADD'], quick: 'client' },
  { test: 'atomic_bw', operation: 'compare and swap', flags: ['-A', 'CMP_AND_SWAP'] },
  { test: 'atomic_lat', operation: 'fetch and add', flags: ['-A', 'FETCH_AND_ADD'] },
  { test: 'atomic_lat', operation: 'compare and swap', flags: ['-A', 'CMP_AND_SWAP'] },
];

const ours = (rig: Rig, { test, flags }: Variant, ...more: string[]) =>
  rig.ours('perftest', '-t', test, '-n', ITERATIONS, ...flags, ...more);
const theirs = ({ test, flags }: Variant, ...more: string[]): string =>
  [`ib_${test}`, '-d', 'rxe0', '-n', ITERATIONS, ...flags, ...more].join(' ');

/** Both roles, connected by rdma_cm, which perftest only supports over IPv4. */
function byRdmaCm(variant: Variant): InteropCase[] {
  const { test, operation, quick } = variant;
  const common = { peer: `ib_${test} -R`, operation, family: 4 } as const;
  return [
    {
      ...common,
      role: 'client',
      quick: quick === 'client',
      run: (rig) =>
        askGuest(rig, theirs(variant, '-R'), 'rdma', TCP_PORT, () =>
          ours(rig, variant, '-R', '-a', address(GUEST, 4)),
        ),
    },
    {
      ...common,
      role: 'server',
      quick: quick === 'server',
      run: (rig) => serveGuest(rig, ours(rig, variant, '-R'), theirs(variant, '-R', address(HERE, 4))),
    },
  ];
}

/**
 * Both roles, with queue pairs that are connected without RDMA CM. The TCP connection uses IPv4, and the queue pairs' addresses have the
 * given family.
 */
function byTcp(variant: Variant, family: 4 | 6): InteropCase[] {
  const { test, operation } = variant;
  const common = { peer: `ib_${test}`, operation, family } as const;
  const gid = ['-x', String(gidIndex(family))];
  const local = ['-I', address(HERE, family)];
  return [
    {
      ...common,
      role: 'client',
      run: (rig) =>
        askGuest(rig, theirs(variant, ...gid), 'tcp', TCP_PORT, () =>
          ours(rig, variant, ...local, '-a', address(GUEST, 4)),
        ),
    },
    {
      ...common,
      role: 'server',
      run: (rig) => serveGuest(rig, ours(rig, variant, ...local), theirs(variant, ...gid, address(HERE, 4))),
    },
  ];
}

/** Data in one direction over a link that loses packets. */
function withLoss(variant: Variant): InteropCase[] {
  return byRdmaCm(variant).map((one) => ({
    ...one,
    loss: '1 % lost',
    quick: false,
    run: (rig) => withNetem(rig, 'loss 1%', () => one.run(rig)),
  }));
}

const named = (test: string): Variant => VARIANTS.find((one) => one.test === test)!;

export const perftestCases: readonly InteropCase[] = [
  ...VARIANTS.flatMap(byRdmaCm),
  ...['send_bw', 'write_bw', 'read_bw', 'atomic_bw'].flatMap((test) => byTcp(named(test), 6)),
  ...['send_lat', 'write_lat', 'read_lat', 'atomic_lat'].flatMap((test) => byTcp(named(test), 4)),
  ...['send_lat', 'read_lat'].flatMap((test) => withLoss(named(test))),
];
