import { readdirSync, readFileSync } from 'node:fs';
import { handleCount, threadNames } from './windows-process.js';

/** OS resources that the HCAs of this process use. */
export interface Traces {
  /** The number of HCAs. */
  readonly engineThreads: number;
  /** File descriptors of the whole process; on Windows, its handles (always 0 under Wine). */
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
      return ''; // the thread has just exited
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
