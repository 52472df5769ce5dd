import { kindOf, shown } from '../../kernel-bridge/ioctl/shown.js';
import type { WvMemoryRegion, WvSge } from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** Maximum length of an InfiniBand message in bytes; a port may support less. */
export const MAX_TRANSFER = 2 ** 31;

/** Maximum length of a list. The endpoint's own limit does not apply to inline requests. */
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
  /** Returns the region of memory that is known to be registered here, otherwise undefined. */
  known(memory: unknown): WvMemoryRegion | undefined;

  /**
   * The same as {@link known}, after processing completed requests. Throws INVALID_HANDLE if it is not registered here;
   * `name` is the parameter, by default `memory`.
   */
  regionOf(memory: unknown, what: string, name?: string): WvMemoryRegion;
}

/**
 * Converts scatter/gather lists to WinVerbs' form, into one reused list per length. WinVerbs reads them only during the
 * call.
 */
export class ScatterGather {
  readonly #memory: MemoryResolver;
  readonly #maxTransfer: number;
  readonly #lists: Entry[][] = [];
  /** The last converted list. */
  list: readonly WvSge[] = [];
  /** Total length of the list, in bytes. */
  total = 0;
  /** Whether the list has unregistered memory. */
  plain = false;
  /**
   * Whether an entry ends beyond its registration. The HCA reports such an entry; an inline request cannot copy the
   * missing bytes.
   */
  beyond = false;

  /** @param maxTransfer - maximum length of a list in bytes, at most {@link MAX_TRANSFER} */
  constructor(memory: MemoryResolver, maxTransfer: number) {
    this.#memory = memory;
    this.#maxTransfer = maxTransfer;
  }

  /** @param inline - whether the list may have unregistered memory */
  translate(sgl: readonly SpiSge[], what: string, inline = false): void {
    if (!Array.isArray(sgl)) throw noList(what, '`sgl`', sgl);
    const n = sgl.length;
    const list = this.#lists[n] ?? this.#make(n, what);
    let total = 0;
    this.plain = false;
    this.beyond = false;
    for (let i = 0; i < n; i += 1) {
      const sge = sgl[i]!;
      if (typeof sge !== 'object' || sge === null) throw noList(what, `\`sgl[${i}]\``, sge);
      const entry = list[i]!;
      const { memory, offset, length } = sge;
      if (
        !Number.isSafeInteger(offset) ||
        offset < 0 ||
        typeof length !== 'number' ||
        length >>> 0 !== length
      ) {
        throw refuse(
          Status.INVALID_PARAMETER,
          what,
          `\`sgl[${i}]\` must have a non-negative integer as offset, and a length below 2^32; got ${shown(offset)} and ${shown(length)}.`,
        );
      }
      let region: WvSge['region'];
      const known = this.#memory.known(memory);
      if (known !== undefined || !(memory instanceof Uint8Array)) {
        const registered = known ?? this.#memory.regionOf(memory, what, `sgl[${i}].memory`);
        if (offset + length > registered.length) this.beyond = true;
        region = registered;
      } else {
        if (offset + length > memory.length) {
          throw refuse(
            Status.ACCESS_VIOLATION,
            what,
            `\`sgl[${i}]\` must end within the ${memory.length} bytes of its memory; got an end of ${offset + length}.`,
          );
        }
        entry.plain.bytes = memory;
        region = entry.plain;
        this.plain = true;
      }
      // Storing an equal value would still cost the write barrier of the garbage collector.
      if (entry.region !== region) entry.region = region;
      entry.offset = offset;
      entry.length = length;
      total += length;
    }
    if (total > this.#maxTransfer) {
      throw refuse(
        Status.BUFFER_OVERFLOW,
        what,
        `\`sgl\` must have at most ${this.#maxTransfer} bytes in total; got ${total}.`,
      );
    }
    if (this.plain && !inline) throw plainRefused(what);
    this.list = list;
    this.total = total;
  }

  #make(n: number, what: string): Entry[] {
    if (n > MAX_ENTRIES) {
      throw refuse(Status.DATA_OVERRUN, what, `\`sgl\` must have at most ${MAX_ENTRIES} entries; got ${n}.`);
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

/** Returns the error for unregistered memory in a request that needs registered memory. */
export function plainRefused(what: string, maxInline = 0): unknown {
  return refuse(
    Status.INVALID_HANDLE,
    what,
    maxInline > 0
      ? `\`memory\` must be registered, except in Sends and Writes of at most ${maxInline} bytes; got a Uint8Array.`
      : '`memory` must be registered; got a Uint8Array.',
  );
}

function noList(what: string, which: string, value: unknown): unknown {
  return refuse(
    Status.INVALID_PARAMETER,
    what,
    `${which} must be ${which === '`sgl`' ? 'an array of objects' : 'an object'} with memory, offset and length; got ${kindOf(value)}.`,
  );
}
