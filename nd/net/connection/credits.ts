import { CONTROL_SLOTS, type Hello, leaves, moreSlots } from './frames.js';

/** Maximum data credits in a header field. */
const MOST_RETURNED = 0xffff;

/** Credits are returned when one of this many parts of the usable slots is unknown to the peer. */
const UNKNOWN_PARTS = 4;

/** The credits of one connection in both directions (docs/internals/net.md). */
export class Credits {
  /** Data credits that messages leave for replies, or stream bytes for END. */
  readonly #kept: number;
  #data = 0;
  #control = CONTROL_SLOTS;
  #granted = 0;
  /** Slots that can receive data, including those that the peer does not know of yet. */
  #posted: number;
  #owedData = 0;
  #owedControl = 0;
  /** Data frames that the peer may still send. */
  #peerData: number;
  #peerControl = CONTROL_SLOTS;

  constructor({ kind, slots }: Hello) {
    this.#kept = moreSlots(kind);
    this.#posted = slots + this.#kept;
    this.#peerData = this.#posted;
  }

  /** Slots of this side that receive data. */
  get posted(): number {
    return this.#posted;
  }

  /** Sets the number of slots in the peer's hello. */
  setPeerSlots(slots: number): void {
    this.#granted = slots + this.#kept;
    this.#data = this.#granted;
  }

  /** Data credits of this side. */
  get data(): number {
    return this.#data;
  }

  /** Whether a frame of this type may be sent with `credits` data credits left. */
  allows(type: number, credits: number): boolean {
    return credits > leaves(type, this.#kept);
  }

  /** Uses a data credit. */
  spend(): void {
    this.#data -= 1;
  }

  /** Adds returned credits. Returns false if there are more than were used. */
  returned(data: number, control: number): boolean {
    this.#data += data;
    this.#control += control;
    return this.#data <= this.#granted && this.#control <= CONTROL_SLOTS;
  }

  /** Counts a received data frame. Returns false if the peer had no credit for it. */
  received(): boolean {
    this.#posted -= 1;
    this.#peerData -= 1;
    return this.#peerData >= 0;
  }

  /** Counts a received CONTROL frame. Returns false if the peer had no credit for it. */
  receivedControl(): boolean {
    this.#peerControl -= 1;
    return this.#peerControl >= 0;
  }

  /** Counts a slot that can receive data again. */
  released(): void {
    this.#posted += 1;
    this.#owedData += 1;
  }

  /** Counts a slot that can receive a CONTROL frame again. */
  releasedControl(): void {
    this.#owedControl += 1;
  }

  /**
   * Whether data credits should be returned. They should be once the peer does not know about a quarter of the slots that messages or
   * stream bytes can use (or, if there are none, of the other slots). If the limit were half of the slots, the peer would often run out of
   * credits before new ones arrive, and the two sides would sleep alternately.
   */
  get owesData(): boolean {
    const usable = this.#posted > this.#kept ? this.#posted - this.#kept : this.#posted;
    return this.#owedData > 0 && UNKNOWN_PARTS * this.#owedData >= usable;
  }

  /**
   * Uses a credit for a CONTROL frame, if there is a credit and something to report. The last credit is used only for a frame that returns
   * control credits.
   *
   * @param more - whether there is something to report besides credits
   */
  spendControl(more: boolean): boolean {
    const pays = 2 * this.#owedControl >= CONTROL_SLOTS;
    if (!pays && !this.owesData && !more) return false;
    if (this.#control === 0 || (this.#control === 1 && !pays)) return false;
    this.#control -= 1;
    return true;
  }

  /** Data credits to return with the next Send. */
  takeData(): number {
    const owed = Math.min(this.#owedData, MOST_RETURNED);
    this.#owedData -= owed;
    this.#peerData += owed;
    return owed;
  }

  /** Control credits to return with the next Send. */
  takeControl(): number {
    const owed = this.#owedControl;
    this.#owedControl = 0;
    this.#peerControl += owed;
    return owed;
  }
}
