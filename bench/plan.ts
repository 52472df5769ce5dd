/**
 * The measurements, as data. A row compares this library, which is its first contestant, with its peers, and has targets for the
 * ratios between them.
 */
import type { JobInput } from './ours/job.js';
import type { LibfabricJob } from './peers/libfabric.js';
import type { NativeJob } from './peers/native.js';
import type { NodeJob } from './peers/node-program.js';
import type { UcxJob } from './peers/ucx.js';
import { bytesText } from './statistics.js';

/** A program that measures, and its job. */
export type Contestant = { readonly label: string } & (
  | { readonly by: 'networkdirect'; readonly job: JobInput }
  | { readonly by: 'node'; readonly job: NodeJob }
  | { readonly by: 'libfabric'; readonly job: LibfabricJob }
  | { readonly by: 'ucx'; readonly job: UcxJob }
  | { readonly by: 'native'; readonly job: NativeJob }
);

/** The unit of a row's figures. */
export interface Unit {
  readonly text: string;
  /** The unit's size, in base units of the samples. */
  readonly base: number;
  readonly better: 'less' | 'more';
}

/**
 * A limit for our figure: `factor` times the figure of `against`, or `factor` units. It is an upper limit, or a lower one where more is
 * better.
 */
export interface Target {
  readonly factor: number;
  /** A contestant's label. */
  readonly against?: string;
  /** For a limit in units: the label of our contestant that it is for; default: the first. */
  readonly of?: string;
  /** A stretch goal. */
  readonly stretch?: boolean;
}

export interface Row {
  readonly name: string;
  readonly title: string;
  readonly unit: Unit;
  readonly contestants: readonly [Contestant, ...Contestant[]];
  readonly targets: readonly Target[];
  /** Its place in a chart by message size. */
  readonly chart?: { readonly of: 'latency' | 'bandwidth'; readonly size: number };
}

const MICROSECONDS: Unit = { text: 'µs', base: 1, better: 'less' };
const MILLISECONDS: Unit = { text: 'ms', base: 1, better: 'less' };
const GIGABYTES: Unit = { text: 'GB/s', base: 1e9, better: 'more' };
const MILLIONS: Unit = { text: 'M/s', base: 1e6, better: 'more' };
const PER_SECOND: Unit = { text: '/s', base: 1, better: 'more' };
const KIBIBYTES: Unit = { text: 'KiB', base: 1024, better: 'less' };
const PERCENT: Unit = { text: '%', base: 1, better: 'less' };

/** This library. */
export const US = 'networkdirect';
const TCP = 'node:net TCP';
const FI_SHM = 'libfabric shm';
const FI_TCP = 'libfabric tcp';
const FI_UDP = 'libfabric udp';
const UCX = 'UCX shm';

const MIB = 1 << 20;
/** Longer than a waiting thread polls before it sleeps. */
const LATE_US = 50;
const latencySizes = [8, 64, 512, 4096, 65_536, MIB];
const bandwidthSizes = [4096, 16_384, 65_536, 262_144, MIB, 4 * MIB];

/** The length of measurements, scaled. */
class Amount {
  constructor(private readonly scale: number) {}

  /** Duration of a measurement by time. */
  get seconds(): number {
    return Math.max(0.01, 0.4 * this.scale);
  }

  /** Number of repetitions of a measurement by count. */
  of(count: number, least = 10): number {
    return Math.max(Math.min(count, least), Math.round(count * this.scale));
  }

  /** Number of messages of a size. Messages below 4 KiB count as 4 KiB, because they take nearly the same time. */
  messages(count: number, size: number): number {
    return this.of(Math.ceil(count / Math.max(1, size / 4096)));
  }
}

/** The rows of a run. Five rounds at `scale` 1 take about ten minutes. */
export function plan(scale: number, only: RegExp): Row[] {
  const amount = new Amount(scale);
  const rows = [
    ...latencySizes.map((size) => localPingPong(amount, size)),
    writePoll(amount),
    ...bandwidthSizes.flatMap((size) => [oneSided(amount, 'write', size), oneSided(amount, 'read', size)]),
    ...(['write', 'read'] as const).map((kind) => oneSidedAllocated(amount, kind, MIB)),
    rate(amount),
    ...latencySizes.slice(0, 4).map((size) => wirePingPong(amount, size)),
    wireWrite(amount),
    icrc(amount),
    ...(['block', 'loop'] as const).flatMap((wait) => [wakeUp(amount, wait), wakeUp(amount, wait, true)]),
    connecting(amount),
    ...manyQueuePairs(amount),
    rest(amount),
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
            { against: FI_SHM, factor: 0.5 },
            { against: TCP, factor: 1 / 40 },
            { against: UCX, factor: 1, stretch: true },
          ]
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
    title: 'RDMA Write 8, local, polling on memory: half round trip',
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

function oneSided(amount: Amount, kind: 'write' | 'read', size: number): Row {
  const { seconds } = amount;
  const verb = kind === 'write' ? 'Write' : 'Read';
  const copies = ['--bytes', `${size}`, '--count', `${amount.messages(40_000, size)}`];
  const put: UcxJob = {
    test: kind === 'write' ? 'ucp_put_bw' : 'ucp_get',
    metric: 'bandwidth',
    size,
    count: amount.messages(200_000, size),
  };
  const shm: LibfabricJob = {
    provider: 'shm',
    metric: 'bandwidth',
    size,
    count: amount.messages(50_000, size),
  };
  const vm: Contestant = {
    label: `process_vm_${kind}v, C`,
    by: 'native',
    job: { program: 'vm', args: [`${kind}v`, ...copies] },
  };
  return {
    name: `${kind} local ${size}`,
    title: `RDMA ${verb} ${bytesText(size)}, local, any memory`,
    unit: GIGABYTES,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind, size, seconds } },
      ...(size === MIB ? [whileTargetPolls(kind, size, seconds)] : []),
      ...(kind === 'write' ? [allocated(size, seconds)] : []),
      vm,
      { label: FI_SHM, by: 'libfabric', job: shm },
      { label: UCX, by: 'ucx', job: put },
      ...(kind === 'write' ? [tcpStream(size, seconds)] : []),
    ],
    targets:
      size === MIB
        ? [
            { against: vm.label, factor: 0.95 },
            { against: FI_SHM, factor: 1 },
          ]
        : [],
    ...(kind === 'write' ? { chart: { of: 'bandwidth', size } } : {}),
  };
}

/** A second line in the chart. */
function allocated(size: number, seconds: number): Contestant {
  const job = { kind: 'write', size, seconds, memory: 'allocate' } as const;
  return { label: `${US}, allocate()`, by: 'networkdirect', job };
}

/** The side that owns the memory polls; in other rows it sleeps. */
function whileTargetPolls(
  kind: 'write' | 'read',
  size: number,
  seconds: number,
  memory: 'any' | 'allocate' = 'any',
): Contestant {
  const job = { kind, size, seconds, memory, target: 'polls' } as const;
  return { label: `${US}, target polls`, by: 'networkdirect', job };
}

/** The same with memory from the library's allocator. */
function oneSidedAllocated(amount: Amount, kind: 'write' | 'read', size: number): Row {
  const { seconds } = amount;
  const verb = kind === 'write' ? 'Write' : 'Read';
  const copies = ['--bytes', `${size}`, '--count', `${amount.messages(40_000, size)}`];
  const copy = 'memcpy from the other core, C';
  const put: UcxJob = {
    test: kind === 'write' ? 'ucp_put_bw' : 'ucp_get',
    metric: 'bandwidth',
    size,
    count: amount.messages(200_000, size),
  };
  return {
    name: `${kind} local allocate ${size}`,
    title: `RDMA ${verb} ${bytesText(size)}, local, allocate() memory`,
    unit: GIGABYTES,
    contestants: [
      { label: US, by: 'networkdirect', job: { kind, size, seconds, memory: 'allocate' } },
      whileTargetPolls(kind, size, seconds, 'allocate'),
      { label: copy, by: 'native', job: { program: 'copy', args: ['other', ...copies] } },
      { label: UCX, by: 'ucx', job: put },
    ],
    targets:
      size === MIB
        ? [
            { against: copy, factor: 0.6 },
            { against: UCX, factor: 1 },
          ]
        : [],
  };
}

function tcpStream(size: number, seconds: number): Contestant {
  return { label: TCP, by: 'node', job: { kind: 'stream', size, seconds } };
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

/** `late`: each answer comes after the waiting side has gone to sleep. */
function wakeUp(amount: Amount, wait: 'block' | 'loop', late = false): Row {
  const how = wait === 'block' ? 'threads that wait' : 'event loops that wait';
  const pause = late ? LATE_US : 0;
  const args = ['--count', `${amount.of(late ? 2000 : 20_000, 100)}`, '--pause', `${pause}`];
  return {
    name: `wake-up ${wait}${late ? ' late' : ''}`,
    title: `Send/Receive 8, notify, ${how}${late ? `, answers ${LATE_US} µs later` : ''}: half round trip`,
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
  return {
    name: 'connect',
    title: 'connections made, 100 in flight',
    unit: PER_SECOND,
    contestants: [
      { label: US, by: 'networkdirect', job },
      // V8 compiles code that runs once for each connection between about the 1,500th and the 2,500th connection.
      { label: `${US}, compiled`, by: 'networkdirect', job: { ...job, warmUp: 4 * job.count } },
      { label: TCP, by: 'node', job },
    ],
    targets: [{ factor: 3000 }, { of: `${US}, compiled`, factor: 3000 }],
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
        { label: `${US}, all in turn`, by: 'networkdirect', job: { ...job, queuePairs, inTurn: true } },
      ],
      targets: [{ against: `${US}, 1 queue pair`, factor: 1.1 }],
    },
    {
      name: 'queue-pairs engine',
      title: `engine memory of a queue pair at rest (depth 16, without its rings, 2 × ${queuePairs} of them)`,
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
    title: `processor time with ${queuePairs} open connections at rest`,
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
