/** One side of a measurement: a device with one completion queue, and connections that exchange addresses and keys of memory. */

import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVProvider,
  RemoteMemory,
  WcStatus,
  WvAccess,
  type WvCompletion,
} from 'networkdirect/winverbs';
import { LOOPBACK, socketAddress } from '../../nd/cli/sides/connected-side.js';
import { connectEndpoint, HostWv, type MemoryWv } from '../../nd/cli/sides/winverbs-side.js';
import type { Job } from './job.js';
import { libraryOptions } from './library.js';

/** Access rights of registered memory. */
const ACCESS = WvAccess.LOCAL_WRITE | WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC;
const ADVERT_BYTES = 12;

/** The size of a queue pair. */
export interface QueuePairShape {
  readonly sends: number;
  readonly receives: number;
  /** Maximum inline bytes. */
  readonly inline?: number;
  /** Context value in completions. */
  readonly context?: number;
}

/** A connection: its queue pair and the memory that the peer advertises. */
export interface Connection {
  readonly endpoint: IWVConnectEndpoint;
  readonly qp: IWVConnectQueuePair;
  readonly remote: RemoteMemory;
}

/** A device of this host with one completion queue for everything. */
export class Side {
  readonly completions: WvCompletion[] = [];
  readonly host: HostWv;
  readonly provider: IWVProvider;
  readonly cq: IWVCompletionQueue;
  /** The memory that connections advertise, if any. */
  advertised: MemoryWv | undefined = undefined;

  /** `addresses`: those of this side and of its peer. */
  constructor(
    job: Job,
    completions = 4096,
    private readonly addresses: readonly [own: string, peer: string] = [LOOPBACK, LOOPBACK],
  ) {
    this.host = HostWv.open(addresses[0], libraryOptions(job));
    this.provider = this.host.provider;
    this.cq = this.host.device.createCompletionQueue(completions);
  }

  /** Registers memory. Connections advertise the last registered memory. */
  memory(bytes: Uint8Array): MemoryWv {
    this.advertised = this.host.memory(bytes, ACCESS);
    return this.advertised;
  }

  /** Creates a queue pair in INIT, where Receives can be posted. */
  queuePair({ sends, receives, inline = 0, context }: QueuePairShape): IWVConnectQueuePair {
    const depths = { sendDepth: sends, sendSge: 1, receiveDepth: receives, receiveSge: 1 };
    return this.host.queuePair(this.cq, { ...depths, maxInlineSend: inline, context }, ACCESS);
  }

  /** Connects to the listener on `port`. */
  async connect(port: number, qp: IWVConnectQueuePair): Promise<Connection> {
    const endpoint = this.provider.createConnectEndpoint();
    const peer = socketAddress(this.addresses[1], port);
    const { privateData } = await connectEndpoint(
      endpoint,
      qp,
      peer,
      { privateData: this.#advert() },
      this.addresses[0],
    );
    return { endpoint, qp, remote: parseAdvert(privateData) };
  }

  /** Accepts a connection request. */
  async accept(endpoint: IWVConnectEndpoint, qp: IWVConnectQueuePair): Promise<Connection> {
    const remote = parseAdvert(endpoint.query().privateData);
    await endpoint.accept(qp, { privateData: this.#advert() });
    return { endpoint, qp, remote };
  }

  /** Polls completions and returns their number. @throws Error if a request failed */
  poll(n: number): number {
    const { completions } = this;
    const count = this.cq.poll(completions, n);
    for (let i = 0; i < count; i += 1) {
      const { status } = completions[i]!;
      if (status !== WcStatus.SUCCESS) throw new Error(`A request failed with completion status ${status}.`);
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
