/** RDMA Writes or Reads of one piece of memory, several in flight. */
import { WvSend } from '../../winverbs/index.js';
import { Parts, perSecond, type Sample } from '../statistics.js';
import type { JobOf } from './job.js';
import { makeMemory } from './library.js';
import { type Connection, type Memory, piece, type Side } from './side.js';

type OneSided = JobOf<'write' | 'read'>;

const IN_FLIGHT = 16;
/** Bytes between two looks at the clock, at least. */
const PART_BYTES = 4 << 20;
const WARMUP_MS = 150;

export function oneSidedMemory(side: Side, job: OneSided): Memory {
  const memory = side.memory(makeMemory(job.memory, job.size));
  memory.bytes.fill(1);
  return memory;
}

export function oneSidedQueuePair(side: Side) {
  return side.queuePair({ sends: IN_FLIGHT, receives: 1 });
}

export function transfer(side: Side, memory: Memory, connection: Connection, job: OneSided): Sample {
  const data = piece(memory, 0, job.size);
  const part = Math.max(IN_FLIGHT, Math.ceil(PART_BYTES / job.size));
  const parts = new Parts();
  const warm = performance.now() + WARMUP_MS;
  const end = warm + job.seconds * 1000;
  let outstanding = 0;
  for (let now = performance.now(); now < end; ) {
    const start = now;
    outstanding = move(side, connection, data, job.kind === 'write', part, outstanding);
    now = performance.now();
    if (start >= warm) parts.add((now - start) * 1000);
  }
  while (outstanding > 0) outstanding -= side.poll(outstanding);
  return perSecond(parts.sample, part * job.size);
}

/** Lets `count` requests complete and posts as many; answers how many are outstanding. */
function move(
  side: Side,
  { qp, remote }: Connection,
  data: ReturnType<typeof piece>,
  writes: boolean,
  count: number,
  outstanding: number,
): number {
  let flying = outstanding;
  for (let done = 0; done < count; ) {
    if (flying < IN_FLIGHT) {
      qp.startBatch();
      for (; flying < IN_FLIGHT; flying += 1) {
        if (writes) qp.write(0, data, WvSend.SIGNALED, remote, 0);
        else qp.read(0, data, WvSend.SIGNALED, remote, 0);
      }
      qp.submitBatch();
    }
    const completed = side.poll(IN_FLIGHT);
    done += completed;
    flying -= completed;
  }
  return flying;
}
