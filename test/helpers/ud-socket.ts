/**
 * Datagrams as in a program: a queue pair with memory for received and sent data, addressed by host addresses. It uses only the public
 * interface and shows what a UD program has to do.
 */
import {
  addressOf,
  GRH_BYTES,
  type IWVAddressHandle,
  type IWVCompletionQueue,
  type IWVProvider,
  MULTICAST_QPN,
  parseGrh,
  replyAddressVector,
  WvAccess,
  type WvAddressVector,
  type WvCompletion,
  WvSend,
} from '../../winverbs/index.js';

/** A received datagram. */
export interface Received {
  readonly payload: Buffer;
  readonly status: number;
  /** The sender's address and QPN. */
  readonly address: string;
  readonly qpn: number;
  readonly way: WvAddressVector;
  /** Status of the completion (WV_WC_*). */
  readonly flags: number;
  readonly immediateData: number;
  readonly ipVersion: number;
}

const RECEIVES = 8;

/** Waits for the next completion of a queue, using notifications. */
export async function nextCompletion(cq: IWVCompletionQueue): Promise<WvCompletion> {
  const one: WvCompletion[] = [];
  while (cq.poll(one, 1) === 0) await cq.notify('any');
  return one[0]!;
}

export class UdSocket {
  /** Maximum bytes of a datagram. */
  readonly mtu: number;
  readonly qp;
  private readonly device;
  private readonly pd;
  private readonly sendCq;
  private readonly receiveCq;
  private readonly out;
  private readonly inbox;

  constructor(
    private readonly provider: IWVProvider,
    readonly local: string,
    readonly qkey: number,
  ) {
    const { deviceGuid, portNumber } = provider.translateAddress(local);
    this.device = provider.openDevice(deviceGuid);
    this.mtu = this.device.queryPort(portNumber).activeMtu;
    this.pd = this.device.allocateProtectionDomain();
    this.sendCq = this.device.createCompletionQueue(16);
    this.receiveCq = this.device.createCompletionQueue(16);
    this.qp = this.pd.createDatagramQueuePair({
      sendCq: this.sendCq,
      receiveCq: this.receiveCq,
      sendDepth: 4,
      sendSge: 1,
      receiveDepth: RECEIVES,
      receiveSge: 1,
    });
    this.out = this.pd.registerMemory(new Uint8Array(2 * this.mtu), 0);
    this.inbox = this.pd.registerMemory(new Uint8Array(RECEIVES * this.room), WvAccess.LOCAL_WRITE);
    this.qp.start(qkey, { portNumber });
    for (let slot = 0; slot < RECEIVES; slot++) this.postReceive(slot);
  }

  private get room(): number {
    return GRH_BYTES + this.mtu;
  }

  private postReceive(slot: number): void {
    this.qp.postReceive(slot, [{ region: this.inbox, offset: slot * this.room, length: this.room }]);
  }

  /** Creates an address handle for a host or a group. */
  handleFor(remote: string): IWVAddressHandle {
    return this.pd.createAddressHandle(this.provider.resolvePath(remote, this.local).addressVector);
  }

  /** Sends a datagram. Returns the completion's status. */
  async sendTo(remote: string, qpn: number, payload: Uint8Array, qkey = this.qkey): Promise<number> {
    const handle = this.handleFor(remote);
    try {
      return await this.sendBy(handle, qpn, payload, qkey);
    } finally {
      handle.release();
    }
  }

  /** Sends to all members of a group. */
  sendToGroup(group: string, payload: Uint8Array, qkey = this.qkey): Promise<number> {
    return this.sendTo(group, MULTICAST_QPN, payload, qkey);
  }

  /** Replies to a datagram. */
  async reply(to: Received, payload: Uint8Array): Promise<number> {
    const handle = this.pd.createAddressHandle(to.way);
    try {
      return await this.sendBy(handle, to.qpn, payload, this.qkey);
    } finally {
      handle.release();
    }
  }

  /** Sends with an existing address handle, with the payload's length as immediate data. */
  async sendBy(handle: IWVAddressHandle, qpn: number, payload: Uint8Array, qkey: number): Promise<number> {
    this.out.bytes!.set(payload);
    this.qp.sendMessage({
      context: undefined,
      addressHandle: handle,
      sgl: [{ region: this.out, offset: 0, length: payload.length }],
      flags: WvSend.SIGNALED | WvSend.SOLICITED | WvSend.IMMEDIATE,
      immediateData: payload.length,
      destinationQpn: qpn,
      destinationQkey: qkey,
    });
    return (await nextCompletion(this.sendCq)).status;
  }

  /** Sends payloads with one PostSend and waits for the last. */
  async sendList(handle: IWVAddressHandle, qpn: number, payloads: readonly Uint8Array[]): Promise<void> {
    let offset = 0;
    const requests = payloads.map((payload, index) => {
      this.out.bytes!.set(payload, offset);
      const sgl = [{ region: this.out, offset, length: payload.length }];
      offset += payload.length;
      const flags = index === payloads.length - 1 ? WvSend.SIGNALED : 0;
      return { addressHandle: handle, sgl, flags, destinationQpn: qpn, destinationQkey: this.qkey };
    });
    this.qp.postSend(requests);
    await nextCompletion(this.sendCq);
  }

  async receive(): Promise<Received> {
    const { context, length, status, sourceQpn, flags, immediateData } = await nextCompletion(this.receiveCq);
    const slot = Number(context);
    const bytes = this.inbox.bytes!.slice(slot * this.room, slot * this.room + length);
    this.postReceive(slot);
    const { ipVersion, sourceGid } = parseGrh(bytes);
    return {
      payload: Buffer.from(bytes.subarray(GRH_BYTES)),
      status,
      address: addressOf(sourceGid),
      qpn: sourceQpn,
      way: replyAddressVector(bytes, this.local),
      flags,
      immediateData,
      ipVersion,
    };
  }

  close(): void {
    for (const object of [this.qp, this.sendCq, this.receiveCq, this.pd, this.device]) object.release();
  }
}
