/** One side of the measurements: a device with one completion queue, and connections whose two sides know each other's memory. */
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

/** Any host has it, and it is nobody else's. */
const ADDRESS = '127.0.0.1';
/** What peers may do with the memory of these programs. */
const ACCESS = WvAccess.LOCAL_WRITE | WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE;
const ADVERT_BYTES = 12;

/** What a queue pair is to be. */
export interface QueuePairShape {
  readonly sends: number;
  readonly receives: number;
  /** Bytes that a request may carry itself. */
  readonly inline?: number;
  /** Comes with the completions. */
  readonly context?: number;
}

/** Registered bytes. */
export interface Memory {
  readonly bytes: Uint8Array;
  readonly region: WvMemoryRegion;
}

/** A connection: its queue pair, and the memory that the peer shows. */
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
  /** What the peer gets to know of, if anything. */
  shown: Memory | undefined = undefined;

  constructor(job: Job, completions = 4096) {
    this.provider = openProvider(libraryOptions(job));
    this.device = this.provider.openDevice(this.provider.translateAddress(ADDRESS).deviceGuid);
    this.pd = this.device.allocateProtectionDomain();
    this.cq = this.device.createCompletionQueue(completions);
  }

  /** Registers memory. The last one is what peers are told of. */
  memory(bytes: Uint8Array): Memory {
    this.shown = { bytes, region: this.pd.registerMemory(bytes, ACCESS) };
    return this.shown;
  }

  /** A queue pair that takes receives already. */
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

  /** Asks the listener at `port`. */
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

  /** The same from the other side. */
  async accept(endpoint: IWVConnectEndpoint, qp: IWVConnectQueuePair): Promise<Connection> {
    const remote = parseAdvert(endpoint.query().privateData);
    await endpoint.accept(qp, { privateData: this.#advert() });
    return { endpoint, qp, remote };
  }

  /** A listener on a free port, and the port. */
  listen(backlog: number): { listener: IWVConnectEndpoint; port: number } {
    const listener = this.provider.createConnectEndpoint();
    listener.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    listener.listen(backlog);
    return { listener, port: listener.query().localAddress.port };
  }

  /** Takes what has completed; every request must have succeeded. Answers how many. */
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
    if (this.shown !== undefined) {
      advert.writeBigUInt64LE(BigInt(this.shown.region.address));
      advert.writeUInt32LE(this.shown.region.rkey, 8);
    }
    return advert;
  }
}

function parseAdvert(data: Uint8Array): RemoteMemory {
  const advert = Buffer.from(data);
  return new RemoteMemory({ address: advert.readBigUInt64LE(), rkey: advert.readUInt32LE(8) });
}

/** A list of one piece, as requests take it. */
export function piece({ region }: Memory, offset: number, length: number): readonly [WvSge] {
  return [{ region, offset, length }];
}
