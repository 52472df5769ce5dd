import { inspect } from 'node:util';
import { type IND2MemoryRegion, Nd2MrFlag } from '../index.js';
import type { Channel } from './channel.js';
import { NetError, netError } from './errors.js';
import type { Place, Registered } from './place.js';
import { encodeMemory, viewOf } from './wire.js';

/** Rights of exposed memory. */
export interface ExposeOptions {
  /** Peers may also write, compareExchange and fetchAdd; default false. */
  readonly writable?: boolean | undefined;
}

/** The bit of a handle's rights that allows writing. */
export const WRITABLE = 1;

/**
 * Operations of an ATOMIC frame, whose payload has {@link ATOMIC_BYTES}: operation (1), zeros (3), token (4), offset (8), two operands (8
 * each). The second operand of FETCH_ADD is 0.
 */
export const Atomic = { COMPARE_EXCHANGE: 0, FETCH_ADD: 1 } as const;

/** Warns of memory whose object was collected without release. The region is not released here: peers may be using it. */
const unreleased = new FinalizationRegistry<string>((what) => {
  process.emitWarning(`${what} was not released: call release(), or use \`using\`.`, 'NetworkDirectWarning');
});

/** Exposed memory as the connections of one local address reach it. */
interface Part {
  readonly place: Place;
  readonly region: IND2MemoryRegion;
  readonly token: number;
  readonly handle: Uint8Array;
}

/**
 * Memory that peers may access until it is released.
 *
 * @example
 * ```ts
 * const table = allocate(1 << 20);
 * using exposed = await channel.expose(table, { writable: true });
 * // A peer opens it by this handle: channel.open(handle).
 * await channel.send(exposed.handle);
 * ```
 */
export class ExposedMemory implements Disposable {
  readonly #parts: readonly Part[];
  readonly #rights: string;
  #released = false;
  /** The memory itself. */
  readonly bytes: Uint8Array;

  /** Takes over a reference to each place. @internal */
  constructor(bytes: Uint8Array, writable: boolean, regions: ReadonlyMap<Place, IND2MemoryRegion>) {
    this.bytes = bytes;
    this.#rights = writable ? 'read and write' : 'read';
    const aligned = bytes.byteOffset % 8 === 0;
    const atomics =
      writable && aligned ? new BigInt64Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 3) : undefined;
    this.#parts = Array.from(regions, ([place, region]) => {
      const token = region.getRemoteToken();
      place.exposed.set(token, { bytes, atomics });
      const id = writable ? WRITABLE : 0;
      const handle = encodeMemory({ address: region.address, token, id, length: bytes.length });
      return { place, region, token, handle };
    });
    unreleased.register(this, `Exposed memory of ${bytes.length} bytes`, this);
  }

  /**
   * What a peer needs for {@link Channel.open}: 24 bytes that travel in a message. Whoever has them on a connection has the access.
   *
   * @throws NetError `EINVAL`: the memory is exposed at several addresses, by a server; {@link handleFor} tells the one of a channel
   */
  get handle(): Uint8Array {
    if (this.#parts.length === 1) return this.#parts[0]!.handle;
    throw new NetError(
      'EINVAL',
      `The memory is exposed at ${this.#parts.length} addresses, and has a handle for each: use handleFor(channel).`,
    );
  }

  /**
   * The handle for the peer of a channel.
   *
   * @param channel - of the server, or at the address, that has exposed the memory
   * @throws NetError `EINVAL`: another channel
   */
  handleFor(channel: Channel): Uint8Array {
    const part = this.#parts.find(({ place }) => place === channel.place);
    if (part !== undefined) return part.handle;
    throw new NetError('EINVAL', 'The memory is not exposed at the local address of this channel.');
  }

  /** Withdraws the access. A peer that uses it afterwards loses its connection. It never fails. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    unreleased.unregister(this);
    for (const { place, region, token } of this.#parts) {
      place.exposed.delete(token);
      region.release();
      place.letGo();
    }
  }

  /** {@link release}, for `using`. */
  [Symbol.dispose](): void {
    this.release();
  }

  /** @internal */
  [inspect.custom](): string {
    return `ExposedMemory { ${this.bytes.length} bytes, ${this.#released ? 'released' : this.#rights} }`;
  }
}

/**
 * Memory that was registered once for many messages, of all connections of a local address. A peer can read the bytes of each message
 * that it gets, on its connection alone, until it has reported that it has read them; it never sees the rest.
 *
 * @example
 * ```ts
 * using lent = await channel.lend(allocate(1 << 20));
 * lent.bytes.fill(7);
 * // Sent from where it is, without a copy.
 * await channel.send(lent.bytes);
 * ```
 */
export class LentMemory implements Disposable {
  readonly #place: Place;
  readonly #memory: Registered;
  #released = false;

  /** Takes over a reference to the place. @internal */
  constructor(place: Place, memory: Registered) {
    this.#place = place;
    this.#memory = memory;
    const { buffer } = memory.bytes;
    const before = place.lent.get(buffer);
    if (before === undefined) place.lent.set(buffer, [memory]);
    else before.push(memory);
    unreleased.register(this, `Lent memory of ${memory.bytes.length} bytes`, this);
  }

  /** The memory itself. */
  get bytes(): Uint8Array {
    return this.#memory.bytes;
  }

  /**
   * Ends the registration, and the access of peers that are reading messages from it: release it after the sends from it have resolved. It
   * never fails.
   */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    unreleased.unregister(this);
    const { lent } = this.#place;
    const left = (lent.get(this.bytes.buffer) ?? []).filter((memory) => memory !== this.#memory);
    if (left.length === 0) lent.delete(this.bytes.buffer);
    else lent.set(this.bytes.buffer, left);
    for (const grant of this.#memory.grants ?? []) grant.cut();
    this.#memory.region.release();
    this.#place.letGo();
  }

  /** {@link release}, for `using`. */
  [Symbol.dispose](): void {
    this.release();
  }

  /** @internal */
  [inspect.custom](): string {
    return `LentMemory { ${this.bytes.length} bytes${this.#released ? ', released' : ''} }`;
  }
}

/** Exposes memory to the peers of places. @internal */
export async function exposeAt(
  places: readonly Place[],
  buffer: Uint8Array,
  { writable = false }: ExposeOptions = {},
): Promise<ExposedMemory> {
  const flags = writable
    ? Nd2MrFlag.ALLOW_REMOTE_READ | Nd2MrFlag.ALLOW_REMOTE_WRITE
    : Nd2MrFlag.ALLOW_REMOTE_READ;
  const regions = new Map<Place, IND2MemoryRegion>();
  // The connections that hold the places may end while the memory is registered.
  for (const place of places) place.hold();
  try {
    for (const place of places) regions.set(place, (await place.register(buffer, flags)).region);
    return new ExposedMemory(buffer, writable, regions);
  } catch (error) {
    for (const region of regions.values()) region.release();
    for (const place of places) place.letGo();
    throw netError(error, 'expose');
  }
}

/** Lends memory to a place. @internal */
export async function lendAt(place: Place, buffer: Uint8Array): Promise<LentMemory> {
  // The connection that holds the place may end while the memory is registered.
  place.hold();
  try {
    const memory = await place.registerFor(buffer, 0);
    return new LentMemory(place, { ...memory, grants: new Set() });
  } catch (error) {
    place.letGo();
    throw netError(error, 'lend');
  }
}

/** The payload of an ATOMIC frame names an operation, and nothing that no operation has. @internal */
export function isAtomic(payload: Uint8Array): boolean {
  const view = viewOf(payload);
  // The operation, and the zeros behind it.
  const operation = view.getUint32(0) / 2 ** 24;
  if (operation === Atomic.FETCH_ADD) return view.getBigUint64(24) === 0n;
  return operation === Atomic.COMPARE_EXCHANGE;
}

/** Executes a peer's operation, which {@link isAtomic}. Returns the previous value in 8 bytes, or why there is none. @internal */
export function executeAtomic(place: Place, payload: Uint8Array): Uint8Array | string {
  const view = viewOf(payload);
  const memory = place.exposed.get(view.getUint32(4));
  if (memory === undefined) return 'The memory is not exposed any more.';
  const { atomics } = memory;
  if (atomics === undefined) return 'The memory is not writable, or does not begin at a multiple of 8 bytes.';
  const offset = Number(view.getBigUint64(8));
  if (offset % 8 !== 0 || offset / 8 >= atomics.length) return `There are no 8 bytes at offset ${offset}.`;
  const operand = view.getBigInt64(16);
  const index = offset / 8;
  const before =
    view.getUint8(0) === Atomic.FETCH_ADD
      ? Atomics.add(atomics, index, operand)
      : Atomics.compareExchange(atomics, index, operand, view.getBigInt64(24));
  const answer = new Uint8Array(8);
  viewOf(answer).setBigInt64(0, before);
  return answer;
}
