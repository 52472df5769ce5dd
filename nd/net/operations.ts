import type { IND2QueuePair, Nd2RemoteMemory, Nd2Sge } from '../index.js';
import { closed, netError, reset } from './errors.js';
import { Fifo } from './fifo.js';

/** RDMA Reads and Writes that one link has in flight. */
export const REMOTE_OPERATIONS = 16;

/** A Read or Write of a peer's memory that waits for its turn or its end. */
export interface RemoteOperation {
  /** A Write; false: a Read. */
  readonly write: boolean;
  /** This side's memory. */
  readonly sgl: [Nd2Sge];
  /** The peer's memory. */
  readonly remote: Nd2RemoteMemory;
  /** Where it begins there, in bytes. */
  readonly offset: number;
  /** Called once, with the error if it failed. */
  done(error: unknown): void;
}

/** Reads and Writes of a link, in order, so many at a time. */
export class Operations {
  readonly #waiting = new Fifo<RemoteOperation>();
  #underWay = 0;
  /** There is a connection. */
  #started = false;
  #over = false;
  /** The error that it ended with. */
  #reason: unknown;

  /**
   * @param queuePair - for which they are
   * @param posted - called when one was posted
   */
  constructor(
    private readonly queuePair: IND2QueuePair,
    private readonly posted: () => void,
  ) {}

  /** There is a connection. */
  start(): void {
    this.#started = true;
    this.run();
  }

  add(operation: RemoteOperation): void {
    if (this.#over) operation.done(this.#reason ?? closed(operation.write ? 'write' : 'read'));
    else this.#waiting.push(operation);
    this.run();
  }

  /** One has ended. */
  ended(operation: RemoteOperation, error: unknown): void {
    this.#underWay -= 1;
    operation.done(error);
  }

  /** Posts those whose turn it is. */
  run(): void {
    while (this.#started && this.#underWay < REMOTE_OPERATIONS && this.#waiting.length > 0) {
      const operation = this.#waiting.shift()!;
      const { sgl, remote, offset } = operation;
      this.#underWay += 1;
      try {
        if (operation.write) this.queuePair.write(operation, sgl, remote, offset);
        else this.queuePair.read(operation, sgl, remote, offset);
      } catch (error) {
        this.ended(operation, netError(error, operation.write ? 'write' : 'read'));
      }
      this.posted();
    }
  }

  /** The connection has ended: those that were not posted fail. */
  end(error: unknown): void {
    this.#over = true;
    this.#reason = error;
    for (const operation of this.#waiting.drain()) operation.done(error ?? reset());
  }
}
