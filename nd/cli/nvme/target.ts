/** The target: listens for hosts, gives each a controller, and serves their queues. */
import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import * as z from 'zod';
import type { IWVConnectEndpoint, SocketAddress } from '../../../winverbs/index.js';
import { count, ipAddress } from '../argument-schemas.js';
import { HostWv, type ListenerWv } from '../sides/winverbs-side.js';
import {
  Admin,
  ANY_CONTROLLER,
  Command,
  CommandError,
  ConnectCommand,
  ConnectData,
  ConnectReject,
  ConnectRequest,
  DISCOVERY_NQN,
  Fabrics,
  FabricsCommand,
  NQN_BYTES,
  NVME_PORT,
  NvmeStatus,
  RejectStatus,
} from './capsules.js';
import type { Store } from './store.js';
import { adminCommands, type CommandPlace, ioCommands, propertyGet, propertySet } from './target-commands.js';
import { IO_QUEUES, QUEUE_ENTRIES, type Subsystem, TargetController } from './target-controller.js';
import {
  type QueueRequest,
  type QueueUser,
  type TargetCommand,
  TargetQueue,
  type Work,
} from './target-queue.js';

/** Maximum connections of a target. */
const CONNECTIONS = 1024;
/** Time limit for Connect on a new connection, in ms. */
const CONNECT_MS = 10_000;
/** Minimum keep-alive timeout of a host, in ms. */
const LEAST_KEEP_ALIVE = 100;

const nqn = z.string().min(1).max(NQN_BYTES);
const namespace = z.strictObject({
  store: z.custom<Store>((value) => typeof value === 'object' && value !== null, 'must be a store'),
  blockSize: z.union([z.literal(512), z.literal(1024), z.literal(2048), z.literal(4096)]).default(512),
});
const options = z.strictObject({
  address: ipAddress.default('127.0.0.1'),
  /** 0: a free port. */
  port: count(0, 65_535).default(NVME_PORT),
  subsystems: z
    .array(
      z.strictObject({
        nqn,
        /** Their identifiers are 1, 2, and so on. */
        namespaces: z.array(namespace).min(1),
        /** Default: derived from the name, so that it is stable across restarts. */
        serial: z.string().min(1).max(20).optional(),
        /** Names of permitted hosts; default: all. */
        hosts: z.array(nqn).optional(),
      }),
    )
    .min(1),
});

/** Options of {@link NvmeTarget.listen}. */
export type TargetOptions = z.input<typeof options>;

interface Events {
  /** A host connected to a controller: its name and address. */
  host: [name: string, address: string];
  /** The controller of a host ended. */
  gone: [name: string];
  /** A command or a connection failed; the host received the status. */
  failure: [error: unknown];
}

export class NvmeTarget extends EventEmitter<Events> implements QueueUser, CommandPlace {
  readonly subsystems: readonly Subsystem[];
  readonly #listener: ListenerWv;
  readonly #queues = new Map<TargetQueue, TargetController | undefined>();
  readonly #controllers = new Map<number, TargetController>();
  readonly #admin = adminCommands(this);
  readonly #io = ioCommands(this);
  readonly #fabrics: ReadonlyMap<number, TargetCommand>;
  #nextId = 1;
  #closed = false;

  private constructor(
    private readonly host: HostWv,
    chosen: z.output<typeof options>,
  ) {
    super();
    this.subsystems = [
      subsystemOf({ nqn: DISCOVERY_NQN, namespaces: [] }, true),
      ...chosen.subsystems.map((one) => subsystemOf(one, false)),
    ];
    this.#fabrics = new Map<number, TargetCommand>([
      [
        Fabrics.CONNECT,
        { data: () => ({ direction: 'out', length: ConnectData.bytes }), run: (work) => this.#connect(work) },
      ],
      [Fabrics.PROPERTY_GET, propertyGet(this)],
      [Fabrics.PROPERTY_SET, propertySet(this)],
    ]);
    this.#listener = host.listen(chosen.port, 64, chosen.address);
  }

  /** Starts to serve subsystems. @throws WvError, ZodError */
  static listen(settings: TargetOptions): NvmeTarget {
    const chosen = options.parse(settings);
    const host = HostWv.open(chosen.address);
    try {
      const target = new NvmeTarget(host, chosen);
      void target.#accept();
      return target;
    } catch (error) {
      host.release();
      throw error;
    }
  }

  get address(): SocketAddress {
    return this.#listener.address;
  }

  get port(): number {
    return this.address.port;
  }

  /** Number of hosts with a controller, including those of the discovery subsystem. */
  get hosts(): number {
    return this.#controllers.size;
  }

  /** Ends all connections and closes the stores. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener.release();
    for (const queue of [...this.#queues.keys()]) queue.end();
    this.host.release();
    const namespaces = this.subsystems.flatMap((one) => [...one.namespaces.values()]);
    await Promise.all(namespaces.map(({ store }) => store.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  find(queue: TargetQueue, command: Buffer): TargetCommand {
    const controller = this.#queues.get(queue);
    controller?.alive();
    const { opcode } = Command.parse(command);
    if (opcode === Admin.FABRICS) {
      const { type } = FabricsCommand.parse(command);
      if (controller === undefined && type !== Fabrics.CONNECT) {
        throw new CommandError(NvmeStatus.COMMAND_SEQUENCE_ERROR);
      }
      return known(this.#fabrics.get(type));
    }
    if (controller === undefined || !controller.ready)
      throw new CommandError(NvmeStatus.COMMAND_SEQUENCE_ERROR);
    return known((queue.id === 0 ? this.#admin : this.#io).get(opcode));
  }

  /** @internal */
  controller({ queue }: Work): TargetController {
    const controller = this.#queues.get(queue);
    // The queue ended while the command was being executed.
    if (controller === undefined) throw new CommandError(NvmeStatus.COMMAND_SEQUENCE_ERROR);
    return controller;
  }

  /** @internal */
  ended(queue: TargetQueue): void {
    const controller = this.#queues.get(queue);
    this.#queues.delete(queue);
    if (controller === undefined) return;
    if (controller.queues.get(queue.id) === queue) controller.queues.delete(queue.id);
    if (queue.id !== 0) return;
    this.#controllers.delete(controller.id);
    controller.end();
    for (const other of [...controller.queues.values()]) other.end();
    this.emit('gone', controller.host.name);
  }

  /** @internal */
  failed(error: unknown): void {
    this.emit('failure', error);
  }

  async #accept(): Promise<void> {
    while (!this.#closed) {
      try {
        const endpoint = await this.#listener.next();
        this.#welcome(endpoint).catch((error) => this.failed(error));
      } catch (error) {
        if (!this.#closed) this.failed(error);
        return;
      }
    }
  }

  async #welcome(endpoint: IWVConnectEndpoint): Promise<void> {
    const request = this.#judge(endpoint);
    if (typeof request === 'number') {
      try {
        endpoint.reject(ConnectReject.make({ status: request }));
      } finally {
        endpoint.release();
      }
      return;
    }
    const queue = this.#newQueue(endpoint, request);
    this.#queues.set(queue, undefined);
    setTimeout(() => {
      if (this.#queues.has(queue) && this.#queues.get(queue) === undefined) queue.end();
    }, CONNECT_MS).unref();
    await queue.accept();
  }

  /** @throws WvError if there are not enough resources; the request is then rejected */
  #newQueue(endpoint: IWVConnectEndpoint, request: QueueRequest): TargetQueue {
    const host = HostWv.of(this.host.provider, endpoint);
    try {
      return new TargetQueue(host, endpoint, request, this);
    } catch (error) {
      endpoint.reject(ConnectReject.make({ status: RejectStatus.NO_RESOURCES }));
      endpoint.release();
      host.release();
      throw error;
    }
  }

  /** Validates a request. Returns its parameters or the reason for a rejection. */
  #judge(endpoint: IWVConnectEndpoint): QueueRequest | number {
    const { privateData, initiatorDepth } = endpoint.query();
    if (privateData.length < ConnectRequest.bytes) return RejectStatus.INVALID_LENGTH;
    const request = ConnectRequest.parse(Buffer.from(privateData));
    const { recordFormat, queueId: id, hostSendSize, hostReceiveSize, controllerId } = request;
    if (recordFormat !== 0) return RejectStatus.INVALID_RECORD_FORMAT;
    if (id > IO_QUEUES) return RejectStatus.INVALID_QUEUE_ID;
    if (hostSendSize < 1 || hostSendSize >= QUEUE_ENTRIES) return RejectStatus.INVALID_HOST_SEND_SIZE;
    if (hostReceiveSize < 1) return RejectStatus.INVALID_HOST_RECEIVE_SIZE;
    if (initiatorDepth < 1) return RejectStatus.INVALID_IRD;
    if (this.#queues.size >= CONNECTIONS) return RejectStatus.NO_RESOURCES;
    return { id, depth: hostSendSize + 1, controllerId, reads: initiatorDepth };
  }

  #connect({ queue, command, data }: Work): bigint {
    if (this.#queues.get(queue) !== undefined) throw new CommandError(NvmeStatus.COMMAND_SEQUENCE_ERROR);
    const connect = ConnectCommand.parse(command);
    const { recordFormat, queueId, queueSize, attributes, keepAliveTimeout } = connect;
    if (recordFormat !== 0) throw new CommandError(NvmeStatus.CONNECT_FORMAT);
    if (queueId !== queue.id) throw parameter(ConnectCommand.fields.queueId.at);
    if (queueSize < 1 || queueSize >= queue.request.depth)
      throw parameter(ConnectCommand.fields.queueSize.at);
    if (keepAliveTimeout > 0 && keepAliveTimeout < LEAST_KEEP_ALIVE) {
      throw new CommandError(NvmeStatus.KEEP_ALIVE_TIMEOUT_INVALID);
    }
    const request = ConnectData.parse(data);
    const controller = queueId === 0 ? this.#newController(queue, request) : this.#ownController(request);
    if (controller.queues.has(queueId)) throw new CommandError(NvmeStatus.COMMAND_SEQUENCE_ERROR);
    queue.size = queueSize + 1;
    queue.withoutFlowControl = (attributes & NO_FLOW_CONTROL) !== 0;
    controller.queues.set(queueId, queue);
    this.#queues.set(queue, controller);
    if (queueId === 0) {
      controller.keepAliveMs = keepAliveTimeout;
      this.#controllers.set(controller.id, controller);
      this.emit('host', controller.host.name, queue.peerAddress);
    }
    return BigInt(controller.id);
  }

  #newController(
    queue: TargetQueue,
    { subsystem, host, hostId, controllerId }: ConnectValues,
  ): TargetController {
    const chosen = this.subsystems.find((one) => one.nqn === subsystem);
    if (chosen === undefined) throw parameter(ConnectData.fields.subsystem.at, true);
    if (host === '') throw parameter(ConnectData.fields.host.at, true);
    if (chosen.hosts !== undefined && !chosen.hosts.has(host)) {
      throw new CommandError(NvmeStatus.CONNECT_INVALID_HOST);
    }
    if (controllerId !== ANY_CONTROLLER) throw parameter(ConnectData.fields.controllerId.at, true);
    while (this.#controllers.has(this.#nextId)) this.#nextId = (this.#nextId % LAST_ID) + 1;
    const id = this.#nextId;
    this.#nextId = (id % LAST_ID) + 1;
    return new TargetController(id, chosen, { name: host, id: hostId }, () => queue.end());
  }

  /** Finds the controller for an I/O queue. It must belong to the same host. */
  #ownController({ subsystem, host, hostId, controllerId }: ConnectValues): TargetController {
    const controller = this.#controllers.get(controllerId);
    if (controller === undefined) throw parameter(ConnectData.fields.controllerId.at, true);
    if (controller.subsystem.nqn !== subsystem) throw parameter(ConnectData.fields.subsystem.at, true);
    const { name, id } = controller.host;
    if (name !== host || Buffer.compare(id, hostId) !== 0) throw parameter(ConnectData.fields.host.at, true);
    if (!controller.ready || controller.subsystem.discovery) {
      throw new CommandError(NvmeStatus.COMMAND_SEQUENCE_ERROR);
    }
    return controller;
  }
}

/** Bit in the attributes of Connect: the host ignores the head pointer of its queue. */
const NO_FLOW_CONTROL = 0x04;
const LAST_ID = 0xffef;

type ConnectValues = ReturnType<typeof ConnectData.parse>;

/** Error for an invalid parameter of Connect. The result gives its offset. */
function parameter(offset: number, inData = false): CommandError {
  return new CommandError(NvmeStatus.CONNECT_INVALID_PARAMETERS, BigInt(offset) | (inData ? 0x1_0000n : 0n));
}

function known(command: TargetCommand | undefined): TargetCommand {
  if (command === undefined) throw new CommandError(NvmeStatus.INVALID_OPCODE);
  return command;
}

function subsystemOf(
  { nqn: name, namespaces, serial, hosts }: z.output<typeof options>['subsystems'][number],
  discovery: boolean,
): Subsystem {
  return {
    nqn: name,
    discovery,
    serial: serial ?? createHash('sha256').update(name).digest('hex').slice(0, 20),
    namespaces: new Map(namespaces.map((one, n) => [n + 1, one])),
    hosts: hosts === undefined ? undefined : new Set(hosts),
  };
}
