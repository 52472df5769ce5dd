/** Overlapped requests of a provider: each has an OVERLAPPED and completes with a packet of the thread's completion port. */
import { Overlapped, type OverlappedSource } from '../../door/overlapped.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { RequestBlock } from '../request-memory.js';
import type { Address, Handle } from '../win32.js';
import { type WindowsDoor, windowsDoor } from '../windows-door.js';
import { ComObject } from './com-object.js';
import type { OverlappedName, SlotOf } from './slots.js';

/** An OVERLAPPED starts with an IO_STATUS_BLOCK and the offset; its event is at 24. The request's input follows it. */
const eventAt = 24;
const inputAt = 32;

/** Options of a request. */
export interface RequestOptions {
  /** Memory that the provider reads while the request is pending. */
  readonly input?: Uint8Array;
  /** Whether to reissue it when it was cancelled with another request: a provider cancels all requests of an object together. */
  readonly repeats?: boolean;
  /** Returns whether the request can be cancelled now. Otherwise cancelling has no effect. */
  readonly mayCancel?: () => boolean;
}

/** A method whose last argument is an OVERLAPPED. */
interface Call extends RequestOptions {
  readonly method: string;
  /** Issues the request with the OVERLAPPED at this address, which the input follows. */
  run(overlapped: Address): number;
}

/** Requests of one thread that have completed but are not delivered yet, in the order of their packets. */
class Arrivals {
  #arrived: ProviderRequest[] = [];
  #collecting = false;

  /** Set when any request completes. It outlives all objects, whose requests are cancelled when the thread ends. */
  readonly event: Handle;

  constructor(readonly door: WindowsDoor) {
    const { native } = door;
    this.event = native.own(native.createEvent());
    if (this.event === 0)
      throw new StatusError(Status.INSUFFICIENT_RESOURCES, 'Windows cannot create another event.');
  }

  add(request: ProviderRequest): void {
    this.#arrived.push(request);
    if (!this.#collecting) this.deliver();
  }

  /** Takes the packets that have arrived. Their requests are delivered later, so that the caller is not reentered. */
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

/** Creates the state of requests. Call it before the thread's first object, so that the state is destroyed after it. */
export function prepareRequests(): void {
  arrivalsOfThread();
}

function arrivalsOfThread(): Arrivals {
  arrivals ??= new Arrivals(windowsDoor());
  return arrivals;
}

/** A pending request. The provider owns its memory block until the last packet has arrived. */
class ProviderRequest implements OverlappedSource<void> {
  overlapped: Overlapped<void> | undefined;
  #status: number = Status.PENDING;
  /** True: it was to be cancelled. False: it was cancelled with another request of the object. */
  #canceled: boolean | undefined;

  constructor(
    private readonly arrivals: Arrivals,
    private readonly object: OverlappedObject,
    private readonly call: Call,
    private readonly block: RequestBlock,
  ) {}

  /** Expects a packet. */
  expect(): void {
    const { port } = this.arrivals.door;
    port.expectAt(this.block.ioStatus, () => this.#packet());
  }

  /** Reverts {@link expect}: the request completed or failed immediately, without a packet. */
  forget(): void {
    const { port, memory } = this.arrivals.door;
    port.forgetAt(this.block.ioStatus);
    memory.release(this.block);
  }

  /** Handles a packet. Only GetOverlappedResult has the status, because another phase of the request may have begun. */
  #packet(): void {
    let status = this.object.call('GetOverlappedResult', this.block.ioStatus, 0);
    if (status === Status.CANCELED && this.#canceled === false && this.call.repeats === true)
      status = this.#reissue();
    if (status === Status.PENDING) {
      this.expect();
      return;
    }
    this.#status = status;
    this.arrivals.door.memory.release(this.block);
    this.object.ended(this);
    this.arrivals.add(this);
  }

  /** Reissues the request, which was cancelled with another one. */
  #reissue(): number {
    this.#canceled = undefined;
    this.block.status = Status.PENDING;
    // It may complete before the call returns; its packet is handled afterwards.
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
      door.waitForSlice(event);
    }
  }

  cancel(): void {
    if (this.#status !== Status.PENDING || this.call.mayCancel?.() === false) return;
    this.canceling(true);
    try {
      this.object.cancelRequests();
    } catch {
      // The request completes by itself.
    }
  }

  /** Called before all requests of the object are cancelled. `own` is whether this one is to be cancelled, not reissued. */
  canceling(own: boolean): void {
    this.#canceled ||= own;
  }
}

/** An object with counted references. */
export interface Holder {
  addInternalRef(): void;
  releaseInternalRef(): void;
}

/** An object of a provider with overlapped requests. */
export class OverlappedObject<I extends OverlappedName = OverlappedName> extends ComObject<I> {
  readonly #outstanding = new Set<ProviderRequest>();
  /** Whether the object is released as soon as its requests have completed. */
  #closing = false;

  /** @param holder - the adapter, whose overlapped file must not be closed before the requests have completed */
  constructor(
    name: I,
    address: Address,
    library: string,
    private readonly holder: Holder,
  ) {
    super(name, address, library);
  }

  /**
   * Issues a request.
   *
   * @param values - returns the arguments before the OVERLAPPED; `input` is the address of the option's bytes
   * @throws StatusError if it fails immediately
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
    const block = door.memory.allocate(bytes, 0, 0);
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

  /** The same as {@link start}, but blocks until the request completes. @throws StatusError with its status */
  finish(method: SlotOf<I>, values: (input: Address) => readonly unknown[] = () => []): void {
    this.start(method, values).getResult({ wait: true });
  }

  /** Called when a request has completed. @internal */
  ended(request: ProviderRequest): void {
    this.#outstanding.delete(request);
    if (!this.#closing || this.#outstanding.size > 0) return;
    super.release();
    this.holder.releaseInternalRef();
  }

  /** Calls CancelOverlappedRequests. Requests that were not to be cancelled are reissued. @throws StatusError UNSUCCESSFUL */
  cancelRequests(): void {
    for (const request of this.#outstanding) request.canceling(false);
    const result = this.call('CancelOverlappedRequests' as SlotOf<I>);
    arrivalsOfThread().collect();
    if (result !== Status.SUCCESS) throw this.failure('CancelOverlappedRequests', result);
  }

  /** Cancels all requests of the object. @throws StatusError UNSUCCESSFUL */
  cancelAll(): void {
    if (this.#outstanding.size === 0) return;
    for (const request of this.#outstanding) request.canceling(true);
    this.cancelRequests();
  }

  /** Cancels the requests, and releases the object when they have completed, because it returns their results. */
  override release(): void {
    if (this.#closing) return;
    try {
      this.cancelAll();
    } catch {
      // The requests complete by themselves.
    }
    if (this.#outstanding.size === 0) {
      super.release();
      return;
    }
    this.#closing = true;
    this.holder.addInternalRef();
  }
}
