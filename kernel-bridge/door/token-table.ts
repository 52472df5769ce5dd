import { Status, StatusError } from '../ioctl/status.js';

/** An owner of work queues. */
export interface TokenOwner {
  readonly token: number;
  /** Completion queues that hold completions of the owner after its destruction. */
  unread: number;
  /** Called when no further completions follow. */
  forget(): void;
}

/** Owners of work queues by the token in their completions. A token contains a generation, so that a reused slot has a different token. */
export class TokenTable<T extends TokenOwner> {
  private readonly slots: (T | undefined)[] = [];
  private readonly free: number[] = [];
  private generation = 0;

  add(qp: T): number {
    const index = this.free.pop() ?? this.slots.length;
    if (index > 0xffff) {
      throw new StatusError(
        Status.INSUFFICIENT_RESOURCES,
        'This device handle has 65536 queues, the maximum; release some before you create more.',
      );
    }
    this.generation = (this.generation + 1) & 0xffff;
    this.slots[index] = qp;
    return ((this.generation << 16) | index) >>> 0;
  }

  find(token: number): T | undefined {
    const qp = this.slots[token & 0xffff];
    return qp !== undefined && qp.token === token ? qp : undefined;
  }

  /** Frees the token once no completion queue holds completions of the queue pair. */
  remove(qp: T): void {
    if (qp.unread > 0 || this.find(qp.token) === undefined) return;
    this.slots[qp.token & 0xffff] = undefined;
    qp.forget();
    this.free.push(qp.token & 0xffff);
  }

  /** Called when a completion queue has been read past the last completion of a destroyed queue pair. */
  read(qp: T): void {
    qp.unread--;
    this.remove(qp);
  }
}
