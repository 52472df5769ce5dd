/** The commands of a real HCA: {@link NativeHca} over those of the native host, which serves all devices. */

import { commandsOf, type RawCommand, type RawCommands } from '../../hca/command-words.js';
import type { ConnectAttributes, HcaEvent, HcaLimits, NativeHca } from '../../hca/soft-hca-binding.js';
import type { VerbsHca } from '../../hca/verbs-binding.js';
import { Status } from '../../ioctl/status.js';
import { isMulticast } from '../hca-driver/hca-ports.js';

/** The context that the commands need. */
export interface VerbsSurroundings {
  /** Current number of the device; 0: it is gone. */
  readonly number: number;
  readonly limits: HcaLimits;
  /** Takes the next event of this device. */
  nextEvent(): HcaEvent | undefined;
  /** The id of the connection with these attributes; 0: none. */
  connectionFor(attributes: ConnectAttributes): number;
  /** Joins a group on an interface to receive its packets: returns a status and a function to leave. */
  join(group: Uint8Array, interfaceIndex: number): { status: number; leave(): void };
  /** Called when the OS has refused to lock memory. */
  memoryRefused(): void;
}

type Counts = ReturnType<NativeHca['objectCounts']>;
type Kind = keyof typeof lives;

/** The commands that create and destroy each kind of object. */
const lives = {
  pd: ['allocatePd', 'deallocatePd'],
  mr: ['registerMr', 'deregisterMr'],
  mw: ['allocateMw', 'deallocateMw'],
  cq: ['createCq', 'destroyCq'],
  qp: ['createQp', 'destroyQp'],
  srq: ['createSrq', 'destroySrq'],
  ah: ['createAh', 'destroyAh'],
} as const;

/** Commands that count the objects that they create and destroy. */
function counting(raw: RawCommands, counts: Counts): RawCommands {
  const counted = (kind: Kind, change: 1 | -1, command: RawCommand): RawCommand => {
    return (...values) => {
      const status = command(...values);
      if (status === Status.SUCCESS) counts[kind] = (counts[kind] ?? 0) + change;
      return status;
    };
  };
  const all: { -readonly [Name in keyof RawCommands]: RawCommands[Name] } = { ...raw };
  for (const kind of Object.keys(lives) as Kind[]) {
    const [create, destroy] = lives[kind];
    all[create] = counted(kind, 1, raw[create]);
    all[destroy] = counted(kind, -1, raw[destroy]);
  }
  return all;
}

/** The commands of one device, which may be removed and return. */
export function verbsNative(host: VerbsHca, around: VerbsSurroundings): NativeHca {
  const counts: Counts = {
    pd: 0,
    mr: 0,
    mw: 0,
    cq: 0,
    qp: 0,
    srq: 0,
    ah: 0,
    ring: 0,
    range: 0,
    pkeyTable: 0,
  };
  const commands = commandsOf(counting(host.commands, counts), host, () => around.number);
  /** Memberships, by queue pair, group and interface. */
  const groups = new Map<string, () => void>();
  return {
    ...commands,
    limits: around.limits,
    takeEvent: () => around.nextEvent(),

    registerMr(pd, address, length, access) {
      const made = commands.registerMr(pd, address, length, access);
      if (made.status === Status.INSUFFICIENT_RESOURCES) around.memoryRefused();
      return made;
    },
    connectQp(qp, steps, attributes) {
      const connection = around.connectionFor(attributes);
      // The peer has given up the connection in the meantime.
      if (connection === 0) return Status.CONNECTION_ABORTED;
      return commands.connectQp(qp, steps, attributes, connection);
    },
    destroyQp(qp) {
      const status = commands.destroyQp(qp);
      if (status !== Status.SUCCESS) return status;
      for (const [key, leave] of [...groups]) {
        if (!key.startsWith(`${qp}/`)) continue;
        groups.delete(key);
        leave();
      }
      return status;
    },
    attachMulticast(qp, group, interfaceIndex) {
      const key = groupKey(qp, group, interfaceIndex);
      if (group.length !== 16 || !isMulticast(group)) return Status.INVALID_ADDRESS;
      if (interfaceIndex === 0) return Status.INVALID_PARAMETER;
      if (groups.has(key)) return Status.INVALID_DEVICE_STATE;
      const attached = commands.attachMulticast(qp, group, interfaceIndex);
      if (attached !== Status.SUCCESS) return attached;
      const { status, leave } = around.join(group, interfaceIndex);
      if (status === Status.SUCCESS) groups.set(key, leave);
      else commands.detachMulticast(qp, group, interfaceIndex);
      return status;
    },
    detachMulticast(qp, group, interfaceIndex) {
      const key = groupKey(qp, group, interfaceIndex);
      const leave = groups.get(key);
      if (!leave) return Status.INVALID_PARAMETER;
      groups.delete(key);
      leave();
      return commands.detachMulticast(qp, group, interfaceIndex);
    },

    counters: () => host.counters(),
    objectCounts: () => ({ ...counts }),
    close() {
      for (const leave of groups.values()) leave();
      groups.clear();
    },
  };
}

function groupKey(qp: number, group: Uint8Array, interfaceIndex: number): string {
  return `${qp}/${Buffer.from(group).toString('hex')}/${interfaceIndex}`;
}
