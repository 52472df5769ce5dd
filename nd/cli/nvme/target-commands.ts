/** The commands of the target, by queue and opcode. */

import {
  Admin,
  ALL_NAMESPACES,
  BlockCommand,
  Command,
  CommandError,
  Feature,
  FeatureCommand,
  IdentifyCommand,
  Io,
  Log,
  LogCommand,
  NvmeStatus,
  PropertyCommand,
} from './capsules.js';
import { IDENTIFY_BYTES, Identify } from './identify.js';
import { Layout, u8, u16 } from './little-endian.js';
import {
  discoveryLog,
  IO_QUEUES,
  type Namespace,
  type Subsystem,
  type TargetController,
} from './target-controller.js';
import type { DataPlan, TargetCommand, Work } from './target-queue.js';

/** The parts of the target that commands use. */
export interface CommandPlace {
  readonly subsystems: readonly Subsystem[];
  /** The port of the target. */
  readonly port: number;
  /** Returns the controller of a command's queue. */
  controller(work: Work): TargetController;
}

const { INVALID_FIELD, INVALID_LOG_PAGE, LBA_OUT_OF_RANGE } = NvmeStatus;

/** SMART / health information (Base §5.16.1.3): the fields that hosts check. */
const Health = new Layout('health log', 512, { temperature: u16(1), spare: u8(3), spareThreshold: u8(4) });
const health = Health.make({ temperature: 300, spare: 100, spareThreshold: 10 });

const namespaceOf = ({ command }: Work): number => Command.parse(command).namespaceId;

/** Commands of admin queues. */
export function adminCommands(place: CommandPlace): ReadonlyMap<number, TargetCommand> {
  return new Map<number, TargetCommand>([
    [Admin.IDENTIFY, identify(place)],
    [Admin.GET_LOG_PAGE, getLog(place)],
    [Admin.SET_FEATURES, setFeatures(place)],
    [Admin.GET_FEATURES, getFeatures(place)],
    // The command completes only on an event, and no event occurs.
    [Admin.ASYNC_EVENT_REQUEST, { run: () => new Promise(() => {}) }],
    // Result 1 means that the command was not aborted.
    [Admin.ABORT, { run: () => 1n }],
    [Admin.KEEP_ALIVE, { run: () => 0n }],
  ]);
}

function identify(place: CommandPlace): TargetCommand {
  const structure = (work: Work): Buffer => {
    const controller = place.controller(work);
    const id = namespaceOf(work);
    switch (IdentifyCommand.parse(work.command).structure) {
      case Identify.CONTROLLER:
        return controller.identifyController();
      case Identify.NAMESPACE:
        return controller.identifyNamespace(id);
      case Identify.ACTIVE_NAMESPACES:
        return controller.activeNamespaces(id);
      case Identify.NAMESPACE_DESCRIPTORS:
        return controller.namespaceDescriptors(id);
      default:
        throw new CommandError(INVALID_FIELD);
    }
  };
  return {
    data: () => ({ direction: 'in', length: IDENTIFY_BYTES }),
    run: (work) => {
      work.data.set(structure(work));
      return 0n;
    },
  };
}

function getLog(place: CommandPlace): TargetCommand {
  const page = (work: Work, id: number): Buffer => {
    const { subsystem, host } = place.controller(work);
    if (id === Log.DISCOVERY && subsystem.discovery) {
      return discoveryLog(place.subsystems, host.name, { ...work.queue.localAddress, port: place.port });
    }
    if (id === Log.HEALTH) return health;
    // There are no entries to report.
    if (id === Log.ERRORS || id === Log.FIRMWARE) return Buffer.alloc(0);
    throw new CommandError(INVALID_LOG_PAGE);
  };
  return {
    data: ({ command }) => {
      const { dwordsLow, dwordsHigh } = LogCommand.parse(command);
      return { direction: 'in', length: 4 * (dwordsLow + dwordsHigh * 0x1_0000 + 1) };
    },
    run: (work) => {
      const { page: id, offset } = LogCommand.parse(work.command);
      const all = page(work, id);
      if (offset % 4 !== 0) throw new CommandError(INVALID_FIELD);
      work.data.set(all.subarray(offset, offset + work.data.length));
      return 0n;
    },
  };
}

function setFeatures(place: CommandPlace): TargetCommand {
  return {
    run: (work) => {
      const { feature, value } = FeatureCommand.parse(work.command);
      const controller = place.controller(work);
      if (feature === Feature.QUEUES) {
        const wanted = Math.max(value & 0xffff, value >>> 16);
        const granted = Math.min(wanted, IO_QUEUES - 1);
        return BigInt(granted | (granted << 16));
      }
      if (feature === Feature.ASYNC_EVENTS) controller.asyncEvents = value;
      else if (feature === Feature.KEEP_ALIVE) controller.keepAliveMs = value;
      else throw new CommandError(INVALID_FIELD);
      return 0n;
    },
  };
}

function getFeatures(place: CommandPlace): TargetCommand {
  return {
    run: (work) => {
      const controller = place.controller(work);
      const last = IO_QUEUES - 1;
      switch (FeatureCommand.parse(work.command).feature) {
        case Feature.QUEUES:
          return BigInt(last | (last << 16));
        case Feature.ASYNC_EVENTS:
          return BigInt(controller.asyncEvents);
        case Feature.KEEP_ALIVE:
          return BigInt(controller.keepAliveMs);
        default:
          throw new CommandError(INVALID_FIELD);
      }
    },
  };
}

/** Property Get, which both kinds of queues support. */
export const propertyGet = (place: CommandPlace): TargetCommand => ({
  run: (work) => place.controller(work).property(PropertyCommand.parse(work.command).offset),
});

export const propertySet = (place: CommandPlace): TargetCommand => ({
  run: (work) => {
    const { offset, value } = PropertyCommand.parse(work.command);
    place.controller(work).setProperty(offset, value % 0x1_0000_0000);
    return 0n;
  },
});

/** Commands of I/O queues. */
export function ioCommands(place: CommandPlace): ReadonlyMap<number, TargetCommand> {
  const of = (work: Work): Namespace => place.controller(work).namespace(namespaceOf(work));
  const range = (work: Work) => rangeOf(of(work), work.command);
  const moving =
    (direction: DataPlan['direction']) =>
    (work: Work): DataPlan => ({ direction, length: range(work).length });
  return new Map<number, TargetCommand>([
    [
      Io.READ,
      {
        data: moving('in'),
        run: async (work) => {
          await of(work).store.read(work.data, range(work).position);
          return 0n;
        },
      },
    ],
    [
      Io.WRITE,
      {
        data: moving('out'),
        run: async (work) => {
          await of(work).store.write(work.data, range(work).position);
          return 0n;
        },
      },
    ],
    [
      Io.WRITE_ZEROES,
      {
        run: async (work) => {
          const { length, position } = range(work);
          await of(work).store.zero(length, position);
          return 0n;
        },
      },
    ],
    [Io.FLUSH, { run: (work) => flush(place.controller(work), namespaceOf(work)) }],
  ]);
}

async function flush(controller: TargetController, id: number): Promise<bigint> {
  const all = [...controller.subsystem.namespaces.values()];
  const chosen = id === ALL_NAMESPACES ? all : [controller.namespace(id)];
  await Promise.all(chosen.map(({ store }) => store.flush()));
  return 0n;
}

/** The byte range of a command. @throws CommandError */
function rangeOf({ store, blockSize }: Namespace, command: Buffer): { position: number; length: number } {
  const { start, count } = BlockCommand.parse(command);
  const blocks = Math.floor(store.size / blockSize);
  if (start + count + 1 > blocks) throw new CommandError(LBA_OUT_OF_RANGE);
  return { position: start * blockSize, length: (count + 1) * blockSize };
}
