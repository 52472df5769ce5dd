/**
 * A block device as a driver in the soft kernel: an upper-layer protocol entirely in kernel mode, as SRP targets are. It accepts
 * connections and serves requests in the callback of its completion queue, at DISPATCH_LEVEL and without an IRP: Writes for reads, Reads
 * for writes, and a Send for each reply. It also works while the program that loaded it is blocked.
 */
import {
  type ClientDriver,
  type DriverEntry,
  type IbCa,
  type IbCq,
  type IbMemory,
  type IbPd,
  type IbQp,
  type Irp,
  type KernelAl,
  type KernelEndpoint,
  type KernelServices,
  QpMask,
  QpState,
  Status,
  type UvpCompletion,
  UvpSendRequest,
  WcStatus,
  WvAccess,
  WvOpcode,
  WvSend,
} from 'networkdirect/kernel';
import {
  ANSWER_BYTES,
  Operation,
  QUERY,
  QUERY_BYTES,
  REQUEST_BYTES,
  Result,
  readRequest,
  WINDOW,
} from './protocol.js';

/** There are two for each request, and as many whose completions were not polled before the next request of the slot. */
const SEND_DEPTH = 4 * WINDOW;
const CQ_ENTRIES = 4096;
/** The completion queue has room for all requests that these clients may have posted. */
const MOST_CLIENTS = Math.floor(CQ_ENTRIES / (SEND_DEPTH + WINDOW));

/** Parameters from the loading program. */
interface Parameters {
  readonly address: string;
  readonly blocks: number;
  readonly blockSize: number;
}

function parametersOf(value: unknown): Parameters {
  const { address = '127.0.0.1', blocks = 1024, blockSize = 512 } = (value ?? {}) as Partial<Parameters>;
  const valid = Number.isInteger(blocks) && Number.isInteger(blockSize) && blocks > 0 && blockSize > 0;
  if (!valid || blocks * blockSize > 2 ** 30)
    throw new Error(`\`blocks\` × \`blockSize\` must be at most 1 GiB; got ${blocks} × ${blockSize}.`);
  return { address, blocks, blockSize };
}

/** The context of a Receive or of a write's Read: the client's slot to which it belongs. */
class Slot {
  /** Whether the Read that fetches the data of a write is in flight. */
  reading = false;
  tag = 0;

  constructor(
    readonly client: Client,
    readonly index: number,
  ) {}
}

/** One connection. */
class Client {
  qp: IbQp | undefined = undefined;
  readonly slots = Array.from({ length: WINDOW }, (_, index) => new Slot(this, index));
  /** Received requests, one per slot, followed by the replies. */
  readonly bytes = new Uint8Array(WINDOW * (REQUEST_BYTES + ANSWER_BYTES));
  readonly view = new DataView(this.bytes.buffer);
  memory: IbMemory | undefined = undefined;

  constructor(readonly endpoint: KernelEndpoint) {}
}

class BlockDevice {
  served = 0;
  port = 0;
  private readonly clients = new Set<Client>();
  private readonly completions: UvpCompletion[] = [];
  private readonly request = new UvpSendRequest();
  private closing = false;

  private constructor(
    private readonly kernel: KernelServices,
    readonly parameters: Parameters,
    private readonly al: KernelAl,
    private readonly ca: IbCa,
    private readonly pd: IbPd,
    private readonly disk: IbMemory,
    private readonly listener: KernelEndpoint,
  ) {}

  private cq!: IbCq;

  static async open(driver: ClientDriver, kernel: KernelServices): Promise<BlockDevice> {
    const parameters = parametersOf(driver.parameters);
    const { address, blocks, blockSize } = parameters;
    const hca = kernel.referenceHca(kernel.hcaOfAddress(address));
    const al = kernel.openAl(hca);
    const { verbs } = al;
    const ca = await kernel.wait<IbCa>((irp) => verbs.ciOpenCa(al.al, hca, undefined, {}, irp));
    kernel.dereference(hca);
    const pd = await kernel.wait<IbPd>((irp) => verbs.ciAllocatePd(ca, irp));
    const memory = new Uint8Array(blocks * blockSize);
    const disk = await kernel.wait<IbMemory>((irp) =>
      verbs.ciRegisterMr(pd, memory, WvAccess.LOCAL_WRITE, irp),
    );
    const listener = al.createEndpoint();
    const device = new BlockDevice(kernel, parameters, al, ca, pd, disk, listener);
    const dispatch = { compEvent: (_cq: IbCq, self: BlockDevice) => self.serve() };
    device.cq = await kernel.wait<IbCq>((irp) => verbs.ciCreateCq(ca, CQ_ENTRIES, device, dispatch, irp));
    verbs.ciRearmCq(device.cq, false);
    const family = address.includes(':') ? 6 : 4;
    device.port = await kernel.wait<number>((irp) => listener.bind({ family, address, port: 0 }, irp));
    await kernel.wait<number>((irp) => listener.listen(16, irp));
    device.acceptNext();
    return device;
  }

  // ── Connections ──────────────────────────────────────────────────────────────────────────────────────────

  private acceptNext(): void {
    const endpoint = this.al.createEndpoint();
    this.kernel.call<number>(
      (irp) => this.listener.getRequest(endpoint, irp),
      (status) => {
        if (status !== Status.SUCCESS) return endpoint.close();
        this.acceptNext();
        if (this.clients.size >= MOST_CLIENTS) return this.refuse(endpoint);
        const client = new Client(endpoint);
        this.clients.add(client);
        this.accept(client).catch(() => this.end(client));
      },
    );
  }

  private refuse(endpoint: KernelEndpoint): void {
    this.kernel.call<number>(
      (irp) => endpoint.reject(new Uint8Array(0), irp),
      () => endpoint.close(),
    );
  }

  private async accept(client: Client): Promise<void> {
    const { kernel, pd, cq, al } = this;
    const { verbs } = al;
    const depths = { sendDepth: SEND_DEPTH, receiveDepth: WINDOW, sendSge: 1, receiveSge: 1 };
    const memory = await kernel.wait<IbMemory>((irp) =>
      verbs.ciRegisterMr(pd, client.bytes, WvAccess.LOCAL_WRITE, irp),
    );
    client.memory = memory;
    if (!this.clients.has(client)) return this.giveBack(client);
    const qp = await kernel.wait<IbQp>((irp) =>
      verbs.ciCreateQp(pd, { ...depths, sendCq: cq, receiveCq: cq }, client, {}, irp),
    );
    client.qp = qp;
    // The device may have been closed in the meantime.
    if (!this.clients.has(client)) return this.giveBack(client);
    const init = { state: QpState.INIT, access: 0, pkeyIndex: 0, port: 1 };
    const mask = QpMask.state | QpMask.access | QpMask.pkeyIndex | QpMask.port;
    await kernel.wait<number>((irp) => verbs.ciModifyQp(qp, mask, init, irp));
    for (const slot of client.slots) this.awaitRequest(slot);
    const { initiatorDepth, responderResources } = client.endpoint.query();
    const size = new Uint8Array(new Uint32Array([this.parameters.blockSize, this.parameters.blocks]).buffer);
    const param = { initiatorDepth, responderResources, privateData: size };
    await kernel.wait<number>((irp) => client.endpoint.accept(qp, param, irp));
    kernel.call<number>(
      (irp) => client.endpoint.notifyDisconnect(irp),
      () => this.end(client),
    );
  }

  /** Releases the resources of a connection in the order of their use. */
  private end(client: Client): void {
    if (!this.clients.delete(client)) return;
    client.endpoint.close();
    this.giveBack(client);
  }

  private giveBack({ qp, memory }: Client): void {
    const { kernel, al } = this;
    if (qp)
      kernel.call<number>(
        (irp) => al.verbs.ciDestroyQp(qp, irp),
        () => {},
      );
    if (memory)
      kernel.call<number>(
        (irp) => al.verbs.ciDeregisterMr(memory, irp),
        () => {},
      );
  }

  // ── Requests ─────────────────────────────────────────────────────────────────────────────────────────────

  /** The callback of the completion queue. A completion after the last poll causes another callback. */
  private serve(): void {
    const { verbs } = this.al;
    for (let rearmed = false; ; ) {
      const count = verbs.ciPollCq(this.cq, this.completions, 32);
      for (let n = 0; n < count; n++) this.completed(this.completions[n]!);
      if (count > 0) continue;
      if (rearmed || verbs.ciRearmCq(this.cq, false) !== Status.SUCCESS) return;
      rearmed = true;
    }
  }

  private completed({ context, status, opcode, length }: UvpCompletion): void {
    // The request was flushed, or the peer has sent an invalid address. In both cases its connection has failed.
    if (!(context instanceof Slot) || status !== WcStatus.SUCCESS) return;
    if (opcode === WvOpcode.RECEIVE) this.begin(context, length);
    else if (context.reading) {
      context.reading = false;
      this.answer(context, Result.DONE);
    }
  }

  private begin(slot: Slot, length: number): void {
    const { blocks } = this.parameters;
    const request = readRequest(slot.client.view, slot.index * REQUEST_BYTES);
    slot.tag = request.tag;
    const { operation, block, count } = request;
    const known = operation === Operation.READ || operation === Operation.WRITE;
    if (length !== REQUEST_BYTES || !known) this.answer(slot, Result.UNKNOWN);
    else if (count === 0 || block + count > blocks) this.answer(slot, Result.OUT_OF_RANGE);
    else this.move(slot, request);
  }

  /** Moves the blocks of a request between the disk and the client's memory. */
  private move(slot: Slot, { operation, block, count, ...remote }: ReturnType<typeof readRequest>): void {
    const { blockSize } = this.parameters;
    const send = this.request;
    send.context = slot;
    send.opcode = operation === Operation.READ ? WvOpcode.RDMA_WRITE : WvOpcode.RDMA_READ;
    // The reply follows its Write on the same connection, so it arrives after the data.
    send.flags = operation === Operation.READ ? 0 : WvSend.SIGNALED;
    send.sgl = [{ region: this.disk, offset: block * blockSize, length: count * blockSize }];
    send.remoteLow = remote.addressLow;
    send.remoteHigh = remote.addressHigh;
    send.rkey = remote.rkey;
    slot.reading = operation === Operation.WRITE;
    this.post(slot.client, send);
    if (operation === Operation.READ) this.answer(slot, Result.DONE);
  }

  /** Sends the reply. The slot accepts the next request before the client can send it. */
  private answer(slot: Slot, result: number): void {
    const { client, index } = slot;
    const offset = WINDOW * REQUEST_BYTES + index * ANSWER_BYTES;
    client.view.setUint32(offset, slot.tag, true);
    client.view.setUint32(offset + 4, result, true);
    this.served++;
    this.awaitRequest(slot);
    const send = this.request;
    send.context = slot;
    send.opcode = WvOpcode.SEND;
    send.flags = WvSend.SIGNALED;
    send.sgl = [{ region: client.memory!, offset, length: ANSWER_BYTES }];
    this.post(client, send);
  }

  /** Ends a connection that rejects a request, because its client must not wait for a reply. */
  private post(client: Client, send: UvpSendRequest): void {
    if (this.al.verbs.ciPostSend(client.qp!, send) !== Status.SUCCESS) this.end(client);
  }

  private awaitRequest(slot: Slot): void {
    const { client, index } = slot;
    const place = { region: client.memory!, offset: index * REQUEST_BYTES, length: REQUEST_BYTES };
    this.al.verbs.ciPostRecv(client.qp!, slot, [place]);
  }

  /** Ends all connections and releases everything. */
  async close(): Promise<void> {
    if (this.closing) return;
    this.closing = true;
    const { kernel, al } = this;
    const { verbs } = al;
    this.listener.close();
    for (const client of [...this.clients]) this.end(client);
    await kernel.wait<number>((irp) => verbs.ciDestroyCq(this.cq, irp));
    await kernel.wait<number>((irp) => verbs.ciDeregisterMr(this.disk, irp));
    await kernel.wait<number>((irp) => verbs.ciDeallocatePd(this.pd, irp));
    await kernel.wait<number>((irp) => verbs.ciCloseCa(this.ca, irp));
    al.close();
  }
}

export const driverEntry: DriverEntry = async (driver, kernel) => {
  const device = await BlockDevice.open(driver, kernel);
  driver.createDevice('\\Device\\BlockDevice', ['\\DosDevices\\BlockDevice']);
  const query = (irp: Irp): number => {
    const { blockSize, blocks } = device.parameters;
    const answer = new Uint32Array([device.port, blockSize, blocks, device.served]);
    irp.output.set(new Uint8Array(answer.buffer));
    return irp.complete(Status.SUCCESS, QUERY_BYTES);
  };
  driver.onIoctl(QUERY, query, 0, QUERY_BYTES);
  driver.routines.unload = () => device.close();
};
