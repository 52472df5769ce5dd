import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVProvider,
  type Overlapped,
  openProvider,
  QpAttr,
  QpState,
  WcStatus,
  WvAccess,
  type WvCompletion,
  WvSend,
} from '../../../winverbs/index.js';
import type { Link, LinkListener, LinkStack } from './link.js';
import { textOf } from './nd-link.js';
import { type Completions, LINK_DEPTH, MESSAGE_BYTES, type Told } from './protocol.js';

const SENDS_AT = LINK_DEPTH * MESSAGE_BYTES;

/** A connection through WinVerbs. */
export class WvLink implements Link {
  readonly endpoint: IWVConnectEndpoint;
  #made: ReturnType<WvLink['make']> | undefined;
  readonly #bytes = Buffer.alloc(2 * SENDS_AT);
  #received = 0;
  #sent = 0;
  readonly #completions: WvCompletion[] = [];

  constructor(
    readonly provider: IWVProvider,
    /** Undefined: the address of the request that it will accept. */
    private readonly address: string | undefined,
  ) {
    this.endpoint = provider.createConnectEndpoint();
  }

  /** Queue pair and what it needs, on the device of the connection. */
  private get parts() {
    this.#made ??= this.make(this.address ?? this.endpoint.query().localAddress.address);
    return this.#made;
  }

  private make(address: string) {
    const device = this.provider.openDevice(this.provider.translateAddress(address).deviceGuid);
    const pd = device.allocateProtectionDomain();
    const inbound = device.createCompletionQueue(LINK_DEPTH);
    const outbound = device.createCompletionQueue(LINK_DEPTH);
    const qp = pd.createConnectQueuePair({
      sendCq: outbound,
      receiveCq: inbound,
      sendDepth: LINK_DEPTH,
      sendSge: 1,
      receiveDepth: LINK_DEPTH,
      receiveSge: 1,
    });
    qp.modify({ qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 }, QpAttr.STATE);
    const region = pd.registerMemory(this.#bytes, WvAccess.LOCAL_WRITE);
    return { device, pd, inbound, outbound, qp, region };
  }

  get qp(): IWVConnectQueuePair {
    return this.parts.qp;
  }

  receive(count: number): void {
    const { qp, region } = this.parts;
    for (let i = 0; i < count; i += 1) {
      const offset = (this.#received % LINK_DEPTH) * MESSAGE_BYTES;
      qp.postReceive([`receive ${this.#received}`, offset], [{ region, offset, length: MESSAGE_BYTES }]);
      this.#received += 1;
    }
  }

  send(texts: readonly string[]): void {
    const { qp, region } = this.parts;
    for (const text of texts) {
      const offset = SENDS_AT + (this.#sent % LINK_DEPTH) * MESSAGE_BYTES;
      const length = this.#bytes.write(text, offset);
      qp.send([`send ${this.#sent}`], [{ region, offset, length }], WvSend.SIGNALED);
      this.#sent += 1;
    }
  }

  poll(): Completions {
    return { sends: this.pollOne('sends'), receives: this.pollOne('receives') };
  }

  pollOne(which: keyof Completions): Told[] {
    const n = this.#queue(which).poll(this.#completions, LINK_DEPTH);
    return this.#completions.slice(0, n).map((completion) => this.#told(completion));
  }

  notify(which: keyof Completions): Overlapped<void> {
    return this.#queue(which).notify('any');
  }

  notifyDisconnect(): Overlapped<void> {
    return this.endpoint.notifyDisconnect();
  }

  disconnect(): Overlapped<void> {
    return this.endpoint.disconnect();
  }

  async connect(to: string, port: number, data: string): Promise<string> {
    const family = to.includes(':') ? 6 : 4;
    const peer = { family, address: to, port } as const;
    this.endpoint.bindAddress({ family, address: this.address ?? '', port: 0 });
    this.endpoint.resolveRoute(peer);
    await this.endpoint.connect(this.qp, peer, { privateData: Buffer.from(data) });
    const reply = textOf(this.endpoint.query().privateData);
    await this.endpoint.accept(null, {});
    return reply;
  }

  release(): void {
    this.endpoint.release();
    if (this.#made === undefined) return;
    const { device, pd, inbound, outbound, qp, region } = this.#made;
    qp.release();
    pd.deregisterMemory(region);
    for (const object of [inbound, outbound, pd, device]) object.release();
  }

  #queue(which: keyof Completions): IWVCompletionQueue {
    return which === 'sends' ? this.parts.outbound : this.parts.inbound;
  }

  #told({ context, status, length }: WvCompletion): Told {
    const [label, offset] = context as [string, number | undefined];
    const told = { label, status: completionName(status) };
    if (offset === undefined || status !== WcStatus.SUCCESS) return told;
    return { ...told, text: this.#bytes.toString('latin1', offset, offset + length) };
  }
}

function completionName(status: number): string {
  return Object.entries(WcStatus).find(([, value]) => value === status)?.[0] ?? String(status);
}

class WvListener implements LinkListener {
  constructor(
    readonly provider: IWVProvider,
    readonly endpoint: IWVConnectEndpoint,
  ) {}

  get port(): number {
    return this.endpoint.query().localAddress.port;
  }

  async accept(receives: number, data: string, use: (link: Link) => void): Promise<string> {
    const link = new WvLink(this.provider, undefined);
    use(link);
    await this.endpoint.getRequest(link.endpoint);
    const said = textOf(link.endpoint.query().privateData);
    link.receive(receives);
    await link.endpoint.accept(link.qp, { privateData: Buffer.from(data) });
    return said;
  }

  release(): void {
    this.endpoint.release();
  }
}

/** WinVerbs with one provider. */
export class WvStack implements LinkStack {
  #provider: IWVProvider | undefined;

  get provider(): IWVProvider {
    this.#provider ??= openProvider();
    return this.#provider;
  }

  listen(address: string, port: number, backlog: number): LinkListener {
    const endpoint = this.provider.createConnectEndpoint();
    try {
      endpoint.bindAddress({ family: address.includes(':') ? 6 : 4, address, port });
      endpoint.listen(backlog);
    } catch (error) {
      endpoint.release();
      throw error;
    }
    return new WvListener(this.provider, endpoint);
  }

  link(from: string): Link {
    return new WvLink(this.provider, from);
  }

  release(): void {
    this.#provider?.release();
    this.#provider = undefined;
  }
}
