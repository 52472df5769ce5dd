/** RDMA Writes or Reads of one buffer, several in flight. */

import type { MemoryWv } from '../../examples/sides/winverbs.js';
import { WvSend } from '../../winverbs/index.js';
import { perSecond, type Sample, timed } from '../statistics.js';
import type { JobOf } from './job.js';
import { makeMemory } from './library.js';
import type { Connection, Side } from './side.js';

type OneSided = JobOf<'write' | 'read'>;

const IN_FLIGHT = 16;
/** Least number of bytes between two readings of the clock. */
const PART_BYTES = 4 << 20;

export function oneSidedMemory(side: Side, job: OneSided): MemoryWv {
  const memory = side.memory(makeMemory(job.memory, job.size));
  memory.bytes.fill(1);
  return memory;
}

export function oneSidedQueuePair(side: Side) {
  return side.queuePair({ sends: IN_FLIGHT, receives: 1 });
}

export function transfer(side: Side, memory: MemoryWv, connection: Connection, job: OneSided): Sample {
  const { qp, remote } = connection;
  const data = memory.sge(0, job.size);
  const writes = job.kind === 'write';
  const part = Math.max(IN_FLIGHT, Math.ceil(PART_BYTES / job.size));
  let outstanding = 0;
  const sample = timed(job.seconds, () => {
    for (let done = 0; done < part; ) {
      if (outstanding < IN_FLIGHT) {
        qp.startBatch();
        for (; outstanding < IN_FLIGHT; outstanding += 1) {
          if (writes) qp.write(0, data, WvSend.SIGNALED, remote, 0);
          else qp.read(0, data, WvSend.SIGNALED, remote, 0);
        }
        qp.submitBatch();
      }
      const completed = side.poll(IN_FLIGHT);
      done += completed;
      outstanding -= completed;
    }
  });
  while (outstanding > 0) outstanding -= side.poll(outstanding);
  return perSecond(sample, part * job.size);
}
