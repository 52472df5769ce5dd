/**
 * The initiator: connects to a subsystem, keeps the connection alive, and reconnects when it is lost. Pending commands are then repeated,
 * because reading or writing the same blocks twice is harmless.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import {
  type IND2Adapter,
  type IND2MemoryRegion,
  Nd2MrFlag,
  ndCleanup,
  ndOpenAdapter,
  ndResolveAddress,
  ndStartup,
  type SocketAddress,
} from '../../index.js';
import { count } from '../argument-schemas.js';
import { DISCOVERY_NQN, Log, NQN_BYTES, NVME_PORT, NvmeConnectionError, NvmeError } from './capsules.js';
import { Disk } from './disk.js';
import {
  BlockFormat,
  DiscoveryEntry,
  DiscoveryHead,
  FORMATS_AT,
  Identify,
  IdentifyNamespace,
} from './identify.js';
import type { Parsed } from './little-endian.js';
import type { Data, NvmeQueue } from './queue.js';
import { Session } from './session.js';

const nqn = z
  .string()
  .min(1)
  .max(NQN_BYTES)
  .refine((name) => name.startsWith('nqn.'), 'must be an NVMe qualified name, which begins with nqn.');

const options = z.strictObject({
  /** Host name or IP address of the target. */
  host: z.string().default('127.0.0.1'),
  port: count(1, 65_535).default(NVME_PORT),
  subsystem: nqn,
  /** Default: a random name. */
  hostName: nqn.optional(),
  /** I/O queues; the target may grant fewer. */
  queues: count(1, 64).default(2),
  /** Maximum commands in flight on each queue. */
  depth: count(2, 1024).default(32),
  /** Maximum bytes of a command's data; the target may have a smaller limit. */
  transferBytes: count(4096, 4_194_304).default(131_072),
  /** Keep-alive timeout in ms, after which either side considers the controller lost; 0: no keep-alive. */
  keepAliveMs: count(0, 3_600_000).default(10_000),
  /** Time limit for a command in ms, after which the connection is ended; 0: none. */
  answerMs: count(0, 3_600_000).default(30_000),
  /** Delay before the first attempt to reconnect, in ms. It doubles for each further attempt, up to `reconnectMostMs`. */
  reconnectMs: count(1, 600_000).default(100),
  reconnectMostMs: count(1, 600_000).default(5000),
  /** Maximum time of attempts to reconnect, in ms; 0: none are made. */
  reconnectForMs: count(0, 86_400_000).default(60_000),
});

/** Options of {@link NvmeController.connect}. */
export type NvmeOptions = z.input<typeof options>;
type Options = z.output<typeof options>;

interface Events {
  /** The connection was lost and is being re-established. */
  lost: [error: unknown];
  /** The connection was re-established. */
  reconnected: [];
  /** The controller is closed permanently. */
  closed: [error: unknown];
}

interface Lent {
  readonly bytes: Uint8Array;
  readonly region: IND2MemoryRegion;
}

/** A connected NVMe controller. */
export class NvmeController extends EventEmitter<Events> {
  #session!: Session;
  /** Settles when reconnecting ends; undefined while connected. */
  #reconnecting: Promise<void> | undefined;
  #closed: Error | undefined;
  readonly #closing = new AbortController();
  readonly #lent = new Map<ArrayBufferLike, Lent[]>();

  private constructor(
    private readonly options: Options,
    private readonly place: Place,
    private readonly hostId: Uint8Array,
    private readonly hostName: string,
    private readonly queues: number,
  ) {
    super();
  }

  /** Connects to a subsystem. @throws NvmeError, NvmeConnectionError, NdError, ZodError */
  static async connect(settings: NvmeOptions): Promise<NvmeController> {
    const chosen = options.parse(settings);
    return NvmeController.#open(chosen, chosen.queues);
  }

  /** Lists the subsystems of a target from its discovery subsystem. @throws as {@link connect} */
  static async discover(
    settings: Omit<NvmeOptions, 'subsystem'> = {},
  ): Promise<Parsed<typeof DiscoveryEntry>[]> {
    const chosen = options.parse({
      ...settings,
      subsystem: DISCOVERY_NQN,
      reconnectForMs: 0,
      keepAliveMs: 0,
    });
    const controller = await NvmeController.#open(chosen, 0);
    try {
      const head = await controller.#session.log(Log.DISCOVERY, DiscoveryHead.bytes);
      const { entries } = DiscoveryHead.parse(head);
      if (entries > MOST_ENTRIES)
        throw new NvmeConnectionError(
          `The discovery log must have at most ${MOST_ENTRIES} entries; got ${entries}.`,
        );
      const log = await controller.#session.log(Log.DISCOVERY, (entries + 1) * DiscoveryEntry.bytes);
      return Array.from({ length: entries }, (_, n) =>
        DiscoveryEntry.parse(log, (n + 1) * DiscoveryEntry.bytes),
      );
    } finally {
      await controller.close();
    }
  }

  static async #open(chosen: Options, queues: number): Promise<NvmeController> {
    const { address, family } = await lookup(chosen.host);
    const place = new Place({ address, family: family === 6 ? 6 : 4, port: chosen.port });
    const name = chosen.hostName ?? `nqn.2014-08.org.nvmexpress:uuid:${randomUUID()}`;
    const controller = new NvmeController(chosen, place, randomBytes(16), name, queues);
    try {
      await controller.#connect();
      return controller;
    } catch (error) {
      place.release();
      throw error;
    }
  }

  /** Data of Identify Controller. */
  get identity() {
    return this.#session.identity;
  }

  /** The number of I/O queues. */
  get ioQueues(): number {
    return this.#session.queues;
  }

  /** Maximum bytes of a command's data. */
  get transferBytes(): number {
    return this.#session.transferBytes;
  }

  /** Identifiers of the namespaces. */
  async namespaces(): Promise<number[]> {
    const list = await this.#withSession((session) => session.identify(Identify.ACTIVE_NAMESPACES));
    const ids: number[] = [];
    for (let at = 0; at < list.length; at += 4) {
      const id = list.readUInt32LE(at);
      if (id === 0) break;
      ids.push(id);
    }
    return ids;
  }

  /** Opens a namespace. @throws NvmeError INVALID_NAMESPACE */
  async open(namespaceId = 1): Promise<Disk> {
    const bytes = await this.#withSession((session) => session.identify(Identify.NAMESPACE, namespaceId));
    const { size, format } = IdentifyNamespace.parse(bytes);
    const { blockBits, metadata } = BlockFormat.parse(bytes, FORMATS_AT + (format & 0xf) * BlockFormat.bytes);
    if (size === 0) throw new RangeError(`Namespace ${namespaceId} does not exist.`);
    if (metadata !== 0 || blockBits < 9 || blockBits > 16) {
      throw new RangeError(
        `Namespace ${namespaceId} must have blocks of 2^9 to 2^16 bytes without metadata; got 2^${blockBits} with ${metadata} bytes of metadata.`,
      );
    }
    return new Disk(this, namespaceId, 2 ** blockBits, size);
  }

  /**
   * Registers memory. The target then reads and writes whole blocks in it directly, without a copy on this side, until the controller is
   * closed.
   */
  async register(bytes: Uint8Array): Promise<void> {
    const region = this.place.adapter.createMemoryRegion();
    try {
      await region.register(bytes, Nd2MrFlag.ALLOW_REMOTE_READ | Nd2MrFlag.ALLOW_REMOTE_WRITE);
    } catch (error) {
      region.release();
      throw error;
    }
    const others = this.#lent.get(bytes.buffer) ?? [];
    this.#lent.set(bytes.buffer, [...others, { bytes, region }]);
  }

  /** The registered memory that contains these bytes. @internal */
  lentData(bytes: Uint8Array): Data | undefined {
    const begin = bytes.byteOffset;
    const lent = this.#lent
      .get(bytes.buffer)
      ?.find((one) => one.bytes.byteOffset <= begin && begin + bytes.length <= end(one.bytes));
    if (lent === undefined) return undefined;
    const { region } = lent;
    const offset = begin - lent.bytes.byteOffset;
    return { region, address: region.address, token: region.getRemoteToken(), offset, length: bytes.length };
  }

  /** Runs an operation on an I/O queue, and repeats it on another if the connection is lost. @internal */
  io<T>(use: (queue: NvmeQueue) => Promise<T>): Promise<T> {
    return this.#withSession((session) => use(session.queue));
  }

  /** Shuts the controller down and closes the connection. Pending operations fail. */
  async close(): Promise<void> {
    if (this.#closed !== undefined) return;
    await this.#end(new NvmeConnectionError('The controller was closed.'));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #connect(): Promise<void> {
    const { subsystem, depth, transferBytes, keepAliveMs, answerMs } = this.options;
    const { adapter, local, target } = this.place;
    const { hostName: host, hostId, queues } = this;
    const common = { adapter, local, target, subsystem, host, hostId, answerMs };
    const session = await Session.open({ ...common, queues, depth, transferBytes, keepAliveMs });
    if (this.#closed !== undefined) {
      await session.close();
      throw this.#closed;
    }
    this.#session = session;
    session.lost.catch((error) => {
      if (this.#closed !== undefined) return;
      this.#reconnecting = this.#reconnect(session, error);
      this.#reconnecting.catch(() => {});
    });
  }

  async #reconnect(lost: Session, error: Error): Promise<void> {
    const { reconnectMs, reconnectMostMs, reconnectForMs } = this.options;
    this.emit('lost', error);
    await lost.close(error);
    const deadline = performance.now() + reconnectForMs;
    for (
      let wait = reconnectMs;
      performance.now() + wait < deadline;
      wait = Math.min(2 * wait, reconnectMostMs)
    ) {
      await delay(wait, undefined, { signal: this.#closing.signal });
      try {
        await this.#connect();
      } catch (failure) {
        // The target has reported that a retry can never succeed.
        if (failure instanceof NvmeError && !failure.retryable) break;
        continue;
      }
      this.#reconnecting = undefined;
      this.emit('reconnected');
      return;
    }
    const gone = new NvmeConnectionError('The controller was lost, and reconnecting failed.', {
      cause: error,
    });
    await this.#end(gone);
    throw gone;
  }

  async #withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
    for (;;) {
      if (this.#closed !== undefined) throw this.#closed;
      if (this.#reconnecting !== undefined) await this.#reconnecting.catch(() => {});
      if (this.#closed !== undefined) throw this.#closed;
      const session = this.#session;
      try {
        return await use(session);
      } catch (error) {
        if (!(error instanceof NvmeConnectionError) || this.#closed !== undefined) throw error;
        // The session reports the loss one turn later than its commands.
        await session.lost.catch(() => {});
      }
    }
  }

  async #end(error: Error): Promise<void> {
    this.#closed = error;
    this.#closing.abort();
    await this.#session.shutDown();
    for (const lent of this.#lent.values()) for (const { region } of lent) region.release();
    this.#lent.clear();
    this.place.release();
    this.emit('closed', error);
  }
}

/** Maximum entries of a discovery log. */
const MOST_ENTRIES = 4096;

const end = (bytes: Uint8Array): number => bytes.byteOffset + bytes.length;

/** The local side of connections to a target. */
class Place {
  readonly local: SocketAddress;
  readonly adapter: IND2Adapter;

  constructor(readonly target: SocketAddress) {
    ndStartup();
    try {
      this.local = ndResolveAddress({ ...target, port: 0 });
      this.adapter = ndOpenAdapter(this.local);
    } catch (error) {
      ndCleanup();
      throw error;
    }
  }

  release(): void {
    this.adapter.release();
    ndCleanup();
  }
}
