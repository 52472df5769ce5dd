// Servers and connections of `networkdirect/net` for tests. All of them end with the test.
import { once } from 'node:events';
import {
  type Channel,
  type ChannelOptions,
  connect,
  connectChannel,
  createChannelServer,
  createServer,
  type Server,
  type ServerOptions,
  type Socket,
  type SocketOptions,
} from '../../nd/net/index.js';

const open = new Set<{ destroy(): unknown } | Server>();

/** Ends everything that tests have left open. */
export async function endAll(): Promise<void> {
  const all = [...open];
  open.clear();
  for (const each of all) if ('destroy' in each) each.destroy();
  for (const each of all) if (!('destroy' in each)) await each[Symbol.asyncDispose]();
}

/** Listens and returns the port. Without a host (null), the server listens on all addresses. */
export async function listening(server: Server, host: string | null = '127.0.0.1'): Promise<number> {
  open.add(server);
  server.listen(host === null ? {} : { host });
  await once(server, 'listening');
  return server.address()!.port;
}

/** Both ends of a channel: the client's and the server's. */
export async function channels(
  options: ChannelOptions = {},
  serverOptions: ChannelOptions = options,
): Promise<[Channel, Channel, Server]> {
  const server = createChannelServer({ channel: serverOptions });
  const accepted = new Promise<Channel>((resolve) => server.once('channel', resolve));
  const port = await listening(server);
  const client = await connectChannel(port, '127.0.0.1', options);
  open.add(client);
  return [client, await accepted, server];
}

/** Both ends of a stream: the client's and the server's. */
export async function sockets(
  options: SocketOptions = {},
  serverOptions: ServerOptions = { socket: options },
): Promise<[Socket, Socket, Server]> {
  const server = createServer(serverOptions);
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const port = await listening(server);
  const client = connect(port, '127.0.0.1', options);
  open.add(client);
  await once(client, 'connect');
  return [client, await accepted, server];
}

/** The error that a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('The promise did not reject.');
}
