import { readdirSync, readFileSync } from 'node:fs';
import { handleCount, threadNames } from './windows-process.js';

/** What the HCAs of this process take of the system. */
export interface Traces {
  /** One for each HCA. */
  readonly engineThreads: number;
  /** Of the whole process; on Windows its handles, which Wine does not count. */
  readonly descriptors: number;
  /** Resident memory of the whole process, in bytes. */
  readonly resident: number;
}

const onWindows = process.platform === 'win32';

/** The names of this process's threads. */
function namesOnLinux(): string[] {
  return readdirSync('/proc/self/task').map((id) => {
    try {
      return readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim();
    } catch {
      return ''; // it has just ended
    }
  });
}

export function readTraces(): Traces {
  const names = onWindows ? threadNames() : namesOnLinux();
  return {
    engineThreads: names.filter((name) => name === 'rdma-engine').length,
    descriptors: onWindows ? handleCount() : readdirSync('/proc/self/fd').length,
    resident: process.memoryUsage.rss(),
  };
}
