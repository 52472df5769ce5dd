import { readdirSync, readFileSync } from 'node:fs';

/** What the HCAs of this process take of the system. */
export interface Traces {
  /** One for each HCA. */
  readonly engineThreads: number;
  /** Of the whole process. */
  readonly descriptors: number;
  /** Resident memory of the whole process, in bytes. */
  readonly resident: number;
}

export function readTraces(): Traces {
  const names = readdirSync('/proc/self/task').map((id) => {
    try {
      return readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim();
    } catch {
      return ''; // it has just ended
    }
  });
  return {
    engineThreads: names.filter((name) => name === 'rdma-engine').length,
    descriptors: readdirSync('/proc/self/fd').length,
    resident: process.memoryUsage.rss(),
  };
}
