import { inspect } from 'node:util';
import { shown } from '../../../kernel-bridge/ioctl/shown.js';
import { type IND2MemoryRegion, Nd2MrFlag } from '../../index.js';
import { checkBoolean, wrongType } from '../base/checks.js';
import { NetError, netError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-places.js';
import type { Channel } from '../channel/channel.js';
import { encodeMemory, viewOf } from '../connection/frames.js';
import { LocalContext } from '../connection/local-context.js';
import { unreleased } from './unreleased-memory.js';

/** Rights of exposed memory. */
export interface ExposeOptions {
  /** Whether peers may also write, compareExchange and fetchAdd; default false. */
  readonly writable?: boolean | undefined;
  /**
   * Whether peers may also {@link RemoteMemory.map} the memory if they are processes of this user on this host; default false. Mappings
   * survive the release of the memory, so do not reuse it for other purposes. Requires memory from `allocate()`.
   */
  readonly views?: boolean | undefined;
}

/** The bit in a handle's rights that permits writing. */
export const WRITABLE = 1;
/** The bit in a handle's rights that permits views. */
export const VIEWS = 2;

/**
 * Operations of an ATOMIC frame, whose payload has {@link ATOMIC_BYTES}: operation (1 byte), zeros (3), token (4), offset (8), two operands
 * (8 each). The second operand of FETCH_ADD is 0.
 */
export const Atomic = { COMPARE_EXCHANGE: 0, FETCH_ADD: 1 } as const;

/** Exposed memory at one local address. */
interface Part {
  readonly context: LocalContext;
  readonly region: IND2MemoryRegion;
  readonly token: number;
  readonly handle: Uint8Array;
}

/**
 * Memory that peers can access until it is released.
 *
 * @example
 * ```ts
 * const table = allocate(1 << 20);
 * using exposed = await channel.expose(table, { writable: true });
 * // The peer opens the memory with channel.open(handle).
 * await channel.send(exposed.handle);
 * ```
 */
export class ExposedMemory implements Disposable {
  readonly #parts: readonly Part[];
  readonly #rights: string;
  #released = false;
  /** The memory itself. */
  readonly bytes: Uint8Array;

  /** Takes ownership of a reference to each context. @internal */
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
   * Handle for {@link Channel.open}: 24 bytes to send to the peer in a message. It grants access to every peer that has the handle and a
   * connection.
   *
   * @throws NetError `EINVAL` (a server has exposed the memory at several addresses; use {@link handleFor})
   */
  get handle(): Uint8Array {
    if (this.#parts.length === 1) return this.#parts[0]!.handle;
    throw new NetError(
      'EINVAL',
      `The memory has a handle for each of ${this.#parts.length} local addresses. Use handleFor(channel).`,
    );
  }

  /**
   * Returns the handle for the peer of a channel.
   *
   * @param channel - a channel of the server, or at the local address, that exposed the memory
   * @throws NetError `EINVAL` (the memory is not exposed to this channel)
   */
  handleFor(channel: Channel): Uint8Array {
    if (!((channel as Partial<Channel> | null | undefined)?.context instanceof LocalContext))
      throw wrongType(`\`channel\` must be a Channel; got ${shown(channel)}.`);
    const part = this.#parts.find(({ context }) => context === channel.context);
    if (part !== undefined) return part.handle;
    throw new NetError('EINVAL', 'The memory is not exposed at the local address of this channel.');
  }

  /** Revokes the access; never fails. A peer that accesses the memory afterwards loses its connection. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    unreleased.unregister(this);
    for (const { context, region, token } of this.#parts) {
      context.exposed.delete(token);
      region.release();
      context.releaseRef();
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

/** The rights of peers as text. @internal */
export function rightsText({ writable, views }: { writable: boolean; views: boolean }): string {
  return `${writable ? 'read and write' : 'read'}${views ? ', views' : ''}`;
}

/** Exposes memory to the peers of contexts. @internal */
export async function exposeAt(
  contexts: readonly LocalContext[],
  buffer: Uint8Array,
  options: ExposeOptions = {},
): Promise<ExposedMemory> {
  checkOptionNames('expose', options);
  const { writable = false, views = false } = options;
  checkBoolean('writable', writable);
  checkBoolean('views', views);
  const flags =
    Nd2MrFlag.ALLOW_REMOTE_READ |
    (writable ? Nd2MrFlag.ALLOW_REMOTE_WRITE | Nd2MrFlag.ALLOW_REMOTE_ATOMIC : 0) |
    (views ? Nd2MrFlag.ALLOW_REMOTE_VIEW : 0);
  const regions = new Map<LocalContext, IND2MemoryRegion>();
  // Connections that hold the contexts may end while the memory is being registered.
  for (const context of contexts) context.addRef();
  try {
    for (const context of contexts) regions.set(context, (await context.register(buffer, flags)).region);
    return new ExposedMemory(buffer, { writable, views }, regions);
  } catch (error) {
    for (const region of regions.values()) region.release();
    for (const context of contexts) context.releaseRef();
    throw netError(error, 'expose');
  }
}

/** Whether the payload of an ATOMIC frame is valid. @internal */
export function isAtomic(payload: Uint8Array): boolean {
  const view = viewOf(payload);
  // The operation and the zeros that follow it.
  const operation = view.getUint32(0) / 2 ** 24;
  if (operation === Atomic.FETCH_ADD) return view.getBigUint64(24) === 0n;
  return operation === Atomic.COMPARE_EXCHANGE;
}

/** Executes an operation of a peer whose payload {@link isAtomic}. Returns the previous value in 8 bytes, or an error message. @internal */
export function executeAtomic(context: LocalContext, payload: Uint8Array): Uint8Array | string {
  const view = viewOf(payload);
  const memory = context.exposed.get(view.getUint32(4));
  if (memory === undefined) return 'The memory is no longer exposed.';
  const { atomics } = memory;
  if (atomics === undefined) return 'The memory must be writable and aligned to 8 bytes.';
  const offset = Number(view.getBigUint64(8));
  if (offset % 8 !== 0 || offset / 8 >= atomics.length)
    return `\`offset\` must be a multiple of 8 within the memory; got ${offset}.`;
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
