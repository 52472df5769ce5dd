import type { IWVConnectQueuePair } from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import { checkOffset, checkRemote, QueuePairBase, type QueuePairParts } from '../core/queue-pair-base.js';
import { plainRefused } from '../core/scatter-gather.js';
import type { INDEndpoint, INDMemoryWindow, NdMemoryHandle, NdResult, NdSge } from '../spi/v1.js';
import { NdMwDescriptor, NdOpFlag } from '../spi/v1.js';
import { Nd2OpFlag } from '../spi/v2-types.js';
import type { MemoryTable } from './memory-handle.js';
import { checkResult } from './result.js';

// V8 treats imported names as constants only under a local name (uvp/queue-pair.ts).
const { INLINE } = Nd2OpFlag;
const { SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE } = NdOpFlag;

/** Allowed flags of each request. */
const KNOWN = {
  send: SILENT_SUCCESS | READ_FENCE | SEND_AND_SOLICIT_EVENT,
  bind: SILENT_SUCCESS | READ_FENCE | ALLOW_READ | ALLOW_WRITE,
  other: SILENT_SUCCESS | READ_FENCE,
} as const;

/** The components of an endpoint. */
export interface EndpointParts extends QueuePairParts<IWVConnectQueuePair> {
  memory: MemoryTable;
  inboundReadLimit: number;
  outboundReadLimit: number;
}

/** INDEndpoint: small Sends and Writes are inline automatically, and windows have descriptors for peers. */
export class Endpoint extends QueuePairBase<IWVConnectQueuePair> implements INDEndpoint {
  protected get interfaces() {
    return ['INDEndpoint'] as const;
  }

  readonly maxInline: number;
  readonly inboundSge: number;
  readonly outboundSge: number;
  readonly inboundReadLimit: number;
  readonly outboundReadLimit: number;
  readonly #memory: MemoryTable;

  constructor(parts: EndpointParts) {
    super(parts);
    // The queue pair's granted size, which may differ from the device's.
    this.maxInline = parts.qp.maxInlineSend;
    this.inboundSge = parts.qp.receiveSge;
    this.outboundSge = parts.qp.sendSge;
    this.inboundReadLimit = parts.inboundReadLimit;
    this.outboundReadLimit = parts.outboundReadLimit;
    this.#memory = parts.memory;
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
    this.check(what, flags, KNOWN.send, 4);
    const inline = this.#gather(what, sgl, flags);
    checkResult(what, result);
    this.postSend(what, result, flags | inline);
  }

  sendAndInvalidate(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, flags = 0): void {
    const what = 'SendAndInvalidate';
    this.check(what, flags, KNOWN.send, 5);
    checkRemote(what, remote, NdMwDescriptor);
    const inline = this.#gather(what, sgl, flags);
    checkResult(what, result);
    this.postSendAndInvalidate(what, result, flags | inline, remote.rkey);
  }

  receive(result: NdResult, sgl: readonly NdSge[]): void {
    const what = 'Receive';
    checkResult(what, result);
    this.postReceive(what, result, sgl);
  }

  bind(
    result: NdResult,
    memory: NdMemoryHandle | number,
    window: INDMemoryWindow,
    offset: number,
    length: number,
    flags: number,
  ): NdMwDescriptor {
    const what = 'Bind';
    this.check(what, flags, KNOWN.bind, 6);
    const handle = this.#memory.live(memory, what);
    const mw = this.windowOf(window, what, Status.INVALID_PARAMETER_3);
    checkResult(what, result);
    const key = this.postBind(what, result, handle.region, mw, offset, length, flags);
    return new NdMwDescriptor(handle.address + BigInt(offset), BigInt(length), key);
  }

  invalidate(result: NdResult, window: INDMemoryWindow, flags = 0): void {
    const what = 'Invalidate';
    this.check(what, flags, KNOWN.other, 3);
    const mw = this.windowOf(window, what, Status.INVALID_PARAMETER_2);
    checkResult(what, result);
    this.postInvalidate(what, result, mw, flags);
  }

  read(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags = 0): void {
    const what = 'Read';
    this.check(what, flags, KNOWN.other, 6);
    checkRemote(what, remote, NdMwDescriptor);
    checkOffset(what, offset);
    this.sg.translate(sgl, what);
    checkResult(what, result);
    this.postRead(what, result, flags, remote, offset);
  }

  write(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags = 0): void {
    const what = 'Write';
    this.check(what, flags, KNOWN.other, 6);
    checkRemote(what, remote, NdMwDescriptor);
    checkOffset(what, offset);
    const inline = this.#gather(what, sgl, flags);
    checkResult(what, result);
    this.postWrite(what, result, flags | inline, remote, offset);
  }

  /**
   * Converts the list of a Send or Write, and returns INLINE if it fits. Inline bytes are copied during the call, but a
   * fenced request may send data that an earlier Read has not delivered yet, so it is inline only if no Read can write
   * to its memory. A request with an entry that ends beyond its registration completes with an error, whatever its
   * length.
   */
  #gather(what: string, sgl: readonly NdSge[], flags: number): number {
    const { sg } = this;
    sg.translate(sgl, what, true);
    if (sg.total <= this.maxInline && (sg.plain || ((flags & READ_FENCE) === 0 && !sg.beyond))) return INLINE;
    if (sg.plain) throw plainRefused(what, this.maxInline);
    return 0;
  }
}
