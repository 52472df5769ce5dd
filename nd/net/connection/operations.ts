import type { IND2QueuePair, Nd2RemoteMemory, Nd2Sge } from '../../index.js';
import { closed, netError, reset } from '../base/errors.js';
import { Fifo } from '../base/fifo.js';

/** Maximum RDMA Reads and Writes that one link has in flight. */
export const REMOTE_OPERATIONS = 16;

/** A request of a link that is queued or in flight. */
export interface Operation {
  /** Name of the operation in error messages. */
  readonly what: string;
  /** Posts the request with the operation as its context. */
  post(queuePair: IND2QueuePair): void;
  /** Called when a request has succeeded. Returns whether another one must follow. */
  continues?(): boolean;
  /** Called once when the operation has ended, with the error if it failed. */
  done(error: unknown): void;
}

/** An RDMA Read or Write of a peer's memory, in as many requests as the adapter's maximum length requires. */
export class Transfer implements Operation {
  /** Bytes that have not been transferred. */
  #left: number;

  /** @param most - maximum bytes of a request */
  constructor(
    private readonly write: boolean,
    /** Local memory. */
    private readonly sgl: [Nd2Sge],
    /** The peer's memory. */
    private readonly remote: Nd2RemoteMemory,
    /** Offset in the peer's memory, in bytes. */
    private offset: number,
    private readonly most: number,
    readonly done: (error: unknown) => void,
  ) {
    this.#left = sgl[0].length;
  }

  get what(): string {
    return this.write ? 'write' : 'read';
  }

  post(queuePair: IND2QueuePair): void {
    this.sgl[0].length = Math.min(this.#left, this.most);
    if (this.write) queuePair.write(this, this.sgl, this.remote, this.offset);
    else queuePair.read(this, this.sgl, this.remote, this.offset);
  }

  continues(): boolean {
    const { length } = this.sgl[0];
    this.sgl[0].offset += length;
    this.offset += length;
    this.#left -= length;
    return this.#left > 0;
  }
}

/** A queue of one kind of requests of a link, with a limit of requests in flight. */
export class Operations {
  readonly #waiting = new Fifo<Operation>();
  #underWay = 0;
  /** Whether the connection is established. */
  #started = false;
  #over = false;
  /** The error that ended the connection. */
  #reason: unknown;

  /**
   * Creates an empty queue.
   *
   * @param queuePair - queue pair of the requests
   * @param most - maximum requests in flight
   * @param posted - called when a request was posted
   */
  constructor(
    private readonly queuePair: IND2QueuePair,
    private readonly most: number,
    private readonly posted: () => void,
  ) {}

  /** Called when the connection is established. */
  start(): void {
    this.#started = true;
    this.run();
  }

  /** Whether no request is queued or in flight. */
  get idle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0;
  }

  add(operation: Operation): void {
    if (this.#over) operation.done(this.#reason ?? closed(operation.what));
    else this.#waiting.push(operation);
    this.run();
  }

  /** Called when a request has ended. */
  ended(operation: Operation, error: unknown): void {
    this.#underWay -= 1;
    if (error === undefined && operation.continues?.() === true) this.add(operation);
    else operation.done(error);
  }

  /** Posts queued requests within the limit. */
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

  /** Called when the connection has ended. Requests that were not posted fail. */
  end(error: unknown): void {
    this.#over = true;
    this.#reason = error;
    for (const operation of this.#waiting.drain()) operation.done(error ?? reset());
  }
}
