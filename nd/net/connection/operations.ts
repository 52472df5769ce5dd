import type { IND2QueuePair, Nd2RemoteMemory, Nd2Sge } from '../../index.js';
import { closed, netError, reset } from '../base/errors.js';
import { Fifo } from '../base/fifo.js';

/** RDMA Reads and Writes that one link has in flight. */
export const REMOTE_OPERATIONS = 16;

/** A request of a link that waits for its turn or its end. */
export interface Operation {
  /** Names it in errors. */
  readonly what: string;
  /** Posts the request, with the operation as its context. */
  post(queuePair: IND2QueuePair): void;
  /** Called once, with the error if it failed. */
  done(error: unknown): void;
}

/** An RDMA Read or Write of a peer's memory. */
export class Transfer implements Operation {
  constructor(
    private readonly write: boolean,
    /** This side's memory. */
    private readonly sgl: [Nd2Sge],
    /** The peer's memory. */
    private readonly remote: Nd2RemoteMemory,
    /** Where it begins there, in bytes. */
    private readonly offset: number,
    readonly done: (error: unknown) => void,
  ) {}

  get what(): string {
    return this.write ? 'write' : 'read';
  }

  post(queuePair: IND2QueuePair): void {
    if (this.write) queuePair.write(this, this.sgl, this.remote, this.offset);
    else queuePair.read(this, this.sgl, this.remote, this.offset);
  }
}

/** Requests of a link of one kind, in order, so many at a time. */
export class Operations {
  readonly #waiting = new Fifo<Operation>();
  #underWay = 0;
  /** There is a connection. */
  #started = false;
  #over = false;
  /** The error that it ended with. */
  #reason: unknown;

  /**
   * @param queuePair - for which they are
   * @param most - in flight at a time
   * @param posted - called when one was posted
   */
  constructor(
    private readonly queuePair: IND2QueuePair,
    private readonly most: number,
    private readonly posted: () => void,
  ) {}

  /** There is a connection. */
  start(): void {
    this.#started = true;
    this.run();
  }

  /** None waits or is in flight. */
  get idle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0;
  }

  add(operation: Operation): void {
    if (this.#over) operation.done(this.#reason ?? closed(operation.what));
    else this.#waiting.push(operation);
    this.run();
  }

  /** One has ended. */
  ended(operation: Operation, error: unknown): void {
    this.#underWay -= 1;
    operation.done(error);
  }

  /** Posts those whose turn it is. */
  run(): void {
    while (this.#started && this.#underWay < this.most && this.#waiting.length > 0) {
      const operation = this.#waiting.shift()!;
      this.#underWay += 1;
      try {
        operation.post(this.queuePair);
      } catch (error) {
        this.ended(operation, netError(error, operation.what));
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
