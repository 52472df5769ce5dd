/**
 * The measurements, as data. A row compares this library, which is its first contestant, with its peers and has targets for the ratios
 * between them.
 */
import type { LibfabricJob } from './peers/libfabric.js';
import type { UcxJob } from './peers/ucx.js';
import { distanceRows } from './plan-distance.js';
import { mapRows } from './plan-map.js';
import { netRows } from './plan-net.js';
import { oneSided, oneSidedAllocated, oneSidedLatency, oneSidedRate, readAsleep } from './plan-one-sided.js';
import { valkeyRows } from './plan-valkey.js';
import { crowds, workers } from './plan-workers.js';
import {
  Amount,
  type Contestant,
  FI_SHM,
  GIGABYTES,
  KIBIBYTES,
  MIB,
  MICROSECONDS,
  MILLIONS,
  MILLISECONDS,
  NANOSECONDS,
  PER_SECOND,
  PERCENT,
  type Row,
  TCP,
  tcpStream,
  UCX,
  US,
} from './row.js';
import { bytesText } from './samples.js';

export type { Contestant, Row, Target, Unit } from './row.js';
export { US } from './row.js';

const FI_TCP = 'libfabric tcp';
const FI_UDP = 'libfabric udp';
/** Longer than a waiting thread polls before it sleeps. */
const LATE_US = 50;
const latencySizes = [8, 64, 512, 4096, 65_536, MIB];
const rateSizes = [8, 512, 4096, 65_536];
const allocatedSizes = [65_536, MIB, 4 * MIB];
const bandwidthSizes = [4096, 16_384, 65_536, 262_144, MIB, 4 * MIB];

/** Creates the rows of a run. Five rounds at `scale` 1 take about twenty minutes, half of them for the crowds. */
export function plan(scale: number, only: RegExp): Row[] {
  const amount = new Amount(scale);
  const rows = [
    ...latencySizes.map((size) => localPingPong(amount, size)),
    writePoll(amount),
    ...bandwidthSizes.flatMap((size) => [oneSided(amount, 'write', size), oneSided(amount, 'read', size)]),
    ...allocatedSizes.flatMap((size) => [
      oneSidedAllocated(amount, 'write', size),
      oneSidedAllocated(amount, 'read', size),
    ]),
    ...rateSizes.flatMap((size) => [oneSidedRate(amount, 'write', size), oneSidedRate(amount, 'read', size)]),
    oneSidedRate(amount, 'add', 8),
    ...(['write', 'read', 'add'] as const).map((kind) => oneSidedLatency(amount, kind)),
    ...[8, 4096, 65_536].map((size) => readAsleep(amount, size)),
    rate(amount),
    ...latencySizes.slice(0, 4).map((size) => wirePingPong(amount, size)),
    wireWrite(amount),
    icrc(amount),
    copies(amount),
    ...(['block', 'loop'] as const).flatMap((wait) => [wakeUp(amount, wait), wakeUp(amount, wait, true)]),
    connecting(amount),
    ...workers(amount),
    ...crowds(amount),
    ...netRows(amount),
    ...mapRows(amount),
    ...distanceRows(amount),
    ...valkeyRows(amount),
    ...manyQueuePairs(amount),
    rest(amount),
    ...realHca(amount),
    providerCalls(amount),
    open(),
  ];
  return rows.filter(({ name }) => only.test(name));
}

function localPingPong(amount: Amount, size: number): Row {
  const { seconds } = amount;
  const tag: UcxJob = { test: 'tag_lat', metric: 'latency', size, count: amount.messages(200_000, size) };
  const shm: LibfabricJob = {
    provider: 'shm',
    metric: 'latency',
    size,
    count: amount.messages(100_000, size),
  };
  return {
    name: `ping-pong local ${size}`,
    title: `Send/Receive ${bytesText(size)}, local: half round trip`,
    unit: MICROSECONDS,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind: 'ping-pong', size, seconds } },
      { label: FI_SHM, by: 'libfabric', job: shm },
      { label: UCX, by: 'ucx', job: tag },
      { label: TCP, by: 'node', job: { kind: 'ping-pong', size, seconds } },
      ...(size === 8
        ? [
            {
              label: `${US}, by ND SPI v1`,
              by: 'networkdirect',
              job: { kind: 'nd-ping-pong', size, seconds },
            } as const,
            LINE,
          ]
        : []),
    ],
    targets:
      size === 8
        ? [
            { against: FI_SHM, factor: 1 },
            { against: FI_SHM, factor: 0.5 },
            { against: TCP, factor: 1 / 40 },
            { against: UCX, factor: 1, stretch: true },
          ]
        : size === 512 || size === 4096
          ? [{ against: FI_SHM, factor: 1.5 }]
          : [],
    chart: { of: 'latency', size },
  };
}

/** The lower bound of any message through shared memory. */
const LINE: Contestant = {
  label: 'one cache line, C',
  by: 'native',
  job: { program: 'line', args: [] },
};

function writePoll(amount: Amount): Row {
  const { seconds } = amount;
  const put: UcxJob = { test: 'ucp_put_lat', metric: 'latency', size: 8, count: amount.of(200_000) };
  return {
    name: 'write-poll local 8',
    title: 'RDMA Write 8, local, allocate() memory, polling on memory: half round trip',
    unit: MICROSECONDS,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind: 'write-poll', size: 8, seconds } },
      { label: `${US}, Send`, by: 'networkdirect', job: { kind: 'ping-pong', size: 8, seconds } },
      { label: 'UCX shm, put', by: 'ucx', job: put },
    ],
    targets: [
      { against: `${US}, Send`, factor: 1 },
      { against: `${US}, Send`, factor: 0.5, stretch: true },
    ],
  };
}

function rate(amount: Amount): Row {
  const { seconds } = amount;
  const tag: UcxJob = { test: 'tag_bw', metric: 'rate', size: 64, count: amount.of(1_000_000) };
  return {
    name: 'rate local 64',
    title: 'messages of 64 bytes one way, one queue pair, local',
    unit: MILLIONS,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind: 'rate', size: 64, seconds } },
      { label: UCX, by: 'ucx', job: tag },
      { label: TCP, by: 'node', job: { kind: 'rate', size: 64, seconds } },
    ],
    targets: [{ factor: 5 }, { factor: 20, stretch: true }],
  };
}

function wirePingPong(amount: Amount, size: number): Row {
  const { seconds } = amount;
  const count = amount.messages(20_000, size);
  const bytes = ['--bytes', `${size}`, '--count', `${count}`];
  const job = { metric: 'latency', size, count } as const;
  // The udp provider sends single datagrams, limited by an MTU of 1500.
  const udp: Contestant[] =
    size > 1024 ? [] : [{ label: FI_UDP, by: 'libfabric', job: { provider: 'udp', ...job } }];
  return {
    name: `ping-pong wire ${size}`,
    title: `Send/Receive ${bytesText(size)}, UDP loopback: half round trip`,
    unit: MICROSECONDS,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind: 'ping-pong', size, seconds, link: 'wire' } },
      { label: 'UDP that spins, C', by: 'native', job: { program: 'udp', args: ['pingpong', ...bytes] } },
      ...udp,
      { label: FI_TCP, by: 'libfabric', job: { provider: 'tcp', ...job } },
    ],
    targets: size === 8 ? [{ against: 'UDP that spins, C', factor: 1.25 }] : [],
  };
}

function wireWrite(amount: Amount): Row {
  const { seconds } = amount;
  const count = amount.of(2000);
  const datagrams = ['--count', `${amount.of(40_000, 1000)}`];
  return {
    name: `write wire ${MIB}`,
    title: 'RDMA Write 1 MiB, UDP loopback',
    unit: GIGABYTES,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind: 'write', size: MIB, seconds, link: 'wire' } },
      {
        label: FI_TCP,
        by: 'libfabric',
        job: { provider: 'tcp', metric: 'bandwidth', size: MIB, count },
      },
      {
        label: 'UDP with GSO and GRO, C',
        by: 'native',
        job: { program: 'udp', args: ['stream', ...datagrams] },
      },
      {
        label: 'UDP, C',
        by: 'native',
        job: { program: 'udp', args: ['stream', '--segment', '0', '--bytes', '4112', ...datagrams] },
      },
      tcpStream(MIB, seconds),
    ],
    targets: [
      { against: FI_TCP, factor: 1 },
      { against: 'UDP with GSO and GRO, C', factor: 0.5 },
    ],
  };
}

function icrc(amount: Amount): Row {
  return {
    name: 'icrc',
    title: 'ICRC of packets of 4 KiB',
    unit: GIGABYTES,
    contestants: [
      {
        label: US,
        by: 'native',
        job: { program: 'icrc', args: ['--count', `${amount.of(5000)}`] },
      },
      { label: 'node:zlib crc32', by: 'node', job: { kind: 'crc32', size: 4096, seconds: amount.seconds } },
    ],
    targets: [{ factor: 10 }],
  };
}

/** The destination begins 16 bytes after a page boundary and the source at one, which is slow for `rep movsb` on some CPUs. */
function copies(amount: Amount): Row {
  const args = ['--count', `${amount.of(20_000)}`];
  const memcpy = 'memcpy, C';
  return {
    name: 'copies',
    title: 'Copies of 64 KiB from shared memory to memory of malloc',
    unit: GIGABYTES,
    contestants: [
      { label: US, by: 'native', job: { program: 'copies', args } },
      { label: memcpy, by: 'native', job: { program: 'copies', args: ['memcpy', ...args] } },
    ],
    targets: [{ against: memcpy, factor: 0.9 }],
  };
}

/** `late`: each reply arrives after the waiting side has gone to sleep. */
function wakeUp(amount: Amount, wait: 'block' | 'loop', late = false): Row {
  const how = wait === 'block' ? 'threads that wait' : 'event loops that wait';
  const pause = late ? LATE_US : 0;
  const args = ['--count', `${amount.of(late ? 2000 : 20_000, 100)}`, '--pause', `${pause}`];
  return {
    name: `wake-up ${wait}${late ? ' late' : ''}`,
    title: `Send/Receive 8, notify, ${how}${late ? `, replies ${LATE_US} µs later` : ''}: half round trip`,
    unit: MICROSECONDS,
    contestants: [
      {
        label: US,
        by: 'networkdirect',
        job: { kind: 'ping-pong', size: 8, wait, pause, seconds: amount.seconds },
      },
      { label: 'eventfd, C', by: 'native', job: { program: 'eventfd', args } },
    ],
    targets: [{ against: 'eventfd, C', factor: 1.5 }],
  };
}

function connecting(amount: Amount): Row {
  const job = { kind: 'connect', count: amount.of(2000, 20), inFlight: 100 } as const;
  // These are the first connections of two new processes.
  const cold = { ...job, count: amount.of(1000, 20), warmUp: 0 };
  return {
    name: 'connect',
    title: 'connections established, 100 in flight',
    unit: PER_SECOND,
    contestants: [
      { label: US, by: 'networkdirect', job },
      { label: `${US}, cold`, by: 'networkdirect', job: cold },
      // V8 compiles code that runs once per connection between about the 1,500th and the 2,500th connection.
      { label: `${US}, compiled`, by: 'networkdirect', job: { ...job, warmUp: 4 * job.count } },
      { label: TCP, by: 'node', job },
      { label: `${TCP}, cold`, by: 'node', job: cold },
    ],
    targets: [{ factor: 3000 }, { of: `${US}, cold`, factor: 1500 }, { of: `${US}, compiled`, factor: 3000 }],
  };
}

function manyQueuePairs(amount: Amount): Row[] {
  const { seconds } = amount;
  const queuePairs = Math.min(10_000, amount.of(10_000, 8));
  const job = { kind: 'ping-pong', size: 8, seconds } as const;
  return [
    {
      name: 'queue-pairs speed',
      title: `Send/Receive 8, one of ${queuePairs} queue pairs: half round trip`,
      unit: MICROSECONDS,
      contestants: [
        { label: US, by: 'networkdirect', job: { ...job, queuePairs } },
        { label: `${US}, 1 queue pair`, by: 'networkdirect', job },
        { label: `${US}, all round-robin`, by: 'networkdirect', job: { ...job, queuePairs, inTurn: true } },
      ],
      targets: [{ against: `${US}, 1 queue pair`, factor: 1.1 }],
    },
    {
      name: 'queue-pairs engine',
      title: `engine memory of an idle queue pair (depth 16, without its rings, 2 × ${queuePairs} of them)`,
      unit: KIBIBYTES,
      contestants: [
        { label: US, by: 'native', job: { program: 'queue_pairs', args: ['--count', `${queuePairs}`] } },
      ],
      targets: [{ factor: 4 }],
    },
    {
      name: 'queue-pairs memory',
      title: `resident memory of a connection (depth 16, all layers, ${queuePairs} of them)`,
      unit: KIBIBYTES,
      contestants: [{ label: US, by: 'networkdirect', job: { kind: 'resident', queuePairs } }],
      targets: [],
    },
  ];
}

function rest(amount: Amount): Row {
  const queuePairs = Math.min(100, amount.of(100));
  return {
    name: 'rest',
    title: `CPU time with ${queuePairs} idle connections`,
    unit: PERCENT,
    contestants: [
      {
        label: US,
        by: 'networkdirect',
        job: { kind: 'rest', queuePairs, seconds: Math.max(0.1, 7 * amount.seconds) },
      },
    ],
    targets: [{ factor: 0.05 }],
  };
}

/** The cost of a doorbell, which is one native call that submits all requests, with a device that completes immediately. */
function realHca({ seconds }: Amount): Row[] {
  return (
    [
      [1, 150],
      [16, 60],
    ] as const
  ).map(([batch, most]) => {
    const count = ['--count', `${batch}`];
    return {
      name: `verbs post-poll ${batch}`,
      title: `real HCAs: post and poll of a request, ${batch} at once, in addition to the bare libibverbs calls`,
      unit: NANOSECONDS,
      contestants: [
        { label: US, by: 'networkdirect', job: { kind: 'verbs', batch, seconds } },
        { label: `${US}, native part`, by: 'native', job: { program: 'verbs', args: ['door', ...count] } },
        { label: 'the bare calls, C++', by: 'native', job: { program: 'verbs', args: ['bare', ...count] } },
      ],
      targets: [{ factor: most }],
    };
  });
}

function providerCalls(amount: Amount): Row {
  const { seconds } = amount;
  return {
    name: 'provider calls',
    title: "a vendor's provider on Windows (Wine): additional time of a Send and a GetResults through koffi",
    unit: NANOSECONDS,
    contestants: [
      { label: US, by: 'provider-calls', job: { what: 'over', seconds } },
      { label: 'the bare calls, C++', by: 'provider-calls', job: { what: 'bare', seconds } },
    ],
    targets: [{ factor: 200 }],
  };
}

function open(): Row {
  return {
    name: 'open',
    title: 'from opening the provider to an open device',
    unit: MILLISECONDS,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind: 'open' } },
      { label: 'a bare worker thread', by: 'node', job: { kind: 'worker' } },
    ],
    targets: [{ factor: 80 }],
  };
}
