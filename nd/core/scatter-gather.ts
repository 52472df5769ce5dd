import type { WvSge } from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** Bytes of one request at most. */
export const MAX_TRANSFER = 2 ** 31;

/** No list is longer, whatever limit an endpoint has: inline requests are not bound by the endpoint's. */
const MAX_ENTRIES = 256;

/** Stands for memory that is not registered; WinVerbs takes the bytes of an inline request from it. */
class PlainBytes {
  readonly lkey = 0;
  readonly address = 0;
  bytes: Uint8Array = new Uint8Array(0);
}

interface Entry extends WvSge {
  readonly plain: PlainBytes;
}

/** A scatter/gather entry of either version: bytes of memory that is registered, or, inline, of any. */
export interface SpiSge {
  memory: unknown;
  offset: number;
  length: number;
}

/** Where registered memory is known. */
export interface MemoryResolver {
  /** What requests use of memory that is known to be registered here; undefined of anything else. */
  known(memory: unknown): WvSge['region'] | undefined;

  /** The same, after a look at what has happened to it by now. INVALID_HANDLE if it is not registered here. */
  regionOf(memory: unknown, what: string): WvSge['region'];
}

/**
 * Turns scatter/gather lists into WinVerbs' form, in lists that are made once per length: WinVerbs reads them during
 * the call.
 */
export class ScatterGather {
  readonly #memory: MemoryResolver;
  readonly #lists: Entry[][] = [];
  /** The last translated list. */
  list: readonly WvSge[] = [];
  /** Its bytes in all. */
  total = 0;
  /** Whether it holds memory that is not registered. */
  plain = false;

  constructor(memory: MemoryResolver) {
    this.#memory = memory;
  }

  translate(sgl: readonly SpiSge[], what: string): void {
    if (!Array.isArray(sgl)) throw noList(what, 'The scatter/gather list', sgl);
    const n = sgl.length;
    const list = this.#lists[n] ?? this.#make(n, what);
    let total = 0;
    this.plain = false;
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
      let region = this.#memory.known(memory);
      if (region === undefined) {
        if (memory instanceof Uint8Array) {
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
        } else {
          region = this.#memory.regionOf(memory, what);
        }
      }
      // A store of what is there already would be told to the garbage collector all the same.
      if (entry.region !== region) entry.region = region;
      entry.offset = offset;
      entry.length = length;
      total += length;
    }
    if (total > MAX_TRANSFER) {
      throw refuse(
        Status.BUFFER_OVERFLOW,
        what,
        `${total} bytes are more than one request carries (${MAX_TRANSFER}).`,
      );
    }
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

function noList(what: string, which: string, value: unknown): unknown {
  return refuse(
    Status.INVALID_PARAMETER,
    what,
    `${which} is ${value === null ? 'null' : `of type ${typeof value}`}; a list is an array of objects with memory, offset and length.`,
  );
}
