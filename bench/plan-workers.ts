/** Rows about many threads and processes that run at the same time. */
import { availableParallelism } from 'node:os';
import type { CrowdFigures } from './crowd/crowd.js';
import { BULK_BYTES, BULK_EVERY, type Load, type Who } from './crowd/crowd-messages.js';
import {
  type Amount,
  type Contestant,
  MEBIBYTES,
  MICROSECONDS,
  MILLIONS,
  MILLISECONDS,
  PER_SECOND,
  type Row,
  type Target,
  TCP,
  type Unit,
  US,
} from './row.js';

export function workers(amount: Amount): Row[] {
  // Long enough for each thread to get a time slice.
  const seconds = Math.max(1, 2 * amount.seconds);
  const of = (count: number, figure: 'all' | 'slowest' = 'all', across = false) =>
    ({
      by: 'networkdirect',
      job: { kind: 'workers', workers: count, of: figure, across, seconds },
    }) as const;
  const title = (text: string) => `round trips of 8 bytes between two queue pairs of each Worker, ${text}`;
  // The capacity of the machine for two: processes share nothing.
  const processes = { label: `${US}, 2 processes`, ...of(1), processes: 2 };
  const one = { label: `${US}, 1 Worker`, ...of(1) };
  const two = { label: `${US}, 2 Workers`, ...of(2) };
  const eight = { label: `${US}, 8 Workers`, ...of(8) };
  const pair = { label: `${US}, 1 pair`, ...of(1, 'all', true) };
  return [
    {
      name: 'workers pairs',
      title: 'round trips of 8 bytes between the Workers of two processes, 2 pairs of them',
      unit: MILLIONS,
      contestants: [{ label: US, ...of(2, 'all', true) }, pair],
      // A pair requires two CPUs.
      targets: [{ against: pair.label, factor: availableParallelism() >= 4 ? 1.8 : 0.9 }],
    },
    {
      name: 'workers 2',
      title: title('2 Workers'),
      unit: MILLIONS,
      contestants: [{ label: US, ...of(2) }, one, processes],
      targets: [{ against: one.label, factor: 1.8 }],
    },
    {
      name: 'workers 8',
      title: title('8 Workers'),
      unit: MILLIONS,
      contestants: [{ label: US, ...of(8) }, two],
      targets: [{ against: two.label, factor: 0.9 }],
    },
    {
      name: 'workers 8 slowest',
      title: title('the slowest of 8 Workers times 8'),
      unit: MILLIONS,
      contestants: [{ label: US, ...of(8, 'slowest') }, eight],
      targets: [{ against: eight.label, factor: 0.5 }],
    },
  ];
}

const SHARE: Unit = { text: 'of the mean', base: 1, better: 'more' };

/** The figures of a crowd, and the targets on machines with few CPUs. */
const crowdFigures: readonly {
  readonly figure: keyof CrowdFigures;
  readonly title: string;
  readonly unit: Unit;
  readonly scarce: Target;
}[] = [
  { figure: 'rate', title: 'rate', unit: PER_SECOND, scarce: { against: TCP, factor: 1.3 } },
  { figure: 'p99', title: '99th percentile', unit: MILLISECONDS, scarce: { against: TCP, factor: 1 } },
  { figure: 'slowest', title: 'the slowest connection', unit: SHARE, scarce: { factor: 0.7 } },
  {
    figure: 'processor',
    title: 'CPU time of all processes per request',
    unit: MICROSECONDS,
    scarce: { against: TCP, factor: 1 },
  },
  {
    figure: 'setUp',
    title: 'time to connect all',
    unit: MILLISECONDS,
    scarce: { against: TCP, factor: 2 },
  },
];

function crowdContestants(
  figure: keyof CrowdFigures,
  [clients, connections]: readonly [number, number],
  load: Load,
  seconds: number,
): [Contestant, ...Contestant[]] {
  const contestant = (label: string, who: Who): Contestant => ({
    label,
    by: 'crowd',
    figure,
    job: { who, clients, connections, seconds, load },
  });
  // The first contestant is the arrangement for a server with that many connections.
  const [first, second]: readonly [Contestant, Contestant] =
    load === 'mixed'
      ? [contestant(US, 'together'), contestant(`${US}, a completion queue each`, 'apart')]
      : [contestant(US, 'apart'), contestant(`${US}, one completion queue`, 'together')];
  return [first, second, contestant(TCP, 'net')];
}

/** Awaited echoes between client processes and one server, all on the available CPUs. */
export function crowds(amount: Amount): Row[] {
  const sizes = [
    [1, 1],
    [1, 50],
    [4, 25],
    [8, 25],
    [20, 50],
  ] as const;
  const rows = sizes.flatMap((size) =>
    crowdFigures.map(({ figure, title, unit, scarce }): Row => {
      const [clients, connections] = size;
      const few: Target[] = figure === 'rate' ? [{ against: TCP, factor: 2 }] : [];
      return {
        name: `crowd ${clients}x${connections} ${figure}`,
        title: `awaited echoes of 64 bytes, ${clients} × ${connections} (client processes, connections of each): ${title}`,
        unit,
        contestants: crowdContestants(figure, size, 'echo', 5 * amount.seconds),
        targets: clients > 4 ? [scarce] : few,
      };
    }),
  );
  return [...rows, ...mixedCrowd(amount)];
}

const mixedFigures: readonly {
  readonly figure: keyof CrowdFigures;
  readonly title: string;
  readonly unit: Unit;
  readonly targets?: readonly Target[];
}[] = [
  { figure: 'rate', title: 'rate', unit: PER_SECOND, targets: [{ against: TCP, factor: 1.5 }] },
  { figure: 'p50', title: 'median', unit: MILLISECONDS },
  { figure: 'p99', title: '99th percentile', unit: MILLISECONDS },
  { figure: 'slowest', title: 'the slowest connection', unit: SHARE, targets: [{ factor: 0.5 }] },
  { figure: 'slowestOfLink', title: 'the slowest connection among those of its link', unit: SHARE },
  { figure: 'wire', title: 'the mean connection over the wire', unit: SHARE },
  { figure: 'processor', title: 'CPU time of all processes per request', unit: MICROSECONDS },
  { figure: 'memory', title: 'memory of all processes', unit: MEBIBYTES },
  { figure: 'setUp', title: 'time to connect all', unit: MILLISECONDS },
];

/** A thousand connections to one server, half of this library's over the wire. One request in a hundred also requests bulk data. */
function mixedCrowd(amount: Amount): Row[] {
  const bulk = `one in ${BULK_EVERY} with ${BULK_BYTES >> 10} KiB`;
  return mixedFigures.map(({ figure, title, unit, targets = [] }) => ({
    name: `crowd mixed ${figure}`,
    title: `awaited replies of 64 bytes, ${bulk}, 20 × 50, half over the wire: ${title}`,
    unit,
    contestants: crowdContestants(figure, [20, 50], 'mixed', 10 * amount.seconds),
    targets,
  }));
}
