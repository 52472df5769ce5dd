/**
 * The guest's rdma_cm, driven by rig/cm-peer.py, and code shared by this side's behaviours of connection management.
 */
import assert from 'node:assert/strict';
import * as z from 'zod';
import { readCounters } from '../../../kernel-bridge/index.js';
import type {
  IWVConnectEndpoint,
  IWVConnectQueuePair,
  SocketAddress,
  WvConnectParam,
} from '../../../winverbs/index.js';
import { GuestPeer } from './guest-peer.js';
import { initialise, Listener, type Queue, Side, socketAddress } from './interop-side.js';

/** TCP port of cm-peer.py. */
const PEER_PORT = 18_517;
/** RDMA ports of the guest's and this side's listeners. */
const GUEST_LISTENS = 7501;
const WE_LISTEN = 7502;
/** UDP port space: the port at which this side replies to lookups. */
export const WE_ANSWER = 7503;
/** The queue pair number that the guest sends if it has no queue pair. */
const NUMBER = 0x7ead;

/** Attribute ids of connection management's messages (IBA 1 §12.6, table 91). */
export const Message = {
  REQ: 0x10,
  MRA: 0x11,
  REJ: 0x12,
  REP: 0x13,
  RTU: 0x14,
  DREQ: 0x15,
  DREP: 0x16,
  SIDR_REQ: 0x17,
  SIDR_REP: 0x18,
} as const;
export type MessageName = keyof typeof Message;

/** Reasons of a REJ, as in Linux (IBA 1 §12.6.7.2; 35 is Linux's vendor option). */
export const Reason = { nobodyThere: 8, consumer: 28, vendorOption: 35 } as const;

export type Space = 'tcp' | 'udp';
type Kind = 'cm_tx_msgs' | 'cm_tx_retries' | 'cm_rx_msgs' | 'cm_rx_duplicates';

const number = z.number().int();
const identity = z.object({ id: number });
const bytes = z.hex().transform((text) => Uint8Array.from(Buffer.from(text, 'hex')));
const request = z.object({ id: number, private: bytes });
const event = z
  .object({ event: z.string(), status: number, private: bytes, qpn: number, qkey: number })
  .transform(({ private: privateData, ...rest }) => ({ ...rest, privateData }));
const counted = z.object({ count: number });
const counters = z.record(z.string(), z.record(z.string(), number));
const nothing = z.object({});
export type GuestEvent = z.output<typeof event>;

const hex = (data: Uint8Array): string => Buffer.from(data).toString('hex');

/** `length` bytes that differ from those of another seed, and no two neighbors are equal. */
export const data = (length: number, seed: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (i * 7 + seed * 31 + 1) & 0xff);

/** Private data as the other side gets it: padded with zeros to the size of the field. */
export function padded(wanted: Uint8Array, length: number): Uint8Array {
  const whole = new Uint8Array(length);
  whole.set(wanted);
  return whole;
}

/** A counter of our connection management, such as `sent.REQ`; 0 if it does not exist yet. */
export const ours = (counter: string): number => readCounters().cm[counter] ?? 0;

/** The two hosts in a behaviour. */
export class CmHosts implements Disposable {
  private constructor(
    readonly side: Side,
    readonly own: string,
    readonly guest: string,
    private readonly peer: GuestPeer,
  ) {}

  static async meet(own: string, guest: string): Promise<CmHosts> {
    const peer = await GuestPeer.meet(guest, PEER_PORT);
    return new CmHosts(Side.open(own), own, guest, peer);
  }

  get family(): 4 | 6 {
    return this.own.includes(':') ? 6 : 4;
  }

  /** The address of the guest's {@link listen}. */
  get there(): SocketAddress {
    return socketAddress(this.guest, GUEST_LISTENS);
  }

  /** The queue pair number of the guest's ids without a queue pair. */
  readonly number = NUMBER;

  // ── This side ──────────────────────────────────────────────────────────────────────────────────────────────

  listener(): Listener {
    return new Listener(this.side.provider, socketAddress(this.own, WE_LISTEN));
  }

  queuePair(queue = this.side.queue(16)): IWVConnectQueuePair {
    const { cq } = queue;
    const sizes = { sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
    const qp = this.side.pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
    initialise(qp);
    return qp;
  }

  /** An endpoint of ours with a route to the guest. */
  endpoint(): IWVConnectEndpoint {
    const endpoint = this.side.provider.createConnectEndpoint();
    endpoint.bindAddress(socketAddress(this.own, 0));
    endpoint.resolveRoute(this.there);
    return endpoint;
  }

  // ── The guest ──────────────────────────────────────────────────────────────────────────────────────────────

  /** The guest listens, at {@link there}. */
  async listen(ps: Space = 'tcp'): Promise<number> {
    const wish = { do: 'listen', ps, addr: this.guest, port: GUEST_LISTENS };
    return (await this.peer.ask(wish, identity)).id;
  }

  /** The guest connects to our listener. Without `qp`, its side of the connection has no queue pair. */
  async connect(options: {
    readonly privateData?: Uint8Array;
    readonly qp?: boolean;
    readonly ps?: Space;
    readonly port?: number;
  }): Promise<number> {
    const { privateData = new Uint8Array(0), qp = true, ps = 'tcp', port = WE_LISTEN } = options;
    const wish = { do: 'connect', ps, own: this.guest, addr: this.own, port, private: hex(privateData), qp };
    return (await this.peer.ask(wish, identity)).id;
  }

  /** Waits for the next request at a listener of the guest. */
  async request(listener: number): Promise<{ id: number; privateData: Uint8Array }> {
    const { id, private: privateData } = await this.peer.ask({ do: 'request', id: listener }, request);
    return { id, privateData };
  }

  async accept(id: number, options: { privateData?: Uint8Array; qp?: boolean } = {}): Promise<void> {
    const { privateData = new Uint8Array(0), qp = true } = options;
    await this.peer.ask({ do: 'accept', id, private: hex(privateData), qp }, nothing);
  }

  async reject(id: number, privateData: Uint8Array, options: { ece?: boolean } = {}): Promise<void> {
    await this.peer.ask({ do: 'reject', id, private: hex(privateData), ece: options.ece ?? false }, nothing);
  }

  async establish(id: number): Promise<void> {
    await this.peer.ask({ do: 'establish', id }, nothing);
  }

  async disconnect(id: number): Promise<void> {
    await this.peer.ask({ do: 'disconnect', id }, nothing);
  }

  async destroy(id: number): Promise<void> {
    await this.peer.ask({ do: 'destroy', id }, nothing);
  }

  /** Waits for the next event of one of the guest's ids. @throws Error if it is not `name` */
  async happened(id: number, name: string, seconds = 30): Promise<GuestEvent> {
    const reported = await this.peer.ask({ do: 'event', id, seconds }, event);
    assert.equal(reported.event, name, `the guest reports ${reported.event}, status ${reported.status}`);
    return reported;
  }

  /** One of ib_cm's counters. */
  async counter(kind: Kind, message: MessageName): Promise<number> {
    const all = await this.peer.ask({ do: 'counters' }, counters);
    const found = all[kind]?.[message.toLowerCase()];
    if (found === undefined) throw new Error(`The guest has no counter ${kind}/${message.toLowerCase()}.`);
    return found;
  }

  /**
   * Drops the next `count` messages of a kind that the guest sends, but not the one after them. More may be dropped until {@link lost} ends
   * this.
   */
  async drop(message: MessageName, count: number): Promise<void> {
    await this.peer.ask({ do: 'drop', attribute: Message[message], family: this.family, count }, nothing);
  }

  /** Waits until `count` messages were dropped, and stops dropping. */
  async lost(message: MessageName, count: number): Promise<void> {
    const attribute = Message[message];
    const dropped = async () => (await this.peer.ask({ do: 'dropped', attribute }, counted)).count;
    while ((await dropped()) < count);
    await this.peer.ask({ do: 'pass', attribute }, nothing);
  }

  [Symbol.dispose](): void {
    this.peer.close();
    this.side[Symbol.dispose]();
  }
}

/** A connection between the two: our side, and the guest's id. */
export interface Connected {
  readonly endpoint: IWVConnectEndpoint;
  readonly qp: IWVConnectQueuePair;
  readonly theirs: number;
}

/** Connects from this side. The guest accepts. */
export async function connectTo(
  hosts: CmHosts,
  listener: number,
  param: WvConnectParam = {},
  theirs: { privateData?: Uint8Array } = {},
): Promise<Connected & { readonly seen: Uint8Array; readonly queue: Queue }> {
  const endpoint = hosts.endpoint();
  const queue = hosts.side.queue(16);
  const qp = hosts.queuePair(queue);
  const connecting = endpoint.connect(qp, hosts.there, param);
  const { id, privateData } = await hosts.request(listener);
  await hosts.accept(id, theirs);
  await connecting;
  await endpoint.accept(null, {});
  await hosts.happened(id, 'ESTABLISHED');
  return { endpoint, qp, theirs: id, seen: privateData, queue };
}

/** Connects from the guest. This side accepts. */
export async function connectFrom(hosts: CmHosts, listener: Listener): Promise<Connected> {
  const theirs = await hosts.connect({});
  const endpoint = await listener.next();
  const qp = hosts.queuePair();
  const accepting = endpoint.accept(qp, {});
  await hosts.happened(theirs, 'ESTABLISHED');
  await accepting;
  return { endpoint, qp, theirs };
}

/** The guest ends a connection. We are notified and reply. */
export async function endThere(hosts: CmHosts, { endpoint, qp, theirs }: Connected): Promise<void> {
  await hosts.disconnect(theirs);
  await endpoint.notifyDisconnect().then(
    () => assert.fail('notifyDisconnect() ended well'),
    () => {},
  );
  await endpoint.disconnect();
  await hosts.happened(theirs, 'DISCONNECTED');
  await hosts.destroy(theirs);
  endpoint.release();
  qp.release();
}

/** Ends a connection from this side and waits for its end there. */
export async function end(hosts: CmHosts, { endpoint, qp, theirs }: Connected): Promise<void> {
  const ending = endpoint.disconnect();
  await hosts.happened(theirs, 'DISCONNECTED');
  await hosts.disconnect(theirs);
  await ending;
  await hosts.destroy(theirs);
  endpoint.release();
  qp.release();
}

export async function step(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
    console.log(`ok  ${name}`);
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
