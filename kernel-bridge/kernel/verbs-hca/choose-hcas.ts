/** Selects the real HCAs of a kernel by the option `hca`. */
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
  /** Creates the object that wakes this thread for events. */
  makeWaker(): object;
  warn(text: string): void;
  /** Names of the RDMA devices. Default: those in sysfs. */
  names?(): string[];
}

export interface RealHcas {
  readonly makers: readonly HcaMaker[];
  /** Whether the software HCA is used as well. */
  readonly soft: boolean;
}

const help = 'see docs/guide/rdma-devices.md for requirements';

/** Opens the host of the selected devices. @throws Error that says what is missing. */
function openHost({ load, makeWaker, choice }: RealHcaParts): VerbsHca {
  const why = (error: unknown): string =>
    error instanceof Error ? error.message.split('\n')[0]! : String(error);
  try {
    return new (load().VerbsHca)(makeWaker());
  } catch (error) {
    throw new Error(`RDMA devices cannot be used (option hca: '${choice}'): ${why(error)}; ${help}`);
  }
}

/** Opens all devices. Under `auto`, devices that an unprivileged process or a container sees but may not open are skipped. */
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
  parts.warn(`An RDMA device is not used: ${text}.`);
  return makers;
}

/**
 * The real HCAs selected by the option. `auto`: all of them; if they cannot be used, only a warning is issued.
 *
 * @throws Error for `rdma` or the name of a device without a match.
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
      present.length === 0 ? '/sys/class/infiniband is empty' : `devices are ${present.join(', ')}`;
    throw new Error(`no RDMA device matches the option hca: '${choice}'; ${there} (${help})`);
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
