/**
 * The methods of a half for conformance cases. The halves are the two sides of a case's connections: in one process, in
 * two, or on two hosts. A case uses only these methods, whose arguments and results can be sent as JSON. It is
 * therefore the same in all three settings.
 *
 * A half hides the differences between SPI v1 and v2 and passes everything else through. A case identifies objects by
 * numbers, and gets statuses as the provider returned them.
 */
import * as z from 'zod';
import type { NdAdapterOptions } from '../index.js';

/** The versions of the SPI that can be tested. */
export const spiVersions = ['v1', 'v2'] as const;
export type Spi = (typeof spiVersions)[number];

/** Limits of the half's adapter, by the names that cases use. Sizes are in bytes. */
export interface HalfLimits {
  readonly receives: number;
  readonly requests: number;
  readonly receiveSge: number;
  readonly requestSge: number;
  readonly readSge: number;
  readonly transfer: number;
  readonly inline: number;
  readonly inboundReads: number;
  readonly outboundReads: number;
  readonly cqEntries: number;
  readonly callerData: number;
  readonly calleeData: number;
  /** Maximum Receives of a shared receive queue; 0: not supported. */
  readonly sharedReceives: number;
}

/** The description of a half. */
export interface HalfInfo {
  readonly spi: Spi;
  readonly family: 4 | 6;
  readonly address: string;
  readonly limits: HalfLimits;
}

const id = z.int().min(0);
const count = z.number();
const context = z.union([z.number(), z.string()]);
const data = z.array(z.int().min(0).max(255)).max(100_000);

/** The objects of one connection. */
const linkOptions = z.strictObject({
  /** Length of its registered memory in bytes; default 65536. */
  memory: z
    .int()
    .min(0)
    .max(64 << 20)
    .optional(),
  /** v2: rights of that memory (ND_MR_FLAG_*); default local write. */
  rights: z.number().optional(),
  /** Maximum outstanding Receives; default 32. */
  receives: count.optional(),
  /** Maximum other outstanding requests; default 32. */
  requests: count.optional(),
  receiveSge: count.optional(),
  requestSge: count.optional(),
  inboundReads: count.optional(),
  outboundReads: count.optional(),
  /** Existing completion queues; by default two new ones. */
  inbound: id.optional(),
  outbound: id.optional(),
  /** Entries of the new completion queues; default 128. */
  cqEntries: count.optional(),
  /** v2: inline bytes of the queue pair. Default: the adapter's limit, at most 256. */
  inline: count.optional(),
  /** v2: an existing shared receive queue. */
  shared: id.optional(),
  /** Use the connector of this existing link instead of a new one. */
  connectorOf: id.optional(),
  /** Use the endpoint of this existing link instead of a new one. */
  endpointOf: id.optional(),
});
export type LinkOptions = z.input<typeof linkOptions>;

/** The numbers of a link's objects, and its queue pair's granted limits: inline bytes, entries of a list. */
export interface LinkParts {
  readonly inbound: number;
  readonly outbound: number;
  readonly memory: number;
  readonly maxInline: number;
  readonly receiveSge: number;
  readonly requestSge: number;
}

/** A part of registered memory, or with `plain` the same bytes without registration. */
const piece = z.strictObject({
  at: z.number(),
  length: z.number(),
  /** By default the memory of the link. */
  memory: id.optional(),
  /** v2: refer to the memory by its local token. */
  token: z.boolean().optional(),
  /** Bytes that are not registered. */
  plain: data.optional(),
});
export type Piece = z.input<typeof piece>;

/** Memory of the other half, in a form for messages. */
const target = z.strictObject({ address: z.string().regex(/^\d+$/), length: z.number(), key: z.number() });
export type Target = z.input<typeof target>;

const postKinds = [
  'send',
  'sendInvalidate',
  'receive',
  'read',
  'write',
  'bind',
  'invalidate',
  'startBatch',
  'submitBatch',
] as const;

/** One request, in the SPI's terms. */
const post = z.strictObject({
  op: z.enum(postKinds),
  context: context.optional(),
  pieces: z.array(piece).max(512).optional(),
  flags: z.number().optional(),
  /** The memory of Read and Write, and the window of SendAndInvalidate. */
  target: target.optional(),
  /** Offset into the target in bytes, or for Bind into the memory. */
  offset: z.number().optional(),
  /** Length of Bind in bytes. */
  length: z.number().optional(),
  window: id.optional(),
  /** The memory of Bind, by default the memory of the link. */
  memory: id.optional(),
  /** Overwrite this unregistered memory as soon as the call has returned. */
  scribble: z.boolean().optional(),
});
export type Post = z.input<typeof post>;

/** The result of a posting call, and the target of a Bind. */
export interface Posted {
  readonly status: number;
  readonly target?: Target;
}

/** A result from a completion queue. */
export interface Outcome {
  readonly context: number | string;
  readonly status: number;
  readonly bytes: number;
  /** v2: ND2_RESULT.RequestType. */
  readonly type?: number;
  /** v2: the context of the queue pair it belongs to. */
  readonly link?: number;
}

export interface HalfAddress {
  readonly address: string;
  readonly port: number;
}

/** The peer's data, as a connector reports it. */
export interface PeerData {
  readonly inboundReads: number;
  readonly outboundReads: number;
  readonly data: readonly number[];
}

const notifyType = z.enum(['errors', 'any', 'solicited']);
const objectKinds = z.enum(['connector', 'endpoint', 'inbound', 'outbound']);

/**
 * The methods: the schema of each one's arguments, which checks those from the other process. Methods that issue
 * overlapped requests return a number to query the outcome with. A request that failed immediately also has an outcome;
 * cases do not distinguish the two.
 */
export const halfArguments = {
  info: z.tuple([]),
  listen: z.tuple([
    z.strictObject({
      port: count.optional(),
      backlog: count.optional(),
      /** v1: the IP protocol. */
      protocol: count.optional(),
      /** v2: the address, by default the adapter's. */
      address: z.string().optional(),
    }),
  ]),
  listenerAddress: z.tuple([id]),
  cq: z.tuple([count]),
  cqEntries: z.tuple([id]),
  resize: z.tuple([id, count]),
  link: z.tuple([linkOptions]),
  parts: z.tuple([id]),
  awaitRequest: z.tuple([id, id]),
  connect: z.tuple([
    id,
    z.union([z.string(), z.strictObject({ address: z.string(), port: z.number() })]),
    z.strictObject({ data: data.optional(), localPort: count.optional(), protocol: count.optional() }),
  ]),
  complete: z.tuple([id]),
  accept: z.tuple([id, data.optional()]),
  reject: z.tuple([id, data.optional()]),
  peerData: z.tuple([id]),
  localAddress: z.tuple([id]),
  peerAddress: z.tuple([id]),
  notifyDisconnect: z.tuple([id]),
  disconnect: z.tuple([id]),
  cancel: z.tuple([id]),
  settled: z.tuple([id]),
  statusNow: z.tuple([id]),
  post: z.tuple([id, z.array(post).max(100_000)]),
  flush: z.tuple([id]),
  take: z.tuple([id, z.int().min(0)]),
  poll: z.tuple([id, z.int().min(0)]),
  notify: z.tuple([id, notifyType]),
  memory: z.tuple([z.int().max(64 << 20), z.number().optional()]),
  registerAgain: z.tuple([id, z.int().min(0), z.int().min(0), z.number().optional()]),
  deregister: z.tuple([id]),
  target: z.tuple([id]),
  fill: z.tuple([id, z.int().min(0), z.int().min(0), z.int()]),
  mismatch: z.tuple([id, z.int().min(0), z.int().min(0), z.int()]),
  peek: z.tuple([id, z.int().min(0), z.int().min(0).max(4096)]),
  spinUntil: z.tuple([id, z.int().min(0), z.int()]),
  window: z.tuple([context.optional()]),
  shared: z.tuple([z.strictObject({ depth: count, sge: count.optional(), threshold: count.optional() })]),
  sharedReceive: z.tuple([id, z.array(post).max(100_000)]),
  sharedModify: z.tuple([id, count, count]),
  sharedNotify: z.tuple([id]),
  release: z.tuple([id, objectKinds.optional()]),
  begin: z.tuple([z.strictObject({ keepQueuePairsOnDisconnect: z.boolean().optional() }).optional()]),
  end: z.tuple([]),
} as const satisfies Record<string, z.ZodTuple>;

export type HalfMethod = keyof typeof halfArguments;

/** A half in this process. A method that fails in the provider throws an error with its status. */
export interface Half {
  info(): HalfInfo;
  listen(options: { port?: number; backlog?: number; protocol?: number; address?: string }): number;
  listenerAddress(listener: number): HalfAddress;
  cq(entries: number): number;
  cqEntries(cq: number): number;
  resize(cq: number, entries: number): void;
  /** Creates memory, queues, endpoint and connector of one connection. */
  link(options: LinkOptions): Promise<number>;
  parts(link: number): LinkParts;
  /** Issues GetConnectionRequest. */
  awaitRequest(listener: number, link: number): number;
  connect(
    link: number,
    to: string | HalfAddress,
    options: { data?: readonly number[]; localPort?: number; protocol?: number },
  ): number;
  complete(link: number): number;
  accept(link: number, data?: readonly number[]): number;
  reject(link: number, data?: readonly number[]): void;
  peerData(link: number): PeerData;
  localAddress(link: number): HalfAddress;
  peerAddress(link: number): HalfAddress;
  notifyDisconnect(link: number): number;
  disconnect(link: number): number;
  /** Calls CancelOverlappedRequests; returns the statuses of this object's pending requests after the call. */
  cancel(object: number): number[];
  /** Returns the status of a request; PENDING if it does not end within the half's time limit. */
  settled(request: number): Promise<number>;
  /** Returns the current status of a request. */
  statusNow(request: number): number;
  /** Posts requests in one call; a failed one does not stop the others. */
  post(link: number, posts: readonly Post[]): Posted[];
  flush(link: number): void;
  /** Waits with Notify until there are `count` results; returns fewer after the half's time limit. */
  take(cq: number, count: number): Promise<Outcome[]>;
  /** Calls GetResults once. */
  poll(cq: number, max: number): Outcome[];
  notify(cq: number, type: 'errors' | 'any' | 'solicited'): number;
  memory(bytes: number, rights?: number): Promise<number>;
  /** Registers a part of memory again. */
  registerAgain(memory: number, at: number, length: number, rights?: number): Promise<number>;
  deregister(memory: number): number;
  /** v2: returns the region as the peer addresses it. */
  target(memory: number): Target;
  /** Writes a pattern. */
  fill(memory: number, at: number, length: number, seed: number): void;
  /** Returns the offset of the first byte that differs from the pattern; -1 if none does. */
  mismatch(memory: number, at: number, length: number, seed: number): number;
  peek(memory: number, at: number, length: number): number[];
  /** Polls the memory until a byte has a value; returns false after the half's time limit. */
  spinUntil(memory: number, at: number, value: number): Promise<boolean>;
  window(invalidateContext?: number | string): number;
  /** v2: creates a shared receive queue. */
  shared(options: { depth: number; sge?: number; threshold?: number }): number;
  sharedReceive(shared: number, posts: readonly Post[]): Posted[];
  sharedModify(shared: number, depth: number, threshold: number): void;
  sharedNotify(shared: number): number;
  /** Releases an object, or a part of a link. */
  release(object: number, part?: 'connector' | 'endpoint' | 'inbound' | 'outbound'): void;
  /** Begins a case, or restarts it with other options: opens an adapter instance for it. */
  begin(options?: NdAdapterOptions): void;
  /** Ends a case: releases all its objects. */
  end(): void;
}

/** The methods that return without waiting. */
export type SyncMethod = {
  [K in HalfMethod]: ReturnType<Half[K]> extends Promise<unknown> ? never : K;
}[HalfMethod];

/** One call of {@link Party.inOneTurn}. */
export type SyncCall = { [K in SyncMethod]: readonly [K, ...Parameters<Half[K]>] }[SyncMethod];

/** The result of one of several calls. */
export type CallOutcome<T> = { readonly value: T } | { readonly status: number };

/** Results of calls, each with the type of its method. */
export type CallOutcomes<C extends readonly SyncCall[]> = {
  -readonly [I in keyof C]: C[I] extends readonly [infer K extends SyncMethod, ...unknown[]]
    ? CallOutcome<ReturnType<Half[K]>>
    : never;
};

/** A half for cases, in this process or elsewhere. */
export type Party = {
  [K in HalfMethod]: (...args: Parameters<Half[K]>) => Promise<Awaited<ReturnType<Half[K]>>>;
} & {
  /** Makes consecutive calls without a turn of the half's event loop. */
  inOneTurn<const C extends readonly SyncCall[]>(calls: C): Promise<CallOutcomes<C>>;
};

/** Returns byte `i` of the pattern with a seed. */
export function patternByte(i: number, seed: number): number {
  return (i * 31 + (i >> 8) * 7 + seed * 17 + 1) & 0xff;
}
