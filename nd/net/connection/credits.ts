import { CONTROL_SLOTS, type Hello, leaves, moreSlots } from './frames.js';

/** Data credits that the field of a header holds. */
const MOST_RETURNED = 0xffff;

/** One of so many parts of the usable slots may be unknown to the peer. */
const UNKNOWN_PARTS = 4;

/** The credits of one connection: what this side may send, and what it owes the peer (docs/internals/net.md). */
export class Credits {
  /** Data credits that messages leave to replies, or bytes to END. */
  readonly #kept: number;
  #data = 0;
  #control = CONTROL_SLOTS;
  #granted = 0;
  /** Slots that can receive data, those that the peer does not know of yet included. */
  #posted: number;
  #owedData = 0;
  #owedControl = 0;
  /** What the peer may send. */
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

  /** The peer has so many slots in its hello. */
  meet(slots: number): void {
    this.#granted = slots + this.#kept;
    this.#data = this.#granted;
  }

  /** Data credits of this side. */
  get data(): number {
    return this.#data;
  }

  /** A frame of this type may take the last one of so many data credits. */
  allows(type: number, credits: number): boolean {
    return credits > leaves(type, this.#kept);
  }

  /** Takes a data credit. */
  spend(): void {
    this.#data -= 1;
  }

  /** Credits that came back. False: more than there are. */
  returned(data: number, control: number): boolean {
    this.#data += data;
    this.#control += control;
    return this.#data <= this.#granted && this.#control <= CONTROL_SLOTS;
  }

  /** A slot has received data. False: the peer had no credit for it. */
  received(): boolean {
    this.#posted -= 1;
    this.#peerData -= 1;
    return this.#peerData >= 0;
  }

  /** A slot has received a CONTROL frame. False: the peer had no credit for it. */
  receivedControl(): boolean {
    this.#peerControl -= 1;
    return this.#peerControl >= 0;
  }

  /** A slot can receive data again. */
  released(): void {
    this.#posted += 1;
    this.#owedData += 1;
  }

  /** A slot can receive a CONTROL frame again. */
  releasedControl(): void {
    this.#owedControl += 1;
  }

  /**
   * Of the slots that messages or bytes can use, or if there is none of the others, the peer does not know of a quarter. With a half it
   * has often sent what it may before it hears of more, and both sides sleep in turns.
   */
  get owesData(): boolean {
    const usable = this.#posted > this.#kept ? this.#posted - this.#kept : this.#posted;
    return this.#owedData > 0 && UNKNOWN_PARTS * this.#owedData >= usable;
  }

  /**
   * Takes a credit for a CONTROL frame, if there is one and something to report. The last one is spent only by a frame that returns
   * control credits.
   *
   * @param more - there is something to report besides credits
   */
  spendControl(more: boolean): boolean {
    const pays = 2 * this.#owedControl >= CONTROL_SLOTS;
    if (!pays && !this.owesData && !more) return false;
    if (this.#control === 0 || (this.#control === 1 && !pays)) return false;
    this.#control -= 1;
    return true;
  }

  /** Data credits that the next Send returns. */
  takeData(): number {
    const owed = Math.min(this.#owedData, MOST_RETURNED);
    this.#owedData -= owed;
    this.#peerData += owed;
    return owed;
  }

  /** Control credits that the next Send returns. */
  takeControl(): number {
    const owed = this.#owedControl;
    this.#owedControl = 0;
    this.#peerControl += owed;
    return owed;
  }
}
