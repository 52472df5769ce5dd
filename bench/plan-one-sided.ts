/** The measurements of RDMA Writes, Reads and atomics between two processes on a host. */
import type { LibfabricJob } from './peers/libfabric.js';
import type { UcxJob } from './peers/ucx.js';
import {
  type Amount,
  type Contestant,
  FI_SHM,
  GIGABYTES,
  MIB,
  MICROSECONDS,
  MILLIONS,
  type Row,
  tcpStream,
  UCX,
  US,
} from './row.js';
import { bytesText } from './samples.js';

export function oneSided(amount: Amount, kind: 'write' | 'read', size: number): Row {
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

/** This library with memory from allocate(), as a second line in the chart. */
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
export function oneSidedAllocated(amount: Amount, kind: 'write' | 'read', size: number): Row {
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
    targets: [...(size === MIB ? [{ against: copy, factor: 0.6 }] : []), { against: UCX, factor: 1 }],
  };
}

/** A pause long enough for a target to fall asleep, in µs. */
const PAUSE_US = 300;

/** UCX's test for each operation. */
const UCX_TEST = { write: 'ucp_put_bw', read: 'ucp_get', add: 'ucp_fadd' } as const;
const VERB = { write: 'Write', read: 'Read', add: 'fetch-and-add' } as const;

/** Small requests, 16 in flight, all signaled. The side that owns the memory sleeps or polls. */
export function oneSidedRate(amount: Amount, kind: 'write' | 'read' | 'add', size: number): Row {
  const job = { kind, size, seconds: amount.seconds, metric: 'rate' } as const;
  const put: UcxJob = { test: UCX_TEST[kind], metric: 'rate', size, count: amount.messages(1_000_000, size) };
  return {
    name: `${kind} rate local ${size}`,
    title: `RDMA ${VERB[kind]} ${bytesText(size)}, local, allocate() memory: requests`,
    unit: MILLIONS,
    contestants: [
      { label: US, by: 'networkdirect', job: { ...job, memory: 'allocate' } },
      {
        label: `${US}, target polls`,
        by: 'networkdirect',
        job: { ...job, memory: 'allocate', target: 'polls' },
      },
      { label: `${US}, any memory`, by: 'networkdirect', job },
      { label: `${US}, any memory, target polls`, by: 'networkdirect', job: { ...job, target: 'polls' } },
      { label: UCX, by: 'ucx', job: put },
    ],
    targets: size <= 4096 ? [{ factor: kind === 'add' ? 3 : 4 }] : [],
  };
}

/** One signaled request, posted and polled. */
export function oneSidedLatency(amount: Amount, kind: 'write' | 'read' | 'add'): Row {
  const job = { kind, size: 8, seconds: amount.seconds, metric: 'latency' } as const;
  return {
    name: `${kind} latency local 8`,
    title: `RDMA ${VERB[kind]} 8, local, allocate() memory: one request, posted and completed`,
    unit: MICROSECONDS,
    contestants: [
      { label: US, by: 'networkdirect', job: { ...job, memory: 'allocate' } },
      {
        label: `${US}, any memory, target polls`,
        by: 'networkdirect',
        job: { ...job, target: 'polls' },
      },
    ],
    targets: [{ factor: 0.4 }],
  };
}

/** One Read of any memory after a pause, so that a target that was woken sleeps again. */
export function readAsleep(amount: Amount, size: number): Row {
  const job = { kind: 'read', size, seconds: amount.seconds, metric: 'latency', pause: PAUSE_US } as const;
  const args = ['readv', '--bytes', `${size}`, '--count', `${amount.of(5000)}`, '--pause', `${PAUSE_US}`];
  const call = 'process_vm_readv, C';
  return {
    name: `read asleep local ${size}`,
    title: `RDMA Read ${bytesText(size)}, local, any memory: one request, posted and completed, target asleep`,
    unit: MICROSECONDS,
    contestants: [
      { label: US, by: 'networkdirect', job },
      { label: `${US}, allocate()`, by: 'networkdirect', job: { ...job, memory: 'allocate' } },
      { label: call, by: 'native', job: { program: 'vm', args } },
    ],
    targets: size === 8 ? [{ against: call, factor: 3 }] : [],
  };
}
