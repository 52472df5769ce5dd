/** Requests of a provider that can wait: an OVERLAPPED each, and a packet of the thread's completion port. */
import { Overlapped, type OverlappedSource } from '../../door/overlapped.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { RequestBlock } from '../request-memory.js';
import type { Address, Handle } from '../win32.js';
import { type WindowsDoor, windowsDoor } from '../windows-door.js';
import { ComObject } from './com-object.js';
import type { OverlappedName, SlotOf } from './slots.js';

/** OVERLAPPED: what an IO_STATUS_BLOCK has, the offset, and at 24 the event. What a call reads meanwhile is behind it. */
const eventAt = 24;
const inputAt = 32;

/** How a request is issued. */
export interface RequestOptions {
  /** What the provider reads while the request waits. */
  readonly input?: Uint8Array;
  /** It is issued again where it ended because another request of its object was cancelled: a provider cancels all of an object together. */
  readonly repeats?: boolean;
  /** False: cancelling it does nothing now. */
  readonly mayCancel?: () => boolean;
}

/** A method whose last argument is an OVERLAPPED. */
interface Call extends RequestOptions {
  readonly method: string;
  /** Issues it; the OVERLAPPED is at `overlapped`, what it reads behind that. */
  run(overlapped: Address): number;
}

/** The requests of one thread that have ended and were not delivered yet, in the order of their packets. */
class Arrivals {
  #arrived: ProviderRequest[] = [];
  #collecting = false;

  /** Set when any of them has ended. It outlives all objects, which end their requests when the thread ends. */
  readonly event: Handle;

  constructor(readonly door: WindowsDoor) {
    const { native } = door;
    this.event = native.own(native.createEvent());
    if (this.event === 0)
      throw new StatusError(Status.INSUFFICIENT_RESOURCES, 'The system has no event left for requests.');
  }

  add(request: ProviderRequest): void {
    this.#arrived.push(request);
    if (!this.#collecting) this.deliver();
  }

  /** Takes the packets that have come. What they end is delivered later, so that whoever asks is not called from within. */
  collect(): void {
    if (this.#collecting) return;
    this.#collecting = true;
    try {
      this.door.port.drain();
    } finally {
      this.#collecting = false;
    }
    if (this.#arrived.length > 0) void Promise.resolve().then(() => this.deliver());
  }

  deliver(): void {
    while (this.#arrived.length > 0) this.#arrived.shift()!.overlapped?.settle();
  }
}

let arrivals: Arrivals | undefined;

/** Before the first object of the thread, so that what requests use ends after it. */
export function prepareRequests(): void {
  arrivalsOfThread();
}

function arrivalsOfThread(): Arrivals {
  arrivals ??= new Arrivals(windowsDoor());
  return arrivals;
}

/** A request that waits. Its block is the provider's until its last packet has come. */
class ProviderRequest implements OverlappedSource<void> {
  overlapped: Overlapped<void> | undefined;
  #status: number = Status.PENDING;
  #canceled = false;

  constructor(
    private readonly arrivals: Arrivals,
    private readonly object: OverlappedObject,
    private readonly call: Call,
    private readonly block: RequestBlock,
  ) {}

  /** Waits for a packet. */
  expect(): void {
    const { port } = this.arrivals.door;
    port.expectAt(this.block.ioStatus, () => this.#packet());
  }

  /** The provider has taken no request: no packet comes. */
  forget(): void {
    const { port, memory } = this.arrivals.door;
    port.forgetAt(this.block.ioStatus);
    memory.give(this.block);
  }

  /** Of a packet the status says nothing: another phase may have begun, or a failure may look like another. */
  #packet(): void {
    let status = this.object.call('GetOverlappedResult', this.block.ioStatus, 0);
    if (status === Status.CANCELED && !this.#canceled && this.call.repeats === true && !this.object.closing)
      status = this.#again();
    if (status === Status.PENDING) {
      this.expect();
      return;
    }
    this.#status = status;
    this.arrivals.door.memory.give(this.block);
    this.object.ended(this);
    this.arrivals.add(this);
  }

  /** Another request was to be cancelled. */
  #again(): number {
    this.block.status = Status.PENDING;
    // It may end before the call returns, and its packet is looked at afterwards all the same.
    return this.call.run(this.block.ioStatus);
  }

  completed(): boolean {
    if (this.#status === Status.PENDING && this.block.status !== Status.PENDING) this.arrivals.collect();
    return this.#status !== Status.PENDING;
  }

  take(): void {
    if (this.#status !== Status.SUCCESS) throw this.object.failure(this.call.method, this.#status);
  }

  deliver(): void {
    this.arrivals.deliver();
  }

  wait(): void {
    const { arrivals } = this;
    const { door, event } = arrivals;
    for (;;) {
      door.native.clearEvent(event);
      arrivals.collect();
      if (this.#status !== Status.PENDING) return;
      door.waitAWhile(event);
    }
  }

  cancel(): void {
    if (this.#status !== Status.PENDING || this.call.mayCancel?.() === false) return;
    this.#canceled = true;
    try {
      this.object.cancelRequests();
    } catch {
      // It ends by itself.
    }
  }

  /** With all others of its object. */
  meant(): void {
    this.#canceled = true;
  }
}

/** An object of a provider whose requests can wait. */
export class OverlappedObject<I extends OverlappedName = OverlappedName> extends ComObject<I> {
  readonly #outstanding = new Set<ProviderRequest>();
  /** It is released once its requests have ended. */
  closing = false;

  /**
   * Issues a request.
   *
   * @param values - the arguments before the OVERLAPPED; `input` is where the option of this name is
   * @throws StatusError: it was refused
   */
  start(
    method: SlotOf<I>,
    values: (input: Address) => readonly unknown[],
    options: RequestOptions = {},
  ): Overlapped<void> {
    const { input } = options;
    const arrivals = arrivalsOfThread();
    const { door } = arrivals;
    const bytes = new Uint8Array(inputAt - 16 + (input?.length ?? 0));
    if (input !== undefined) bytes.set(input, inputAt - 16);
    const block = door.memory.take(bytes, 0, 0);
    // A HANDLE has 32 significant bits.
    new DataView(block.memory.bytes.buffer, block.memory.bytes.byteOffset).setUint32(
      eventAt,
      arrivals.event,
      true,
    );
    const run = (overlapped: Address): number =>
      this.call(method, ...values(overlapped + inputAt), overlapped);
    const request = new ProviderRequest(arrivals, this, { ...options, method, run }, block);
    request.expect();
    const status = run(block.ioStatus);
    if (status === Status.PENDING) {
      this.#outstanding.add(request);
      request.overlapped = new Overlapped<void>(request);
      return request.overlapped;
    }
    request.forget();
    if (status === Status.SUCCESS) return Overlapped.succeeded(undefined);
    throw this.failure(method, status);
  }

  /** As {@link start}, and blocks until it has ended. @throws StatusError with its status */
  finish(method: SlotOf<I>, values: (input: Address) => readonly unknown[] = () => []): void {
    this.start(method, values).getResult({ wait: true });
  }

  /** A request has ended. @internal */
  ended(request: ProviderRequest): void {
    this.#outstanding.delete(request);
    if (this.closing && this.#outstanding.size === 0) super.release();
  }

  /** Cancels what was asked to be. @throws StatusError UNSUCCESSFUL */
  cancelRequests(): void {
    const result = this.call('CancelOverlappedRequests' as SlotOf<I>);
    arrivalsOfThread().collect();
    if (result !== Status.SUCCESS) throw this.failure('CancelOverlappedRequests', result);
  }

  /** Cancels all requests of the object. @throws StatusError UNSUCCESSFUL */
  cancelAll(): void {
    if (this.#outstanding.size === 0) return;
    for (const request of this.#outstanding) request.meant();
    this.cancelRequests();
  }

  /** Cancels its requests, and releases it once they have ended: until then their results are asked of it. */
  override release(): void {
    if (this.closing) return;
    this.closing = true;
    try {
      this.cancelAll();
    } catch {
      // Its requests end by themselves.
    }
    if (this.#outstanding.size === 0) super.release();
  }
}
