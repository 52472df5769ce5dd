/** The objects of one open file of `\\.\WinVerbs`, and their tables. */
import type { IbAl } from '../hca-driver/al.js';
import type { Hca, IbAv, IbCa, IbCq, IbMr, IbMw, IbPd, IbSrq } from '../hca-driver/ib-objects.js';
import type { DeviceObject } from '../io-manager/device-object.js';
import { IrpQueue } from '../io-manager/irp.js';
import type { Endpoint } from './connect-endpoint.js';
import type { DatagramEndpoint } from './datagram-endpoint.js';
import type { WvQp } from './endpoint-qp.js';

const indexBits = 20;
/** Ids are exact numbers: 20 bits of index, 32 bits of generation. */
const indexCount = 2 ** indexBits;

/** The id of an IOCTL as a number; impossible ids become 0. */
export function idOf(id: bigint): number {
  return id > 0n && id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : 0;
}

/** A table whose ids contain a generation: a freed id is never valid again, although its index is reused. */
export class ObjectTable<T> {
  private readonly values: (T | undefined)[] = [];
  private readonly generations: number[] = [];
  private readonly free: number[] = [];
  private live = 0;

  constructor(private readonly limit = indexCount) {}

  get size(): number {
    return this.live;
  }

  get full(): boolean {
    return this.live >= this.limit;
  }

  /** Adds an object and returns its id, never 0. The caller has checked {@link full}. */
  add(value: T): number {
    const index = this.free.pop() ?? this.values.length;
    // The first generation is 1, so that no id is 0.
    const generation = ((this.generations[index] ?? 0) + 1) >>> 0 || 1;
    this.generations[index] = generation;
    this.values[index] = value;
    this.live++;
    return generation * indexCount + index;
  }

  get(id: number): T | undefined {
    const index = id % indexCount;
    return this.generations[index] === Math.floor(id / indexCount) ? this.values[index] : undefined;
  }

  delete(id: number): T | undefined {
    const value = this.get(id);
    if (value === undefined) return undefined;
    const index = id % indexCount;
    this.values[index] = undefined;
    this.free.push(index);
    this.live--;
    return value;
  }

  /** The current objects and their ids; the table may change during the iteration. */
  entries(): [number, T][] {
    const found: [number, T][] = [];
    for (const [index, value] of this.values.entries()) {
      if (value !== undefined) found.push([this.generations[index]! * indexCount + index, value]);
    }
    return found;
  }
}

/** An open HCA. Port events accumulate in `flags` until a request fetches them (WV_EVENT_*). */
export class WvDevice {
  ca: IbCa | undefined = undefined;
  /** Closes the HCA's file opened by the filter. */
  closed: () => void = () => {};
  flags = 0;
  readonly portWaits = new IrpQueue();
}

/** A protection domain and its regions by lkey; regions have no ids of their own. */
export class WvPd {
  readonly regions = new Map<number, IbMr>();

  constructor(readonly pd: IbPd) {}
}

/** An endpoint of any type. */
export type AnyEndpoint = Endpoint | DatagramEndpoint;

/** The tables of one file. Ids are valid only in their own table. */
export class WvFile {
  closing = false;

  constructor(
    /** The client under which the filter opens HCAs. */
    readonly al: IbAl,
  ) {}

  /** The HCA's device, if this is an HCA's own file instead of `\\.\WinVerbs`. */
  hcaDevice: DeviceObject<Hca> | undefined = undefined;
  readonly devices = new ObjectTable<WvDevice>();
  readonly cqs = new ObjectTable<IbCq>();
  readonly pds = new ObjectTable<WvPd>();
  readonly srqs = new ObjectTable<IbSrq>();
  readonly qps = new ObjectTable<WvQp>();
  readonly mws = new ObjectTable<IbMw>();
  readonly ahs = new ObjectTable<IbAv>();
  readonly endpoints = new ObjectTable<AnyEndpoint>();

  /** Number of objects of all kinds. */
  get objectCount(): number {
    const tables = [
      this.devices,
      this.cqs,
      this.pds,
      this.srqs,
      this.qps,
      this.mws,
      this.ahs,
      this.endpoints,
    ];
    return tables.reduce((sum, table) => sum + table.size, 0);
  }
}
