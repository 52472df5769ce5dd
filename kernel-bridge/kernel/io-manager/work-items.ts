/**
 * Work items (IoQueueWorkItem): code that may block, run at PASSIVE_LEVEL after the routine that queued it. They run in
 * order on the kernel's thread: before the next request, or on the next turn of the event loop.
 */
import { Status } from '../../ioctl/status.js';
import type { Irp } from './irp.js';
import { assertPassive } from './irql.js';

/** Maximum number of rounds in {@link WorkItems.run}: items that queue themselves again must not delay everything else. */
const mostRounds = 16;

/** Runs a work item and reports its exceptions. */
export type RunItem = (item: () => void) => void;

export class WorkItems {
  private waiting: (() => void)[] = [];
  private scheduled = false;
  private readonly runQueued = (): void => {
    this.scheduled = false;
    this.run();
  };

  constructor(private readonly runItem: RunItem = (item) => item()) {}

  get size(): number {
    return this.waiting.length;
  }

  /** Queues an item; callable at any level. */
  queue(item: () => void): void {
    this.waiting.push(item);
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(this.runQueued);
  }

  /**
   * Pends a request until its work item runs. `work` then completes the request, or pends it elsewhere. A request
   * cancelled before that completes with CANCELED, and `work` does not run; if `work` throws, the request completes
   * with INTERNAL_ERROR.
   *
   * @param ended - Runs before the request is cancelled or `work` begins.
   * @returns PENDING, for the dispatch routine to return.
   */
  pend<T>(irp: Irp<T>, work: () => void, ended: () => void = () => {}): number {
    let begun = false;
    irp.markPending();
    irp.setCancelRoutine((cancelled) => {
      begun = true;
      ended();
      cancelled.complete(Status.CANCELED);
    });
    this.queue(() => {
      if (begun) return;
      irp.setCancelRoutine(undefined);
      ended();
      try {
        work();
      } catch (error) {
        irp.setCancelRoutine(undefined);
        if (!irp.completed) irp.complete(Status.INTERNAL_ERROR);
        throw error;
      }
    });
    return Status.PENDING;
  }

  /** Runs the queued items and those that they queue. If items keep queueing others, the rest runs on the next turn. */
  run(): void {
    if (this.waiting.length === 0) return;
    assertPassive('running work items');
    for (let round = 0; this.waiting.length > 0 && round < mostRounds; round++) {
      const items = this.waiting;
      this.waiting = [];
      for (const item of items) this.runItem(item);
    }
  }
}
