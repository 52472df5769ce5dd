import type { DeviceFile } from '../../kernel-bridge/door/device-file.js';
import { Overlapped } from '../../kernel-bridge/door/overlapped.js';
import { IbatCode, IoctlCode, ioctlName } from '../../kernel-bridge/ioctl/codes.js';
import {
  AvProviderOut,
  CaProviderOut,
  CqProviderIn,
  CqProviderOut,
  MwProviderOut,
  PdProviderOut,
  QpProviderIn,
  QpProviderOut,
  QpStateOut,
  SrqProviderIn,
  SrqProviderOut,
} from '../../kernel-bridge/ioctl/provider-data.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { SoftUserVerbs } from '../../kernel-bridge/uvp/soft-user-verbs.js';
import type { ProviderDoors } from '../../winverbs/provider.js';
import { FakeHca } from './fake-hca.js';

/** A handler's answer: output bytes, or that the request stays pending. */
export type Answer = Uint8Array | 'pend';
export type Handler = (input: Uint8Array, outputLength: number, file: FakeFile) => Answer;

export interface PendingRequest {
  readonly name: string;
  readonly input: Uint8Array;
  /** Completes it; `deliver` false: not yet delivered by the event loop. */
  complete(status: number, output?: Uint8Array, deliver?: boolean): void;
  readonly done: boolean;
}

export const NO_BYTES = new Uint8Array(0);

export function failWith(status: number): never {
  throw new StatusError(status);
}

function join(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

class Pending<T> implements PendingRequest {
  done = false;
  private status: number = Status.PENDING;
  private output: Uint8Array = NO_BYTES;
  readonly overlapped: Overlapped<T>;

  constructor(
    readonly name: string,
    readonly input: Uint8Array,
    decode: (output: Uint8Array) => T,
  ) {
    this.overlapped = new Overlapped<T>({
      completed: () => this.done,
      take: () => {
        if (this.status !== Status.SUCCESS) throw new StatusError(this.status);
        return decode(this.output);
      },
      wait: () => {
        if (!this.done) throw new Error(`the test waits for a ${name} that nobody completes`);
      },
      cancel: () => this.complete(Status.CANCELED),
    });
  }

  complete(status: number, output: Uint8Array = NO_BYTES, deliver = true): void {
    if (this.done) return;
    this.done = true;
    this.status = status;
    this.output = output;
    if (deliver) queueMicrotask(() => this.overlapped.settle());
  }
}

export class FakeFile implements DeviceFile {
  extended = true;
  closed = false;
  constructor(
    private readonly door: FakeDoor,
    readonly name: string,
  ) {}

  ioctl(code: number, input: Uint8Array | null, outputLength: number): Uint8Array {
    const answer = this.door.run(this, code, input ?? NO_BYTES, outputLength);
    if (answer === 'pend') throw new Error(`a blocking ${ioctlName(code)} would wait for ever`);
    return answer;
  }

  ioctlOverlapped<T>(
    code: number,
    input: Uint8Array | null,
    outputLength: number,
    decode: (output: Uint8Array) => T,
  ): Overlapped<T> {
    if (this.closed) return Overlapped.failed<T>(new StatusError(Status.INVALID_HANDLE));
    const request = new Pending<T>(ioctlName(code), (input ?? NO_BYTES).slice(), decode);
    try {
      const answer = this.door.run(this, code, input ?? NO_BYTES, outputLength);
      if (answer === 'pend') this.door.pending.push(request);
      else request.complete(Status.SUCCESS, answer);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      request.complete(error.status);
    }
    return request.overlapped;
  }

  close(): void {
    this.closed = true;
    this.door.log.push(`close ${this.name}`);
  }
}

/** A minimal kernel behind the door: object ids with parents, and handlers that tests replace. */
export class FakeDoor implements ProviderDoors {
  readonly hca = new FakeHca();
  /** Names of IOCTLs, in order, and 'arm …', 'doorbell …', 'close …'. */
  readonly log = this.hca.log;
  readonly inputs: { name: string; input: Uint8Array }[] = [];
  readonly pending: PendingRequest[] = [];
  readonly files: FakeFile[] = [];
  /** Existing objects: id → kind and parents. */
  readonly objects = new Map<bigint, { kind: string; parents: bigint[] }>();
  /** Replaces a handler. */
  readonly handlers = new Map<number, Handler>();
  verbs = new SoftUserVerbs(this.hca);
  loadUserVerbs: ProviderDoors['loadUserVerbs'] = () => this.verbs;
  private nextId = 100n;
  private nextLkey = 0x5000;
  readonly regions = new Set<number>();

  constructor() {
    this.defaults();
  }

  openFile(name: string): FakeFile {
    const file = new FakeFile(this, name);
    this.files.push(file);
    return file;
  }

  run(file: FakeFile, code: number, input: Uint8Array, outputLength: number): Answer {
    const name = ioctlName(code);
    if (file.closed) failWith(Status.FILE_CLOSED);
    this.log.push(name);
    this.inputs.push({ name, input: input.slice() });
    const handler = this.handlers.get(code);
    if (handler === undefined) failWith(Status.PROCEDURE_NOT_FOUND);
    const answer = handler(input, outputLength, file);
    return answer === 'pend' ? answer : answer.slice(0, outputLength);
  }

  /** The last input of an IOCTL. */
  input(name: string): Uint8Array {
    const found = this.inputs.filter((entry) => entry.name === name).at(-1);
    if (found === undefined) throw new Error(`there was no ${name}`);
    return found.input;
  }

  /** The oldest outstanding request of an IOCTL. */
  request(name: string): PendingRequest {
    const found = this.pending.find((entry) => entry.name === name && !entry.done);
    if (found === undefined) throw new Error(`no ${name} is pending`);
    return found;
  }

  add(kind: string, ...parents: bigint[]): bigint {
    for (const parent of parents) if (!this.objects.has(parent)) failWith(Status.NOT_FOUND);
    const id = this.nextId++;
    this.objects.set(id, { kind, parents });
    return id;
  }

  private remove(input: Uint8Array): Uint8Array {
    const { id } = s.WvIoObject.decode(input);
    if (!this.objects.has(id)) failWith(Status.NOT_FOUND);
    for (const { parents } of this.objects.values()) if (parents.includes(id)) failWith(Status.DEVICE_BUSY);
    this.objects.delete(id);
    return NO_BYTES;
  }

  private cancel(): Uint8Array {
    for (const request of this.pending) request.complete(Status.CANCELED);
    return NO_BYTES;
  }

  private defaults(): void {
    const on = (name: keyof typeof IoctlCode, handler: Handler) =>
      this.handlers.set(IoctlCode[name], handler);
    const handle = (id: bigint) => Number(id);
    on('GUID_QUERY', () => s.WvIoGuidList.encode({ count: 1n, guid: 0xabn }));
    on('LIBRARY_QUERY', () => new Uint8Array(Buffer.from('fake\0')));
    on('DEVICE_OPEN', () => {
      const id = this.add('device');
      return join(
        s.WvIoId.encode({ id }),
        CaProviderOut.encode({
          maxSge: 8,
          maxInline: 256,
          maxQpWr: 64,
          maxCqEntries: 256,
          maxSrqWr: 64,
          maxSrqSge: 4,
        }),
      );
    });
    on('DEVICE_QUERY', () =>
      s.WvIoDeviceAttributes.encode({ nodeGuid: 0xabn, maxQp: 7, physPortCount: 1, atomicCapability: 1 }),
    );
    on('DEVICE_PORT_QUERY', () =>
      s.WvIoPortAttributes.encode({ state: 4, gidTableLength: 1, pkeyTableLength: 20 }),
    );
    on('DEVICE_GID_QUERY', () => s.WvGidList.encode([new Uint8Array(16).fill(9)]));
    on('DEVICE_PKEY_QUERY', () => s.WvPkeyList.encode(Array.from({ length: 20 }, (_, i) => 0x8000 + i)));
    on('PD_ALLOCATE', (input) => {
      const id = this.add('pd', s.WvIoId.decode(input).id);
      return join(s.WvIoId.encode({ id }), PdProviderOut.encode({ handle: handle(id) }));
    });
    on('CQ_CREATE', (input) => {
      const { id: device, data } = s.WvIoId.decode(input);
      CqProviderIn.decode(input, s.WvIoId.size);
      const id = this.add('cq', device);
      return join(s.WvIoId.encode({ id, data }), CqProviderOut.encode({ handle: handle(id) }));
    });
    on('CQ_RESIZE', (input) => s.WvIoId.encode({ data: s.WvIoId.decode(input).data }));
    on('CQ_NOTIFY', () => 'pend');
    on('DEVICE_NOTIFY', () => 'pend');
    on('SRQ_CREATE', (input) => {
      const create = s.WvIoSrqAttributes.decode(input);
      SrqProviderIn.decode(input, s.WvIoSrqAttributes.size);
      const id = this.add('srq', create.id.id);
      const answer = s.WvIoSrqAttributes.encode({ ...create, id: { id } });
      return join(answer, SrqProviderOut.encode({ handle: handle(id) }));
    });
    on('SRQ_QUERY', () => s.WvIoSrqAttributes.encode({ maxWr: 8, maxSge: 2, srqLimit: 3 }));
    on('SRQ_MODIFY', (input) => s.WvIoSrqAttributes.encode(s.WvIoSrqAttributes.decode(input)));
    on('SRQ_NOTIFY', () => 'pend');
    on('QP_CREATE', (input) => {
      const create = s.WvIoQpCreate.decode(input);
      QpProviderIn.decode(input, s.WvIoQpCreate.size);
      const srq = create.srqId === 0n ? [] : [create.srqId];
      const id = this.add('qp', create.id.id, create.sendCqId, create.receiveCqId, ...srq);
      return join(
        s.WvIoQpCreate.encode({ ...create, id: { id } }),
        QpProviderOut.encode({ handle: handle(id), qpn: 0x10_0000 + handle(id) }),
      );
    });
    on('QP_MODIFY', (input) => QpStateOut.encode({ state: s.WvIoQpAttributes.decode(input).qpState }));
    on('MEMORY_REGISTER', () => {
      this.regions.add(++this.nextLkey);
      return s.WvIoMemoryKeys.encode({ lkey: this.nextLkey, rkey: 0xbeef });
    });
    on('MEMORY_DEREGISTER', (input) => {
      if (!this.regions.delete(s.WvIoId.decode(input).data)) failWith(Status.NOT_FOUND);
      return NO_BYTES;
    });
    on('MW_ALLOCATE', (input) => {
      const id = this.add('mw', s.WvIoId.decode(input).id);
      return join(
        s.WvIoMwKey.encode({ id, rkey: 0x777701 }),
        MwProviderOut.encode({ handle: handle(id), rkey: 0x777701 }),
      );
    });
    on('AH_CREATE', (input) => {
      const { id: pd, addressVector } = s.WvIoAhCreate.decode(input);
      const id = this.add('ah', pd.id);
      return join(
        s.WvIoAhCreate.encode({ id: { id }, addressVector }),
        AvProviderOut.encode({ handle: handle(id) }),
      );
    });
    on('QP_ATTACH', () => NO_BYTES);
    on('QP_DETACH', () => NO_BYTES);
    on('EP_CREATE', () => s.WvIoObject.encode({ id: this.add('ep') }));
    on('EP_BIND', (input) => input.slice());
    for (const name of ['EP_MODIFY', 'EP_LISTEN', 'EP_REJECT'] as const) on(name, () => NO_BYTES);
    for (const name of [
      'EP_CONNECT',
      'EP_ACCEPT',
      'EP_DISCONNECT',
      'EP_DISCONNECT_NOTIFY',
      'EP_GET_REQUEST',
      'EP_LOOKUP',
      'EP_MULTICAST_JOIN',
      'EP_MULTICAST_LEAVE',
    ] as const) {
      on(name, () => 'pend');
    }
    for (const name of [
      'DEVICE_CLOSE',
      'PD_DEALLOCATE',
      'CQ_DESTROY',
      'SRQ_DESTROY',
      'QP_DESTROY',
      'MW_DEALLOCATE',
      'AH_DESTROY',
      'EP_DESTROY',
    ] as const) {
      on(name, (input) => this.remove(input));
    }
    for (const name of [
      'DEVICE_CANCEL',
      'PD_CANCEL',
      'CQ_CANCEL',
      'SRQ_CANCEL',
      'QP_CANCEL',
      'EP_CANCEL',
    ] as const) {
      on(name, () => this.cancel());
    }
    this.handlers.set(IbatCode.IP_TO_PORT, () =>
      s.IbatPortRecord.encode({ caGuid: 0xabn, pKey: 0xffff, portNum: 1 }),
    );
    this.handlers.set(IbatCode.PATH, () => s.IbPathRecord.encode({ numPath: 1, mtu: 0x85 }));
  }
}
