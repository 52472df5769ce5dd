/** Rows of the shared map of `networkdirect/net`, compared with lmdb, Redis over a UNIX socket, and a Map in one process. */
import type { MapJobInput } from './map/job.js';
import {
  type Amount,
  type Contestant,
  MICROSECONDS,
  MILLIONS,
  PER_SECOND,
  type Row,
  type Target,
  type Unit,
  US,
} from './row.js';
import { bytesText } from './samples.js';

const LMDB = 'lmdb';
const LMDB_IN_PLACE = 'lmdb, getBinaryFast';
const REDIS = 'Redis';
const PIPELINED = 'Redis, 100 in flight';
const MAP = 'a Map of Buffers, copied';
const COPY = 'a copy within the process';

/** Each peer, with its number of requests in flight. */
const PEERS = {
  [LMDB]: { over: 'lmdb' },
  [LMDB_IN_PLACE]: { over: 'lmdb' },
  [REDIS]: { over: 'Redis' },
  [PIPELINED]: { over: 'Redis', inFlight: 100 },
  [MAP]: { over: 'Map' },
  [COPY]: { over: 'Map' },
} as const;
type Peer = keyof typeof PEERS;

/** Values that the owner stores per second while others read. */
const STORES = 10_000;
const MEANWHILE = `during ${STORES.toLocaleString('en')} stores per second`;

export function mapRows(amount: Amount): Row[] {
  const { seconds } = amount;
  return [
    ...[64, 4096].flatMap((size) => [1, 2, 8].map((readers) => gets(amount, size, readers))),
    row(
      'getInto 64',
      `getInto of 64 bytes, ${MEANWHILE}`,
      MILLIONS,
      { kind: 'getInto', stores: STORES, seconds },
      [LMDB_IN_PLACE, MAP],
      [{ factor: 2 }],
    ),
    row(
      'get latency',
      `get of 64 bytes, ${MEANWHILE}: the 99th percentile`,
      MICROSECONDS,
      { kind: 'latency', stores: STORES, seconds },
      [LMDB, REDIS, MAP],
      [{ factor: 5 }],
    ),
    row('store', 'values of 64 bytes that the owner stores', PER_SECOND, { kind: 'store', seconds }, [
      LMDB,
      PIPELINED,
      MAP,
    ]),
    row('set', 'values of 64 bytes that a reader sets, awaited', PER_SECOND, { kind: 'set', seconds }, [
      LMDB,
      REDIS,
    ]),
    row(
      'add',
      'additions of a reader to one counter',
      MILLIONS,
      { kind: 'add', seconds },
      [LMDB, REDIS, PIPELINED],
      [{ factor: 2 }],
    ),
    row(
      'readSync 64',
      'readSync of 64 bytes of exposed memory',
      MICROSECONDS,
      { kind: 'readSync', seconds },
      [COPY],
      [{ factor: 0.35 }],
    ),
  ];
}

function gets({ seconds }: Amount, size: number, readers: number): Row {
  return row(
    `get ${size}${readers === 1 ? '' : ` by ${readers}`}`,
    `get of ${bytesText(size)} by ${readers} ${readers === 1 ? 'process' : 'processes'}, ${MEANWHILE}`,
    PER_SECOND,
    { kind: 'get', size, readers, stores: STORES, seconds },
    [LMDB, REDIS, PIPELINED, MAP],
    size > 64
      ? []
      : [
          { against: LMDB, factor: 1.5 },
          { against: REDIS, factor: 50 },
          { against: MAP, factor: 0.6 },
        ],
  );
}

function row(
  name: string,
  title: string,
  unit: Unit,
  job: Omit<MapJobInput, 'over'>,
  peers: readonly Peer[],
  targets: readonly Target[] = [],
): Row {
  const theirs = peers.map((label): Contestant => ({ label, by: 'map', job: { ...job, ...PEERS[label] } }));
  return {
    name: `map ${name}`,
    title: `networkdirect/net, a shared map of 10,000 entries: ${title}`,
    unit,
    contestants: [{ label: US, by: 'map', job: { ...job, over: 'networkdirect/net' } }, ...theirs],
    targets,
  };
}
