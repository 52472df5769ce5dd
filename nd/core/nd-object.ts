import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { type GetResultOptions, Overlapped, Status } from '../../winverbs/index.js';
import type { NdInterfaces, NdOverlappedObject, NdUnknown } from '../spi/common-types.js';
import { refuse } from '../status.js';
import type { OverlappedFile } from './overlapped-file.js';

/**
 * Reference counting of ND objects. The references of the client and those of other objects are counted separately:
 * children keep their parents alive even if the client releases them too often, and a released object cannot be used.
 */
export abstract class NdObject implements NdUnknown {
  #clients = 1;
  #internalRefs = 0;

  /** The names of its interfaces other than IUnknown. */
  protected abstract get interfaces(): readonly (keyof NdInterfaces)[];

  queryInterface<N extends keyof NdInterfaces>(name: N): NdInterfaces[N] {
    const what = 'QueryInterface';
    this.alive(what);
    if (!this.#has(name)) {
      const text = `\`name\` must be an interface of this ${this.constructor.name} (${['IUnknown', ...this.interfaces].join(', ')}); got ${shown(name)}.`;
      throw refuse(Status.NOT_SUPPORTED, what, text);
    }
    this.addRef();
    return this;
  }

  #has<N extends keyof NdInterfaces>(name: N): this is NdInterfaces[N] {
    return name === 'IUnknown' || this.interfaces.includes(name);
  }

  addRef(): number {
    this.alive('AddRef');
    this.#clients += 1;
    return this.#clients;
  }

  release(): number {
    if (this.#clients === 0) return 0;
    this.#clients -= 1;
    if (this.#clients === 0) {
      this.released();
      if (this.#internalRefs === 0) this.end();
    }
    return this.#clients;
  }

  [Symbol.dispose](): void {
    this.release();
  }

  /** Whether the client has released it. */
  get ended(): boolean {
    return this.#clients === 0;
  }

  /** Adds a reference of another object. */
  addInternalRef(): void {
    this.#internalRefs += 1;
  }

  /** Reverts {@link addInternalRef}. */
  releaseInternalRef(): void {
    this.#internalRefs -= 1;
    if (this.#internalRefs === 0 && this.#clients === 0) this.end();
  }

  /** Throws INVALID_HANDLE if the client has released it. */
  protected alive(what: string): void {
    if (this.#clients === 0) {
      throw refuse(
        Status.INVALID_HANDLE,
        what,
        `This ${this.constructor.name} was released; create another.`,
      );
    }
  }

  /** Called when the client has released the object; other objects may still need it. Must not throw. */
  protected released(): void {}

  /** Called when the last reference is gone: releases what the object holds. Must not throw. */
  protected abstract end(): void;
}

/** An object with overlapped requests. */
export abstract class NdOverlappedBase extends NdObject implements NdOverlappedObject {
  abstract cancelOverlappedRequests(): void;

  abstract readonly adapter: { readonly file: OverlappedFile | undefined };
  /** v2: the file that the object was created with. v1 has one for each adapter. */
  ownFile: OverlappedFile | undefined = undefined;

  /** Registers a request of this object with its file, before the client gets it. */
  protected issued<T>(request: Overlapped<T>): Overlapped<T> {
    (this.ownFile ?? this.adapter.file)?.add(request, this);
    return request;
  }

  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T {
    return resultOf(request, options);
  }
}

/** The result of a request of {@link NdOverlappedObject.getOverlappedResult}. */
export function resultOf<T>(request: Overlapped<T>, options?: GetResultOptions): T {
  if (request instanceof Overlapped) return request.getResult(options);
  const text = `\`request\` must be an Overlapped; got ${shown(request)}.`;
  throw refuse(Status.INVALID_PARAMETER, 'GetOverlappedResult', text);
}
