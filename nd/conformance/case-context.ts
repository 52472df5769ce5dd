import { type IND2Adapter, type INDAdapter, NdOpFlag, Status, statusName } from '../index.js';
import type {
  Half,
  HalfAddress,
  HalfInfo,
  LinkOptions,
  Outcome,
  Party,
  Post,
  Posted,
  Spi,
  Target,
} from './half.js';
import { HalfV1 } from './half-v1.js';
import { HalfV2 } from './half-v2.js';

/** A difference between the provider's behaviour and the SPI. */
export class Violation extends Error {
  constructor(
    readonly what: string,
    readonly expected: string,
    readonly got: string,
  ) {
    super(`${what}: expected ${expected}, got ${got}`);
    this.name = 'Violation';
  }
}

/** A case that does not apply to this provider, with the reason. */
export class NotApplicable extends Error {}

/** Statuses that differ between the two versions of the SPI. */
export interface VersionStatuses {
  /** Status of a Read or Write that the peer's memory does not allow. */
  readonly remoteAccess: readonly number[];
  /** Status of a Send whose Receive was too short. */
  readonly remoteInvalid: readonly number[];
  /** Status of a Receive that was too short. */
  readonly tooLong: readonly number[];
  /** Status of a Send without a Receive. */
  readonly timeout: readonly number[];
  /** Status of NotifyDisconnect when this side disconnects. */
  readonly ownDisconnect: readonly number[];
  readonly addressInUse: readonly number[];
}

const statusesOf: Readonly<Record<Spi, VersionStatuses>> = {
  v1: {
    remoteAccess: [Status.REMOTE_ERROR],
    remoteInvalid: [Status.REMOTE_ERROR],
    tooLong: [Status.DATA_OVERRUN, Status.BUFFER_OVERFLOW],
    timeout: [Status.TIMEOUT],
    ownDisconnect: [Status.CANCELED],
    addressInUse: [Status.ADDRESS_ALREADY_EXISTS],
  },
  v2: {
    remoteAccess: [Status.ACCESS_VIOLATION],
    remoteInvalid: [Status.DATA_ERROR],
    tooLong: [Status.DATA_OVERRUN, Status.BUFFER_OVERFLOW],
    timeout: [Status.IO_TIMEOUT],
    ownDisconnect: [Status.CONNECTION_DISCONNECTED],
    addressInUse: [Status.SHARING_VIOLATION, Status.ADDRESS_ALREADY_EXISTS],
  },
};

export const { SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE } = NdOpFlag;
export const SUCCESS = Status.SUCCESS;
export const CANCELED = Status.CANCELED;

/** Options for establishing a connection. */
export interface PairOptions {
  readonly near?: LinkOptions;
  readonly far?: LinkOptions;
  /** The connecting side; the other one listens. Default: near. */
  readonly active?: 'near' | 'far';
  readonly request?: readonly number[];
  readonly reply?: readonly number[];
  readonly localPort?: number;
}

/** One side of a connection. */
export class End {
  constructor(
    readonly party: Party,
    readonly link: number,
    readonly inbound: number,
    readonly outbound: number,
    readonly memory: number,
    readonly maxInline: number,
    /** Number of scatter/gather entries that its queue pair has granted. */
    readonly receiveSge: number,
    readonly requestSge: number,
  ) {}

  static async make(party: Party, options: LinkOptions = {}): Promise<End> {
    const link = await party.link(options);
    const { inbound, outbound, memory, maxInline, receiveSge, requestSge } = await party.parts(link);
    return new End(party, link, inbound, outbound, memory, maxInline, receiveSge, requestSge);
  }

  /** Posts requests that must be accepted. */
  async post(...posts: Post[]): Promise<Posted[]> {
    const posted = await this.party.post(this.link, posts);
    for (const [i, { status }] of posted.entries()) {
      if (status !== SUCCESS) throw new Violation(`Post of ${posts[i]!.op}`, 'SUCCESS', nameOf(status));
    }
    return posted;
  }

  /** Returns the status of a posting call. */
  async postStatus(post: Post): Promise<number> {
    return (await this.party.post(this.link, [post]))[0]!.status;
  }

  /** Opens the first bytes of its memory to the peer, and takes the result of the Bind. */
  async open(flags: number, length = 4096, offset = 0): Promise<{ target: Target; window: number }> {
    const window = await this.party.window();
    const [bound] = await this.post({ op: 'bind', context: 'bind', window, offset, length, flags });
    const [result] = await this.party.take(this.outbound, 1);
    if (result?.status !== SUCCESS) throw new Violation('Bind', 'SUCCESS', describe(result));
    return { target: bound!.target!, window };
  }

  received(count: number): Promise<Outcome[]> {
    return this.party.take(this.inbound, count);
  }

  done(count: number): Promise<Outcome[]> {
    return this.party.take(this.outbound, count);
  }
}

/** Returns Receives of `length` bytes each, in consecutive memory from `at`, with contexts from `first`. */
export function receives(count: number, length = 64, first = 0, at = 0): Post[] {
  return Array.from({ length: count }, (_, i) => ({
    op: 'receive' as const,
    context: first + i,
    pieces: [{ at: at + i * length, length }],
  }));
}

/** Returns Sends of `length` bytes each from the same memory, with contexts from `first`. */
export function sends(count: number, length = 64, first = 0, flags = 0): Post[] {
  return Array.from({ length: count }, (_, i) => ({
    op: 'send' as const,
    context: first + i,
    pieces: [{ at: 32_768, length }],
    flags,
  }));
}

/** The half in this process (near), for cases that use the SPI's objects directly. */
export interface LocalHalf {
  readonly provider: unknown;
  readonly half: Half;
}

/** The objects of a case. */
export class CaseContext {
  readonly statuses: VersionStatuses;
  #step = 'its first step';

  readonly #local: LocalHalf;

  constructor(
    readonly near: Party,
    readonly far: Party,
    readonly nearInfo: HalfInfo,
    readonly farInfo: HalfInfo,
    local: LocalHalf,
  ) {
    this.statuses = statusesOf[nearInfo.spi];
    this.#local = local;
  }

  /** The provider of near. */
  get provider(): unknown {
    return this.#local.provider;
  }

  /** Near's adapter object, of SPI v1. */
  get v1(): { readonly adapter: INDAdapter } {
    const { half } = this.#local;
    if (!(half instanceof HalfV1)) throw new Error('This run does not test SPI v1.');
    return half;
  }

  /** Near's adapter object, of SPI v2. */
  get v2(): { readonly adapter: IND2Adapter } {
    const { half } = this.#local;
    if (!(half instanceof HalfV2)) throw new Error('This run does not test SPI v2.');
    return half;
  }

  get spi(): Spi {
    return this.nearInfo.spi;
  }

  /** The latest step, reported for cases that never end. */
  get lastStep(): string {
    return this.#step;
  }

  step(what: string): void {
    this.#step = what;
  }

  party(side: 'near' | 'far'): Party {
    return this[side];
  }

  skip(why: string): never {
    throw new NotApplicable(why);
  }

  /** Creates a listener, and returns it with the address to connect to. */
  async listen(side: 'near' | 'far' = 'far', options: { port?: number; backlog?: number } = {}) {
    const listener = await this[side].listen(options);
    const address = await this[side].listenerAddress(listener);
    return { listener, address };
  }

  /** Establishes a connection: returns near's side, far's side, and the listener's address. */
  async pair(options: PairOptions = {}): Promise<{ near: End; far: End; address: HalfAddress }> {
    const active = options.active ?? 'near';
    const passive = active === 'near' ? 'far' : 'near';
    this.step('establishing a connection');
    const ends = {
      near: await End.make(this.near, options.near),
      far: await End.make(this.far, options.far),
    };
    const { listener, address } = await this.listen(passive);
    await this.join(ends[active], ends[passive], listener, address, options);
    await this[passive].release(listener);
    this.step('after connecting');
    return { ...ends, address };
  }

  /** Connects two ends. */
  async join(
    active: End,
    passive: End,
    listener: number,
    address: HalfAddress,
    options: Pick<PairOptions, 'request' | 'reply' | 'localPort'> = {},
  ): Promise<void> {
    const { request, reply, localPort } = options;
    const requested = await passive.party.awaitRequest(listener, passive.link);
    const connected = await active.party.connect(active.link, address, {
      ...(request === undefined ? {} : { data: request }),
      ...(localPort === undefined ? {} : { localPort }),
    });
    this.status(await passive.party.settled(requested), SUCCESS, 'GetConnectionRequest');
    const accepted = await passive.party.accept(passive.link, reply);
    this.status(await active.party.settled(connected), SUCCESS, 'Connect');
    const completed = await active.party.complete(active.link);
    this.status(await active.party.settled(completed), SUCCESS, 'CompleteConnect');
    this.status(await passive.party.settled(accepted), SUCCESS, 'Accept');
  }

  /** Creates a connection that waits for Accept or Reject; `passive` holds the request. */
  async requested(options: PairOptions = {}): Promise<{ near: End; far: End; connected: number }> {
    const active = options.active ?? 'near';
    const passive = active === 'near' ? 'far' : 'near';
    const ends = {
      near: await End.make(this.near, options.near),
      far: await End.make(this.far, options.far),
    };
    const { listener, address } = await this.listen(passive);
    const requested = await this[passive].awaitRequest(listener, ends[passive].link);
    const connected = await this[active].connect(ends[active].link, address, {
      ...(options.request === undefined ? {} : { data: options.request }),
    });
    this.status(await this[passive].settled(requested), SUCCESS, 'GetConnectionRequest');
    return { ...ends, connected };
  }

  status(got: number, expected: number | readonly number[], what: string): void {
    const allowed = typeof expected === 'number' ? [expected] : expected;
    if (!allowed.includes(got)) {
      throw new Violation(what, allowed.map(nameOf).join(' or '), nameOf(got));
    }
  }

  /** Checks the status of a completed request. */
  async ends(
    side: Party,
    request: number,
    expected: number | readonly number[],
    what: string,
  ): Promise<void> {
    this.step(what);
    this.status(await side.settled(request), expected, what);
  }

  /** Checks that a call fails with the expected status. */
  async refused(call: Promise<unknown>, expected: number | readonly number[], what: string): Promise<void> {
    this.step(what);
    this.status(await statusOf(call), expected, what);
  }

  same(got: unknown, expected: unknown, what: string): void {
    const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
    if (a !== b) throw new Violation(what, readable(b), readable(a));
  }

  ok(condition: boolean, what: string, expected: string, got: string): void {
    if (!condition) throw new Violation(what, expected, got);
  }

  /** Checks contexts and statuses of results, in order. */
  results(
    got: readonly Outcome[],
    expected: readonly (readonly [context: number | string, status: number | readonly number[]])[],
    what: string,
  ): void {
    const text = expected
      .map(([context, status]) => `${context} ${[status].flat().map(nameOf).join(' or ')}`)
      .join(', ');
    const matches =
      got.length === expected.length &&
      expected.every(
        ([context, status], i) => got[i]!.context === context && [status].flat().includes(got[i]!.status),
      );
    if (!matches) throw new Violation(what, text || 'nothing', got.map(describe).join(', ') || 'nothing');
  }

  /** Checks results with consecutive contexts and one status. */
  run(got: readonly Outcome[], count: number, status: number, what: string, first = 0): void {
    this.results(
      got,
      Array.from({ length: count }, (_, i) => [first + i, status] as const),
      what,
    );
  }

  /**
   * Checks the results of a number of cancelled Sends to a peer without a Receive; contexts count from `first`. The
   * provider may already have given up the first one; when it does so is not checked.
   */
  cancelledSends(got: readonly Outcome[], count: number, what: string, first = 0): void {
    this.results(
      got,
      Array.from({ length: count }, (_, i) => {
        return [first + i, i === 0 ? [CANCELED, ...this.statuses.timeout] : CANCELED] as const;
      }),
      what,
    );
  }

  /** Checks that memory holds a pattern. */
  async holds(
    end: End,
    at: number,
    length: number,
    seed: number,
    what: string,
    memory = end.memory,
  ): Promise<void> {
    const wrong = await end.party.mismatch(memory, at, length, seed);
    this.ok(wrong === -1, what, `${length} bytes of the pattern`, `a different byte at ${wrong}`);
  }

  /** Disconnects from one side and waits for it. */
  async disconnect(end: End): Promise<void> {
    const request = await end.party.disconnect(end.link);
    await this.ends(end.party, request, SUCCESS, 'Disconnect');
  }
}

/** Memory that every provider can register, because a SharedArrayBuffer cannot be detached. */
export function steadyBytes(length: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(length));
}

/** Returns the status of a call that fails; SUCCESS if it does not. */
export async function statusOf(call: Promise<unknown>): Promise<number> {
  try {
    await call;
    return SUCCESS;
  } catch (error) {
    const { status } = error as { status?: unknown };
    if (typeof status !== 'number') throw error;
    return status;
  }
}

/**
 * Returns JSON with the names of failure statuses, which are recognized by their size: no other number in cases is that
 * large.
 */
function readable(json: string | undefined): string {
  return (json ?? 'undefined').replace(/\b[23]\d{9}\b/g, (digits) => nameOf(Number(digits)));
}

export function nameOf(status: number): string {
  return statusName(status);
}

function describe(result: Outcome | undefined): string {
  return result === undefined ? 'nothing' : `${result.context} ${nameOf(result.status)}`;
}
