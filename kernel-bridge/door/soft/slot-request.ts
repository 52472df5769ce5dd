import { type NativeChannel, SlotState } from '../../hca/index.js';
import { Status, type StatusError } from '../../ioctl/status.js';
import { Overlapped, type OverlappedSource } from '../overlapped.js';

/** Status and output of a completed request. */
export interface SlotAnswer {
  readonly status: number;
  readonly output: Uint8Array;
}

/** The part of the kernel's user side that a {@link SlotRequest} uses. */
export interface SlotOwner {
  readonly channel: NativeChannel;
  /** Slot states of the channel. */
  readonly states: Int32Array;
  /** Status and output of a completed request; frees its slot. */
  finish(slot: number): SlotAnswer;
  /** Waits for the request, then does the same. */
  waitAndFinish(slot: number): SlotAnswer;
  /** The request's slot has been freed. */
  forget(slot: number): void;
  /** Delivers the overlapped request that completed first. False: none has completed. */
  deliverNext(): boolean;
}

/**
 * An overlapped request in a slot of the channel. Its outcome is copied out of the slot once, by the event loop, a blocking
 * wait, or the kernel's sweep for free slots: the first of them that finds it completed.
 */
export class SlotRequest<T> implements OverlappedSource<T> {
  /** The request as its owner's callers see it. */
  readonly overlapped: Overlapped<T>;
  #captured: SlotAnswer | undefined;
  readonly #states: Int32Array;

  constructor(
    readonly owner: SlotOwner,
    readonly slot: number,
    private readonly decode: (output: Uint8Array) => T,
    private readonly failure: (status: number, output: Uint8Array) => StatusError,
  ) {
    this.#states = owner.states;
    this.overlapped = new Overlapped<T>(this);
  }

  completed(): boolean {
    return this.#captured !== undefined || Atomics.load(this.#states, this.slot) === SlotState.done;
  }

  /** Takes status and output out of the slot and frees the slot. Call after completion only. */
  capture(): SlotAnswer {
    return this.#captured ?? this.keep(this.owner.finish(this.slot));
  }

  /** Keeps the outcome, after its slot was freed. */
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

  hold(holds: boolean): void {
    if (this.#captured === undefined) this.owner.channel.hold(this.slot, holds);
  }
}
