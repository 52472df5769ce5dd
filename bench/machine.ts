/** The machine on which the figures were measured. */
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Placement } from './processes.js';

export interface Machine {
  readonly cpu: string;
  readonly processors: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly node: string;
  /** The measured modules of this library: those of the package or, with plain `node`, of the clone. */
  readonly library: string;
  /** CPUs of the two processes, or undefined if they are not pinned. */
  readonly pinned?: readonly number[];
  readonly realtime?: boolean;
  /** Load average before the measurement. */
  readonly load: number;
}

export function describeMachine({ cpus: pinned, realtime }: Placement): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? process.arch,
    processors: availableParallelism(),
    memoryBytes: totalmem(),
    kernel: `${process.platform} ${release()}`,
    node: process.version,
    library: relative(
      fileURLToPath(new URL('../../', import.meta.url)),
      fileURLToPath(import.meta.resolve('networkdirect')),
    ),
    ...(pinned === undefined ? {} : { pinned }),
    ...(realtime === true ? { realtime } : {}),
    load: loadavg()[0] ?? 0,
  };
}

export function machineText(machine: Machine): string {
  const { cpu, processors, kernel, node, library, pinned, realtime, load } = machine;
  const places = pinned === undefined ? 'not pinned' : `on CPUs ${pinned.join(' and ')}`;
  const busy = load > 0.5 ? `; it is busy: load ${load.toFixed(1)}` : '';
  return `${cpu}, ${processors} CPUs, ${kernel}, Node ${node}, ${library}, ${places}${realtime === true ? ', real-time' : ''}${busy}`;
}
