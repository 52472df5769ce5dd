import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { type Overlapped, Status, type WvMemoryRegion } from '../../winverbs/index.js';
import type { AdapterObject } from '../core/adapter-object.js';
import type { MemoryResolver } from '../core/scatter-gather.js';
import { refuse } from '../status.js';
import { MemoryRegion } from './memory-region.js';

/** An adapter of v2, with the members that its memory regions use. */
export interface RegionAdapter extends AdapterObject {
  readonly regions: RegisteredRegions;
  /** Registers memory. `flags` is an OR of Nd2MrFlag, already checked. */
  register(buffer: ArrayBufferLike | ArrayBufferView, flags: number): Overlapped<WvMemoryRegion>;
}

/** Finds the registered memory of an adapter by region or local token. */
export class RegisteredRegions implements MemoryResolver {
  /** Regions with memory for requests. */
  readonly tokens = new Map<number, MemoryRegion>();

  constructor(private readonly adapter: AdapterObject) {}

  known(memory: unknown): WvMemoryRegion | undefined {
    if (memory === undefined || memory === null) return undefined;
    // Reading a member first shows V8 the object's class, so that `instanceof` costs no instructions.
    const region = memory as MemoryRegion;
    return region.adapter === this.adapter && region instanceof MemoryRegion ? region.usable : undefined;
  }

  regionOf(memory: unknown, what: string, name = 'memory'): WvMemoryRegion {
    if (typeof memory === 'number') return this.#regionOfToken(memory, what, name);
    if (!(memory instanceof MemoryRegion) || memory.adapter !== this.adapter) {
      throw refuse(
        Status.INVALID_HANDLE,
        what,
        `\`${name}\` must be a region returned by createMemoryRegion of this adapter instance; got ${shown(memory)}.`,
      );
    }
    const { region } = memory;
    if (region === undefined) {
      throw refuse(
        Status.INVALID_HANDLE,
        what,
        `\`${name}\` must have registered memory. Call register() first.`,
      );
    }
    return region;
  }

  #regionOfToken(token: number, what: string, name: string): WvMemoryRegion {
    const usable = this.tokens.get(token)?.usable;
    if (usable !== undefined) return usable;
    const text = `\`${name}\` must be a region of this adapter instance, or its token from getLocalToken(); got ${shown(token)}.`;
    throw refuse(Status.INVALID_HANDLE, what, text);
  }
}
