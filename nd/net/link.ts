import {
  type IND2Connector,
  type IND2MemoryRegion,
  type IND2QueuePair,
  Nd2MrFlag,
  type Nd2RemoteMemory,
  Nd2RequestType,
  type Nd2Result,
  type Nd2Sge,
  Status,
} from '../index.js';
import { Credits } from './credits.js';
import { closed, netError, reset, violation } from './errors.js';
import { uncaught } from './helpers.js';
import { KeepAlive } from './keep-alive.js';
import type { Place } from './place.js';
import { CONTROL_SLOTS, Frame, Header, type Hello, isHeld, viewOf } from './wire.js';

// Imported names are constants to V8 only under a local name.
const { RECEIVE, SEND } = Nd2RequestType;
const { CONTROL, DATA_CREDITS, CONTROL_CREDITS } = { ...Frame, ...Header };
const HEADER = Header.BYTES;
const SUCCESS: number = Status.SUCCESS;

/** RDMA Reads and Writes that one link has in flight. */
const REMOTE_OPERATIONS = 16;

/** The part of a link's memory for one Send or Receive, which has one or more frames. */
export interface Slot {
  /** Of its first byte. */
  readonly offset: number;
  readonly sgl: [Nd2Sge];
  /** Bytes of its frames, in a send slot. */
  used: number;
  /** Frames that its user has not released, in a receive slot. */
  frames: number;
}

const nothing = Promise.resolve();

/** A Read or Write of a peer's memory that waits for its turn or its end. */
export interface RemoteOperation {
  readonly write: boolean;
  readonly sgl: [Nd2Sge];
  readonly remote: Nd2RemoteMemory;
  readonly offset: number;
  /** Called once, with the error if it failed. */
  done(error: unknown): void;
}

/** What is above a link. */
export interface LinkUser {
  /** A data frame. Its payload, from an offset on in the link's memory, belongs to the user until {@link Link.release}. */
  frame(type: number, flags: number, id: number, slot: Slot, at: number, length: number): void;
  /** The peer has read a large payload. */
  wasRead(id: number): void;
  /** Credits or slots have come back. */
  writable(): void;
  /** The connection has ended: once, after all frames. */
  ended(error: unknown): void;
  /** Something waits for credits, or for the peer to read it. */
  unsent(): boolean;
}

/** Sizes of this side. */
export type LinkOptions = Hello;

/** One queue pair with its slots, and the credits of both directions. */
export class Link {
  readonly place: Place;
  readonly connector: IND2Connector;
  readonly queuePair: IND2QueuePair;
  readonly hello: Hello;
  readonly keepAlive: KeepAlive;
  /** All slots. */
  readonly memory: Buffer;
  touched = false;
  /** The user; frames before it is set would be lost, so it is set before anything is posted. */
  user: LinkUser;
  /** Bytes of payload that a frame to the peer may have. */
  most = 0;
  /** Bytes of the longest message that the peer takes. */
  mostMessage = 0;
  /** The connection has ended, or never was. */
  over = false;
  bytesRead = 0;
  bytesWritten = 0;

  readonly #view: DataView;
  readonly #region: IND2MemoryRegion;
  readonly #entries: number;
  readonly #freeSends: Slot[] = [];
  /** Takes further frames before it is posted. */
  #open: Slot | undefined;
  /** It took a credit that only replies may take, and so only they may join. */
  #openForReplies = false;
  /** A frame was posted in this turn: the next ones go together. */
  #corked = false;
  readonly #flush = (): void => {
    this.#corked = false;
    this.flush();
  };
  readonly #sends: number;
  readonly #operations: RemoteOperation[] = [];
  #operating = 0;
  #established = false;
  readonly #credits: Credits;
  /** Ids of large payloads that were read and not reported yet. */
  #read: number[] = [];
  #freed = false;
  /** The error that it ended with. */
  #reason: unknown;
  /** Frames that came before this side knew that the connection is made. */
  #early: (() => void)[] = [];

  private constructor(place: Place, connector: IND2Connector, options: LinkOptions, user: LinkUser) {
    const { slotBytes } = options;
    this.place = place.hold();
    this.connector = connector;
    this.user = user;
    this.hello = options;
    this.#credits = new Credits(options);
    this.#sends = this.#credits.posted + CONTROL_SLOTS;
    this.#entries = 2 * this.#sends + REMOTE_OPERATIONS;
    this.memory = Buffer.from(new ArrayBuffer(2 * this.#sends * slotBytes));
    this.#view = viewOf(this.memory);
    const { adapter, poller } = place;
    this.keepAlive = new KeepAlive(poller, () => !this.over && (!this.quiet || this.user.unsent()));
    poller.add(this, this.#entries);
    place.join(this);
    this.#region = adapter.createMemoryRegion();
    this.queuePair = adapter.createQueuePair({
      receiveCompletionQueue: poller.queue,
      initiatorCompletionQueue: poller.queue,
      context: this,
      receiveQueueDepth: this.#sends,
      initiatorQueueDepth: this.#sends + REMOTE_OPERATIONS,
    });
  }

  /** A link that can receive. The caller connects or accepts, then calls {@link establish}. */
  static async make(
    place: Place,
    connector: IND2Connector,
    options: LinkOptions,
    user: LinkUser,
  ): Promise<Link> {
    const link = new Link(place, connector, options, user);
    try {
      await link.#region.register(link.memory, Nd2MrFlag.ALLOW_LOCAL_WRITE);
      for (let i = 0; i < 2 * link.#sends; i += 1) {
        const offset = i * options.slotBytes;
        const slot: Slot = {
          offset,
          used: 0,
          frames: 0,
          sgl: [{ memory: link.#region, offset, length: options.slotBytes }],
        };
        if (i < link.#sends) link.queuePair.receive(slot, slot.sgl);
        else link.#freeSends.push(slot);
      }
      return link;
    } catch (error) {
      link.free();
      throw error;
    }
  }

  /** What the peer has announced: from now on frames may be queued for it. */
  meet(peer: Hello): void {
    this.most = Math.min(peer.slotBytes, this.hello.slotBytes) - HEADER;
    this.mostMessage = peer.maxMessageBytes;
    this.#credits.meet(peer.slots);
  }

  /** The connection is made. */
  establish(): void {
    this.#established = true;
    const ending = this.connector.notifyDisconnect();
    this.keepAlive.waitFor(ending);
    ending.then(
      () => this.end(reset()),
      (error) => this.end(netError(error, 'connection')),
    );
    for (const deliver of this.#early.splice(0)) if (!this.over) deliver();
    this.place.poller.wake();
    this.user.writable();
  }

  /** Whether a frame of this type can be sent now, with a payload of this many bytes, at most {@link most}. */
  takes(type: number, length: number): boolean {
    if (this.over) return false;
    if (this.#joins(type, length)) return true;
    return this.#credits.allows(!isHeld(type)) && this.#freeSends.length > CONTROL_SLOTS && this.#established;
  }

  /** The open slot takes the frame, too. */
  #joins(type: number, length: number): boolean {
    const slot = this.#open;
    if (slot === undefined || slot.used + length > this.most) return false;
    return !this.#openForReplies || !isHeld(type);
  }

  /** All Sends have completed. */
  get quiet(): boolean {
    return this.#freeSends.length === this.#sends;
  }

  /**
   * Sends a data frame; `payload` is copied. Only while the link {@link takes} it. The first frame of a turn goes at once, those that
   * follow within the turn go together. While results are delivered all go together.
   */
  send(type: number, flags: number, id: number, payload: Uint8Array | undefined): void {
    const length = payload === undefined ? 0 : payload.length;
    const at = this.#frame(type, flags, id, length);
    if (payload !== undefined) this.memory.set(payload, at);
    this.#cork();
  }

  /** As {@link send}, with several pieces that are one payload of `length` bytes. */
  sendPieces(type: number, pieces: readonly Uint8Array[], length: number): void {
    let at = this.#frame(type, 0, 0, length);
    for (const piece of pieces) {
      this.memory.set(piece, at);
      at += piece.length;
    }
    this.#cork();
  }

  /** Writes the header of a frame into the open slot, or the next one. Returns where its payload begins. */
  #frame(type: number, flags: number, id: number, length: number): number {
    if (!this.#joins(type, length)) this.flush();
    let slot = this.#open;
    if (slot === undefined) {
      this.#openForReplies = this.#credits.spend();
      slot = this.#freeSends.pop()!;
      slot.used = 0;
      this.#open = slot;
    }
    const begin = slot.offset + slot.used;
    this.#header(begin, type, flags, id, length);
    slot.used += HEADER + length;
    this.bytesWritten += length;
    return begin + HEADER;
  }

  #header(at: number, type: number, flags: number, id: number, length: number): void {
    const view = this.#view;
    view.setUint8(at, type);
    view.setUint8(at + Header.FLAGS, flags);
    view.setUint16(at + DATA_CREDITS, 0);
    view.setUint16(at + CONTROL_CREDITS, 0);
    view.setUint16(at + 6, 0);
    view.setUint32(at + Header.ID, id);
    view.setUint32(at + Header.LENGTH, length);
  }

  #cork(): void {
    if (this.touched) return;
    if (!this.#corked) {
      this.#corked = true;
      this.flush();
      void nothing.then(this.#flush);
    } else if (this.#open!.used + HEADER > this.most) this.flush();
  }

  /** Posts what is in the open slot. */
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
      this.abort(netError(error, 'send'));
      return;
    }
    this.keepAlive.update();
    this.place.poller.wake();
  }

  /** The payload of a frame was taken. The slot receives again after its last one. */
  release(slot: Slot): void {
    slot.frames -= 1;
    if (slot.frames > 0 || this.over) return;
    slot.sgl[0].length = this.hello.slotBytes;
    this.queuePair.receive(slot, slot.sgl);
    this.#credits.released();
    if (this.#credits.owesData) this.#report();
  }

  /** The large payload with this id was read: the peer may use its memory again. */
  reportRead(id: number): void {
    this.#read.push(id);
    this.#report();
  }

  /** Sends a CONTROL frame if there is something to report and a control credit for it. */
  #report(): void {
    if (!this.#established || this.over) return;
    if (this.#freeSends.length === 0 || !this.#credits.spendControl(this.#read.length > 0)) return;
    const slot = this.#freeSends.pop()!;
    const ids = this.#read.splice(0, Math.floor(this.most / 4));
    this.#header(slot.offset, CONTROL, 0, 0, 4 * ids.length);
    slot.used = HEADER;
    for (const id of ids) {
      this.#view.setUint32(slot.offset + slot.used, id);
      slot.used += 4;
    }
    this.#post(slot);
  }

  /** Reads or writes memory of the peer, when its turn comes. */
  operate(operation: RemoteOperation): void {
    if (this.over) {
      operation.done(this.#reason ?? closed(operation.write ? 'write' : 'read'));
      return;
    }
    this.#operations.push(operation);
    this.#operate();
  }

  #operate(): void {
    while (this.#operating < REMOTE_OPERATIONS && this.#operations.length > 0 && this.#established) {
      const operation = this.#operations.shift()!;
      const { sgl, remote, offset } = operation;
      this.#operating += 1;
      try {
        if (operation.write) this.queuePair.write(operation, sgl, remote, offset);
        else this.queuePair.read(operation, sgl, remote, offset);
      } catch (error) {
        this.#operating -= 1;
        operation.done(netError(error, operation.write ? 'write' : 'read'));
      }
      this.place.poller.wake();
    }
  }

  /** @internal */
  completed(result: Nd2Result): void {
    const { status, requestType } = result;
    if (requestType === RECEIVE) {
      if (status === SUCCESS) this.#received(result.requestContext as Slot, result.bytesTransferred);
    } else if (requestType === SEND) {
      this.#freeSends.push(result.requestContext as Slot);
    } else {
      this.#operating -= 1;
      const operation = result.requestContext as RemoteOperation;
      operation.done(status === SUCCESS ? undefined : reset());
    }
    if (status !== SUCCESS && status !== Status.CANCELED && !this.over) {
      this.abort(reset());
    }
  }

  /** @internal */
  delivered(): void {
    if (this.over) return;
    this.#operate();
    this.user.writable();
    this.flush();
    this.#report();
    this.keepAlive.update();
  }

  #received(slot: Slot, bytes: number): void {
    if (this.over) return;
    const { offset } = slot;
    const view = this.#view;
    if (bytes < HEADER) {
      this.#refuse(`a frame of ${bytes} bytes is shorter than its header`);
      return;
    }
    if (
      !this.#credits.returned(view.getUint16(offset + DATA_CREDITS), view.getUint16(offset + CONTROL_CREDITS))
    ) {
      this.#refuse('it returned more credits than it had');
      return;
    }
    if (view.getUint8(offset) === CONTROL) {
      this.#controlled(slot, bytes);
      return;
    }
    this.#credits.received();
    // The slot is kept until all frames are known.
    slot.frames = 1;
    const end = offset + bytes;
    for (let at = offset; at < end && !this.over; ) {
      const length = end - at < HEADER ? end : view.getUint32(at + Header.LENGTH);
      if (at + HEADER + length > end) {
        this.#refuse(`a frame is longer than the ${bytes} bytes that came`);
        return;
      }
      slot.frames += 1;
      this.bytesRead += length;
      const type = view.getUint8(at);
      const flags = view.getUint8(at + Header.FLAGS);
      const id = view.getUint32(at + Header.ID);
      const payload = at + HEADER;
      if (this.#established) this.#deliver(type, flags, id, slot, payload, length);
      else this.#early.push(() => this.#deliver(type, flags, id, slot, payload, length));
      at = payload + length;
    }
    this.release(slot);
  }

  /** A frame for the user. A listener that throws does not cost the frames behind it. */
  #deliver(type: number, flags: number, id: number, slot: Slot, at: number, length: number): void {
    try {
      this.user.frame(type, flags, id, slot, at, length);
    } catch (error) {
      uncaught(error);
    }
  }

  #controlled(slot: Slot, bytes: number): void {
    if (this.#view.getUint32(slot.offset + Header.LENGTH) !== bytes - HEADER || bytes % 4 !== 0) {
      this.#refuse(`a CONTROL frame of ${bytes} bytes has another form`);
      return;
    }
    for (let at = HEADER; at < bytes && !this.over; at += 4) {
      this.user.wasRead(this.#view.getUint32(slot.offset + at));
    }
    if (this.over) return;
    slot.sgl[0].length = this.hello.slotBytes;
    this.queuePair.receive(slot, slot.sgl);
    this.#credits.releasedControl();
  }

  /** The payload of a received frame, in its slot. */
  payload(at: number, length: number): Buffer {
    return this.memory.subarray(at, at + length);
  }

  #refuse(sentence: string): void {
    this.abort(violation(sentence));
  }

  /** The completion queue has failed. @internal */
  failed(error: unknown): void {
    this.end(error);
  }

  /** Disconnects, and reports the error. */
  abort(error: unknown): void {
    this.end(error);
  }

  /**
   * The connection is over: what has arrived is delivered, and then the end is reported. Without an error it is a clean end.
   */
  end(error: unknown): void {
    if (this.over) return;
    // Frames that came before the end are delivered before it.
    if (!this.touched) this.place.poller.drain();
    if (this.over) return;
    this.over = true;
    this.#reason = error;
    void this.#disconnect();
    for (const operation of this.#operations.splice(0)) operation.done(error ?? reset());
    this.user.ended(error);
  }

  async #disconnect(): Promise<void> {
    try {
      await this.connector.disconnect();
    } catch {
      // It has ended already.
    }
    this.free();
  }

  /** Gives everything back. */
  free(): void {
    if (this.#freed) return;
    this.keepAlive.end();
    this.#freed = true;
    this.over = true;
    const { place } = this;
    // Requests that were flushed report their end.
    while (place.poller.drain() > 0);
    this.connector.release();
    this.queuePair.release();
    this.#region.release();
    place.poller.remove(this, this.#entries);
    place.leave(this);
    place.letGo();
  }
}
