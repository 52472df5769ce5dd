/** One connection to a controller, from connecting its admin queue until that queue ends. A reconnect creates a new session. */
import type { IND2Adapter, SocketAddress } from '../../index.js';
import {
  Admin,
  ANY_CONTROLLER,
  Cap,
  Cc,
  Command,
  ConnectCommand,
  ConnectData,
  Csts,
  Fabrics,
  FabricsCommand,
  Feature,
  FeatureCommand,
  IdentifyCommand,
  LogCommand,
  NvmeConnectionError,
  PAGE,
  Property,
  PropertyCommand,
} from './capsules.js';
import { IDENTIFY_BYTES, Identify, IdentifyController, LOG_OFFSETS } from './identify.js';
import type { Parsed } from './little-endian.js';
import { NvmeQueue, type Slot } from './queue.js';

/** Maximum commands in flight on the admin queue. */
const ADMIN_DEPTH = 32;
/** The unit of CAP.TO, in ms. */
const READY_UNIT = 500;
/** Interval between reads of CSTS, in ms. */
const READY_POLL = 10;
/** Size in bytes of a command in its capsule. */
const COMMAND = Command.bytes;
/** Larger in-capsule data is not faster than a Read by the target. */
const MOST_IN_CAPSULE = 8192;

export interface SessionOptions {
  readonly adapter: IND2Adapter;
  readonly local: SocketAddress;
  readonly target: SocketAddress;
  readonly subsystem: string;
  readonly host: string;
  readonly hostId: Uint8Array;
  /** Number of I/O queues to request; the target may grant fewer. 0: none, as for discovery. */
  readonly queues: number;
  readonly depth: number;
  /** Maximum bytes of a command's data. */
  readonly transferBytes: number;
  /** Keep-alive timeout in ms; 0: none. */
  readonly keepAliveMs: number;
  /** Time limit for a command in ms; 0: none. */
  readonly answerMs: number;
}

export class Session {
  /** Rejects when the first of its connections is lost. */
  readonly lost: Promise<never>;
  identity!: Parsed<typeof IdentifyController>;
  readonly #io: NvmeQueue[] = [];
  #controllerId = ANY_CONTROLLER;
  #maxEntries = ADMIN_DEPTH;
  #readyMs = READY_UNIT;
  #timer: NodeJS.Timeout | undefined;
  #fail!: (error: Error) => void;

  private constructor(
    private readonly options: SessionOptions,
    private readonly admin: NvmeQueue,
  ) {
    this.lost = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.lost.catch(() => {});
    admin.lost.catch(this.#fail);
  }

  /** Opens and enables a controller with its I/O queues. @throws NvmeError, NvmeConnectionError, NdError */
  static async open(options: SessionOptions): Promise<Session> {
    const { adapter, local, target, answerMs } = options;
    const common = { adapter, local, target, answerMs, slotBytes: PAGE, controllerId: ANY_CONTROLLER };
    const admin = await NvmeQueue.open({ ...common, id: 0, depth: ADMIN_DEPTH, capsuleBytes: 0 });
    const session = new Session(options, admin);
    try {
      await session.#start();
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** The least busy I/O queue. */
  get queue(): NvmeQueue {
    let best = this.#io[0]!;
    for (const one of this.#io) if (one.load < best.load) best = one;
    return best;
  }

  /** The number of I/O queues. */
  get queues(): number {
    return this.#io.length;
  }

  /** Maximum bytes of a command's data that both host and controller support. */
  get transferBytes(): number {
    const { maxTransfer } = this.identity;
    const limit = maxTransfer === 0 ? Number.POSITIVE_INFINITY : PAGE * 2 ** maxTransfer;
    return Math.min(this.options.transferBytes, limit);
  }

  /** Reads an Identify structure. */
  identify(structure: number, namespaceId = 0): Promise<Buffer> {
    return this.admin.with(async (slot) => {
      const fill = (command: Buffer) => {
        Command.emit({ opcode: Admin.IDENTIFY, namespaceId }, command);
        IdentifyCommand.emit({ structure }, command);
      };
      await slot.run('Identify', fill, slot.own(IDENTIFY_BYTES));
      return Buffer.from(slot.data);
    });
  }

  /** Reads `length` bytes of a log page, a multiple of 4. */
  async log(page: number, length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    const offsets = (this.identity.logAttributes & LOG_OFFSETS) !== 0;
    if (length > PAGE && !offsets)
      throw new RangeError(
        `The log must have at most ${PAGE} bytes, because the controller does not support offsets; got ${length}.`,
      );
    for (let offset = 0; offset < length; offset += PAGE) {
      const bytes = Math.min(PAGE, length - offset);
      const dwords = bytes / 4 - 1;
      const fill = (command: Buffer) => {
        Command.emit({ opcode: Admin.GET_LOG_PAGE }, command);
        LogCommand.emit({ page, dwordsLow: dwords & 0xffff, dwordsHigh: dwords >>> 16, offset }, command);
      };
      const part = await this.admin.with(async (slot) => {
        await slot.run('Get Log Page', fill, slot.own(bytes));
        return Buffer.from(slot.data.subarray(0, bytes));
      });
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  /** Shuts the controller down and disconnects. */
  async shutDown(): Promise<void> {
    try {
      await this.#setProperty(Property.CC, Cc.ENTRY_SIZES | Cc.ENABLE | Cc.SHUTDOWN_NORMAL);
    } catch {
      // The controller is already lost.
    }
    await this.close();
  }

  /** Disconnects. With an error, it does not wait for the controller, which is lost. */
  async close(error?: Error): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#io, this.admin].map((queue) => queue.close(error)));
  }

  async #start(): Promise<void> {
    const { keepAliveMs, queues } = this.options;
    this.#controllerId = await this.#connect(this.admin, ADMIN_DEPTH);
    const cap = Buffer.alloc(Cap.bytes);
    cap.writeBigUInt64LE(await this.#property(Property.CAP, 1));
    const { maxQueueEntries, timeout } = Cap.parse(cap);
    this.#maxEntries = maxQueueEntries + 1;
    this.#readyMs = Math.max(timeout, 1) * READY_UNIT;
    await this.#setProperty(Property.CC, Cc.ENTRY_SIZES | Cc.ENABLE);
    await this.#ready();
    this.identity = IdentifyController.parse(await this.identify(Identify.CONTROLLER));
    if (queues > 0) await this.#openQueues();
    if (keepAliveMs > 0) this.#keepAlive(keepAliveMs);
  }

  async #ready(): Promise<void> {
    const deadline = performance.now() + this.#readyMs;
    for (;;) {
      const status = Number(await this.#property(Property.CSTS));
      if ((status & Csts.READY) !== 0) return;
      if ((status & Csts.FATAL) !== 0 || performance.now() > deadline) {
        throw new NvmeConnectionError(
          `The controller did not become ready; CSTS is 0x${status.toString(16)}.`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, READY_POLL));
    }
  }

  async #openQueues(): Promise<void> {
    const { queues, depth, adapter, local, target, answerMs } = this.options;
    const wanted = queues - 1;
    const granted = await this.admin.with((slot) => {
      const fill = (command: Buffer) => {
        Command.emit({ opcode: Admin.SET_FEATURES }, command);
        FeatureCommand.emit({ feature: Feature.QUEUES, value: wanted | (wanted << 16) }, command);
      };
      return slot.run('Set Features', fill);
    });
    const count = Math.min(queues, Number(granted & 0xffffn) + 1);
    const capsuleBytes = this.identity.ioCommandCapsule * 16 - COMMAND;
    for (let id = 1; id <= count; id += 1) {
      const queue = await NvmeQueue.open({
        adapter,
        local,
        target,
        answerMs,
        id,
        depth: Math.min(depth, this.#maxEntries),
        slotBytes: this.transferBytes,
        // The target must accept in-capsule data directly after the command.
        capsuleBytes: this.identity.inCapsuleOffset === 0 ? Math.min(capsuleBytes, MOST_IN_CAPSULE) : 0,
        controllerId: this.#controllerId,
      });
      this.#io.push(queue);
      queue.lost.catch(this.#fail);
      await this.#connect(queue, Math.min(depth, this.#maxEntries));
    }
  }

  /** Executes the fabrics command Connect. Returns the controller identifier. */
  #connect(queue: NvmeQueue, depth: number): Promise<number> {
    const { subsystem, host, hostId, keepAliveMs } = this.options;
    const { id } = queue;
    return queue.with(async (slot) => {
      const data = ConnectData.make({ hostId, controllerId: this.#controllerId, subsystem, host });
      slot.data.set(data);
      const fill = (command: Buffer) => {
        fabrics(command, Fabrics.CONNECT);
        const keepAliveTimeout = id === 0 ? keepAliveMs : 0;
        ConnectCommand.emit({ queueId: id, queueSize: depth - 1, keepAliveTimeout }, command);
      };
      const result = await slot.run(`Connect to ${subsystem}`, fill, slot.own(data.length), 'out');
      return Number(result & 0xffffn);
    });
  }

  #property(offset: number, size = 0): Promise<bigint> {
    return this.#propertyCommand('Property Get', Fabrics.PROPERTY_GET, { offset, size });
  }

  #setProperty(offset: number, value: number): Promise<bigint> {
    return this.#propertyCommand('Property Set', Fabrics.PROPERTY_SET, { offset, value });
  }

  #propertyCommand(
    what: string,
    type: number,
    values: Partial<Parsed<typeof PropertyCommand>>,
  ): Promise<bigint> {
    return this.admin.with((slot: Slot) =>
      slot.run(what, (command) => {
        fabrics(command, type);
        PropertyCommand.emit(values, command);
      }),
    );
  }

  /** Sends Keep Alive twice per timeout. Without a reply before the next one, the controller counts as lost. */
  #keepAlive(timeoutMs: number): void {
    let replied = true;
    const lost = (error: Error) => this.#fail(error);
    const sendKeepAlive = async () => {
      if (!replied) {
        lost(new NvmeConnectionError(`The controller did not respond for ${timeoutMs / 2} ms.`));
        return;
      }
      replied = false;
      const fill = (command: Buffer) => Command.emit({ opcode: Admin.KEEP_ALIVE }, command);
      await this.admin.with((slot) => slot.run('Keep Alive', fill));
      replied = true;
    };
    this.#timer = setInterval(() => sendKeepAlive().catch(lost), timeoutMs / 2);
    this.#timer.unref();
  }
}

function fabrics(command: Buffer, type: number): void {
  Command.emit({ opcode: Admin.FABRICS }, command);
  FabricsCommand.emit({ type }, command);
}
