/** A UD queue pair with an endpoint, as in a program. It sends, receives and replies. */
import {
  GRH_BYTES,
  type IWVProvider,
  replyAddressVector,
  type SocketAddress,
  WcStatus,
  WvAccess,
  type WvAddressVector,
  type WvCompletion,
  WvDatagram,
  WvSend,
} from '../../winverbs/index.js';

const SLOT = 256;
const RECEIVES = 8;
/** Offset of the send memory, after that of the Receives. */
const SEND_AT = SLOT * RECEIVES;

export const socketAddressOf = (address: string, port = 0): SocketAddress => ({
  family: address.includes(':') ? 6 : 4,
  address,
  port,
});

/** A received datagram. */
export interface Arrived {
  text: string;
  sourceQpn: number;
  /** The address vector for a reply. */
  back: WvAddressVector;
}

/** A bound endpoint and a started UD queue pair on the device of its address. */
export function openDatagramSide(provider: IWVProvider, address: string, qkey: number = WvDatagram.QKEY) {
  const device = provider.openDevice(provider.translateAddress(address).deviceGuid);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(64);
  const depths = { sendDepth: 8, sendSge: 1, receiveDepth: RECEIVES, receiveSge: 1 };
  const qp = pd.createDatagramQueuePair({ sendCq: cq, receiveCq: cq, ...depths });
  qp.start(qkey);
  const memory = Buffer.alloc(SEND_AT + SLOT);
  const region = pd.registerMemory(memory, WvAccess.LOCAL_WRITE);
  const endpoint = provider.createDatagramEndpoint();
  endpoint.bindAddress(socketAddressOf(address));
  const receive = (slot: number) => qp.postReceive(slot, [{ region, offset: slot * SLOT, length: SLOT }]);
  for (let slot = 0; slot < RECEIVES; slot++) receive(slot);
  const polled: WvCompletion[] = [];
  const waiting: WvCompletion[] = [];

  async function next(): Promise<WvCompletion> {
    while (waiting.length === 0) {
      const n = cq.poll(polled, 16);
      waiting.push(...polled.slice(0, n).map((completion) => ({ ...completion })));
      if (n > 0) continue;
      const notified = cq.notify('any');
      const late = cq.poll(polled, 16);
      waiting.push(...polled.slice(0, late).map((completion) => ({ ...completion })));
      if (late > 0) cq.cancelOverlappedRequests();
      await notified.then(undefined, () => {});
    }
    return waiting.shift()!;
  }

  return {
    endpoint,
    qp,
    /** Sends a text and waits for the completion. */
    send(to: WvAddressVector, qpn: number, key: number, text: string): void {
      const handle = pd.createAddressHandle(to);
      const length = memory.write(text, SEND_AT);
      qp.send('sent', handle, { region, offset: SEND_AT, length }, WvSend.SIGNALED, qpn, key);
      for (;;) {
        const n = cq.poll(polled, 16);
        waiting.push(...polled.slice(0, n).map((completion) => ({ ...completion })));
        const at = waiting.findIndex(({ context }) => context === 'sent');
        if (at < 0) continue;
        const [{ status }] = waiting.splice(at, 1) as [WvCompletion];
        if (status !== WcStatus.SUCCESS) throw new Error(`The datagram failed with ${status}.`);
        break;
      }
      handle.release();
    },
    /** Returns the next datagram. */
    async arrived(): Promise<Arrived> {
      const { context, length, sourceQpn } = await next();
      const slot = context as number;
      const bytes = Buffer.from(memory.subarray(slot * SLOT, slot * SLOT + length));
      receive(slot);
      const text = bytes.subarray(GRH_BYTES).toString();
      return { text, sourceQpn, back: replyAddressVector(bytes, address) };
    },
    release(): void {
      for (const object of [endpoint, qp, cq]) object.release();
      pd.deregisterMemory(region);
      for (const object of [pd, device]) object.release();
    },
  };
}
