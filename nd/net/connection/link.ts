import {
  type IND2Connector,
  type IND2QueuePair,
  Nd2RemoteMemory,
  Nd2RequestType,
  type Nd2Result,
  Status,
} from '../../index.js';
import { uncaught } from '../base/emit.js';
import { netError, reset, violation } from '../base/errors.js';
import { Fifo } from '../base/fifo.js';
import { Credits } from './credits.js';
import {
  CONTROL_SLOTS,
  END_SLOTS,
  Frame,
  Header,
  type Hello,
  IN_RING,
  isHeld,
  Kind,
  MORE,
  malformed,
  viewOf,
  writeHeader,
} from './frames.js';
import { Grants, KEY_OPERATIONS } from './grants.js';
import type { LinkMemory } from './link-memory.js';
import { type LinkOptions, type LinkUser, type Slot, slotAt } from './link-types.js';
import type { LocalContext } from './local-context.js';
import { type Operation, Operations, REMOTE_OPERATIONS } from './operations.js';
import { ProcessRef } from './process-ref.js';
import { type OutRing, StreamRings } from './stream-rings.js';

// V8 treats imported names as constants only under a local name.
const { RECEIVE, SEND, BIND, INVALIDATE } = Nd2RequestType;
const { CONTROL, DATA, RING, DATA_CREDITS, CONTROL_CREDITS, RESERVED } = { ...Frame, ...Header };
const HEADER = Header.BYTES;
const SUCCESS: number = Status.SUCCESS;

export type { LinkOptions, LinkUser, Slot };

/** A payload uses at most one of this many parts of the slots. */
const PARTS_OF_SLOTS = 4;

/** Slots in each direction. */
const slotsOf = (credits: Credits): number => credits.posted + CONTROL_SLOTS;

const nothing = Promise.resolve();

/** The context of a probe, a Write of no bytes. It accesses no memory, so its address and token are never checked. */
const PROBE = Symbol('probe');
const NOWHERE = new Nd2RemoteMemory(0, 0);

/** One queue pair with its slots and the credits of both directions. */
export class Link {
  readonly context: LocalContext;
  readonly connector: IND2Connector;
  readonly queuePair: IND2QueuePair;
  readonly hello: Hello;
  readonly processRef: ProcessRef;
  /** The peer's access to memory of this side. */
  readonly grants: Grants;
  /** The memory of all slots. */
  readonly memory: Buffer;
  touched = false;
  /** The user. It must be set before anything is posted, because earlier frames would be lost. */
  user: LinkUser;
  /** Maximum payload of a frame to the peer, in bytes. */
  most = 0;
  /** Maximum length of a message, in bytes: the peer's limit or, without RDMA Reads, what can be copied to its slots. */
  mostMessage = 0;
  /** Whether the connection has ended or was never established. */
  over = false;
  /** Pending calls that read, write or atomically change the peer's memory. Their requests may not be posted yet. */
  remoteCalls = 0;
  /** Whether the wait for the peer's offer of direct access to its memory has timed out. If so, later operations do not wait. */
  offersNothing = false;
  bytesRead = 0;
  bytesWritten = 0;

  /** Maximum slots of one payload. */
  #mostPieces = 0;
  readonly #view: DataView;
  readonly #memory: LinkMemory;
  /** Slots with frames that the user has not released. */
  #heldSlots = 0;
  readonly #entries: number;
  readonly #freeSends: Slot[] = [];
  /** The send slot that accepts further frames before it is posted. */
  #open: Slot | undefined;
  /** Data credits that were available when the open slot used one. Frames may join only if they may use the last of them. */
  #openCredits = 0;
  /** Whether a frame was posted in this turn, so that the next ones are combined. */
  #corked = false;
  readonly #flush = (): void => {
    this.#corked = false;
    this.flush();
  };
  readonly #sends: number;
  readonly #operations: Operations;
  readonly #isStream: boolean;
  /** The rings of a stream that has carried data. */
  #rings: StreamRings | undefined;
  /** Ring size that both sides agreed on, in bytes. */
  #ringBytes = 0;
  #peerSlots = 0;
  /** Sends with a data credit, by direction. They use the parts of a ring round-robin. */
  #dataSends = 0;
  #dataReceives = 0;
  #established = false;
  #probing = false;
  readonly #credits: Credits;
  /** Large payloads that were read but not reported. Their frames keep their slots, which bounds the queue. */
  readonly #read = new Fifo<{ id: number; slot: Slot }>();
  #freed = false;
  /** Frames that arrived before they could be delivered. */
  #early: (() => void)[] = [];
  #delivers = false;

  private constructor(
    context: LocalContext,
    memory: LinkMemory,
    credits: Credits,
    connector: IND2Connector,
    options: LinkOptions,
    user: LinkUser,
  ) {
    this.#memory = memory;
    this.memory = memory.bytes;
    this.#view = viewOf(this.memory);
    this.connector = connector;
    this.user = user;
    this.hello = options;
    this.#isStream = options.kind === Kind.STREAM;
    this.#credits = credits;
    this.#sends = slotsOf(credits);
    const requests = this.#sends + REMOTE_OPERATIONS + KEY_OPERATIONS + 1; // a probe
    this.#entries = this.#sends + requests;
    const { adapter, poller } = context;
    this.processRef = new ProcessRef(poller, () => !this.over && (!this.quiet || this.user.unsent()));
    try {
      poller.add(this, this.#entries);
      this.queuePair = adapter.createQueuePair({
        receiveCompletionQueue: poller.queue,
        initiatorCompletionQueue: poller.queue,
        context: this,
        receiveQueueDepth: this.#sends,
        initiatorQueueDepth: requests,
      });
    } catch (error) {
      this.processRef.end();
      poller.remove(this, this.#entries);
      throw error;
    }
    this.context = context.addRef();
    context.join(this);
    const posted = (): void => poller.wake();
    this.#operations = new Operations(this.queuePair, REMOTE_OPERATIONS, posted);
    this.grants = new Grants(context, this.queuePair, posted);
  }

  /**
   * Creates a link that can receive. The caller connects or accepts, then calls {@link establish}. The link owns the connector; if creation
   * fails, the caller still owns it.
   */
  static async make(
    context: LocalContext,
    connector: IND2Connector,
    options: LinkOptions,
    user: LinkUser,
  ): Promise<Link> {
    const credits = new Credits(options);
    const { linkMemory } = context.addRef();
    try {
      const memory = await linkMemory.take(2 * slotsOf(credits) * options.slotBytes);
      let link: Link | undefined;
      try {
        link = new Link(context, memory, credits, connector, options, user);
        link.#fill();
        return link;
      } catch (error) {
        if (link === undefined) linkMemory.release(memory);
        else link.#release(undefined);
        throw error;
      }
    } finally {
      context.releaseRef();
    }
  }

  /** Divides the memory into slots and posts the receive slots. */
  #fill(): void {
    const { bytes, region } = this.#memory;
    const { slotBytes } = this.hello;
    for (let i = 0; i < 2 * this.#sends; i += 1) {
      const slot = slotAt(bytes, region, i * slotBytes, slotBytes);
      if (i < this.#sends) this.queuePair.receive(slot, slot.sgl);
      else this.#freeSends.push(slot);
    }
  }

  /** Applies the peer's hello. From now on, frames may be queued for it. */
  applyHello(peer: Hello): void {
    this.most = Math.min(peer.slotBytes, this.hello.slotBytes) - HEADER;
    this.#mostPieces = Math.floor(Math.min(peer.slots, this.hello.slots) / PARTS_OF_SLOTS);
    const mostCopied = Math.max(1, this.#mostPieces) * this.most;
    this.mostMessage = this.context.reads ? peer.maxMessageBytes : Math.min(peer.maxMessageBytes, mostCopied);
    this.#credits.setPeerSlots(peer.slots);
    this.#peerSlots = peer.slots;
    this.#ringBytes = Math.min(peer.ringBytes, this.hello.ringBytes);
  }

  /**
   * Marks the connection as established. If it has already ended, this throws and has no effect.
   *
   * @param entered - called when the link can send, before the first frame is delivered; it may end the link
   */
  establish(entered?: () => void): void {
    const ending = this.connector.notifyDisconnect();
    this.#established = true;
    this.processRef.waitFor(ending);
    ending.then(
      () => this.end(reset()),
      (error) => this.end(netError(error, 'connection')),
    );
    this.#operations.start();
    this.grants.operations.start();
    entered?.();
    this.#delivers = true;
    for (const deliver of this.#early.splice(0)) if (!this.over) deliver();
    if (this.over) return;
    this.context.poller.wake();
    this.user.writable();
  }

  /** Whether a frame of this type can be sent now with a payload of `length` bytes, at most {@link most}. */
  takes(type: number, length: number): boolean {
    if (this.over) return false;
    return this.#joins(type, length) || this.#begins(type);
  }

  /** Whether another Send can begin with a frame of this type. */
  #begins(type: number): boolean {
    const left = type === DATA && this.#isStream ? END_SLOTS : 0;
    return this.#established && this.#credits.allows(type, this.#credits.data) && this.#freeEntries > left;
  }

  /**
   * Whether a payload that is longer than {@link most} can be copied to several slots now. Frames that wait for the receiving program leave
   * half of the slots free for frames on which that program waits.
   */
  takesPieces(type: number, length: number): boolean {
    const pieces = Math.ceil(length / this.most);
    if (!this.#established || this.over || pieces > this.#mostPieces || pieces > this.#freeEntries)
      return false;
    const left = isHeld(type) ? 2 * this.#mostPieces : 0;
    return this.#credits.allows(type, this.#credits.data - (pieces - 1) - left);
  }

  /** Free entries of the send queue for Sends of data. */
  get #freeEntries(): number {
    return this.#freeSends.length - CONTROL_SLOTS;
  }

  /** Whether the frame fits into the open slot. */
  #joins(type: number, length: number): boolean {
    const slot = this.#open;
    if (slot === undefined || slot.used + length > this.most) return false;
    return this.#credits.allows(type, this.#openCredits);
  }

  /** Whether all Sends have completed. */
  get quiet(): boolean {
    return this.#freeSends.length === this.#sends;
  }

  /**
   * Copies a payload and sends it in one frame or several. The link must be able to accept it ({@link takes}, {@link takesPieces}). The
   * first frame of a turn is posted immediately; later frames of the same turn are combined. While results are delivered, all frames are
   * combined.
   */
  send(type: number, flags: number, id: number, payload: Uint8Array | undefined): void {
    const length = payload === undefined ? 0 : payload.length;
    let sent = 0;
    for (const { most } = this; length - sent > most; sent += most) {
      const at = this.#frame(type, MORE, id, most);
      if (this.over) return;
      this.memory.set(payload!.subarray(sent, sent + most), at);
    }
    const at = this.#frame(type, flags, id, length - sent);
    if (payload !== undefined) this.memory.set(sent === 0 ? payload : payload.subarray(sent), at);
    this.#cork();
  }

  /** The same as {@link send}, with several pieces that form one payload of `length` bytes. */
  sendPieces(type: number, pieces: readonly Uint8Array[], length: number): void {
    let at = this.#frame(type, 0, 0, length);
    for (const piece of pieces) {
      this.memory.set(piece, at);
      at += piece.length;
    }
    this.#cork();
  }

  /** Bytes that {@link sendInRing} accepts now; 0 without a credit or a ring. */
  get ringRoom(): number {
    const room = this.#rings === undefined ? 0 : this.#rings.room;
    return room > 0 && !this.over && this.#begins(DATA) ? room : 0;
  }

  /**
   * The same as {@link sendPieces}, but puts the payload, at most {@link ringRoom}, into the peer's ring. Returns false if it must be sent
   * in slots or the connection is over.
   */
  sendInRing(pieces: readonly Uint8Array[], length: number): boolean {
    this.flush();
    if (this.over) return false;
    try {
      if (!this.#rings!.put(this.queuePair, this.#dataSends, pieces, length)) return false;
    } catch (error) {
      this.end(netError(error, 'send'));
      return false;
    }
    this.#frame(DATA, IN_RING, length, 0);
    this.bytesWritten += length;
    this.#cork();
    return !this.over;
  }

  /** Writes the header of a frame into the open slot or the next one. Returns the offset of its payload. */
  #frame(type: number, flags: number, id: number, length: number): number {
    if (!this.#joins(type, length)) this.flush();
    let slot = this.#open;
    if (slot === undefined) {
      this.#openCredits = this.#credits.data;
      this.#credits.spend();
      this.#dataSends += 1;
      slot = this.#freeSends.pop()!;
      slot.used = 0;
      this.#open = slot;
    }
    const begin = slot.offset + slot.used;
    writeHeader(this.#view, begin, type, flags, id, length);
    slot.used += HEADER + length;
    this.bytesWritten += length;
    return begin + HEADER;
  }

  #cork(): void {
    if (this.touched) return;
    if (!this.#corked) {
      this.#corked = true;
      this.flush();
      void nothing.then(this.#flush);
    } else if (this.#open!.used + HEADER > this.most) this.flush();
  }

  /** Posts the open slot. */
  flush(): void {
    const slot = this.#open;
    if (slot === undefined || this.over) return;
    this.#open = undefined;
    this.#post(slot);
  }

  #post(slot: Slot): void {
    const { offset } = slot;
    this.#view.setUint16(offset + DATA_CREDITS, this.#credits.takeData());
    this.#view.setUint16(offset + CONTROL_CREDITS, this.#credits.takeControl());
    slot.sgl[0].length = slot.used;
    try {
      this.queuePair.send(slot, slot.sgl);
    } catch (error) {
      this.end(netError(error, 'send'));
      return;
    }
    this.processRef.update();
    this.context.poller.wake();
  }

  /** Releases the payload of a frame. The slot receives again after its last one. */
  release(slot: Slot): void {
    const { carrier } = slot;
    if (carrier !== undefined) this.#rings!.in.released(slot);
    const received = carrier ?? slot;
    if (!this.#isFree(received)) return;
    this.#receive(received);
    if (this.#credits.owesData) this.#report();
  }

  /** Counts a released frame. Returns whether it was the last and the slot must be posted again. */
  #isFree(slot: Slot): boolean {
    slot.frames -= 1;
    if (slot.frames > 0) return false;
    this.#heldSlots -= 1;
    return !this.over;
  }

  /** Posts the slot to receive data again. */
  #receive(slot: Slot): void {
    if (this.#postReceive(slot)) this.#credits.released();
  }

  /** Posts a Receive. If the provider rejects it, ends the connection and returns false. */
  #postReceive(slot: Slot): boolean {
    slot.sgl[0].length = this.hello.slotBytes;
    try {
      this.queuePair.receive(slot, slot.sgl);
      return true;
    } catch (error) {
      this.end(netError(error, 'receive'));
      return false;
    }
  }

  /** Reports that the large payload with this id, described in the slot, was read, so that the peer may reuse its memory. */
  reportRead(id: number, slot: Slot): void {
    this.#read.push({ id, slot });
    this.#report();
  }

  /**
   * Posts a Write of no bytes, which fails if the peer is gone. The peer's adapter acknowledges it without a Receive, so that it needs no
   * credit and a peer whose thread is blocked stays connected.
   */
  probe(): void {
    if (!this.#established || this.over || this.#probing) return;
    try {
      this.queuePair.write(PROBE, [], NOWHERE, 0);
    } catch (error) {
      this.end(netError(error, 'probe'));
      return;
    }
    this.#probing = true;
    this.context.poller.wake();
  }

  /** Sends a CONTROL frame if there is something to report and a control credit for it. */
  #report(): void {
    if (!this.#established || this.over) return;
    const more = this.#read.length > 0 || this.#rings?.hasNotice === true;
    if (this.#freeSends.length === 0 || !this.#credits.spendControl(more)) return;
    const slot = this.#freeSends.pop()!;
    const notice = this.#rings?.notice();
    if (notice !== undefined) {
      const { kind, payload } = notice;
      // All bytes in the ring are announced before it is returned.
      this.flush();
      if (this.over) return;
      writeHeader(this.#view, slot.offset, RING, kind, 0, payload.length);
      this.memory.set(payload, slot.offset + HEADER);
      slot.used = HEADER + payload.length;
      this.#post(slot);
      return;
    }
    const count = Math.min(this.#read.length, Math.floor(this.most / 4));
    writeHeader(this.#view, slot.offset, CONTROL, 0, 0, 4 * count);
    slot.used = HEADER;
    for (let n = 0; n < count; n += 1) {
      const { id, slot: from } = this.#read.shift()!;
      this.#view.setUint32(slot.offset + slot.used, id);
      slot.used += 4;
      // The frame also returns the slot.
      if (this.#isFree(from)) this.#receive(from);
    }
    this.#post(slot);
  }

  /** Queues a Read or Write of the peer's memory. */
  operate(operation: Operation): void {
    this.#operations.add(operation);
  }

  /** Whether no operation on the peer's memory is in progress. @internal */
  get operatesNothing(): boolean {
    return this.remoteCalls === 0 && this.#operations.idle;
  }

  /** @internal */
  completed(result: Nd2Result): void {
    const { status, requestType } = result;
    if (requestType === RECEIVE) {
      if (status === SUCCESS) this.#received(result.requestContext as Slot, result.bytesTransferred);
    } else if (requestType === SEND) this.#freeSends.push(result.requestContext as Slot);
    else if (result.requestContext === PROBE) this.#probing = false;
    else {
      const error = status === SUCCESS ? undefined : reset();
      if (requestType === BIND || requestType === INVALIDATE)
        this.grants.operations.ended(result.requestContext as Operation, error);
      else if (this.#isStream) (result.requestContext as OutRing).wrote();
      else this.#operations.ended(result.requestContext as Operation, error);
    }
    if (status !== SUCCESS && status !== Status.CANCELED && !this.over) this.end(reset());
  }

  /** @internal */
  delivered(): void {
    if (this.over) return;
    this.#operations.run();
    this.grants.operations.run();
    this.user.writable();
    this.flush();
    this.#report();
    this.processRef.update();
  }

  #received(slot: Slot, bytes: number): void {
    if (this.over) return;
    const { offset } = slot;
    const view = this.#view;
    if (bytes < HEADER) {
      this.#refuse(`a frame must have at least a header; got ${bytes} bytes`);
      return;
    }
    const returned = this.#credits.returned(
      view.getUint16(offset + DATA_CREDITS),
      view.getUint16(offset + CONTROL_CREDITS),
    );
    if (!returned) {
      this.#refuse('it returned more credits than were used');
      return;
    }
    if (view.getUint16(offset + RESERVED) !== 0) {
      this.#refuse('it set reserved bits of a header');
      return;
    }
    const first = view.getUint8(offset);
    if (first === CONTROL || (first === RING && this.#isStream)) {
      if (this.#credits.receivedControl()) this.#controlled(first, slot, bytes);
      else this.#refuse(`it sent a ${first === RING ? 'RING' : 'CONTROL'} frame without a credit`);
      return;
    }
    if (!this.#credits.received()) {
      this.#refuse('it sent data without a credit');
      return;
    }
    const send = this.#dataReceives;
    this.#dataReceives += 1;
    // The slot is held until all its frames have been processed.
    slot.frames = 1;
    this.#heldSlots += 1;
    const end = offset + bytes;
    for (let at = offset; at < end && !this.over; ) {
      const length = end - at < HEADER ? end : view.getUint32(at + Header.LENGTH);
      if (at + HEADER + length > end) {
        this.#refuse(`a frame exceeds the ${bytes} received bytes`);
        return;
      }
      const type = view.getUint8(at);
      const flags = view.getUint8(at + Header.FLAGS);
      const id = view.getUint32(at + Header.ID);
      const payload = at + HEADER;
      if (at > offset && this.#returnsCredits(at)) {
        this.#refuse('a frame other than the first of a Send returned credits');
        return;
      }
      if (flags === IN_RING && type === DATA && length === 0 && at === offset && this.#rings !== undefined)
        this.#inRing(send, id, slot);
      else {
        const wrong = malformed(this.hello.kind, type, flags, id, length);
        if (wrong !== undefined) {
          this.#refuse(wrong);
          return;
        }
        slot.frames += 1;
        this.bytesRead += length;
        if (length === this.most && this.#isStream) this.#someRings().in.received(length);
        this.#give(type, flags, id, slot, payload, length);
      }
      at = payload + length;
    }
    this.release(slot);
  }

  /** Whether the header at this offset returns credits or has reserved bits set. */
  #returnsCredits(at: number): boolean {
    const view = this.#view;
    return (
      (view.getUint16(at + DATA_CREDITS) |
        view.getUint16(at + CONTROL_CREDITS) |
        view.getUint16(at + RESERVED)) !==
      0
    );
  }

  #someRings(): StreamRings {
    this.#rings ??= new StreamRings(this.grants, this.#ringBytes, this.hello.slots, this.#peerSlots, () =>
      this.#report(),
    );
    return this.#rings;
  }

  /** Handles bytes that the peer has put into the ring part of this Send. */
  #inRing(send: number, bytes: number, carrier: Slot): void {
    const part = this.#rings!.in.take(send, bytes, carrier);
    if (part === undefined) {
      this.#refuse(`${bytes} announced bytes do not fit the ring`);
      return;
    }
    this.bytesRead += bytes;
    carrier.frames += 1;
    this.#give(DATA, 0, 0, part, part.offset, bytes);
  }

  /** Delivers a frame to the user. If a listener throws, later frames are still delivered. */
  #give(type: number, flags: number, id: number, slot: Slot, at: number, length: number): void {
    if (!this.#delivers) {
      this.#early.push(() => this.#give(type, flags, id, slot, at, length));
      return;
    }
    try {
      this.user.frame(type, flags, id, slot, at, length);
    } catch (error) {
      uncaught(error);
    }
  }

  #controlled(type: number, slot: Slot, bytes: number): void {
    const view = this.#view;
    const flags = view.getUint8(slot.offset + Header.FLAGS);
    if (
      view.getUint32(slot.offset + Header.LENGTH) !== bytes - HEADER ||
      bytes % 4 !== 0 ||
      view.getUint32(slot.offset + Header.ID) !== 0 ||
      (flags !== 0 && type !== RING)
    ) {
      this.#refuse(`a ${type === RING ? 'RING' : 'CONTROL'} frame of ${bytes} bytes is malformed`);
      return;
    }
    if (type === RING) {
      const payload = this.payload(slot.offset + HEADER, bytes - HEADER);
      const wrong = this.#someRings().receive(flags, payload);
      if (wrong !== undefined) this.#refuse(wrong);
    } else
      for (let at = HEADER; at < bytes && !this.over; at += 4)
        this.user.wasRead(this.#view.getUint32(slot.offset + at));
    if (this.over) return;
    if (this.#postReceive(slot)) this.#credits.releasedControl();
  }

  /** The payload of a received frame, in its slot. */
  payload(at: number, length: number): Buffer {
    return this.memory.subarray(at, at + length);
  }

  #refuse(sentence: string): void {
    this.end(violation(sentence));
  }

  /** Ends the connection. Frames that have arrived are delivered first, then the end is reported. Without an error, it is a clean end. */
  end(error: unknown): void {
    if (this.over) return;
    // Frames that arrived before the end are delivered.
    if (!this.touched) this.context.poller.drainAll();
    if (this.over) return;
    this.over = true;
    void this.#disconnect();
    this.#operations.end(error);
    this.grants.operations.end(error);
    this.user.ended(error);
  }

  async #disconnect(): Promise<void> {
    try {
      await this.connector.disconnect();
    } catch {
      // The connection has already ended.
    }
    this.free();
  }

  /** Releases everything, including the connector. */
  free(): void {
    this.#release(this.connector);
  }

  #release(connector: IND2Connector | undefined): void {
    if (this.#freed) return;
    this.processRef.end();
    this.#freed = true;
    this.over = true;
    const { context } = this;
    // Flushed requests still report their completion.
    context.poller.drainAll();
    connector?.release();
    this.grants.end();
    this.queuePair.release();
    // Memory with payloads that the user has not released is kept.
    if (this.#heldSlots === 0) context.linkMemory.release(this.#memory);
    else this.#memory.region.release();
    this.#rings?.end();
    context.poller.remove(this, this.#entries);
    context.leave(this);
    context.releaseRef();
  }
}
