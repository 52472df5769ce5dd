import { type NativeChannel, SlotState } from '../../hca/index.js';
import { Status, type StatusError } from '../../ioctl/status.js';
import { Overlapped, type OverlappedSource } from '../overlapped.js';

/** Status and output of a completed request. */
export interface SlotAnswer {
  readonly status: number;
  readonly output: Uint8Array;
}

/** The methods of the kernel's user side that a {@link SlotRequest} needs. */
export interface SlotOwner {
  readonly channel: NativeChannel;
  /** Slot states of the channel. */
  readonly states: Int32Array;
  /** Status and output of a completed request; frees its slot. */
  finish(slot: number): SlotAnswer;
  /** Waits for the request, then returns the same as {@link finish}. */
  waitAndFinish(slot: number): SlotAnswer;
  /** Called when the request's slot has been freed. */
  forget(slot: number): void;
  /** Delivers the overlapped request that completed first. Returns false if none has completed. */
  deliverNext(): boolean;
}

/**
 * An overlapped request in a slot of the channel. Its outcome is copied out of the slot once, by whichever finds it
 * completed first: the event loop, a blocking wait, or the kernel's sweep for free slots.
 */
export class SlotRequest<T> implements OverlappedSource<T> {
  /** The request as callers see it. */
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

  /** Copies status and output out of the slot and frees it. Call it after completion only. */
  capture(): SlotAnswer {
    return this.#captured ?? this.keep(this.owner.finish(this.slot));
  }

  /** Keeps the outcome after its slot was freed. */
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
