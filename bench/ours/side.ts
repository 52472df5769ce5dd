/** One side of a measurement: a device with one completion queue, and connections that exchange addresses and keys of memory. */
import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVDevice,
  type IWVProtectionDomain,
  type IWVProvider,
  openProvider,
  QpAttr,
  QpState,
  RemoteMemory,
  type SocketAddress,
  WcStatus,
  WvAccess,
  type WvCompletion,
  type WvMemoryRegion,
  type WvSge,
} from '../../winverbs/index.js';
import type { Job } from './job.js';
import { libraryOptions } from './library.js';

/** The loopback address: every host has it, and no other host reaches it. */
const ADDRESS = '127.0.0.1';
/** Access rights of registered memory. */
const ACCESS = WvAccess.LOCAL_WRITE | WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE;
const ADVERT_BYTES = 12;

/** The size of a queue pair. */
export interface QueuePairShape {
  readonly sends: number;
  readonly receives: number;
  /** Limit of inline bytes. */
  readonly inline?: number;
  /** Returned in completions. */
  readonly context?: number;
}

/** Registered memory. */
export interface Memory {
  readonly bytes: Uint8Array;
  readonly region: WvMemoryRegion;
}

/** A connection: its queue pair, and the memory that the peer advertises. */
export interface Connection {
  readonly endpoint: IWVConnectEndpoint;
  readonly qp: IWVConnectQueuePair;
  readonly remote: RemoteMemory;
}

/** A device of this host with one completion queue for everything. */
export class Side {
  readonly completions: WvCompletion[] = [];
  readonly provider: IWVProvider;
  readonly device: IWVDevice;
  readonly pd: IWVProtectionDomain;
  readonly cq: IWVCompletionQueue;
  /** The memory that connections advertise, if any. */
  advertised: Memory | undefined = undefined;

  constructor(job: Job, completions = 4096) {
    this.provider = openProvider(libraryOptions(job));
    this.device = this.provider.openDevice(this.provider.translateAddress(ADDRESS).deviceGuid);
    this.pd = this.device.allocateProtectionDomain();
    this.cq = this.device.createCompletionQueue(completions);
  }

  /** Registers memory. Connections advertise the memory that was registered last. */
  memory(bytes: Uint8Array): Memory {
    this.advertised = { bytes, region: this.pd.registerMemory(bytes, ACCESS) };
    return this.advertised;
  }

  /** Creates a queue pair in INIT, which accepts receives. */
  queuePair(shape: QueuePairShape): IWVConnectQueuePair {
    const qp = this.pd.createConnectQueuePair({
      sendCq: this.cq,
      receiveCq: this.cq,
      context: shape.context,
      sendDepth: shape.sends,
      sendSge: 1,
      receiveDepth: shape.receives,
      receiveSge: 1,
      maxInlineSend: shape.inline ?? 0,
    });
    qp.modify({ qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: ACCESS }, QpAttr.STATE);
    return qp;
  }

  /** Connects to the listener at `port`. */
  async connect(port: number, qp: IWVConnectQueuePair): Promise<Connection> {
    const endpoint = this.provider.createConnectEndpoint();
    const peer: SocketAddress = { family: 4, address: ADDRESS, port };
    endpoint.bindAddress({ ...peer, port: 0 });
    endpoint.resolveRoute(peer);
    await endpoint.connect(qp, peer, { privateData: this.#advert() });
    const remote = parseAdvert(endpoint.query().privateData);
    await endpoint.accept(null, {});
    return { endpoint, qp, remote };
  }

  /** Accepts a connection request. */
  async accept(endpoint: IWVConnectEndpoint, qp: IWVConnectQueuePair): Promise<Connection> {
    const remote = parseAdvert(endpoint.query().privateData);
    await endpoint.accept(qp, { privateData: this.#advert() });
    return { endpoint, qp, remote };
  }

  /** Creates a listener on a free port. */
  listen(backlog: number): { listener: IWVConnectEndpoint; port: number } {
    const listener = this.provider.createConnectEndpoint();
    listener.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    listener.listen(backlog);
    return { listener, port: listener.query().localAddress.port };
  }

  /** Takes completions and returns their number. @throws Error if a request has failed. */
  poll(n: number): number {
    const { completions } = this;
    const count = this.cq.poll(completions, n);
    for (let i = 0; i < count; i += 1) {
      const { status } = completions[i]!;
      if (status !== WcStatus.SUCCESS) throw new Error(`A request ended in completion status ${status}.`);
    }
    return count;
  }

  #advert(): Uint8Array {
    const advert = Buffer.alloc(ADVERT_BYTES);
    if (this.advertised !== undefined) {
      advert.writeBigUInt64LE(BigInt(this.advertised.region.address));
      advert.writeUInt32LE(this.advertised.region.rkey, 8);
    }
    return advert;
  }
}

function parseAdvert(data: Uint8Array): RemoteMemory {
  const advert = Buffer.from(data);
  return new RemoteMemory({ address: advert.readBigUInt64LE(), rkey: advert.readUInt32LE(8) });
}

/** A scatter-gather list of one SGE. */
export function piece({ region }: Memory, offset: number, length: number): readonly [WvSge] {
  return [{ region, offset, length }];
}
