/**
 * Work items (IoQueueWorkItem): code that may wait, run at PASSIVE_LEVEL after the routine that has queued it. They run
 * in their order on the kernel's thread: before the next request, or on the next turn of the event loop.
 */
import { Status } from '../../ioctl/status.js';
import type { Irp } from './irp.js';
import { assertPassive } from './irql.js';

/** Times that {@link WorkItems.run} looks for more; items that queue themselves again must not hold up everything else. */
const mostRounds = 16;

/** Runs a work item, and reports what it throws. */
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
   * Pends a request until its work item runs. `work` then completes the request, or pends it elsewhere. A request that
   * is cancelled before ends in CANCELED, and `work` does not run; one whose `work` throws ends in INTERNAL_ERROR.
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

  /** Runs the items that wait, and those that they queue. Of items that queue others without end, the rest runs on the next turn. */
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
