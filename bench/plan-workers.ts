/** Rows about many threads and processes at once. */
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
  // Long enough for a turn of each.
  const seconds = Math.max(1, 2 * amount.seconds);
  const of = (count: number, figure: 'all' | 'slowest' = 'all', across = false) =>
    ({
      by: 'networkdirect',
      job: { kind: 'workers', workers: count, of: figure, across, seconds },
    }) as const;
  const title = (text: string) => `round trips of 8 bytes between two queue pairs of each Worker, ${text}`;
  // What the machine has for two: processes share nothing.
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
      // A pair needs two processors.
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

/** The figures of a crowd, and the targets where the processors are scarce. */
const crowdFigures: readonly {
  readonly figure: keyof CrowdFigures;
  readonly title: string;
  readonly unit: Unit;
  readonly scarce: Target;
}[] = [
  { figure: 'rate', title: 'rate', unit: PER_SECOND, scarce: { against: TCP, factor: 1.3 } },
  { figure: 'p99', title: '99 of 100 within', unit: MILLISECONDS, scarce: { against: TCP, factor: 1 } },
  { figure: 'slowest', title: 'the slowest connection', unit: SHARE, scarce: { factor: 0.7 } },
  {
    figure: 'processor',
    title: 'processor time of all processes for each',
    unit: MICROSECONDS,
    scarce: { against: TCP, factor: 1 },
  },
  {
    figure: 'setUp',
    title: 'until all connections are there',
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
  // The first contestant is the way that a server of so many connections takes.
  const [first, second]: readonly [Contestant, Contestant] =
    load === 'mixed'
      ? [contestant(US, 'together'), contestant(`${US}, a completion queue each`, 'apart')]
      : [contestant(US, 'apart'), contestant(`${US}, one completion queue`, 'together')];
  return [first, second, contestant(TCP, 'net')];
}

/** Awaited echoes between client processes and one server, all on as many processors as there are. */
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
  { figure: 'p50', title: 'half within', unit: MILLISECONDS },
  { figure: 'p99', title: '99 of 100 within', unit: MILLISECONDS },
  { figure: 'slowest', title: 'the slowest connection', unit: SHARE, targets: [{ factor: 0.5 }] },
  { figure: 'slowestOfLink', title: 'the slowest connection among those of its link', unit: SHARE },
  { figure: 'wire', title: 'the mean connection by the wire', unit: SHARE },
  { figure: 'processor', title: 'processor time of all processes for each', unit: MICROSECONDS },
  { figure: 'memory', title: 'memory of all processes', unit: MEBIBYTES },
  { figure: 'setUp', title: 'until all connections are there', unit: MILLISECONDS },
];

/** A thousand connections to one server, half of this library's by the wire; one request in a hundred is for bulk data as well. */
function mixedCrowd(amount: Amount): Row[] {
  const bulk = `one in ${BULK_EVERY} with ${BULK_BYTES >> 10} KiB`;
  return mixedFigures.map(({ figure, title, unit, targets = [] }) => ({
    name: `crowd mixed ${figure}`,
    title: `awaited answers of 64 bytes, ${bulk}, 20 × 50, half by the wire: ${title}`,
    unit,
    contestants: crowdContestants(figure, [20, 50], 'mixed', 10 * amount.seconds),
    targets,
  }));
}
