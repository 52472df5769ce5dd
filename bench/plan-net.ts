/**
 * Rows of `networkdirect/net`, compared with `node:net` and, for requests, with zeromq and a MessagePort: requests, echoes, streams, files,
 * connections.
 */
import type { NetJobInput } from './net/job.js';
import {
  type Amount,
  GIGABYTES,
  MESSAGE_PORT,
  MIB,
  MICROSECONDS,
  PER_SECOND,
  type Row,
  TCP,
  UNIX,
  type Unit,
  US,
  ZEROMQ,
} from './row.js';

/** Size of a file at scale 1: 1 GiB. */
const FILE_MIB = 1024;
const STREAM_MIB = 512;
const LEAST_MIB = 16;
/** A warm-up long enough for V8 to compile the code of requests, even together with a busy loop. */
const WARM_UP = 20_000;
/** Live objects of the program, because a heap of this size is collected less often. */
const LIVE_MIB = 20;
const KIB = 1024;

type Figure = 'rate' | 'cold' | 'processor';

/** Target for a request of each size, as a factor over UNIX sockets. */
const SIZES: readonly (readonly [size: number, factor: number])[] = [
  [64, 3],
  [4000, 2],
  [5000, 2],
  [64 * KIB, 1.2],
  [MIB, 1],
];

export function netRows(amount: Amount): Row[] {
  return [
    ...[false, true].flatMap((busy) => [
      ...[1, 1000].flatMap((inFlight) => [
        request(amount, inFlight, 'rate', busy),
        request(amount, inFlight, 'cold', busy),
        request(amount, inFlight, 'processor', busy),
      ]),
      stream(amount, 'a Duplex, writes of 64 KiB', { kind: 'stream', busy }, busy ? 1.2 : 1),
      stream(amount, 'a Duplex, the first bytes of new processes', { kind: 'stream', busy, figure: 'cold' }),
      stream(amount, 'a file copied into a file', { kind: 'copy', busy }, 1),
    ]),
    ...SIZES.filter(([size]) => size !== 64).map(([size, factor]) => long(amount, size, factor)),
    stream(amount, 'a Duplex, and 20 MiB of live objects', { kind: 'stream', liveMib: LIVE_MIB }, 1),
    stream(amount, 'onread, writes of 64 KiB', { kind: 'onread' }, 1.3),
    row(
      'net echo',
      '64 bytes of a stream that come back, awaited',
      { kind: 'echo', seconds: amount.seconds, warmUp: amount.warmUp(WARM_UP) },
      PER_SECOND,
      10,
    ),
    ...[1, 100].map((inFlight) => connections(amount, inFlight)),
    ...[3, 30].flatMap((subscribers) => [64, 64 * KIB].map((size) => broadcast(amount, subscribers, size))),
  ];
}

function request(amount: Amount, inFlight: number, figure: Figure, busy: boolean): Row {
  const what = `requests of 64 bytes, ${inFlight} in flight`;
  const name = `net request ${inFlight}`;
  const { seconds } = amount;
  const warmUp = amount.warmUp(WARM_UP);
  const job = { kind: 'request', inFlight, figure, seconds, warmUp, busy } as const;
  if (figure === 'rate') return row(name, what, job, PER_SECOND, 3);
  return figure === 'cold'
    ? row(`${name} cold`, `${what}: the first ${warmUp} of new processes`, job, PER_SECOND)
    : row(`${name} processor`, `${what}: CPU time of both sides per request`, job, MICROSECONDS, 1);
}

/** Awaited requests of many bytes. */
function long(amount: Amount, size: number, factor: number): Row {
  const warmUp = amount.warmUp(Math.min(WARM_UP, (WARM_UP * 4000) / size));
  return row(
    `net request of ${size}`,
    `requests of ${size} bytes, awaited`,
    { kind: 'request', size, seconds: amount.seconds, warmUp },
    PER_SECOND,
    factor,
  );
}

function stream(
  amount: Amount,
  title: string,
  job: Pick<NetJobInput, 'busy' | 'liveMib' | 'figure'> & { readonly kind: 'stream' | 'copy' | 'onread' },
  factor?: number,
): Row {
  const name = `net ${job.kind}${job.liveMib === undefined ? '' : ' live'}${job.figure === 'cold' ? ' cold' : ''}`;
  const mib = job.kind === 'copy' ? FILE_MIB : STREAM_MIB;
  return row(name, title, { ...job, bytes: amount.of(mib, LEAST_MIB) * MIB }, GIGABYTES, factor);
}

function connections(amount: Amount, inFlight: number): Row {
  const { seconds } = amount;
  return inFlight === 1
    ? row(
        'net connect',
        'connections, made and closed one after another',
        { kind: 'connect', seconds, warmUp: amount.of(50) },
        PER_SECOND,
        0.25,
      )
    : row(
        `net connect ${inFlight}`,
        `${inFlight} connections at once, by new processes`,
        { kind: 'connect', inFlight },
        PER_SECOND,
        0.25,
      );
}

/** Compared with zeromq, which also has such a pattern. */
function broadcast({ seconds }: Amount, subscribers: number, size: number): Row {
  const job = { kind: 'broadcast', subscribers, size, seconds } as const;
  return {
    name: `net broadcast ${subscribers} of ${size}`,
    title: `networkdirect/net: broadcasts of ${size} bytes to ${subscribers} subscribers of one process; messages that arrive`,
    unit: PER_SECOND,
    contestants: [
      { label: US, by: 'net', job: { ...job, over: 'networkdirect/net' } },
      { label: ZEROMQ, by: 'net', job: { ...job, over: 'zeromq' } },
    ],
    targets: [{ against: ZEROMQ, factor: 1 }],
  };
}

/** `factor` is a lower limit against each kind of socket, or an upper one where less is better. */
function row(name: string, title: string, job: Omit<NetJobInput, 'over'>, unit: Unit, factor?: number): Row {
  const beside = job.busy === true;
  return {
    name: beside ? `${name} busy` : name,
    title: `networkdirect/net: ${title}${beside ? ', a busy loop on each CPU' : ''}`,
    unit,
    contestants: [
      { label: US, by: 'net', job: { ...job, over: 'networkdirect/net' } },
      { label: TCP, by: 'net', job: { ...job, over: 'node:net TCP' } },
      { label: UNIX, by: 'net', job: { ...job, over: 'node:net UNIX' } },
      ...(job.kind === 'request'
        ? [
            { label: ZEROMQ, by: 'net', job: { ...job, over: 'zeromq' } } as const,
            { label: MESSAGE_PORT, by: 'net', job: { ...job, over: 'MessagePort' } } as const,
          ]
        : []),
    ],
    targets: factor === undefined ? [] : [TCP, UNIX].map((against) => ({ against, factor })),
  };
}
