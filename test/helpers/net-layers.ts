// The same program over `node:net` and over `networkdirect/net`, for tests of their common behavior.
import { once } from 'node:events';
import nodeNet from 'node:net';
import { test } from 'uvu';
import { connect, createServer } from '../../nd/net/index.js';

/** The address on which all servers listen. */
export const HOST = '127.0.0.1';

/** The common part of both sockets. */
export type Socket = nodeNet.Socket;
/** The common part of both servers. */
export type Server = nodeNet.Server;
/** Server options that both support. */
export interface ServerOptions {
  readonly allowHalfOpen?: boolean;
  readonly pauseOnConnect?: boolean;
}

/** The common part of both modules. */
export interface Net {
  createServer(handler: (socket: Socket) => void, options?: ServerOptions): Server;
  connect(port: number, host: string, connected?: () => void): Socket;
  /** Options of a client that stays writable after the server has ended. */
  connectHalfOpen(port: number): Socket;
}

/** By their names. */
export const layers: Readonly<Record<string, Net>> = {
  'node:net': {
    createServer: (handler, options) => nodeNet.createServer(options ?? {}, handler),
    connect: (port, host, connected) => nodeNet.connect(port, host, connected),
    connectHalfOpen: (port) => nodeNet.connect({ port, host: HOST, allowHalfOpen: true }),
  },
  // The types only differ in parts that these programs do not use.
  'networkdirect/net': {
    createServer: (handler, options) => createServer(options ?? {}, handler as never) as unknown as Server,
    connect: (port, host, connected) => connect(port, host, connected) as unknown as Socket,
    connectHalfOpen: (port) => connect({ port, host: HOST, allowHalfOpen: true }) as unknown as Socket,
  },
};

/** The port at which the server listens. */
export async function listening(server: Server): Promise<number> {
  server.listen(0, HOST);
  await once(server, 'listening');
  return (server.address() as nodeNet.AddressInfo).port;
}

/** Closes the server and waits for the end of its connections. */
export async function closed(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

/** All received data as text. */
export async function textOf(socket: Socket): Promise<string> {
  let text = '';
  for await (const bytes of socket) text += bytes;
  return text;
}

/** Both ends of a connection, and its server. */
export async function connected(net: Net, options?: ServerOptions): Promise<[Socket, Socket, Server]> {
  const accepted: Socket[] = [];
  const server = net.createServer((socket) => accepted.push(socket), options);
  const client = net.connect(await listening(server), HOST);
  await once(client, 'connect');
  while (accepted.length === 0) await turn();
  return [client, accepted[0]!, server];
}

/** Waits for a turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs each test with each layer. */
export function testEach(cases: Readonly<Record<string, (net: Net) => Promise<void>>>): void {
  for (const [name, run] of Object.entries(cases))
    for (const [layer, net] of Object.entries(layers)) test(`${name}: ${layer}`, () => run(net));
}
