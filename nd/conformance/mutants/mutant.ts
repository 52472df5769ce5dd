/**
 * Deliberately broken providers: the provider of this package with one rule of the SPI broken. The suite must detect
 * each of them.
 */
import type {
  IND2Adapter,
  IND2CompletionQueue,
  IND2Connector,
  IND2Listener,
  IND2MemoryRegion,
  IND2Provider,
  IND2QueuePair,
  INDAdapter,
  INDCompletionQueue,
  INDConnector,
  INDEndpoint,
  INDListen,
  INDProvider,
} from '../../index.js';
import type { Spi } from '../index.js';

/** A broken provider. */
export interface Mutant {
  readonly name: string;
  /** The mutant's violation of the SPI. */
  readonly breaks: string;
  readonly spi: Spi;
  /** Names of cases, `*` for anything, that should fail: for a quick run. */
  readonly cases: string;
  /** Breaks a new provider. */
  readonly apply: (provider: unknown) => void;
}

/** Called with each new object of a kind, to change its methods. */
export interface HooksV1 {
  provider?(provider: INDProvider): void;
  adapter?(adapter: INDAdapter): void;
  completionQueue?(queue: INDCompletionQueue, adapter: INDAdapter): void;
  connector?(connector: INDConnector, adapter: INDAdapter): void;
  endpoint?(endpoint: INDEndpoint): void;
  listen?(listen: INDListen, adapter: INDAdapter): void;
}

export interface HooksV2 {
  provider?(provider: IND2Provider): void;
  adapter?(adapter: IND2Adapter): void;
  completionQueue?(queue: IND2CompletionQueue): void;
  connector?(connector: IND2Connector): void;
  queuePair?(queuePair: IND2QueuePair): void;
  listener?(listener: IND2Listener): void;
  region?(region: IND2MemoryRegion): void;
}

/** Replaces a method of one object; `make` gets the original method. */
export function around<T extends object, K extends keyof T>(
  object: T,
  name: K,
  make: (original: T[K]) => T[K],
): void {
  const original = object[name];
  if (typeof original !== 'function') throw new Error(`\`${String(name)}\` must be a method.`);
  object[name] = make(original.bind(object));
}

type Made<F> = F extends (...args: never[]) => infer R ? R : never;

/** Calls a hook with the result of a method. */
function made<T extends object, K extends keyof T>(
  object: T,
  name: K,
  hook: ((made: Made<T[K]>) => void) | undefined,
): void {
  const original = object[name];
  if (typeof original !== 'function') throw new Error(`\`${String(name)}\` must be a method.`);
  if (hook === undefined) return;
  const replaced = (...args: unknown[]): Made<T[K]> => {
    const result: Made<T[K]> = original.apply(object, args);
    hook(result);
    return result;
  };
  object[name] = replaced as T[K];
}

export function mutantV1(name: string, breaks: string, cases: string, hooks: HooksV1): Mutant {
  const apply = (provider: INDProvider): void => {
    made(provider, 'openAdapter', (adapter) => {
      made(adapter, 'createCompletionQueue', (queue) => hooks.completionQueue?.(queue, adapter));
      made(adapter, 'listen', (listen) => hooks.listen?.(listen, adapter));
      made(adapter, 'createConnector', (connector) => {
        made(connector, 'createEndpoint', hooks.endpoint?.bind(hooks));
        hooks.connector?.(connector, adapter);
      });
      hooks.adapter?.(adapter);
    });
    hooks.provider?.(provider);
  };
  return { name, breaks, spi: 'v1', cases, apply: (provider) => apply(provider as INDProvider) };
}

export function mutantV2(name: string, breaks: string, cases: string, hooks: HooksV2): Mutant {
  const apply = (provider: IND2Provider): void => {
    made(provider, 'openAdapter', (adapter) => {
      made(adapter, 'createCompletionQueue', hooks.completionQueue?.bind(hooks));
      made(adapter, 'createQueuePair', hooks.queuePair?.bind(hooks));
      made(adapter, 'createQueuePairWithSrq', hooks.queuePair?.bind(hooks));
      made(adapter, 'createConnector', hooks.connector?.bind(hooks));
      made(adapter, 'createListener', hooks.listener?.bind(hooks));
      made(adapter, 'createMemoryRegion', hooks.region?.bind(hooks));
      hooks.adapter?.(adapter);
    });
    hooks.provider?.(provider);
  };
  return { name, breaks, spi: 'v2', cases, apply: (provider) => apply(provider as IND2Provider) };
}

/** Runs a call; if the call fails with a status, does something else instead. */
export function insteadOf<T>(status: number, call: () => T, instead: () => T): T {
  try {
    return call();
  } catch (error) {
    if ((error as { status?: unknown }).status === status) return instead();
    throw error;
  }
}
