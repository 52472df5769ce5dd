import {
  acceptSide,
  type Host,
  type Listener,
  LOOPBACK,
  type Side,
  socketAddress,
  textOf,
  type Which,
} from '../../../nd/cli/sides/connected-side.js';
import { HostV1 } from '../../../nd/cli/sides/v1-side.js';
import { HostV2 } from '../../../nd/cli/sides/v2-side.js';
import { HostWv } from '../../../nd/cli/sides/winverbs-side.js';
import { type Overlapped, Status } from '../../../nd/index.js';
import { type Completions, type Layer, LINK_DEPTH, MESSAGE_BYTES, type RequestResult } from './protocol.js';

const SENDS_AT = LINK_DEPTH * MESSAGE_BYTES;

const queues = { sends: 'outbound', receives: 'inbound' } as const satisfies Record<keyof Completions, Which>;

/** The context of a request: its label, and the offset of a Receive's buffer. */
type Context = [label: string, offset?: number];

/** A connection for text messages. Its completion queues are separate, so that the order of each is visible. */
export class Link {
  readonly side: Side;
  readonly #bytes = Buffer.alloc(2 * SENDS_AT);
  #received = 0;
  #sent = 0;

  constructor(host: Host) {
    this.side = host.side({ receives: LINK_DEPTH, requests: LINK_DEPTH, bytes: this.#bytes });
  }

  receive(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const offset = (this.#received % LINK_DEPTH) * MESSAGE_BYTES;
      const context: Context = [`receive ${this.#received}`, offset];
      this.side.receive(context, this.side.sge(offset, MESSAGE_BYTES));
      this.#received += 1;
    }
  }

  send(texts: readonly string[]): void {
    for (const text of texts) {
      const offset = SENDS_AT + (this.#sent % LINK_DEPTH) * MESSAGE_BYTES;
      const context: Context = [`send ${this.#sent}`];
      this.side.send(context, this.side.sge(offset, this.#bytes.write(text, offset)));
      this.#sent += 1;
    }
  }

  poll(): Completions {
    return { sends: this.pollOne('sends'), receives: this.pollOne('receives') };
  }

  pollOne(which: keyof Completions): RequestResult[] {
    const results: RequestResult[] = [];
    while (results.length < LINK_DEPTH && this.side.take(queues[which])) results.push(this.#result());
    return results;
  }

  notify(which: keyof Completions): Overlapped<void> {
    return this.side.notify(queues[which]);
  }

  notifyDisconnect(): Overlapped<void> {
    return this.side.notifyDisconnect();
  }

  disconnect(): Overlapped<void> {
    return this.side.disconnect();
  }

  async connect(to: string, port: number, data: string): Promise<string> {
    return textOf(await this.side.establish(socketAddress(to, port), Buffer.from(data)));
  }

  release(): void {
    this.side.release(true);
  }

  #result(): RequestResult {
    const { context, status, bytes } = this.side.done;
    const [label, offset] = context as Context;
    const result = { label, status: this.side.statusName(status) };
    if (offset === undefined || status !== Status.SUCCESS) return result;
    return { ...result, text: this.#bytes.toString('latin1', offset, offset + bytes) };
  }
}

/** A listener that creates a link for each request. */
export class LinkListener {
  constructor(
    readonly host: Host,
    readonly listener: Listener,
  ) {}

  get port(): number {
    return this.listener.address.port;
  }

  /** `use` is called with the link before anything is awaited. */
  async accept(receives: number, data: string, use: (link: Link) => void): Promise<string> {
    const link = new Link(this.host);
    use(link);
    const ready = (): void => link.receive(receives);
    return textOf(await acceptSide(this.listener, link.side, Buffer.from(data), ready));
  }

  release(): void {
    this.listener.release();
  }
}

const openers: Readonly<Record<Layer, (address: string) => Host>> = {
  nd: (address) => new HostV1(address),
  nd2: (address) => new HostV2(address),
  // A listener on all addresses receives its requests on the loopback address.
  wv: (address) => HostWv.open(address === WILDCARD ? LOOPBACK : address),
};
const WILDCARD = '0.0.0.0';

/** The hosts of one interface, one for each address. */
export class LinkStack {
  readonly #hosts = new Map<string, Host>();

  constructor(private readonly layer: Layer) {}

  listen(address: string, port: number, backlog: number): LinkListener {
    const host = this.#host(address);
    return new LinkListener(host, host.listen(port, backlog, address));
  }

  link(from: string): Link {
    return new Link(this.#host(from));
  }

  release(): void {
    for (const host of this.#hosts.values()) host.release();
    this.#hosts.clear();
  }

  #host(address: string): Host {
    let host = this.#hosts.get(address);
    if (host === undefined) {
      host = openers[this.layer](address);
      this.#hosts.set(address, host);
    }
    return host;
  }
}
