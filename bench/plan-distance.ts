/** Rows over a link with delay, compared with TCP of `node:net` on the same link. They require root. */

import type { LinkShape } from './distance/delayed-link.js';
import type { DistanceJob } from './distance/distance.js';
import { type Amount, MEGABYTES, MIB, type Row, SHARE, TCP, US } from './row.js';

const IN_FLIGHT = 64;
/** Seconds of one measurement at scale 1. */
const LENGTH = 10;
const unlimited = { rateMbit: 0, lossPerMille: 0, queue: 20_000 };
const roundTrips = [1, 4, 20, 100];

export function distanceRows(amount: Amount): Row[] {
  const shaped = (roundTripMs: number, lossPerMille = 0) => ({ ...unlimited, roundTripMs, lossPerMille });
  return [
    ...[0, 1, 10].flatMap((loss) => roundTrips.map((ms) => alone(amount, 'write', shaped(ms, loss)))),
    ...[4, 20].map((ms) => alone(amount, 'read', shaped(ms))),
    ...[1, 10].flatMap((loss) => [4, 20].map((ms) => alone(amount, 'read', shaped(ms, loss)))),
    alone(amount, 'write', { roundTripMs: 4, rateMbit: 1000, lossPerMille: 0, queue: 200 }),
    beside(amount, { roundTripMs: 4, rateMbit: 1000, lossPerMille: 0, queue: 200 }, 'cubic'),
    beside(amount, { roundTripMs: 4, rateMbit: 1000, lossPerMille: 0, queue: 200 }),
  ];
}

function nameOf({ roundTripMs, lossPerMille, rateMbit, queue }: LinkShape): string {
  const rate = rateMbit === 0 ? [] : [`${rateMbit} Mbit`, `queue ${queue}`];
  return [`${roundTripMs} ms`, ...(lossPerMille === 0 ? [] : [`${lossPerMille / 10} %`]), ...rate].join(' ');
}

function titleOf({ roundTripMs, lossPerMille, rateMbit, queue }: LinkShape): string {
  const loss = lossPerMille === 0 ? '' : `, ${lossPerMille / 10} % of packets lost`;
  const rate = rateMbit === 0 ? '' : `, ${rateMbit / 1000} Gbit/s, a queue of ${queue} packets`;
  return `round trip ${roundTripMs} ms${loss}${rate}`;
}

const job = (amount: Amount, kind: 'write' | 'read', link: LinkShape, who: DistanceJob['who']) =>
  ({ link, kind, size: MIB, inFlight: IN_FLIGHT, seconds: LENGTH * amount.seconds, who }) as const;

function alone(amount: Amount, kind: 'write' | 'read', link: LinkShape): Row {
  return {
    name: `distance ${kind} ${nameOf(link)}`,
    title: `RDMA ${kind === 'write' ? 'Write' : 'Read'} 1 MiB, ${titleOf(link)}`,
    unit: MEGABYTES,
    contestants: [
      { label: US, by: 'distance', job: job(amount, kind, link, 'ours') },
      { label: TCP, by: 'distance', job: job(amount, kind, link, 'theirs') },
    ],
    targets: [{ against: TCP, factor: link.lossPerMille === 0 ? 0.9 : 1 }],
  };
}

function beside(amount: Amount, link: LinkShape, control?: 'cubic'): Row {
  const tcp = `${TCP} beside it`;
  const kind = control === undefined ? '' : `${control} `;
  return {
    name: `distance beside ${kind}${nameOf(link)}`,
    title: `RDMA Write 1 MiB and a TCP stream ${kind === '' ? '' : `(${kind.trim()}) `}at once, ${titleOf(link)}`,
    unit: SHARE,
    contestants: [
      {
        label: US,
        by: 'distance',
        job: { ...job(amount, 'write', link, 'ours beside theirs'), tcp: control },
      },
      {
        label: tcp,
        by: 'distance',
        job: { ...job(amount, 'write', link, 'theirs beside ours'), tcp: control },
      },
    ],
    targets: [{ factor: 35 }, { of: tcp, factor: 35 }],
  };
}
