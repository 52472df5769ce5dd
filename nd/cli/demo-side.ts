import {
  type INDAdapter,
  type INDCompletionQueue,
  type NdMemoryHandle,
  type NdResult,
  type NdSge,
  Status,
} from '../index.js';
import { requestFailure } from './peer-lost.js';
import { memoryFor } from './sides/connected-side.js';
import { newResult, SideV1 } from './sides/v1-side.js';

/** Size in bytes of the longest message and of each message buffer. */
export const MESSAGE = 65_536;
/** Receives that each side keeps posted. */
export const RECEIVES = 8;
/** Size in bytes of the window for RDMA Writes and Reads. */
export const WINDOW = 8 << 20;
/** Maximum outstanding Sends, Reads and Writes. */
export const DEPTH = 64;

/** Time limit for a result; exceeded only if a request was lost. */
const PATIENCE_MS = 20_000;

const SEND_AT = RECEIVES * MESSAGE;
const WINDOW_AT = SEND_AT + MESSAGE;

/** A received message in its receive buffer. */
export interface Message {
  readonly slot: number;
  readonly bytes: Uint8Array;
}

/** One side of a connection: its endpoint, its queues, and one registered buffer for all data. */
export class Side extends SideV1 {
  readonly #results: NdResult[] = [];

  /** Registers the memory and posts all Receives before the connection is established. */
  constructor(adapter: INDAdapter) {
    const bytes = memoryFor(WINDOW_AT + WINDOW);
    super(adapter, { bytes, inboundEntries: RECEIVES, outboundEntries: DEPTH });
    for (let slot = 0; slot < RECEIVES; slot += 1) this.receiveInto(slot);
  }

  /** The memory for messages to send. */
  get sendBuffer(): Uint8Array {
    return this.bytes.subarray(SEND_AT, SEND_AT + MESSAGE);
  }

  /** The memory for RDMA Writes and Reads. */
  get window(): Uint8Array {
    return this.bytes.subarray(WINDOW_AT, WINDOW_AT + WINDOW);
  }

  /** The whole {@link window}, for binding. */
  get windowMemory(): { memory: NdMemoryHandle; offset: number; length: number } {
    return { memory: this.memory, offset: WINDOW_AT, length: WINDOW };
  }

  /** Part of the {@link window}, for requests. */
  windowPiece(offset: number, length: number): NdSge {
    return { memory: this.memory, offset: WINDOW_AT + offset, length };
  }

  /** The first bytes of {@link sendBuffer}, for requests. */
  sendPiece(length: number): NdSge {
    return { memory: this.memory, offset: SEND_AT, length };
  }

  /** The receive buffer of a message, for sending it back. */
  slotPiece(slot: number, length: number): NdSge {
    return { memory: this.memory, offset: slot * MESSAGE, length };
  }

  receiveInto(slot: number): void {
    this.endpoint.receive(newResult(slot), [this.slotPiece(slot, MESSAGE)]);
  }

  /** Polls for the next message, which has the lowest latency. */
  poll(): Message {
    return this.#message(succeeded(poll(this.inbound, this.#results)));
  }

  /** Waits for the next message without blocking the thread. */
  async receiveMessage(): Promise<Message> {
    return this.#message(succeeded(await next(this.inbound)));
  }

  /** Polls until `count` Sends, Reads or Writes have succeeded. */
  finish(count = 1): void {
    for (let i = 0; i < count; i += 1) succeeded(poll(this.outbound, this.#results));
  }

  /** Sends a small object. */
  sendObject(value: unknown): void {
    const { written } = new TextEncoder().encodeInto(JSON.stringify(value), this.sendBuffer);
    this.endpoint.send(newResult('object'), [this.sendPiece(written)]);
    this.finish();
  }

  /** Receives a small object and reposts its Receive. */
  async receiveObject(): Promise<unknown> {
    const { slot, bytes } = await this.receiveMessage();
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes.slice()));
    this.receiveInto(slot);
    return value;
  }

  #message(result: NdResult): Message {
    const slot = result.context as number;
    const start = slot * MESSAGE;
    return { slot, bytes: this.bytes.subarray(start, start + result.bytesTransferred) };
  }
}

/** Polls for the next result of a queue. */
function poll(queue: INDCompletionQueue, results: NdResult[]): NdResult {
  if (queue.getResults(results, 1) === 1) return results[0]!;
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    // Reading the clock costs more than polling the queue.
    for (let i = 0; i < 1000; i += 1) if (queue.getResults(results, 1) === 1) return results[0]!;
    if (performance.now() > deadline) throw lost();
  }
}

/** Waits for the next result of a queue, using notifications. */
export async function next(queue: INDCompletionQueue): Promise<NdResult> {
  const results: NdResult[] = [];
  while (queue.getResults(results, 1) === 0) {
    try {
      await queue.notify('any').abortOn(AbortSignal.timeout(PATIENCE_MS));
    } catch (error) {
      throw queue.getResults(results, 1) === 0 ? lost(error) : error;
    }
  }
  return results[0]!;
}

function lost(cause?: unknown): Error {
  return new Error(`No result within ${PATIENCE_MS / 1000} s: a request or its result was lost.`, {
    cause,
  });
}

function succeeded(result: NdResult): NdResult {
  if (result.status === Status.SUCCESS) return result;
  throw requestFailure(result.status);
}
