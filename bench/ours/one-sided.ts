/** RDMA Writes, Reads or fetch-and-adds of one buffer. */

import { WvSend } from 'networkdirect/winverbs';
import type { MemoryWv } from '../../nd/cli/sides/winverbs-side.js';
import { perRequest, perSecond, type Sample, spin, timed, without } from '../samples.js';
import type { JobOf } from './job.js';
import { makeMemory } from './library.js';
import type { Connection, Side } from './side.js';

type OneSided = JobOf<'write' | 'read' | 'add'>;

const IN_FLIGHT = 16;
/** Minimum bytes between two readings of the clock. */
const PART_BYTES = 4 << 20;
/** Requests between two readings of the clock, one in flight at a time. */
const ONE_BY_ONE = 1000;

export function oneSidedMemory(side: Side, job: OneSided): MemoryWv {
  const memory = side.memory(makeMemory(job.memory, job.size));
  memory.bytes.fill(1);
  return memory;
}

export function oneSidedQueuePair(side: Side) {
  return side.queuePair({ sends: IN_FLIGHT, receives: 1 });
}

/** Creates a function that posts one request of the job. */
function poster({ qp, remote }: Connection, memory: MemoryWv, job: OneSided): () => void {
  const data = memory.sge(0, job.size);
  const [word] = memory.sge(0, 8);
  switch (job.kind) {
    case 'write':
      return () => qp.write(0, data, WvSend.SIGNALED, remote, 0);
    case 'read':
      return () => qp.read(0, data, WvSend.SIGNALED, remote, 0);
    case 'add':
      return () => qp.fetchAdd(0, word, WvSend.SIGNALED, 1n, remote, 0);
  }
}

export function transfer(side: Side, memory: MemoryWv, connection: Connection, job: OneSided): Sample {
  const { qp } = connection;
  const post = poster(connection, memory, job);
  if (job.metric === 'latency') return oneByOne(side, post, job);
  const part = Math.max(IN_FLIGHT, Math.ceil(PART_BYTES / job.size));
  let outstanding = 0;
  const sample = timed(job.seconds, () => {
    for (let done = 0; done < part; ) {
      if (outstanding < IN_FLIGHT) {
        qp.startBatch();
        for (; outstanding < IN_FLIGHT; outstanding += 1) post();
        qp.submitBatch();
      }
      const completed = side.poll(IN_FLIGHT);
      done += completed;
      outstanding -= completed;
    }
  });
  while (outstanding > 0) outstanding -= side.poll(outstanding);
  return perSecond(sample, job.metric === 'rate' ? part : part * job.size);
}

/** The time from posting a request until its completion was polled. */
function oneByOne(side: Side, post: () => void, job: OneSided): Sample {
  if (job.pause > 0) return afterPauses(side, post, job);
  const sample = timed(job.seconds, () => {
    for (let i = 0; i < ONE_BY_ONE; i += 1) {
      post();
      while (side.poll(1) === 0);
    }
  });
  return perRequest(sample, ONE_BY_ONE);
}

/** The same for requests with a pause before each, each timed individually. */
function afterPauses(side: Side, post: () => void, { seconds, pause }: OneSided): Sample {
  const sample = timed(seconds, () => {
    spin(pause);
    post();
    while (side.poll(1) === 0);
  });
  return without(sample, pause);
}
