import { inspect } from 'node:util';
import { type IND2MemoryRegion, Nd2MrFlag } from '../../index.js';
import { NetError, netError } from '../base/errors.js';
import type { Channel } from '../channel/channel.js';
import { encodeMemory, viewOf } from '../connection/frames.js';
import type { LocalContext } from '../connection/local-context.js';
import { unreleased } from './unreleased-memory.js';

/** Rights of exposed memory. */
export interface ExposeOptions {
  /** Peers may also write, compareExchange and fetchAdd; default false. */
  readonly writable?: boolean | undefined;
  /**
   * Peers may also {@link RemoteMemory.map} it, if they are processes of this user on this host; default false. What they have mapped they keep
   * after the memory is released: do not use it for anything else then. Memory of `allocate()` only.
   */
  readonly views?: boolean | undefined;
}

/** The bit of a handle's rights that allows writing. */
export const WRITABLE = 1;
/** The bit of a handle's rights that allows views. */
export const VIEWS = 2;

/**
 * Operations of an ATOMIC frame, whose payload has {@link ATOMIC_BYTES}: operation (1), zeros (3), token (4), offset (8), two operands (8
 * each). The second operand of FETCH_ADD is 0.
 */
export const Atomic = { COMPARE_EXCHANGE: 0, FETCH_ADD: 1 } as const;

/** Exposed memory as the connections of one local address reach it. */
interface Part {
  readonly context: LocalContext;
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

  /** Takes over a reference to each context. @internal */
  constructor(
    bytes: Uint8Array,
    rights: { readonly writable: boolean; readonly views: boolean },
    regions: ReadonlyMap<LocalContext, IND2MemoryRegion>,
  ) {
    const { writable } = rights;
    this.bytes = bytes;
    this.#rights = rightsText(rights);
    const aligned = bytes.byteOffset % 8 === 0;
    const atomics =
      writable && aligned ? new BigInt64Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 3) : undefined;
    this.#parts = Array.from(regions, ([context, region]) => {
      const token = region.getRemoteToken();
      context.exposed.set(token, { bytes, atomics });
      const id = (writable ? WRITABLE : 0) | (rights.views ? VIEWS : 0);
      const handle = encodeMemory({ address: region.address, token, id, length: bytes.length });
      return { context, region, token, handle };
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
    const part = this.#parts.find(({ context }) => context === channel.context);
    if (part !== undefined) return part.handle;
    throw new NetError('EINVAL', 'The memory is not exposed at the local address of this channel.');
  }

  /** Withdraws the access. A peer that uses it afterwards loses its connection. It never fails. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    unreleased.unregister(this);
    for (const { context, region, token } of this.#parts) {
      context.exposed.delete(token);
      region.release();
      context.letGo();
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

/** What peers may do, for people. @internal */
export function rightsText({ writable, views }: { writable: boolean; views: boolean }): string {
  return `${writable ? 'read and write' : 'read'}${views ? ', views' : ''}`;
}

/** Exposes memory to the peers of contexts. @internal */
export async function exposeAt(
  contexts: readonly LocalContext[],
  buffer: Uint8Array,
  { writable = false, views = false }: ExposeOptions = {},
): Promise<ExposedMemory> {
  const flags =
    Nd2MrFlag.ALLOW_REMOTE_READ |
    (writable ? Nd2MrFlag.ALLOW_REMOTE_WRITE | Nd2MrFlag.ALLOW_REMOTE_ATOMIC : 0) |
    (views ? Nd2MrFlag.ALLOW_REMOTE_VIEW : 0);
  const regions = new Map<LocalContext, IND2MemoryRegion>();
  // The connections that hold the contexts may end while the memory is registered.
  for (const context of contexts) context.hold();
  try {
    for (const context of contexts) regions.set(context, (await context.register(buffer, flags)).region);
    return new ExposedMemory(buffer, { writable, views }, regions);
  } catch (error) {
    for (const region of regions.values()) region.release();
    for (const context of contexts) context.letGo();
    throw netError(error, 'expose');
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
export function executeAtomic(context: LocalContext, payload: Uint8Array): Uint8Array | string {
  const view = viewOf(payload);
  const memory = context.exposed.get(view.getUint32(4));
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
