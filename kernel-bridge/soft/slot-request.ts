import { type NativeChannel, SlotState } from '../hca/index.js';
import { Status, type StatusError } from '../ioctl/status.js';
import type { OverlappedSource } from '../overlapped.js';

/** What came out of a slot. */
export interface SlotAnswer {
  readonly status: number;
  readonly output: Uint8Array;
}

/** What a {@link SlotRequest} needs of the kernel it was sent to. */
export interface SlotOwner {
  readonly channel: NativeChannel;
  /** Of the channel. */
  readonly states: Int32Array;
  /** Status and output of a request that has completed; its slot is given back. */
  finish(slot: number): SlotAnswer;
  /** The same of one that is waited for. */
  waitAndFinish(slot: number): SlotAnswer;
  /** The request's slot was given back. */
  forget(slot: number): void;
  /** Delivers the overlapped request that completed first. False: there is none. */
  deliverNext(): boolean;
}

/**
 * An overlapped request in a slot of the channel. The outcome is copied out of the slot once, by whoever looks first:
 * the event loop, a blocking wait, or the kernel's sweep for free slots.
 */
export class SlotRequest<T> implements OverlappedSource<T> {
  #captured: SlotAnswer | undefined;
  readonly #states: Int32Array;

  constructor(
    readonly owner: SlotOwner,
    readonly slot: number,
    private readonly decode: (output: Uint8Array) => T,
    private readonly failure: (status: number, output: Uint8Array) => StatusError,
  ) {
    this.#states = owner.states;
  }

  completed(): boolean {
    return this.#captured !== undefined || Atomics.load(this.#states, this.slot) === SlotState.done;
  }

  /** Takes status and output out of the slot and gives the slot back. Only after completion. */
  capture(): SlotAnswer {
    return this.#captured ?? this.keep(this.owner.finish(this.slot));
  }

  /** This came out of the slot, which was given back. */
  keep(answer: SlotAnswer): SlotAnswer {
    this.#captured = answer;
    this.owner.forget(this.slot);
    return answer;
  }

  take(): T {
    const { status, output } = this.capture();
    if (status !== Status.SUCCESS) throw this.failure(status, output);
    return this.decode(output);
  }

  deliver(): void {
    while (this.#captured === undefined && this.owner.deliverNext());
  }

  wait(): void {
    if (this.#captured === undefined) this.keep(this.owner.waitAndFinish(this.slot));
  }

  cancel(): void {
    if (this.#captured === undefined) this.owner.channel.cancel(this.slot);
  }
}
