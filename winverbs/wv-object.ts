import { type GetResultOptions, Overlapped } from '../kernel-bridge/door/overlapped.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import type { WvInterfaces, WvOverlappedObject, WvUnknown } from './interfaces.js';
import type { KernelFile } from './kernel-file.js';
import { Status, WvError } from './status.js';

/**
 * Base of all WinVerbs objects: reference counts as in COM. The references of the application and those of other
 * objects are counted separately. Children keep their parents alive. Calling an object that the application has
 * released is an error, but releasing it again has no effect.
 * @hideconstructor
 */
export abstract class WvObject implements WvUnknown {
  private users = 1;
  private internalRefs = 0;
  /** Live objects created from this one, with the number of their references. */
  private children: Map<WvObject, number> | undefined = undefined;

  /**
   * @param kind - for error messages, such as 'completion queue'
   * @param interfaces - The names of its interfaces other than IUnknown.
   */
  constructor(
    private readonly kind: string,
    private readonly interfaces: readonly (keyof WvInterfaces)[],
  ) {}

  /** Adds a reference of the application; returns the new count. @category Lifetime */
  addRef(): number {
    this.check();
    return ++this.users;
  }

  /**
   * Releases a reference; returns the remaining count. After the last release the object is destroyed as soon as no
   * other object needs it. Never fails; the order does not matter.
   * @category Lifetime
   */
  release(): number {
    if (this.users === 0) return 0;
    this.users--;
    if (this.users === 0) {
      this.unused();
      this.end();
    }
    return this.users;
  }

  /** See {@link WvUnknown.queryInterface}. @category Lifetime */
  queryInterface<N extends keyof WvInterfaces>(name: N): WvInterfaces[N] {
    this.check();
    if (!this.implements(name)) {
      throw new WvError(
        Status.NOT_SUPPORTED,
        `\`name\` must be an interface of this ${this.kind} (${['IUnknown', ...this.interfaces].join(', ')}); got ${shown(name)}.`,
      );
    }
    this.addRef();
    return this;
  }

  private implements<N extends keyof WvInterfaces>(name: N): this is WvInterfaces[N] {
    return name === 'IUnknown' || this.interfaces.includes(name);
  }

  /** The same as {@link release}. @category Lifetime */
  [Symbol.dispose](): void {
    this.release();
  }

  /** @internal Adds a reference of another object. */
  addInternalRef(): void {
    this.internalRefs++;
  }

  /** @internal Adds a reference of a child; {@link Symbol.asyncDispose} of this object also releases the child. */
  addChild(child: WvObject): void {
    this.children ??= new Map();
    this.children.set(child, (this.children.get(child) ?? 0) + 1);
    this.internalRefs++;
  }

  /** @internal Reverts {@link addChild}. */
  removeChild(child: WvObject): void {
    const count = this.children?.get(child) ?? 0;
    if (count > 1) this.children?.set(child, count - 1);
    else this.children?.delete(child);
    this.releaseInternalRef();
  }

  /**
   * Releases all objects created from this one, the newest first and regardless of reference counts, and then this
   * object; for `await using`. Never fails.
   * @category Lifetime
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const children = [...(this.children?.keys() ?? [])].reverse();
    for (const child of children) await child[Symbol.asyncDispose]();
    while (this.users > 0) this.release();
  }

  /** @internal */
  releaseInternalRef(): void {
    this.internalRefs--;
    this.end();
  }

  /** @internal Whether the application has released it. */
  get released(): boolean {
    return this.users === 0;
  }

  /** @internal */
  check(): void {
    if (this.users === 0) this.refuse();
  }

  /** Called when the application has released the object; other objects may still need it. */
  protected unused(): void {}

  /** Called when the last reference is gone: destroys the object and releases its parents. Must not throw. */
  protected abstract destroy(): void;

  private end(): void {
    if (this.users === 0 && this.internalRefs === 0) {
      // Destroying the object may cause calls that return to this method.
      this.internalRefs = Number.NEGATIVE_INFINITY;
      this.destroy();
    }
  }

  private refuse(): never {
    throw new WvError(
      Status.INVALID_HANDLE,
      `This ${this.kind} was released. Use it before its last release(), or keep a reference with addRef().`,
    );
  }
}

/**
 * Base of objects with overlapped requests (IWVOverlapped).
 * @hideconstructor
 */
export abstract class WvOverlapped extends WvObject implements WvOverlappedObject {
  /** Whether there may be requests to cancel when the object is destroyed. */
  private mayWait = false;

  constructor(
    kind: string,
    /** @internal */
    readonly file: KernelFile,
    private readonly cancelCode: number,
    /** @internal The kernel's ID of the object within its file. */
    readonly id: bigint,
    interfaces: readonly (keyof WvInterfaces)[],
  ) {
    super(kind, ['IWVOverlapped', ...interfaces]);
  }

  /** Completes every waiting request of this object with CANCELED before it returns. @category Complete */
  cancelOverlappedRequests(): void {
    this.check();
    this.file.callId(this.cancelCode, this.id);
  }

  /** See {@link WvOverlappedObject.getOverlappedResult}. @category Complete */
  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T {
    this.check();
    if (request instanceof Overlapped) return request.getResult(options);
    throw new WvError(Status.INVALID_PARAMETER, `\`request\` must be an Overlapped; got ${shown(request)}.`);
  }

  /** Sends an overlapped IOCTL on this object. */
  protected overlapped<T>(
    code: number,
    input: Uint8Array,
    outputLength: number,
    decode: (output: Uint8Array) => T,
    onFailure?: (error: WvError) => unknown,
    outputAt?: number,
  ): Overlapped<T> {
    this.mayWait = true;
    return this.file.overlapped(code, input, outputLength, decode, onFailure, outputAt);
  }

  protected override unused(): void {
    if (!this.mayWait) return;
    try {
      this.file.callId(this.cancelCode, this.id);
    } catch {
      // The file is closing or the device is gone, so its requests have ended.
    }
  }
}
