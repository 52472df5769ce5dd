/** A datagram queue pair with its messages, shared by udaddy and mckey. */
import {
  GRH_BYTES,
  type IWVAddressHandle,
  type IWVDatagramQueuePair,
  WvAccess,
  type WvAddressVector,
  WvDatagram,
  WvSend,
  WvWc,
} from '../../../winverbs/index.js';
import { type Memory, type Queue, SIGNALED, type Side } from './interop-side.js';

/** The destination of a node's messages. */
export interface Target {
  readonly handle: IWVAddressHandle;
  readonly qpn: number;
  readonly qkey: number;
}

/** The sender's data in a message. */
export interface Arrival {
  /** The GRH, in the first 40 bytes of the buffer. */
  readonly grh: Uint8Array;
  readonly sourceQpn: number;
  readonly immediate: number;
}

/** A queue pair with a posted receive for each of `count` messages of `size` bytes. Each has its own buffer. */
export class DatagramNode {
  readonly qp: IWVDatagramQueuePair;
  private readonly sent: Queue;
  private readonly arrived: Queue;
  private readonly outgoing: Memory;
  private readonly incoming: Memory;

  constructor(
    private readonly side: Side,
    private readonly count: number,
    private readonly size: number,
  ) {
    const depth = Math.max(count, 1);
    this.sent = side.queue(depth);
    this.arrived = side.queue(depth);
    this.qp = side.pd.createDatagramQueuePair({
      sendCq: this.sent.cq,
      receiveCq: this.arrived.cq,
      sendDepth: depth,
      sendSge: 1,
      receiveDepth: depth,
      receiveSge: 1,
    });
    this.qp.start(WvDatagram.QKEY);
    this.outgoing = side.memory(size, 0);
    this.incoming = side.memory(depth * this.buffer, WvAccess.LOCAL_WRITE);
    for (let i = 0; i < count; i += 1) {
      this.qp.postReceive(i, this.incoming.sge(i * this.buffer, this.buffer));
    }
  }

  private get buffer(): number {
    return GRH_BYTES + this.size;
  }

  /** The destination for a peer or a group, from an endpoint's result. */
  target(found: { addressVector: WvAddressVector | undefined; qpn: number; qkey: number }): Target {
    const { addressVector, qpn, qkey } = found;
    if (addressVector === undefined) throw new Error('The endpoint does not know the way to this peer.');
    return { handle: this.side.pd.createAddressHandle(addressVector), qpn, qkey };
  }

  /** Sends all messages, with this side's QPN as immediate data. */
  async send({ handle, qpn, qkey }: Target): Promise<void> {
    for (let i = 0; i < this.count; i += 1) {
      this.qp.sendMessage({
        context: 'send',
        addressHandle: handle,
        sgl: this.outgoing.sge(),
        flags: SIGNALED | WvSend.IMMEDIATE,
        immediateData: this.qp.qpn,
        destinationQpn: qpn,
        destinationQkey: qkey,
      });
    }
    await this.sent.take(this.count);
  }

  /** Waits for all messages. @throws Error if one differs from those of the tools */
  async receive(): Promise<Arrival[]> {
    const arrivals: Arrival[] = [];
    for (const { context, length, flags, sourceQpn, immediateData } of await this.arrived.take(this.count)) {
      if (length !== this.buffer) {
        throw new Error(`A message of ${length - GRH_BYTES} bytes came instead of ${this.size}.`);
      }
      if ((flags & WvWc.GRH_VALID) === 0 || (flags & WvWc.IMMEDIATE) === 0) {
        throw new Error(
          `A message arrived with the flags 0x${flags.toString(16)}: no GRH, or no immediate data.`,
        );
      }
      const at = (context as number) * this.buffer;
      const grh = this.incoming.bytes.slice(at, at + GRH_BYTES);
      arrivals.push({ grh, sourceQpn, immediate: immediateData });
    }
    return arrivals;
  }
}
