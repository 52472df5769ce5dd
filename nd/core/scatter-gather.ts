import type { WvMemoryRegion, WvSge } from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** Maximum bytes of a message in InfiniBand; a port may have less. */
export const MAX_TRANSFER = 2 ** 31;

/** Maximum length of a list. Inline requests are not limited by the endpoint's own number. */
const MAX_ENTRIES = 256;

/** Stands for unregistered memory; WinVerbs copies the bytes of an inline request from it. */
class PlainBytes {
  readonly lkey = 0;
  readonly address = 0;
  bytes: Uint8Array = new Uint8Array(0);
}

interface Entry extends WvSge {
  readonly plain: PlainBytes;
}

/** A scatter/gather entry of either version: registered memory or, inline, any bytes. */
export interface SpiSge {
  memory: unknown;
  offset: number;
  length: number;
}

/** Finds registered memory. */
export interface MemoryResolver {
  /** The region of memory that is known to be registered here, otherwise undefined. */
  known(memory: unknown): WvMemoryRegion | undefined;

  /** The same, after processing completed requests. INVALID_HANDLE if it is not registered here. */
  regionOf(memory: unknown, what: string): WvMemoryRegion;
}

/**
 * Converts scatter/gather lists to WinVerbs' form, into one reused list per length: WinVerbs reads them during the call
 * only.
 */
export class ScatterGather {
  readonly #memory: MemoryResolver;
  readonly #maxTransfer: number;
  readonly #lists: Entry[][] = [];
  /** The last converted list. */
  list: readonly WvSge[] = [];
  /** Its total bytes. */
  total = 0;
  /** Whether it has unregistered memory. */
  plain = false;
  /** Whether an entry ends beyond its registration. The HCA finds that; the call cannot copy what is not there. */
  beyond = false;

  /** @param maxTransfer - bytes of a list, at most {@link MAX_TRANSFER} */
  constructor(memory: MemoryResolver, maxTransfer: number) {
    this.#memory = memory;
    this.#maxTransfer = maxTransfer;
  }

  /** @param inline - The list may have unregistered memory. */
  translate(sgl: readonly SpiSge[], what: string, inline = false): void {
    if (!Array.isArray(sgl)) throw noList(what, 'The scatter/gather list', sgl);
    const n = sgl.length;
    const list = this.#lists[n] ?? this.#make(n, what);
    let total = 0;
    this.plain = false;
    this.beyond = false;
    for (let i = 0; i < n; i += 1) {
      const sge = sgl[i]!;
      if (typeof sge !== 'object' || sge === null) throw noList(what, `Entry ${i}`, sge);
      const entry = list[i]!;
      const { memory, offset, length } = sge;
      if (!Number.isSafeInteger(offset) || offset < 0 || length >>> 0 !== length) {
        throw refuse(
          Status.INVALID_PARAMETER,
          what,
          `Entry ${i} has offset ${offset} and length ${length}; both must be whole numbers of bytes, the length below 2^32.`,
        );
      }
      let region: WvSge['region'];
      const known = this.#memory.known(memory);
      if (known !== undefined || !(memory instanceof Uint8Array)) {
        const registered = known ?? this.#memory.regionOf(memory, what);
        if (offset + length > registered.length) this.beyond = true;
        region = registered;
      } else {
        if (offset + length > memory.length) {
          throw refuse(
            Status.ACCESS_VIOLATION,
            what,
            `Entry ${i} ends at byte ${offset + length} of ${memory.length} bytes.`,
          );
        }
        entry.plain.bytes = memory;
        region = entry.plain;
        this.plain = true;
      }
      // Storing an equal value would cost the write barrier of the garbage collector.
      if (entry.region !== region) entry.region = region;
      entry.offset = offset;
      entry.length = length;
      total += length;
    }
    if (total > this.#maxTransfer) {
      throw refuse(
        Status.BUFFER_OVERFLOW,
        what,
        `${total} bytes are more than one request of this adapter carries (${this.#maxTransfer}).`,
      );
    }
    if (this.plain && !inline) throw plainRefused(what);
    this.list = list;
    this.total = total;
  }

  #make(n: number, what: string): Entry[] {
    if (n > MAX_ENTRIES) {
      throw refuse(
        Status.DATA_OVERRUN,
        what,
        `The list has ${n} scatter/gather entries; no endpoint takes that many.`,
      );
    }
    const list: Entry[] = [];
    for (let i = 0; i < n; i += 1) {
      const plain = new PlainBytes();
      list.push({ plain, region: plain, offset: 0, length: 0 });
    }
    this.#lists[n] = list;
    return list;
  }
}

/** The error for unregistered memory where it must be registered. */
export function plainRefused(what: string, maxInline = 0): unknown {
  return refuse(
    Status.INVALID_HANDLE,
    what,
    maxInline > 0
      ? `Only Sends and Writes of at most ${maxInline} bytes can carry memory that is not registered.`
      : 'The memory must be registered.',
  );
}

function noList(what: string, which: string, value: unknown): unknown {
  return refuse(
    Status.INVALID_PARAMETER,
    what,
    `${which} is ${value === null ? 'null' : `of type ${typeof value}`}; a list is an array of objects with memory, offset and length.`,
  );
}
