/** A peer of Valkey's RDMA transport, client or server, that sends whatever a test specifies, valid or not. */
import {
  ALL_ACCESS,
  HostWv,
  type ListenerWv,
  type MemoryWv,
  type Queue,
  toInit,
} from '../../nd/cli/sides/winverbs-side.js';
import {
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  RemoteMemory,
  WcStatus,
  WvOpcode,
  WvSend,
} from '../../winverbs/index.js';
import { HANG_MS, within } from './within.js';

export const Opcode = { GET_FEATURE: 0, SET_FEATURE: 1, KEEPALIVE: 2, REGISTER: 3 } as const;
const RECEIVES = 64;
const SENDS = 64;
const COMMAND_BYTES = 32;
const PARAM = { responderResources: 1, initiatorDepth: 1, rnrRetryCount: 7 };

/** A command with these fields, big-endian. */
export function command(
  opcode: number,
  fields: { address?: bigint; length?: number; rkey?: number } = {},
): Buffer {
  const bytes = Buffer.alloc(COMMAND_BYTES);
  bytes.writeUInt16BE(opcode);
  bytes.writeBigUInt64BE(fields.address ?? 0n, 16);
  bytes.writeUInt32BE(fields.length ?? 0, 24);
  bytes.writeUInt32BE(fields.rkey ?? 0, 28);
  return bytes;
}

/** A received command, or the byte count of a received Write. */
export type Arrival = { readonly command: Buffer } | { readonly count: number };

export class ValkeyPeer {
  readonly #queue: Queue;
  readonly qp: IWVConnectQueuePair;
  /** The part of the buffer that {@link name} has described to the other side, which writes to it. */
  readonly buffer: MemoryWv;
  readonly #sent: MemoryWv;
  readonly #commands: MemoryWv;
  /** The other side's buffer, once {@link named} has received its description. */
  remote: RemoteMemory | undefined;
  remoteBytes = 0;

  private constructor(
    private readonly host: HostWv,
    private readonly endpoint: IWVConnectEndpoint,
    bytes: number,
  ) {
    this.#queue = host.queue(RECEIVES + SENDS);
    const depths = { sendDepth: SENDS, receiveDepth: RECEIVES, sendSge: 1, receiveSge: 1 };
    this.qp = host.queuePair(this.#queue.cq, depths);
    toInit(this.qp, ALL_ACCESS);
    this.buffer = host.memory(bytes, ALL_ACCESS);
    this.#sent = host.memory(1 << 20, ALL_ACCESS);
    this.#commands = host.memory(RECEIVES * COMMAND_BYTES, ALL_ACCESS);
    for (let slot = 0; slot < RECEIVES; slot += 1) this.#receive(slot);
  }

  /** Listens. `next` accepts the next client. */
  static listen(bytes = 1 << 20): { port: number; next(): Promise<ValkeyPeer>; close(): void } {
    const host = HostWv.open();
    const listener: ListenerWv = host.listen();
    return {
      port: listener.address.port,
      next: async () => {
        const endpoint = await listener.next();
        const peer = new ValkeyPeer(HostWv.of(host.provider, endpoint), endpoint, bytes);
        await endpoint.accept(peer.qp, PARAM);
        return peer;
      },
      close: () => {
        listener.release();
        host.release();
      },
    };
  }

  /** Connects to a server and waits for the description of its buffer. */
  static async connect(port: number, bytes = 1 << 20): Promise<ValkeyPeer> {
    const host = HostWv.open();
    const endpoint = host.provider.createConnectEndpoint();
    const peer = new ValkeyPeer(host, endpoint, bytes);
    const server = { family: 4, address: '127.0.0.1', port } as const;
    endpoint.bindAddress({ ...server, port: 0 });
    endpoint.resolveRoute(server);
    await endpoint.connect(peer.qp, server, PARAM);
    await endpoint.accept(null, {});
    await peer.named();
    return peer;
  }

  #receive(slot: number): void {
    this.qp.postReceive(slot, this.#commands.sge(slot * COMMAND_BYTES, COMMAND_BYTES));
  }

  /** Returns the next command or byte count. If `receive` is false, its Receive is not posted again. */
  async next(receive = true): Promise<Arrival> {
    for (;;) {
      const { opcode, context, status, length, immediateData } = await within(
        this.#queue.any(),
        HANG_MS,
        () => new Error('nothing has arrived'),
      );
      if (status !== WcStatus.SUCCESS) throw new Error(`the queue pair has ended: status ${status}`);
      if (opcode < WvOpcode.RECEIVE) continue;
      const at = (context as number) * COMMAND_BYTES;
      const come = Buffer.from(this.#commands.bytes.subarray(at, at + length));
      if (receive) this.#receive(context as number);
      if (opcode === WvOpcode.RECEIVE_RDMA_WRITE) return { count: immediateData };
      return { command: come };
    }
  }

  /** Waits until the other side describes its buffer. Ignores everything else. */
  async named(): Promise<void> {
    for (;;) {
      const arrival = await this.next();
      if (!('command' in arrival) || arrival.command.readUInt16BE() !== Opcode.REGISTER) continue;
      this.remote = new RemoteMemory({
        address: arrival.command.readBigUInt64BE(16),
        rkey: arrival.command.readUInt32BE(28),
      });
      this.remoteBytes = arrival.command.readUInt32BE(24);
      return;
    }
  }

  /** Waits for the end of the queue pair. */
  async ended(): Promise<void> {
    try {
      for (;;) await this.next();
    } catch (error) {
      if (!/the queue pair has ended/.test(String(error))) throw error;
    }
  }

  /** Sends any bytes as a message. */
  send(bytes: Buffer): void {
    this.#sent.bytes.set(bytes);
    this.qp.send('message', this.#sent.sge(0, bytes.length), WvSend.SIGNALED);
  }

  /** Sends a description of its buffer, by default of all of it. */
  name(length = this.buffer.bytes.length): void {
    const { address, rkey } = this.buffer.region;
    this.send(command(Opcode.REGISTER, { address: BigInt(address), length, rkey }));
  }

  /** Writes bytes to the other side's buffer, with any byte count or without one. */
  write(bytes: Buffer, at = 0, count: number | undefined = bytes.length, rkey = this.remote!.rkey): void {
    this.#sent.bytes.set(bytes);
    const remote = new RemoteMemory({ address: this.remote!.address, rkey });
    const flags = WvSend.SIGNALED | (count === undefined ? 0 : WvSend.IMMEDIATE);
    this.qp.write('data', this.#sent.sge(0, bytes.length), flags, remote, at, count);
  }

  /** Ends the connection like a program that exits. */
  async close(): Promise<void> {
    await Promise.resolve(this.endpoint.disconnect()).catch(() => {});
    this.endpoint.release();
    this.qp.release();
    this.#queue.cq.release();
    for (const memory of [this.buffer, this.#sent, this.#commands]) memory.release();
    this.host.release();
  }
}
