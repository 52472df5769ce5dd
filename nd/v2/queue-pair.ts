import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { Status } from '../../winverbs/index.js';
import type { NdObject } from '../core/nd-object.js';
import { checkOffset, checkRemote, QueuePairBase, type QueuePairParts } from '../core/queue-pair-base.js';
import type { IND2MemoryRegion, IND2MemoryWindow, IND2QueuePair, Nd2Sge } from '../spi/v2.js';
import { Nd2OpFlag, Nd2RemoteMemory } from '../spi/v2.js';
import { refuse } from '../status.js';
import { MemoryRegion } from './memory-region.js';

// V8 treats imported names as constants only under a local name (uvp/queue-pair.ts).
const { SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_WRITE, INLINE } = Nd2OpFlag;

/** All flags. Flags that have no meaning for a request are ignored (ND SPI v2, as drivers do). */
const KNOWN = 0x3f;
const SEND = SILENT_SUCCESS | READ_FENCE | SEND_AND_SOLICIT_EVENT | INLINE;
const WRITE = SILENT_SUCCESS | READ_FENCE | INLINE;
const OTHER = SILENT_SUCCESS | READ_FENCE;

/** A shared receive queue, which its queue pairs hold a reference to. */
type Held = Pick<NdObject, 'addInternalRef' | 'releaseInternalRef'>;

/** IND2QueuePair. The client selects INLINE; remote memory is an address and a token. */
export class QueuePair extends QueuePairBase implements IND2QueuePair {
  protected get interfaces() {
    return ['IND2QueuePair'] as const;
  }

  readonly maxReceiveRequestSge: number;
  readonly maxInitiatorRequestSge: number;
  readonly direct?: NonNullable<IND2QueuePair['direct']>;
  readonly view?: NonNullable<IND2QueuePair['view']>;
  readonly #srq: Held | undefined;

  /** @param srq - the shared receive queue, if the queue pair does not have its own */
  constructor(parts: QueuePairParts, srq?: Held) {
    super(parts);
    this.maxReceiveRequestSge = parts.qp.receiveSge;
    this.maxInitiatorRequestSge = parts.qp.sendSge;
    this.#srq = srq;
    srq?.addInternalRef();
    const { qp } = parts;
    if (qp.direct !== undefined) {
      this.direct = (operation, bytes, remote, offset = 0) => {
        if (this.ended) this.alive('direct');
        checkRemote('direct', remote, Nd2RemoteMemory);
        checkOffset('direct', offset);
        try {
          return qp.direct!(operation, bytes, remote, offset);
        } catch (error) {
          throw this.adapter.terms.error(error, 'direct');
        }
      };
    }
    if (qp.view !== undefined) {
      this.view = (remote, length, offset = 0) => {
        this.alive('view');
        checkRemote('view', remote, Nd2RemoteMemory);
        checkOffset('view', offset);
        return this.adapter.terms.call('view', () => qp.view!(remote, offset, length));
      };
    }
  }

  send(context: unknown, sgl: readonly Nd2Sge[], flags = 0): void {
    const what = 'Send';
    this.check(what, flags, KNOWN, 4);
    this.sg.translate(sgl, what, (flags & INLINE) !== 0);
    this.postSend(what, context, flags & SEND);
  }

  receive(context: unknown, sgl: readonly Nd2Sge[]): void {
    const what = 'Receive';
    if (this.#srq !== undefined) {
      this.alive(what);
      throw refuse(
        Status.INVALID_DEVICE_REQUEST,
        what,
        'The queue pair uses a shared receive queue. Post the Receive there.',
      );
    }
    this.postReceive(what, context, sgl);
  }

  bind(
    context: unknown,
    region: IND2MemoryRegion,
    window: IND2MemoryWindow,
    offset: number,
    length: number,
    flags = 0,
  ): void {
    const what = 'Bind';
    this.check(what, flags, KNOWN, 6);
    const memory =
      region instanceof MemoryRegion && region.adapter === this.adapter ? region.region : undefined;
    if (memory === undefined) {
      throw refuse(
        Status.INVALID_PARAMETER_2,
        what,
        `\`region\` must belong to this adapter instance and have registered memory; got ${shown(region)}.`,
      );
    }
    const mw = this.windowOf(window, what, Status.INVALID_PARAMETER_3);
    if ((flags & ALLOW_WRITE) !== 0 && !(region as MemoryRegion).writable) {
      throw refuse(
        Status.ACCESS_VIOLATION,
        what,
        '`region` must be registered with ALLOW_LOCAL_WRITE for peers to write to it.',
      );
    }
    this.postBind(what, context, memory, mw, offset, length, flags);
  }

  invalidate(context: unknown, window: IND2MemoryWindow, flags = 0): void {
    const what = 'Invalidate';
    this.check(what, flags, KNOWN, 3);
    this.postInvalidate(
      what,
      context,
      this.windowOf(window, what, Status.INVALID_PARAMETER_2),
      flags & OTHER,
    );
  }

  read(context: unknown, sgl: readonly Nd2Sge[], remote: Nd2RemoteMemory, offset = 0, flags = 0): void {
    const what = 'Read';
    this.check(what, flags, KNOWN, 6);
    checkRemote(what, remote, Nd2RemoteMemory);
    checkOffset(what, offset);
    this.sg.translate(sgl, what);
    this.postRead(what, context, flags & OTHER, remote, offset);
  }

  write(context: unknown, sgl: readonly Nd2Sge[], remote: Nd2RemoteMemory, offset = 0, flags = 0): void {
    const what = 'Write';
    this.check(what, flags, KNOWN, 6);
    checkRemote(what, remote, Nd2RemoteMemory);
    checkOffset(what, offset);
    this.sg.translate(sgl, what, (flags & INLINE) !== 0);
    this.postWrite(what, context, flags & WRITE, remote, offset);
  }

  protected override end(): void {
    super.end();
    this.#srq?.releaseInternalRef();
  }
}
