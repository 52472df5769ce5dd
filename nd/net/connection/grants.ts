import { type IND2MemoryWindow, type IND2QueuePair, Nd2OpFlag } from '../../index.js';
import { closed } from '../base/errors.js';
import type { LocalContext, Registered } from './local-context.js';
import { type Operation, Operations } from './operations.js';

/** Maximum Binds and Invalidates that one link has in flight. */
export const KEY_OPERATIONS = 16;

/** Unbound windows that a link keeps for its next grants. */
const SPARE_WINDOWS = 64;

/** Access rights of a grant. */
export const Right = { READ: Nd2OpFlag.ALLOW_READ, WRITE: Nd2OpFlag.ALLOW_WRITE } as const;
/** A value of {@link Right}. */
export type Right = (typeof Right)[keyof typeof Right];

/** A range of registered memory. */
export interface Range {
  /** The memory, from {@link LocalContext.registerFor}. */
  readonly memory: Registered;
  /** Offset from the start of the memory, in bytes. */
  readonly offset: number;
  /** Length in bytes. */
  readonly length: number;
}

/** Callbacks of a grant. */
export interface GrantNews {
  /** Called when the token may be sent to the peer: requests that are posted from now on are executed after the token became valid. */
  opened(token: number): void;
  /** Called when the access failed. */
  failed(error: unknown): void;
}

/**
 * Access of one connection's peer to a range of memory for one purpose, by a memory window that is bound to the connection's queue pair.
 * The token is invalid on other connections and after the end of the grant.
 */
export class Grant implements Operation {
  readonly what = 'bind';
  #window: IND2MemoryWindow | undefined;
  /** Whether the access was cut or closed. */
  #over = false;

  /** @internal */
  constructor(
    private readonly grants: Grants,
    private readonly range: Range,
    private readonly right: Right,
    private readonly news: GrantNews,
  ) {
    range.memory.grants?.add(this);
  }

  /** @internal */
  post(queuePair: IND2QueuePair): void {
    if (this.#over) throw closed(this.what);
    const { memory, offset, length } = this.range;
    const window = this.grants.take();
    try {
      queuePair.bind(this, memory.region, window, offset, length, this.right);
    } catch (error) {
      this.grants.drop(window);
      throw error;
    }
    this.#window = window;
    this.news.opened(window.getRemoteToken());
  }

  /** @internal */
  done(error: unknown): void {
    if (error === undefined) return;
    const unknown = this.#window === undefined;
    this.cut();
    if (unknown) this.news.failed(error);
  }

  /** Ends the access in order with other requests. `dead` is called when no access with the token can succeed any more. */
  close(dead: () => void): void {
    this.grants.close(new Closing(this, dead));
  }

  /** The window to invalidate. @internal */
  get window(): IND2MemoryWindow | undefined {
    return this.#window;
  }

  /** Called when the window was invalidated. @internal */
  closed(): void {
    const window = this.#end();
    if (window !== undefined) this.grants.spare(window);
  }

  /** Ends the access immediately. */
  cut(): void {
    const window = this.#end();
    if (window !== undefined) this.grants.drop(window);
  }

  #end(): IND2MemoryWindow | undefined {
    const window = this.#window;
    this.#over = true;
    this.#window = undefined;
    this.range.memory.grants?.delete(this);
    return window;
  }
}

/** The end of a grant: an Invalidate after its Bind. */
class Closing implements Operation {
  readonly what = 'invalidate';

  constructor(
    private readonly grant: Grant,
    private readonly dead: () => void,
  ) {}

  post(queuePair: IND2QueuePair): void {
    const { window } = this.grant;
    if (window === undefined) throw closed(this.what);
    queuePair.invalidate(this, window);
  }

  done(error: unknown): void {
    if (error === undefined) this.grant.closed();
    else this.grant.cut();
    this.dead();
  }
}

/** The grants of one link and its memory windows. */
export class Grants {
  /** Binds and Invalidates. They are kept apart from Reads and Writes, which take longer and would delay them. */
  readonly operations: Operations;
  readonly #windows = new Set<IND2MemoryWindow>();
  readonly #spare: IND2MemoryWindow[] = [];

  /** @param posted - called when a request was posted */
  constructor(
    private readonly context: LocalContext,
    queuePair: IND2QueuePair,
    posted: () => void,
  ) {
    this.operations = new Operations(queuePair, KEY_OPERATIONS, posted);
  }

  /** Registers memory for grants. @throws NdError */
  register(bytes: Uint8Array, flags: number): Promise<Registered> {
    return this.context.registerFor(bytes, flags);
  }

  /** Grants the peer access to a range of memory from {@link LocalContext.registerFor}. */
  open(range: Range, right: Right, news: GrantNews): Grant {
    const grant = new Grant(this, range, right, news);
    if (this.context.windows) this.operations.add(grant);
    else news.opened(range.memory.region.getRemoteToken());
    return grant;
  }

  /** @internal */
  close(closing: Operation): void {
    if (this.context.windows) this.operations.add(closing);
    // The region belongs to this grant and is released with it.
    else closing.done(undefined);
  }

  /** Returns a window to bind. @internal */
  take(): IND2MemoryWindow {
    const spare = this.#spare.pop();
    if (spare !== undefined) return spare;
    const window = this.context.adapter.createMemoryWindow();
    this.#windows.add(window);
    return window;
  }

  /** Keeps a window that is no longer bound. @internal */
  spare(window: IND2MemoryWindow): void {
    if (this.#spare.length < SPARE_WINDOWS && this.#windows.has(window)) this.#spare.push(window);
    else this.drop(window);
  }

  /** Releases a window that may be bound, which ends the access. @internal */
  drop(window: IND2MemoryWindow): void {
    if (this.#windows.delete(window)) window.release();
  }

  /** Called when the connection has ended and has no requests in flight. */
  end(): void {
    for (const window of this.#windows) window.release();
    this.#windows.clear();
    this.#spare.length = 0;
  }
}
