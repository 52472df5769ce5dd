import type { IWVConnectQueuePair } from '../../winverbs/index.js';
import { QpAttr, QpState, Status, WvAccess, WvSend } from '../../winverbs/index.js';
import type { INDEndpoint, INDMemoryWindow, NdMemoryHandle, NdResult, NdSge } from '../spi/v1.js';
import { NdMwDescriptor, NdOpFlag } from '../spi/v1.js';
import { refuse, type StatusMap, v1Call, v1Error } from '../status.js';
import type { Adapter } from './adapter.js';
import type { CompletionQueue } from './completion-queue.js';
import type { Connector } from './connector.js';
import { MemoryWindow } from './memory-window.js';
import { NdObject } from './object.js';
import { RequestQueue, type RequestRecord, RequestType } from './requests.js';
import { ScatterGather } from './scatter-gather.js';

const { SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE } = NdOpFlag;

/** Flags each request knows. */
const KNOWN = {
  send: SILENT_SUCCESS | READ_FENCE | SEND_AND_SOLICIT_EVENT,
  bind: SILENT_SUCCESS | READ_FENCE | ALLOW_READ | ALLOW_WRITE,
  other: SILENT_SUCCESS | READ_FENCE,
} as const;

/** ND_OP_FLAG_* → WV_SEND_*, by index. */
const sendFlags: readonly number[] = Array.from(
  { length: 0x20 },
  (_, flags) =>
    (flags & SILENT_SUCCESS ? 0 : WvSend.SIGNALED) |
    (flags & READ_FENCE ? WvSend.FENCE : 0) |
    (flags & SEND_AND_SOLICIT_EVENT ? WvSend.SOLICITED : 0),
);

/** A queue pair that cannot send yet has no connection. */
const postStatuses: StatusMap = { [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID };

/** What an endpoint is made of. */
export interface EndpointParts {
  adapter: Adapter;
  qp: IWVConnectQueuePair;
  inbound: CompletionQueue;
  outbound: CompletionQueue;
  inboundEntries: number;
  outboundEntries: number;
  inboundReadLimit: number;
  outboundReadLimit: number;
}

/** INDEndpoint over IWVConnectQueuePair. */
export class Endpoint extends NdObject implements INDEndpoint {
  readonly adapter: Adapter;
  readonly qp: IWVConnectQueuePair;
  readonly maxInline: number;
  readonly inboundReadLimit: number;
  readonly outboundReadLimit: number;
  /** The connector it is, or is being, connected by. */
  connector: Connector | undefined;
  readonly #inbound: RequestQueue;
  readonly #outbound: RequestQueue;
  readonly #completionQueues: readonly CompletionQueue[];
  readonly #sg: ScatterGather;

  constructor(parts: EndpointParts) {
    super();
    this.adapter = parts.adapter;
    this.qp = parts.qp;
    // What the queue pair grants, which may differ from what the device says in general.
    this.maxInline = parts.qp.maxInlineSend;
    this.inboundReadLimit = parts.inboundReadLimit;
    this.outboundReadLimit = parts.outboundReadLimit;
    this.#inbound = new RequestQueue(parts.inboundEntries);
    this.#outbound = new RequestQueue(parts.outboundEntries);
    this.#completionQueues = [parts.inbound, parts.outbound];
    this.#sg = new ScatterGather(parts.adapter.memory);
    for (const queue of this.#completionQueues) queue.hold();
    parts.adapter.hold();
  }

  flush(): void {
    this.alive('Flush');
    v1Call('Flush', () => this.qp.modify({ qpState: QpState.ERROR }, QpAttr.STATE));
  }

  startRequestBatch(): void {
    this.alive('StartRequestBatch');
    this.qp.startBatch();
  }

  submitRequestBatch(): void {
    this.alive('SubmitRequestBatch');
    this.qp.submitBatch();
  }

  send(result: NdResult, sgl: readonly NdSge[], flags = 0): void {
    const what = 'Send';
    this.#check(what, flags, KNOWN.send, 4);
    const wvFlags = this.#gather(what, sgl) | sendFlags[flags]!;
    const record = this.#take(what, result, RequestType.transfer);
    try {
      this.qp.send(record, this.#sg.list, wvFlags);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  sendAndInvalidate(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, flags = 0): void {
    const what = 'SendAndInvalidate';
    this.#check(what, flags, KNOWN.send, 5);
    const wvFlags = this.#gather(what, sgl) | sendFlags[flags]!;
    const record = this.#take(what, result, RequestType.transfer);
    try {
      this.qp.sendAndInvalidate(record, this.#sg.list, wvFlags, remote.rkey);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  receive(result: NdResult, sgl: readonly NdSge[]): void {
    const what = 'Receive';
    this.alive(what);
    this.#sg.translate(sgl, what);
    if (this.#sg.plain) throw plainRefused(what);
    const record = this.#inbound.take(result, RequestType.receive, this.#sg.total);
    if (record === undefined) throw notTaken(what, result);
    try {
      this.qp.postReceive(record, this.#sg.list);
    } catch (error) {
      this.#inbound.undo(record);
      throw v1Error(error, what, postStatuses);
    }
  }

  bind(
    result: NdResult,
    memory: NdMemoryHandle,
    window: INDMemoryWindow,
    offset: number,
    length: number,
    flags: number,
  ): NdMwDescriptor {
    const what = 'Bind';
    this.#check(what, flags, KNOWN.bind, 6);
    const handle = this.adapter.memory.live(memory, what);
    const mw = this.#window(window, what, Status.INVALID_PARAMETER_3);
    if (!isRange(offset, length, handle.length)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `A window of ${length} bytes at offset ${offset} does not lie within the memory's ${handle.length} bytes, or is empty.`,
      );
    }
    if (!mw.bindable(this)) {
      throw refuse(Status.INVALID_DEVICE_STATE, what, 'The window is bound; invalidate it first.');
    }
    const access =
      (flags & ALLOW_READ ? WvAccess.REMOTE_READ : 0) | (flags & ALLOW_WRITE ? WvAccess.REMOTE_WRITE : 0);
    const wvFlags = sendFlags[flags & KNOWN.other]!;
    const record = this.#take(what, result, RequestType.bind);
    record.length = 0;
    let key: number;
    try {
      key = this.qp.bindMemoryWindow(mw.wv, record, handle.region, offset, length, access, wvFlags);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
    mw.bound(this, key);
    return new NdMwDescriptor(handle.address + BigInt(offset), BigInt(length), key);
  }

  invalidate(result: NdResult, window: INDMemoryWindow, flags = 0): void {
    const what = 'Invalidate';
    this.#check(what, flags, KNOWN.other, 3);
    const mw = this.#window(window, what, Status.INVALID_PARAMETER_2);
    const record = this.#take(what, result, RequestType.invalidate);
    record.length = 0;
    try {
      this.qp.invalidateMemoryWindow(mw.wv, record, sendFlags[flags]!);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
    record.window = mw;
    record.windowKey = mw.invalidating(this);
  }

  read(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags = 0): void {
    const what = 'Read';
    this.#check(what, flags, KNOWN.other, 6);
    checkOffset(what, offset);
    this.#sg.translate(sgl, what);
    if (this.#sg.plain) throw plainRefused(what);
    const record = this.#take(what, result, RequestType.transfer);
    try {
      this.qp.read(record, this.#sg.list, sendFlags[flags]!, remote, offset);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  write(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags = 0): void {
    const what = 'Write';
    this.#check(what, flags, KNOWN.other, 6);
    checkOffset(what, offset);
    const wvFlags = this.#gather(what, sgl) | sendFlags[flags]!;
    const record = this.#take(what, result, RequestType.transfer);
    try {
      this.qp.write(record, this.#sg.list, wvFlags, remote, offset);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  /**
   * `argument` is the place of the flags among the arguments. It is not the status itself: that is a number beyond 31
   * bits, and reading one to pass it on allocates, for every request.
   */
  #check(what: string, flags: number, known: number, argument: number): void {
    if (this.ended) this.alive(what);
    if ((flags & ~known) !== 0) {
      throw refuse(
        Status.INVALID_PARAMETER_1 + argument - 1,
        what,
        `Flags 0x${(flags >>> 0).toString(16)} contain what it does not know; it takes 0x${known.toString(16)}.`,
      );
    }
  }

  /** Translates what a Send or Write carries; answers INLINE where it fits. */
  #gather(what: string, sgl: readonly NdSge[]): number {
    const sg = this.#sg;
    sg.translate(sgl, what);
    if (sg.total <= this.maxInline) return WvSend.INLINE;
    if (sg.plain) throw plainRefused(what, this.maxInline);
    return 0;
  }

  #take(what: string, result: NdResult, type: number): RequestRecord {
    const record = this.#outbound.take(result, type, this.#sg.total);
    if (record === undefined) throw notTaken(what, result);
    return record;
  }

  #undo(what: string, record: RequestRecord, error: unknown): unknown {
    this.#outbound.undo(record);
    return v1Error(error, what, postStatuses);
  }

  #window(window: unknown, what: string, status: number): MemoryWindow {
    if (!(window instanceof MemoryWindow) || window.adapter !== this.adapter || window.ended) {
      throw refuse(status, what, 'The window is not one of this adapter instance, or was released.');
    }
    return window;
  }

  protected end(): void {
    // An endpoint that goes while connected ends its connection, and its requests come back.
    if (this.qp.state !== QpState.ERROR) {
      try {
        this.qp.modify({ qpState: QpState.ERROR }, QpAttr.STATE);
      } catch {
        // The device is gone; so are the requests.
      }
    }
    this.qp.release();
    for (const queue of this.#completionQueues) queue.letGo();
    this.adapter.letGo();
  }
}

function isRange(offset: number, length: number, size: number): boolean {
  return (
    Number.isSafeInteger(offset) &&
    Number.isSafeInteger(length) &&
    offset >= 0 &&
    length > 0 &&
    offset + length <= size
  );
}

function checkOffset(what: string, offset: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw refuse(
      Status.INVALID_PARAMETER_5,
      what,
      `Offset ${offset} is not a whole number of bytes into the peer's window.`,
    );
  }
}

/** Why a request found no record. */
function notTaken(what: string, result: unknown): unknown {
  if (typeof result !== 'object' || result === null) {
    return refuse(
      Status.INVALID_PARAMETER_1,
      what,
      `The result is ${String(result)}; it must be an object, which tells how the request ended.`,
    );
  }
  return refuse(
    Status.NO_MORE_ENTRIES,
    what,
    'All entries of the endpoint are in use; take results from its completion queue first.',
  );
}

function plainRefused(what: string, maxInline = 0): unknown {
  return refuse(
    Status.INVALID_HANDLE,
    what,
    maxInline > 0
      ? `Only Sends and Writes of at most ${maxInline} bytes can carry memory that is not registered.`
      : 'The memory must be registered.',
  );
}
