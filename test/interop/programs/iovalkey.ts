/** iovalkey over RDMA. scripts/install-interop-tools.sh installs it into a separate folder, and guests have a copy. */
import { type EventEmitter, once } from 'node:events';
import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import { connectValkey } from '../../../examples/valkey/connect.js';
import { ValkeyConnector } from '../../../examples/valkey/connector.js';

/** The path is relative to dist/test/interop/programs. */
const load = createRequire(new URL('../../../../.cache/interop/package.json', import.meta.url));

/** A server, and the size of its buffer for each client, in bytes. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly bufferBytes: number;
}

/** A command and its arguments. */
export type Words = readonly [name: string, ...(string | Buffer)[]];

/** The part of iovalkey's API that these programs use. */
export interface Valkey extends EventEmitter, Disposable {
  call(...words: Words): Promise<unknown>;
  callBuffer(...words: Words): Promise<unknown>;
  pipeline(): {
    callBuffer(...words: Words): unknown;
    exec(): Promise<(readonly [error: Error | null, reply: unknown])[]>;
  };
  disconnect(): void;
}

interface Package {
  readonly Valkey: new (options: object) => Valkey;
}

/** A client that is ready for commands. */
export async function openValkey({ host, port }: Target, options: object = {}): Promise<Valkey> {
  const { Valkey } = load('iovalkey') as Package;
  // No limit here, because cases have their own time limits.
  const valkey = new Valkey({ host, port, Connector: ValkeyConnector, connectTimeout: 0, ...options });
  valkey[Symbol.dispose] = () => valkey.disconnect();
  await once(valkey, 'ready');
  return valkey;
}

/** A connection without a client library. */
export async function openStream({ host, port }: Target, receiveBytes: number): Promise<Duplex> {
  const stream = connectValkey({ host, port, receiveBytes });
  await once(stream, 'connect');
  return stream;
}

/** Runs many commands in one pipeline. @throws the first error among the replies */
export async function inOnePipeline(
  valkey: Valkey,
  count: number,
  wordsOf: (n: number) => Words,
): Promise<unknown[]> {
  const pipeline = valkey.pipeline();
  for (let n = 0; n < count; n += 1) pipeline.callBuffer(...wordsOf(n));
  const replies = await pipeline.exec();
  check(replies.length === count, `${replies.length} replies to ${count} commands.`);
  return replies.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}

/** @throws Error unless the condition holds */
export function check(right: boolean, what: string): asserts right {
  if (!right) throw new Error(what);
}
