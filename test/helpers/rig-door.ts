/** WinVerbs on a rig. Requests are passed to the kernel unless the test handles them. */
import type { DeviceFile } from '../../kernel-bridge/door/device-file.js';
import { Overlapped } from '../../kernel-bridge/door/overlapped.js';
import { type IbatCode, IoctlCode, type IoctlName, ioctlName } from '../../kernel-bridge/ioctl/codes.js';
import { CqProviderIn, QpProviderIn } from '../../kernel-bridge/ioctl/provider-data.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import { WvIoId, WvIoQpCreate } from '../../kernel-bridge/ioctl/structs.js';
import { WvFile } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { SoftUserVerbs } from '../../kernel-bridge/uvp/soft-user-verbs.js';
import { type ProviderDoors, WVProvider } from '../../winverbs/provider.js';
import { type Answer, ethGuid, KernelRig, type Submitted } from './kernel-rig.js';

export const NO_BYTES = new Uint8Array(0);

/** A reply of the test instead of the kernel's: output bytes, or a mark that the test completes the request later. */
export type Handler = (input: Uint8Array, outputLength: number, file: RigFile) => Uint8Array | 'pend';

export function failWith(status: number): never {
  throw new StatusError(status);
}

/** An overlapped request of the kernel or, without `submitted`, one that the test completes. */
class Request<T> {
  #answer: Pick<Answer, 'status' | 'output'> | undefined;
  readonly overlapped: Overlapped<T>;

  constructor(
    readonly name: string,
    readonly submitted: Submitted | undefined,
    decode: (output: Uint8Array) => T,
  ) {
    this.overlapped = new Overlapped<T>({
      completed: () => this.done,
      take: () => decode(taken(this.answer!)),
      wait: () => {
        if (!this.done) throw new Error(`the test never completes the awaited ${name}`);
      },
      cancel: () => (submitted ? submitted.cancel() : this.complete(Status.CANCELED)),
    });
  }

  get answer() {
    return this.#answer ?? this.submitted?.answer;
  }

  get done(): boolean {
    return this.answer !== undefined;
  }

  /** Completes the request. If `deliver` is false, the event loop has not delivered it yet. */
  complete(status: number, output: Uint8Array = NO_BYTES, deliver = true): void {
    if (this.done) return;
    this.#answer = { status, output };
    if (deliver) queueMicrotask(() => this.overlapped.settle());
  }
}

function taken({ status, output }: Pick<Answer, 'status' | 'output'>): Uint8Array {
  if (status !== Status.SUCCESS) throw new StatusError(status);
  return output;
}

export class RigFile implements DeviceFile {
  extended = true;
  localOnly = false;
  closed = false;
  private readonly id: number;

  constructor(
    private readonly door: RigDoor,
    readonly name: string,
  ) {
    this.id = door.rig.open(name).answer!.information;
  }

  /** Passes a request to the kernel. */
  pass(code: number, input: Uint8Array, outputLength: number): Submitted {
    return this.door.rig.control(code, input, outputLength, this.id);
  }

  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    const { overlapped } = this.request(code, input, outputLength, (output) => output);
    return overlapped.getResult({ wait: true });
  }

  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T> {
    if (this.closed) return Overlapped.failed<T>(new StatusError(Status.INVALID_HANDLE));
    const request = this.request(code, input, outputLength, decode);
    if (request.done) queueMicrotask(() => request.overlapped.settle());
    else this.door.pending.push(request);
    return request.overlapped;
  }

  private request<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Request<T> {
    const { door } = this;
    const [name, bytes] = [ioctlName(code), input ?? NO_BYTES];
    door.log.push(name);
    door.inputs.push({ name, input: bytes.slice() });
    const handler = door.handlers.get(code);
    // The kernel does not know the requests that the test completes.
    if (/^(EP_CANCEL|EP_DESTROY|SRQ_CANCEL)$/.test(name))
      for (const one of door.held()) one.complete(Status.CANCELED);
    if (handler === undefined) return new Request(name, this.pass(code, bytes, outputLength), decode);
    const request = new Request(name, undefined, decode);
    try {
      const answer = handler(bytes, outputLength, this);
      if (answer !== 'pend') request.complete(Status.SUCCESS, answer.slice(0, outputLength), false);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      request.complete(error.status, NO_BYTES, false);
    }
    return request;
  }

  close(): void {
    this.closed = true;
    this.door.rig.close(this.id);
    this.door.log.push(`close ${this.name}`);
  }
}

/** Requests of endpoints and event reports of an SRQ, for which the test plays the peer. */
const HELD = [
  'SRQ_NOTIFY',
  'EP_CONNECT',
  'EP_ACCEPT',
  'EP_DISCONNECT',
  'EP_DISCONNECT_NOTIFY',
  'EP_GET_REQUEST',
  'EP_LOOKUP',
  'EP_MULTICAST_JOIN',
  'EP_MULTICAST_LEAVE',
] as const satisfies readonly IoctlName[];

/** Both doors to a rig's kernel and its HCA. */
export class RigDoor implements ProviderDoors {
  /** Names of IOCTLs, in order, and 'arm …', 'doorbell …', 'close …'. */
  readonly log: string[];
  readonly inputs: { name: string; input: Uint8Array }[] = [];
  readonly pending: Request<unknown>[] = [];
  readonly files: RigFile[] = [];
  /** Handlers that reply instead of the kernel. */
  readonly handlers = new Map<number, Handler>();
  verbs: SoftUserVerbs;
  loadUserVerbs: ProviderDoors['loadUserVerbs'] = () => this.verbs;

  constructor(readonly rig = new KernelRig()) {
    this.log = rig.hca.log;
    this.verbs = new SoftUserVerbs(rig.hca);
    for (const name of HELD) this.on(name, () => 'pend');
  }

  on(name: keyof typeof IoctlCode, handler: Handler): void {
    this.handlers.set(IoctlCode[name], handler);
  }

  openFile(name: string): RigFile {
    const file = new RigFile(this, name);
    this.files.push(file);
    return file;
  }

  /** Live objects of all files. */
  get objects(): number {
    const contexts = [...this.rig.kernel.io.fileObjects].map(({ context }) => context);
    return contexts.reduce<number>((sum, one) => sum + (one instanceof WvFile ? one.objectCount : 0), 0);
  }

  /** The last input of an IOCTL. */
  input(name: IoctlName | keyof typeof IbatCode): Uint8Array {
    const found = this.inputs.filter((entry) => entry.name === name).at(-1);
    if (found === undefined) throw new Error(`No ${name} was issued.`);
    return found.input;
  }

  /** Outstanding requests that the test completes. */
  held(): Request<unknown>[] {
    return this.pending.filter(({ submitted, done }) => submitted === undefined && !done);
  }

  /** The oldest pending request of an IOCTL. */
  request(name: IoctlName): Request<unknown> {
    const found = this.held().find((entry) => entry.name === name);
    if (found === undefined) throw new Error(`No ${name} is pending.`);
    return found;
  }
}

/** One WinVerbs object of each kind over a {@link RigDoor}. */
export function openPair() {
  const door = new RigDoor();
  const provider = new WVProvider(door);
  const device = provider.openDevice(ethGuid);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(16);
  const cqProvider = CqProviderIn.decode(door.input('CQ_CREATE'), WvIoId.size);
  const cqRing = door.rig.hca.rings.get(Number(cqProvider.ringAddress))!;
  const qp = pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    context: 'qp',
    sendDepth: 4,
    sendSge: 2,
    receiveDepth: 4,
    receiveSge: 2,
    maxInlineSend: 64,
  });
  const qpProvider = QpProviderIn.decode(door.input('QP_CREATE'), WvIoQpCreate.size);
  const qpRing = door.rig.hca.rings.get(Number(qpProvider.ringAddress))!;
  const mw = pd.allocateMemoryWindow();
  const ep = provider.createConnectEndpoint();
  const setState = (state: number) => {
    qpRing.words[abi.qpState] = state;
  };
  /** Word `n` of the send WQE of this index. */
  const sendWord = (index: number, word: number) =>
    qpRing.words[(abi.qpHeaderBytes + index * qpProvider.sendStride) / 4 + word];
  return {
    door,
    hca: door.rig.hca,
    provider,
    device,
    pd,
    cq,
    cqRing,
    qp,
    qpRing,
    token: qpProvider.token,
    mw,
    ep,
    setState,
    sendWord,
    /** The objects, with parents first. */
    all: [provider, device, pd, cq, mw, qp, ep],
  };
}
