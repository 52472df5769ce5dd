import type { Overlapped } from '../kernel-bridge/overlapped.js';
import type { WvOverlappedObject, WvUnknown } from './interfaces.js';
import type { KernelFile } from './kernel-file.js';
import { Status, WvError } from './status.js';

/**
 * Base of all WinVerbs objects: reference counts as in COM. The application's references and those that other objects
 * hold are counted apart: children keep their parents alive, yet a call on an object that the application has released
 * is an error and says so, and releasing too often takes nothing from anybody.
 */
export abstract class WvObject implements WvUnknown {
  private users = 1;
  private holders = 0;

  /** @param kind - for error sentences: 'completion queue' */
  constructor(private readonly kind: string) {}

  /** One more reference of the application; answers how many there are. */
  addRef(): number {
    this.check();
    return ++this.users;
  }

  /**
   * One reference less; answers how many are left. The last one ends the object, as soon as no other object needs it.
   * Never fails, in whatever order objects are released.
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

  /** The same as {@link release}. */
  [Symbol.dispose](): void {
    this.release();
  }

  /** @internal A reference of another object. */
  hold(): void {
    this.holders++;
  }

  /** @internal */
  letGo(): void {
    this.holders--;
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

  /** The application has released it; others may still need it. */
  protected unused(): void {}

  /** Nobody needs it: destroys it and lets its parents go. Must not throw. */
  protected abstract destroy(): void;

  private end(): void {
    if (this.users === 0 && this.holders === 0) {
      // Destroying may bring about calls that come back here.
      this.holders = Number.NEGATIVE_INFINITY;
      this.destroy();
    }
  }

  private refuse(): never {
    throw new WvError(
      Status.INVALID_HANDLE,
      `This ${this.kind} was released; use it before its last release(), or keep a reference by addRef().`,
    );
  }
}

/** Base of the objects that have overlapped requests (IWVOverlapped). */
export abstract class WvOverlapped extends WvObject implements WvOverlappedObject {
  /** Whether there can be requests to cancel at the end. */
  private mayWait = false;

  constructor(
    kind: string,
    /** @internal */
    readonly file: KernelFile,
    private readonly cancelCode: number,
    /** @internal The kernel's id within its file. */
    readonly id: bigint,
  ) {
    super(kind);
  }

  /** Completes every request of this object that still waits with CANCELLED before it returns. */
  cancelOverlappedRequests(): void {
    this.check();
    this.file.callId(this.cancelCode, this.id);
  }

  /** An overlapped IOCTL on this object. */
  protected overlapped<T>(
    code: number,
    input: Uint8Array,
    outputLength: number,
    decode: (output: Uint8Array) => T,
    onFailure?: () => void,
  ): Overlapped<T> {
    this.mayWait = true;
    return this.file.overlapped(code, input, outputLength, decode, onFailure);
  }

  protected override unused(): void {
    if (!this.mayWait) return;
    try {
      this.file.callId(this.cancelCode, this.id);
    } catch {
      // The file is closing or the device is gone: its requests have ended then.
    }
  }
}
