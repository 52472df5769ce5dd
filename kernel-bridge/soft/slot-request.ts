import { type NativeChannel, SlotState } from '../hca/index.js';
import { Status, type StatusError } from '../ioctl/status.js';
import type { OverlappedSource } from '../overlapped.js';

/** What a {@link SlotRequest} needs of the kernel it was sent to. */
export interface SlotOwner {
  readonly channel: NativeChannel;
  /** Of the channel. */
  readonly states: Int32Array;
  /** Status and output of a request that has completed; its slot is given back. */
  finish(slot: number): { readonly status: number; readonly output: Uint8Array };
  /** The request's slot was given back. */
  forget(slot: number): void;
}

/**
 * An overlapped request in a slot of the channel. The outcome is copied out of the slot once, by whoever looks first:
 * the event loop, a blocking wait, or the kernel's sweep for free slots.
 */
export class SlotRequest<T> implements OverlappedSource<T> {
  #captured: { readonly status: number; readonly output: Uint8Array } | undefined;
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
  capture(): { readonly status: number; readonly output: Uint8Array } {
    if (this.#captured === undefined) {
      this.#captured = this.owner.finish(this.slot);
      this.owner.forget(this.slot);
    }
    return this.#captured;
  }

  take(): T {
    const { status, output } = this.capture();
    if (status !== Status.SUCCESS) throw this.failure(status, output);
    return this.decode(output);
  }

  wait(): void {
    if (this.#captured === undefined) this.owner.channel.wait(this.slot, -1);
  }

  cancel(): void {
    if (this.#captured === undefined) this.owner.channel.cancel(this.slot);
  }
}
