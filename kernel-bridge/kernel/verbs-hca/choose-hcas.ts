/** Which real HCAs a kernel has, by the option `hca`. */
import type { VerbsBinding, VerbsHca } from '../../hca/verbs-binding.js';
import type { HcaMaker } from '../hca-driver/backend.js';
import type { HostNetwork } from '../hca-driver/network-interfaces.js';
import { CmCore } from './cm-core.js';
import { verbsHca } from './verbs-hca.js';
import { type GuidTable, systemDevices } from './verbs-hca-ports.js';
import { VerbsPool } from './verbs-pool.js';

export interface RealHcaParts {
  /** The option `hca`. */
  readonly choice: string;
  readonly network: Pick<HostNetwork, 'interfaces' | 'watch'>;
  /** Loads the addon. */
  load(): VerbsBinding;
  /** What wakes this thread for events. */
  makeWaker(): object;
  warn(text: string): void;
  /** Names of the system's devices; default: those of sysfs. */
  names?(): string[];
}

export interface RealHcas {
  readonly makers: readonly HcaMaker[];
  /** The software HCA is wanted, too. */
  readonly soft: boolean;
}

const help = 'docs/guide/rdma-devices.md lists the requirements';

/** Opens the host for the devices that are wanted. @throws Error: a sentence that names what is missing. */
function openHost({ load, makeWaker, choice }: RealHcaParts): VerbsHca {
  const why = (error: unknown): string =>
    error instanceof Error ? error.message.split('\n')[0]! : String(error);
  try {
    return new (load().VerbsHca)(makeWaker());
  } catch (error) {
    throw new Error(`RDMA devices cannot be used (option hca: '${choice}'): ${why(error)}; ${help}`);
  }
}

/** Devices that an unprivileged process, or a container, sees and may not open are left out under `auto`. */
function openAll(host: VerbsHca, names: readonly string[], parts: RealHcaParts): HcaMaker[] {
  const core = new CmCore(new VerbsPool(host));
  const guids: GuidTable = new Map();
  const makers: HcaMaker[] = [];
  const refused: string[] = [];
  for (const name of names) {
    const device = host.openDevice(name);
    if (typeof device === 'string') refused.push(device);
    else makers.push(verbsHca({ core, network: parts.network, guids, device, name, warn: parts.warn }));
  }
  if (refused.length === 0) return makers;
  const text = `${refused.join('; ')}; ${help}`;
  if (makers.length === 0) host.close();
  if (parts.choice !== 'auto' && makers.length === 0) throw new Error(`no RDMA device can be used: ${text}`);
  parts.warn(`An RDMA device is left out: ${text}.`);
  return makers;
}

/**
 * The real HCAs that the option asks for. `auto`: all that there are, and no harm where they cannot be used, but a warning.
 *
 * @throws Error: `rdma`, or the name of a device, and there is none.
 */
export function realHcas(parts: RealHcaParts): RealHcas {
  const { choice } = parts;
  const none: RealHcas = { makers: [], soft: true };
  if (choice === 'soft') return none;
  const present = (parts.names ?? systemDevices)();
  const wanted = choice === 'auto' || choice === 'rdma' ? present : present.filter((name) => name === choice);
  if (wanted.length === 0) {
    if (choice === 'auto') return none;
    const there =
      present.length === 0 ? 'there is none in /sys/class/infiniband' : `there are ${present.join(', ')}`;
    throw new Error(`no RDMA device for the option hca: '${choice}'; ${there} (${help})`);
  }
  try {
    const makers = openAll(openHost(parts), wanted, parts);
    return { makers, soft: choice === 'auto' };
  } catch (error) {
    if (choice !== 'auto') throw error;
    parts.warn(`${error instanceof Error ? error.message : String(error)}. The software HCA is used.`);
    return none;
  }
}
