/** A host of the simulation: its current connection manager, on the host's clock and network. */
import { createConnectionManager } from '../../kernel-bridge/kernel/cm/connection-manager.js';
import type { CmPlatform, CmTimer, ConnectionManager, Gid } from '../../kernel-bridge/kernel/cm/service.js';
import { type CmOptions, cmOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';
import type { HostOptions } from './native-simulation.js';
import type { World } from './world.js';

const NS_PER_MS = 1e6;
/** Number of ids: their low 18 bits. The high bits contain slot and kernel. */
const COMM_IDS = 0x4_0000;
const COMM_ID_BASE = (1 << 24) | (1 << 18);
const CA_GUID_BASE = 0x0200_00ff_fe00_0000n;

/** Addresses from 10.1.0.1 on, one for each host number. */
export function addressOf(number: number): Gid {
  return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1 + (number >> 16), number >> 8, number);
}

export class SimulatedHost {
  readonly number: number;
  /** The vertex of the host in the network. */
  readonly vertex: number;
  readonly gid: Gid;
  /** The connection manager; undefined while the host is off. */
  cm: ConnectionManager | undefined;
  /** Running timers. */
  readonly timers = new Set<number>();
  readonly ids = new Set<number>();
  readonly #world: World;
  #nextId = 0;

  constructor(world: World, number: number) {
    this.#world = world;
    this.number = number;
    this.gid = addressOf(number + 1);
    this.vertex = world.native.addHost(this.gid);
  }

  get isOn(): boolean {
    return this.cm !== undefined;
  }

  /** Starts the host. After a restart, it has the same address and CA GUID but no state. */
  boot(options: HostOptions, cm: Partial<CmOptions>): void {
    this.#world.native.boot(this.vertex, { ...options, slot: 1 });
    this.#nextId = this.#world.below(COMM_IDS);
    this.cm = createConnectionManager(this.#platform(), { ...cmOptionsSchema.parse({}), ...cm });
  }

  /** Stops the host immediately. It sends nothing more. */
  crash(): void {
    this.#world.native.crash(this.vertex);
    for (const id of this.timers) this.#world.cancelTimer(id);
    this.timers.clear();
    this.ids.clear();
    this.cm = undefined;
  }

  /** The remaining state of the host, as text. */
  leftovers(): string[] {
    if (!this.cm) return [];
    const { connections = 0, timewait = 0, waitingRequests = 0 } = this.cm.counters();
    const all: [number, string][] = [
      [connections, 'connections'],
      [timewait, 'in timewait'],
      [waitingRequests, 'waiting requests'],
      [this.timers.size, 'timers'],
      [this.ids.size, 'communication ids'],
      [this.#world.native.objectsLeft(this.vertex), 'objects of the HCA'],
    ];
    return all
      .filter(([count]) => count !== 0)
      .map(([count, what]) => `host ${this.number} still has ${count} ${what}`);
  }

  #platform(): CmPlatform {
    const world = this.#world;
    return {
      sendMad: (path, mad) => world.native.sendMad(this.vertex, path, mad, world.below(1 << 24)),
      setTimer: (milliseconds, expired) => this.#setTimer(milliseconds, expired),
      allocateCommId: () => {
        do this.#nextId = (this.#nextId + 1) % COMM_IDS;
        while (this.#nextId === 0 || this.ids.has(COMM_ID_BASE + this.#nextId));
        this.ids.add(COMM_ID_BASE + this.#nextId);
        return COMM_ID_BASE + this.#nextId;
      },
      releaseCommId: (id) => {
        if (!this.ids.delete(id)) world.fail(`host ${this.number} released id ${id}, which it does not have`);
      },
      randomPsn: () => world.below(1 << 24),
      maxPacketBytes: () => world.settings.packetBytes,
      caGuid: () => CA_GUID_BASE + BigInt(this.number),
    };
  }

  #setTimer(milliseconds: number, expired: () => void): CmTimer {
    const id = this.#world.setTimer(this.vertex, milliseconds * NS_PER_MS, () => {
      this.timers.delete(id);
      expired();
    });
    this.timers.add(id);
    return {
      cancel: () => {
        this.timers.delete(id);
        this.#world.cancelTimer(id);
      },
    };
  }
}
