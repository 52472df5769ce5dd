import { setTimeout as sleep } from 'node:timers/promises';
import { type IND2QueuePair, Nd2Direct, Nd2DirectResult, type Nd2RemoteMemory } from '../../index.js';
import { NetError, netError, reset } from '../base/errors.js';
import type { Link } from '../connection/link.js';

// V8 treats a module's own names as constants, but not members of imported objects.
const { READ } = Nd2Direct;
const { DONE, NOT_MAPPED, UNKNOWN } = Nd2DirectResult;

/**
 * Limits of the wait for the peer to offer its memory, which takes some milliseconds: the time limit and the interval between checks while
 * the thread is blocked, and the time limit otherwise. All are in ms.
 */
const MAPPING_MS = 100;
const POLL_MS = 0.25;
const UNBLOCKED_MS = 2000;

const nothing = new Uint8Array(0);
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/**
 * Memory of a peer on this host that this process accesses directly: nothing is sent, no request completes, and the peer's program is not
 * involved.
 */
export class DirectMemory {
  private readonly queuePair: IND2QueuePair;

  constructor(
    private readonly link: Pick<Link, 'queuePair' | 'offersNothing' | 'over'>,
    private readonly remote: Nd2RemoteMemory,
  ) {
    this.queuePair = link.queuePair;
  }

  /** Whether direct access to the peer is possible at all. */
  get reachable(): boolean {
    return this.queuePair.direct?.(READ, nothing, this.remote) === DONE;
  }

  /** Executes an operation. Returns false if it was not executed, or only for part of the bytes. @throws NetError `ETIMEDOUT` */
  attempt(operation: Nd2Direct, bytes: Uint8Array, offset: number): boolean {
    const { queuePair } = this;
    if (queuePair.direct === undefined) return false;
    const result = queuePair.direct(operation, bytes, this.remote, offset);
    if (result === UNKNOWN) throw unknown();
    return result === DONE;
  }

  /**
   * Executes an operation. The first one waits until the memory is mapped.
   *
   * @param what - the method that was called, for error messages
   * @param instead - the method that works without direct access
   * @throws NetError `ENOTSUP`, `ETIMEDOUT`
   */
  execute(operation: Nd2Direct, bytes: Uint8Array, offset: number, what: string, instead: string): void {
    const { queuePair } = this;
    if (queuePair.direct === undefined)
      throw unsupported(what, 'its adapter does not support direct access', instead);
    let result = queuePair.direct(operation, bytes, this.remote, offset);
    if (result === NOT_MAPPED && !this.link.offersNothing) {
      const until = performance.now() + MAPPING_MS;
      while (result === NOT_MAPPED && performance.now() < until) {
        Atomics.wait(sleeper, 0, 0, POLL_MS);
        result = queuePair.direct(operation, bytes, this.remote, offset);
      }
      this.link.offersNothing = result === NOT_MAPPED;
    }
    if (result === DONE) return;
    if (result === UNKNOWN) throw unknown();
    throw unsupported(what, this.#reason(result), instead);
  }

  /** Maps the first `length` bytes of the memory. `allowed` is whether its handle permits views. @throws NetError */
  async map(length: number, allowed: boolean): Promise<Uint8Array<ArrayBuffer>> {
    const { queuePair, link } = this;
    const refuse = (reason: string): NetError => unsupported('map', reason, 'read', 'mapped');
    if (!allowed) throw refuse('the peer did not expose it with views: true');
    if (queuePair.view === undefined) throw refuse('its adapter does not support direct access');
    const until = performance.now() + UNBLOCKED_MS;
    for (;;) {
      if (link.over) throw reset();
      let result: ReturnType<typeof queuePair.view>;
      try {
        result = queuePair.view(this.remote, length);
      } catch (error) {
        throw netError(error, 'map');
      }
      if (typeof result !== 'number') return result;
      if (result !== NOT_MAPPED || performance.now() > until) throw refuse(this.#reason(result));
      await sleep(1);
    }
  }

  /** Resolves when the peer's memory is mapped and the operation was executed, or when waiting for the mapping has timed out. */
  async mapped(operation: Nd2Direct, bytes: Uint8Array): Promise<void> {
    const { queuePair, link } = this;
    const until = performance.now() + UNBLOCKED_MS;
    while (!link.over && queuePair.direct?.(operation, bytes, this.remote, 0) === NOT_MAPPED) {
      if (performance.now() > until) return;
      await sleep(1);
    }
  }

  #reason(result: Nd2DirectResult): string {
    if (result === NOT_MAPPED) return 'the peer did not offer its memory';
    return this.reachable
      ? 'the peer has released it, or does not publish it'
      : 'the peer is on another host, belongs to another user, or one side has the option direct: false';
  }
}

function unsupported(what: string, reason: string, instead: string, how = 'reached directly'): NetError {
  return new NetError('ENOTSUP', `${what}: the memory cannot be ${how}: ${reason}. Use ${instead}().`);
}

function unknown(): NetError {
  return new NetError(
    'ETIMEDOUT',
    'The peer revoked its memory during an atomic operation, which may have been executed.',
  );
}
