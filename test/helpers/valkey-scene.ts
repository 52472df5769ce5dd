/** Valkey servers and clients (examples/valkey), which are closed at the end of a test. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { connectValkey, type ValkeyOptions } from '../../examples/valkey/connect.js';
import type { TransferStream } from '../../examples/valkey/transfer-stream.js';
import { type ServerOptions, ValkeyServer } from '../../examples/valkey/valkey-server.js';
import { RespClient } from './resp-client.js';
import { HANG_MS, within } from './within.js';

const program = fileURLToPath(new URL('../../examples/valkey/server.js', import.meta.url));
const servers = new Set<ValkeyServer>();
const streams = new Set<TransferStream>();
const children = new Set<ChildProcess>();

/** To be called after each test. */
export function endValkeys(): void {
  for (const stream of streams) stream.destroy();
  for (const server of servers) server.close();
  for (const child of children) child.kill('SIGKILL');
  for (const set of [streams, servers, children]) set.clear();
}

export function serving(options: ServerOptions = {}): ValkeyServer {
  const server = new ValkeyServer({ port: 0, ...options });
  servers.add(server);
  return server;
}

/** The server of the example in a separate process. */
export async function servingProcess(): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(program, ['127.0.0.1', '0'], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  children.add(child);
  const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
  return { child, port: Number(/^port (\d+)$/.exec(line)![1]) };
}

export function connecting(port: number, options: ValkeyOptions = {}): TransferStream {
  const stream = connectValkey({ port, ...options });
  streams.add(stream);
  return stream;
}

export const clientOf = (port: number, options?: ValkeyOptions): RespClient =>
  new RespClient(connecting(port, options));

/** The error that a stream ends in. */
export async function failure(stream: TransferStream): Promise<Error & { code?: string | number }> {
  const ended = new Promise<Error>((resolve) => {
    stream.once('error', resolve);
    stream.once('close', () => resolve(new Error('no error')));
  });
  return within(ended, HANG_MS, () => new Error('the stream does not end'));
}

export async function until(what: () => boolean): Promise<void> {
  const end = Date.now() + HANG_MS;
  while (!what()) {
    assert.ok(Date.now() < end, `never: ${what}`);
    await new Promise(setImmediate);
  }
}
