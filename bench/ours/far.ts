/** RDMA Writes or Reads to a distant host, in programs that sleep while they wait: bytes per second. */
import { WvSend } from 'networkdirect/winverbs';
import { CommonCount } from '../common-time.js';
import { perSecond, type Sample, timedAsync } from '../samples.js';
import type { JobOf } from './job.js';
import { makeMemory } from './library.js';
import type { Connection, Side } from './side.js';

export function farMemory(side: Side, { size }: JobOf<'far'>) {
  const memory = side.memory(makeMemory('any', size));
  memory.bytes.fill(1);
  return memory;
}

export function farQueuePair(side: Side, { inFlight }: JobOf<'far'>) {
  return side.queuePair({ sends: inFlight, receives: 1 });
}

/** Keeps `inFlight` requests of one buffer in flight. */
export async function farTransfer(
  side: Side,
  { qp, remote }: Connection,
  job: JobOf<'far'>,
): Promise<Sample> {
  const { size, inFlight, operation, seconds, within } = job;
  const data = side.advertised!.sge(0, size);
  const post = () => qp[operation](0, data, WvSend.SIGNALED, remote, 0);
  for (let i = 0; i < inFlight; i += 1) post();
  const one = async () => {
    for (let done = 0; done === 0; ) {
      done = side.poll(1);
      if (done === 0) await side.cq.notify('any');
      else post();
    }
  };
  if (within !== undefined) {
    const count = new CommonCount(within);
    for (; !count.over; count.add(size)) await one();
    return count.sample;
  }
  const sample = await timedAsync(seconds, one);
  return { mean: perSecond(sample, size).mean };
}
