/** `networkdirect/net`: the error of every function, method and option for wrong arguments and in wrong states. */
import { constants } from 'node:buffer';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as net from '../../nd/net/index.js';
import { complete, doorsOf, type ErrorRows, provoke, type Untyped, untyped } from '../helpers/error-rows.js';
import { channels, endAll, listening, sockets } from '../helpers/net-pair.js';

const test = suite('errors of networkdirect/net');

const { allocate, connect, connectChannel, createChannelServer, createServer } = untyped(net) as Record<
  string,
  (...values: readonly unknown[]) => unknown
>;
const { createSharedMap, openSharedMap, setMaxBufferedBytes } = untyped(net);

const HOST = '127.0.0.1';
/** A port at which no process listens. */
const FREE = 1;
const U8 = new Uint8Array(3);

let channel: Untyped;
let served: Untyped;
let closed: Untyped;
let server: Untyped;
let broadcaster: Untyped;
let exposed: Untyped;
let memory: Untyped;
let readonly: Untyped;
let stale: Untyped;
let socket: Untyped;
let map: Untyped;
let view: Untyped;
let closedMap: Untyped;
let closedView: Untyped;

test.before(async () => {
  const [a, b, listens] = await channels();
  [channel, served, server] = [untyped(a), untyped(b), untyped(listens)];
  const buffer = net.allocate(64);
  const shown = await b.expose(buffer, { writable: true });
  exposed = untyped(shown);
  memory = untyped(a.open(shown.handle));
  readonly = untyped(a.open((await b.expose(buffer)).handle));
  const [c, d] = await channels();
  stale = untyped(c.open((await d.expose(buffer)).handle));
  await c.close();
  closed = untyped(c);
  const broadcasts = net.createChannelServer({ broadcasts: true });
  await listening(broadcasts);
  broadcaster = untyped(broadcasts);
  socket = untyped((await sockets())[0]);
  const options = { entries: 8, port: 0, host: HOST };
  const owner = await net.createSharedMap(options);
  const opened = await net.openSharedMap({ port: owner.address()!.port, host: HOST });
  [map, view] = [untyped(owner), untyped(opened)];
  const [other, another] = [
    await net.createSharedMap(options),
    await net.openSharedMap({ port: owner.address()!.port, host: HOST }),
  ];
  await other.close();
  await another.close();
  [closedMap, closedView] = [untyped(other), untyped(another)];
});

test.after(async () => {
  await view.close!();
  await map.close!();
  await endAll();
});

/** Rejects with the `'error'` of an emitter. */
async function failed(emitter: unknown): Promise<void> {
  const [error] = await once(emitter as NodeJS.EventEmitter, 'error');
  throw error;
}

const listen = (...values: readonly unknown[]): unknown =>
  untyped(net.createServer(() => {})).listen!(...values);

const rows: ErrorRows = {
  connect: [
    [() => connect!(0), 'ERR_SOCKET_BAD_PORT', '`port` must be an integer from 1 to 65535; got 0.'],
    [
      () => connect!('/tmp/server.sock'),
      'ERR_SOCKET_BAD_PORT',
      "`port` must be a number; got the path '/tmp/server.sock'. Paths are not supported; use listen({ name }) and connect({ name }) instead.",
    ],
    [() => connect!(FREE, 5), 'ERR_INVALID_ARG_TYPE', '`host` must be an address or a host name; got 5.'],
    [
      () => connect!(FREE, HOST, 5),
      'ERR_INVALID_ARG_TYPE',
      '`options` of connect() must be an object; got 5.',
    ],
    [
      () => connect!({ port: FREE, hots: HOST }),
      'ERR_INVALID_ARG_VALUE',
      "`options` of connect() must contain only port, host, name, signal, timeout, onread, slots, slotBytes, ringBytes, allowHalfOpen, highWaterMark; got 'hots'.",
    ],
    [
      () => connect!({ port: FREE, backlog: 3 }),
      'ERR_INVALID_ARG_VALUE',
      '`backlog` must be given to listen(); got it among the options of connect().',
    ],
    [
      () => connect!({ port: FREE, keepAliveMs: 3 }),
      'ERR_INVALID_ARG_VALUE',
      '`keepAliveMs` must be given to the adapter, in the environment variable ND_OPTIONS; got it among the options of connect().',
    ],
    [
      () => failed(connect!(FREE, HOST)),
      'ECONNREFUSED',
      'connect 127.0.0.1:1: The peer refused the connection: no process listens there, its backlog is full, or its application rejected the request.',
    ],
  ],
  'ConnectOptions.port': [
    [
      () => connect!({ port: 65_536 }),
      'ERR_SOCKET_BAD_PORT',
      '`port` must be an integer from 1 to 65535; got 65536.',
    ],
    [
      () => connect!({ port: null }),
      'ERR_SOCKET_BAD_PORT',
      '`port` must be an integer from 1 to 65535; got null.',
    ],
    [
      () => connect!({ port: {} }),
      'ERR_SOCKET_BAD_PORT',
      '`port` must be an integer from 1 to 65535; got an object.',
    ],
  ],
  'ConnectOptions.name': [
    [
      () => connect!({ name: 'n', port: FREE }),
      'ERR_INVALID_ARG_VALUE',
      '`name` of connect() must be given without `port` and `host`; got `port`.',
    ],
    [
      () => failed(connect!({ name: 5 })),
      'ERR_INVALID_ARG_VALUE',
      '`name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got 5.',
    ],
    [
      () => failed(connect!({ name: 'errors-net' })),
      'ECONNREFUSED',
      "connect: no process of this user listens under the name 'errors-net' on this host. Start its server first.",
    ],
  ],
  'ConnectOptions.host': [
    [
      () => connect!({ port: FREE, host: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`host` must be an address or a host name; got 5.',
    ],
  ],
  'ConnectOptions.signal': [
    [
      () => connect!({ port: FREE, signal: 'x' }),
      'ERR_INVALID_ARG_TYPE',
      "`signal` must be an AbortSignal; got 'x'.",
    ],
  ],
  'ConnectOptions.timeout': [
    [
      () => connect!({ port: FREE, timeout: '1' }),
      'ERR_INVALID_ARG_TYPE',
      "`timeout` must be a number of milliseconds; got '1'.",
    ],
    [
      () => connect!({ port: FREE, timeout: -1 }),
      'ERR_OUT_OF_RANGE',
      '`timeout` must be from 0 to 2147483647 milliseconds; got -1.',
    ],
  ],
  'ConnectOptions.onread': [
    [
      () => connect!({ port: FREE, onread: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`onread` must be an object with buffer and callback; got 5.',
    ],
  ],
  'OnReadOptions.buffer': [
    [
      () => connect!({ port: FREE, onread: { buffer: 'x', callback() {} } }),
      'ERR_INVALID_ARG_TYPE',
      '`onread.buffer` must be a Uint8Array of at least one byte, or a function that returns one; got a string.',
    ],
    [
      () => connect!({ port: FREE, onread: { buffer: new Uint8Array(0), callback() {} } }),
      'ERR_INVALID_ARG_TYPE',
      '`onread.buffer` must be a Uint8Array of at least one byte, or a function that returns one; got an empty one.',
    ],
  ],
  'OnReadOptions.callback': [
    [
      () => connect!({ port: FREE, onread: { buffer: U8, callback: 5 } }),
      'ERR_INVALID_ARG_TYPE',
      '`onread.callback` must be a function; got 5.',
    ],
  ],
  'SocketOptions.slots': [
    [
      () => connect!({ port: FREE, slots: 0 }),
      'ERR_OUT_OF_RANGE',
      '`slots` must be an integer from 1 to 65535; got 0.',
    ],
  ],
  'SocketOptions.slotBytes': [
    [
      () => connect!({ port: FREE, slotBytes: 63 }),
      'ERR_OUT_OF_RANGE',
      '`slotBytes` must be an integer from 64 to 67108864; got 63.',
    ],
  ],
  'SocketOptions.ringBytes': [
    [
      () => connect!({ port: FREE, ringBytes: -1 }),
      'ERR_OUT_OF_RANGE',
      '`ringBytes` must be an integer from 0 to 268435456; got -1.',
    ],
  ],
  'SocketOptions.highWaterMark': [
    [
      () => connect!({ port: FREE, highWaterMark: 'x' }),
      'ERR_OUT_OF_RANGE',
      "`highWaterMark` must be an integer of at least 0; got 'x'.",
    ],
  ],
  connectChannel: [
    [
      () => connectChannel!(undefined),
      'ERR_SOCKET_BAD_PORT',
      '`port` must be an integer from 1 to 65535; got undefined.',
    ],
    [
      () => connectChannel!(FREE, 5),
      'ERR_INVALID_ARG_TYPE',
      '`host` must be an address or a host name; got 5.',
    ],
    [
      () => connectChannel!(FREE, HOST, 5),
      'ERR_INVALID_ARG_TYPE',
      '`options` of connectChannel() must be an object; got 5.',
    ],
    [
      () => connectChannel!({ port: FREE, onread: {} }),
      'ERR_INVALID_ARG_VALUE',
      '`onread` must be given to connect(); got it among the options of connectChannel().',
    ],
    [
      () => connectChannel!(FREE, HOST),
      'ECONNREFUSED',
      'connect 127.0.0.1:1: The peer refused the connection: no process listens there, its backlog is full, or its application rejected the request.',
    ],
  ],
  'ConnectChannelParameters.port': [
    [
      () => connectChannel!({ port: 'x' }),
      'ERR_SOCKET_BAD_PORT',
      "`port` must be an integer from 1 to 65535; got 'x'.",
    ],
  ],
  'ConnectChannelParameters.name': [
    [
      () => connectChannel!({ name: '' }),
      'ERR_INVALID_ARG_VALUE',
      '`name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got \'\'.',
    ],
  ],
  'ConnectChannelParameters.host': [
    [
      () => connectChannel!({ port: FREE, host: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`host` must be an address or a host name; got 5.',
    ],
  ],
  'ConnectChannelOptions.signal': [
    [
      () => connectChannel!({ port: FREE, signal: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`signal` must be an AbortSignal; got 5.',
    ],
  ],
  'ChannelOptions.onRequest': [
    [
      () => connectChannel!({ port: FREE, onRequest: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`onRequest` must be a function; got 5.',
    ],
  ],
  'ChannelOptions.slots': [
    [
      () => connectChannel!({ port: FREE, slots: 1.5 }),
      'ERR_OUT_OF_RANGE',
      '`slots` must be an integer from 1 to 65535; got 1.5.',
    ],
  ],
  'ChannelOptions.slotBytes': [
    [
      () => connectChannel!({ port: FREE, slotBytes: 7n }),
      'ERR_OUT_OF_RANGE',
      '`slotBytes` must be an integer from 64 to 67108864; got 7n.',
    ],
  ],
  'ChannelOptions.maxMessageBytes': [
    [
      () => connectChannel!({ port: FREE, maxMessageBytes: 0 }),
      'ERR_OUT_OF_RANGE',
      '`maxMessageBytes` must be an integer of at least 1; got 0.',
    ],
  ],
  'ChannelOptions.maxRequests': [
    [
      () => connectChannel!({ port: FREE, maxRequests: Symbol('x') }),
      'ERR_OUT_OF_RANGE',
      '`maxRequests` must be an integer of at least 1; got Symbol(x).',
    ],
  ],
  createServer: [
    [() => createServer!(5), 'ERR_INVALID_ARG_TYPE', '`options` of createServer() must be an object; got 5.'],
    [() => createServer!({}, 5), 'ERR_INVALID_ARG_TYPE', '`handler` must be a function; got 5.'],
    [
      () => createServer!({ backlog: 3 }),
      'ERR_INVALID_ARG_VALUE',
      '`backlog` must be given to listen(); got it among the options of createServer().',
    ],
    [
      () => createServer!({ slotBytes: 64 }),
      'ERR_INVALID_ARG_VALUE',
      '`slotBytes` must be given to connect(), connectChannel(), createServer({ socket }) or createChannelServer({ channel }); got it among the options of createServer().',
    ],
    [
      () => createServer!({ slotBytez: 64 }),
      'ERR_INVALID_ARG_VALUE',
      "`options` of createServer() must contain only channel, socket, allowHalfOpen, highWaterMark, pauseOnConnect, maxBufferedBytes, broadcasts; got 'slotBytez'.",
    ],
  ],
  createChannelServer: [
    [
      () => createChannelServer!('x'),
      'ERR_INVALID_ARG_TYPE',
      "`options` of createChannelServer() must be an object; got 'x'.",
    ],
    [() => createChannelServer!({}, 'x'), 'ERR_INVALID_ARG_TYPE', "`handler` must be a function; got 'x'."],
    [
      () => createChannelServer!({ maxConnections: 3 }),
      'ERR_INVALID_ARG_VALUE',
      '`maxConnections` must be given to the server itself, as `server.maxConnections`; got it among the options of createChannelServer().',
    ],
  ],
  'ServerOptions.channel': [
    [
      () => createServer!({ channel: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`channel` of createChannelServer() must be an object; got 5.',
    ],
    [
      () => createServer!({ channel: { ringBytes: 0 } }),
      'ERR_INVALID_ARG_VALUE',
      '`ringBytes` must be given to connect() or createServer({ socket }); got it among the options of createChannelServer({ channel }).',
    ],
  ],
  'ServerOptions.socket': [
    [
      () => createServer!({ socket: null }),
      'ERR_INVALID_ARG_TYPE',
      '`socket` of createServer() must be an object; got null.',
    ],
    [
      () => createServer!({ socket: { host: HOST } }),
      'ERR_INVALID_ARG_VALUE',
      '`host` must be given to listen(), connect(), connectChannel(), createSharedMap() or openSharedMap(); got it among the options of createServer({ socket }).',
    ],
  ],
  'ServerOptions.broadcasts': [
    [
      () => createServer!({ broadcasts: 1 }),
      'ERR_INVALID_ARG_TYPE',
      '`broadcasts` must be a boolean; got 1.',
    ],
  ],
  'ServerOptions.maxBufferedBytes': [
    [
      () => createServer!({ maxBufferedBytes: 0 }),
      'ERR_OUT_OF_RANGE',
      '`maxBufferedBytes` must be an integer of at least 1; got 0.',
    ],
  ],
  'ServerOptions.highWaterMark': [
    [
      () => createServer!({ highWaterMark: -1 }),
      'ERR_OUT_OF_RANGE',
      '`highWaterMark` must be an integer of at least 0; got -1.',
    ],
  ],
  'Server.listen': [
    [
      () => server.listen!(0),
      'ERR_SERVER_ALREADY_LISTEN',
      'The server is already listening. Close it first.',
    ],
    [() => listen(0, true), 'ERR_INVALID_ARG_TYPE', '`host` must be an address or a host name; got true.'],
    [() => listen('x'), 'ERR_SOCKET_BAD_PORT', "`port` must be an integer from 0 to 65535; got 'x'."],
    [
      () => listen({ maxConnections: 3 }),
      'ERR_INVALID_ARG_VALUE',
      '`maxConnections` must be given to the server itself, as `server.maxConnections`; got it among the options of listen().',
    ],
    [
      () => failed(listen(0, '192.0.2.1')),
      'EADDRNOTAVAIL',
      'listen 192.0.2.1:0: The address does not belong to a device of this host or cannot be used here; use one of its addresses. (No device of this host has the address 192.0.2.1.)',
    ],
  ],
  'ListenOptions.port': [
    [
      () => listen({ port: 65_536 }),
      'ERR_SOCKET_BAD_PORT',
      '`port` must be an integer from 0 to 65535; got 65536.',
    ],
  ],
  'ListenOptions.host': [
    [() => listen({ host: 5 }), 'ERR_INVALID_ARG_TYPE', '`host` must be an address or a host name; got 5.'],
  ],
  'ListenOptions.name': [
    [
      () => listen({ name: 'a b' }),
      'ERR_INVALID_ARG_VALUE',
      '`name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got \'a b\'.',
    ],
    [
      () => listen({ name: 'n'.repeat(49) }),
      'ERR_INVALID_ARG_VALUE',
      '`name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got \'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\' of 49 characters.',
    ],
    [
      () => listen({ name: 'n', port: 5 }),
      'ERR_INVALID_ARG_VALUE',
      '`name` of listen() must be given without `port` and `host`; got `port`.',
    ],
  ],
  'ListenOptions.backlog': [
    [
      () => failed(listen({ port: 0, host: HOST, backlog: -1 })),
      'EINVAL',
      'listen 127.0.0.1:0: `backlog` must be a number of requests, or 0 for the maximum; got -1.',
    ],
  ],
  'ListenOptions.signal': [
    [() => listen({ signal: null }), 'ERR_INVALID_ARG_TYPE', '`signal` must be an AbortSignal; got null.'],
  ],
  'Server.maxConnections': [
    [
      () => Object.assign(server, { maxConnections: -1 }),
      'ERR_OUT_OF_RANGE',
      '`maxConnections` must be a non-negative number, or undefined for no limit; got -1.',
    ],
    [
      () => Object.assign(server, { maxConnections: 'x' }),
      'ERR_OUT_OF_RANGE',
      "`maxConnections` must be a non-negative number, or undefined for no limit; got 'x'.",
    ],
  ],
  'Server.getConnections': [
    [() => server.getConnections!(5), 'ERR_INVALID_ARG_TYPE', '`callback` must be a function; got 5.'],
  ],
  'Server.close': [[() => server.close!('x'), 'ERR_INVALID_ARG_TYPE', "`done` must be a function; got 'x'."]],
  'Server.expose': [
    [
      () => server.expose!('x'),
      'EINVAL',
      'expose: `buffer` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got a string.',
    ],
    [
      () => untyped(net.createServer()).expose!(U8),
      'ERR_SERVER_NOT_RUNNING',
      'The server is not listening. Call listen() first.',
    ],
  ],
  'Server.broadcast': [
    [
      () => server.broadcast!('x'),
      'ERR_INVALID_ARG_VALUE',
      '`broadcasts` of createChannelServer() must be true for broadcast(); got undefined.',
    ],
    [
      () => broadcaster.broadcast!(5),
      'ERR_INVALID_ARG_TYPE',
      '`message` must be a Uint8Array or a string; got a number.',
    ],
    [
      () => broadcaster.broadcast!('x', 5),
      'ERR_INVALID_ARG_TYPE',
      '`options` of broadcast() must be an object; got 5.',
    ],
    [
      () => broadcaster.broadcast!('x', { slots: 5 }),
      'ERR_INVALID_ARG_VALUE',
      '`slots` must be given to connect(), connectChannel(), createServer({ socket }) or createChannelServer({ channel }); got it among the options of broadcast().',
    ],
  ],
  'BroadcastOptions.except': [
    [
      () => broadcaster.broadcast!('x', { except: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`except` must be a Channel; got 5.',
    ],
  ],
  'BroadcastOptions.slow': [
    [
      () => broadcaster.broadcast!('x', { slow: 'skip' }),
      'ERR_INVALID_ARG_VALUE',
      "`slow` must be 'drop' or 'close'; got 'skip'.",
    ],
  ],
  'BroadcastOptions.maxQueuedBytes': [
    [
      () => broadcaster.broadcast!('x', { maxQueuedBytes: 0 }),
      'ERR_OUT_OF_RANGE',
      '`maxQueuedBytes` must be an integer of at least 1; got 0.',
    ],
  ],
  setMaxBufferedBytes: [
    [() => setMaxBufferedBytes!(0), 'ERR_OUT_OF_RANGE', '`bytes` must be an integer of at least 1; got 0.'],
  ],
  allocate: [
    [
      () => allocate!(0),
      'INVALID_PARAMETER',
      `allocate: \`bytes\` must be an integer from 1 to ${constants.MAX_LENGTH}; got 0.`,
    ],
    [
      () => allocate!('x'),
      'INVALID_PARAMETER',
      `allocate: \`bytes\` must be an integer from 1 to ${constants.MAX_LENGTH}; got 'x'.`,
    ],
    [
      () => allocate!(8, null),
      'INVALID_PARAMETER',
      'allocate: `options` must be an object with shared; got null.',
    ],
    [
      () => allocate!(8, { share: true }),
      'INVALID_PARAMETER',
      "allocate: `options` must contain only shared; got 'share'.",
    ],
  ],
  'AllocateOptions.shared': [
    [
      () => allocate!(8, { shared: 'yes' }),
      'INVALID_PARAMETER',
      "allocate: `shared` must be a boolean; got 'yes'.",
    ],
  ],
  'Channel.onRequest': [
    [() => channel.onRequest!(5), 'ERR_INVALID_ARG_TYPE', '`handler` must be a function; got 5.'],
  ],
  'Channel.send': [
    [
      () => channel.send!(5),
      'ERR_INVALID_ARG_TYPE',
      '`bytes` must be a Uint8Array or a string; got a number.',
    ],
    [() => channel.send!('x', 5), 'ERR_INVALID_ARG_TYPE', '`options` of send() must be an object; got 5.'],
    [
      () => channel.send!('x', { signall: 5 }),
      'ERR_INVALID_ARG_VALUE',
      "`options` of send() must contain only signal; got 'signall'.",
    ],
    [() => closed.send!('x'), 'ERR_STREAM_DESTROYED', 'send: the connection is closed.'],
  ],
  'Channel.request': [
    [
      () => channel.request!({}),
      'ERR_INVALID_ARG_TYPE',
      '`bytes` must be a Uint8Array or a string; got an object.',
    ],
    [
      () => channel.request!('x', 'y'),
      'ERR_INVALID_ARG_TYPE',
      "`options` of request() must be an object; got 'y'.",
    ],
    [() => served.request!('x'), 'ERR_REMOTE', 'The peer has no request handler.'],
    [() => closed.request!('x'), 'ERR_STREAM_DESTROYED', 'request: the connection is closed.'],
  ],
  'Channel.receive': [
    [() => channel.receive!(5), 'ERR_INVALID_ARG_TYPE', '`options` of receive() must be an object; got 5.'],
  ],
  'AbortOptions.signal': [
    [
      () => channel.send!('x', { signal: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`signal` must be an AbortSignal; got 5.',
    ],
    [
      () => channel.receive!({ signal: {} }),
      'ERR_INVALID_ARG_TYPE',
      '`signal` must be an AbortSignal; got an object.',
    ],
    [() => channel.request!('x', { signal: AbortSignal.abort() }), 'ABORT_ERR', 'The operation was aborted'],
  ],
  'Channel.expose': [
    [
      () => channel.expose!('x'),
      'EINVAL',
      'expose: `buffer` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got a string.',
    ],
    [() => channel.expose!(new Uint8Array(0)), 'EINVAL', 'expose: `buffer` must not be empty.'],
    [
      () => channel.expose!(U8, null),
      'ERR_INVALID_ARG_TYPE',
      '`options` of expose() must be an object; got null.',
    ],
    [
      () => channel.expose!(U8, { slots: 5 }),
      'ERR_INVALID_ARG_VALUE',
      '`slots` must be given to connect(), connectChannel(), createServer({ socket }) or createChannelServer({ channel }); got it among the options of expose().',
    ],
    [() => closed.expose!(U8), 'ERR_STREAM_DESTROYED', 'expose: the connection is closed.'],
  ],
  'ExposeOptions.writable': [
    [
      () => channel.expose!(U8, { writable: 1 }),
      'ERR_INVALID_ARG_TYPE',
      '`writable` must be a boolean; got 1.',
    ],
  ],
  'ExposeOptions.views': [
    [() => channel.expose!(U8, { views: 1 }), 'ERR_INVALID_ARG_TYPE', '`views` must be a boolean; got 1.'],
    [
      () => channel.expose!(U8, { views: true }),
      'EINVAL',
      'expose: `buffer` must be memory from allocate() for peers to map it (REMOTE_VIEW); got other memory.',
    ],
  ],
  'Channel.open': [
    [() => channel.open!('x'), 'ERR_INVALID_ARG_TYPE', '`handle` must be a Uint8Array; got a string.'],
    [
      () => channel.open!(U8),
      'EPROTO',
      '`handle` must be a handle of exposed memory, as sent by the peer; got 3 other bytes.',
    ],
    [() => closed.open!(U8), 'ERR_STREAM_DESTROYED', 'open: the connection is closed.'],
  ],
  'Channel.lend': [
    [
      () => channel.lend!(5),
      'EINVAL',
      'lend: `buffer` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got a number.',
    ],
    [() => closed.lend!(U8), 'ERR_STREAM_DESTROYED', 'lend: the connection is closed.'],
  ],
  'Channel.close': [
    [() => channel.close!(5), 'ERR_INVALID_ARG_TYPE', '`options` of close() must be an object; got 5.'],
  ],
  'ExposedMemory.handleFor': [
    [
      () => exposed.handleFor!(undefined),
      'ERR_INVALID_ARG_TYPE',
      '`channel` must be a Channel; got undefined.',
    ],
    [() => exposed.handleFor!({}), 'ERR_INVALID_ARG_TYPE', '`channel` must be a Channel; got an object.'],
  ],
  'RemoteMemory.read': [
    [() => memory.read!(-1, 8), 'ERR_OUT_OF_RANGE', '`offset` must be a non-negative integer; got -1.'],
    [() => memory.read!(0, 'x'), 'ERR_OUT_OF_RANGE', "`length` must be a non-negative integer; got 'x'."],
    [
      () => memory.read!(60, 8),
      'ERR_OUT_OF_RANGE',
      'Accessed bytes must be within the 64 bytes of the memory; got 8 bytes at offset 60.',
    ],
    [() => memory.read!(0, 8, 5), 'ERR_INVALID_ARG_TYPE', '`options` of read() must be an object; got 5.'],
    [() => stale.read!(0, 8), 'ERR_STREAM_DESTROYED', 'read: the connection is closed.'],
  ],
  'RemoteMemory.write': [
    [() => memory.write!(0, 'x'), 'ERR_INVALID_ARG_TYPE', '`bytes` must be a Uint8Array; got a string.'],
    [
      () => memory.write!(64, U8),
      'ERR_OUT_OF_RANGE',
      'Accessed bytes must be within the 64 bytes of the memory; got 3 bytes at offset 64.',
    ],
    [
      () => readonly.write!(0, U8),
      'EACCES',
      'The memory is read-only. The peer must expose it with writable: true.',
    ],
  ],
  'RemoteMemory.readSync': [
    [() => memory.readSync!(0, 8), 'ERR_INVALID_ARG_TYPE', '`into` must be a Uint8Array; got a number.'],
    [
      () => memory.readSync!(NaN, U8),
      'ERR_OUT_OF_RANGE',
      '`offset` must be a non-negative integer; got NaN.',
    ],
  ],
  'RemoteMemory.writeSync': [
    [() => memory.writeSync!(0, []), 'ERR_INVALID_ARG_TYPE', '`from` must be a Uint8Array; got an array.'],
    [
      () => readonly.writeSync!(0, U8),
      'EACCES',
      'The memory is read-only. The peer must expose it with writable: true.',
    ],
    [() => stale.writeSync!(0, U8), 'ERR_STREAM_DESTROYED', 'writeSync: the connection is closed.'],
  ],
  'RemoteMemory.compareExchange': [
    [
      () => memory.compareExchange!(4, 0n, 0n),
      'ERR_OUT_OF_RANGE',
      '`offset` must be a multiple of 8; got 4.',
    ],
    [() => memory.compareExchange!(0, 0, 0n), 'ERR_INVALID_ARG_TYPE', '`expected` must be a bigint; got 0.'],
    [
      () => memory.compareExchange!(0, 0n, 0),
      'ERR_INVALID_ARG_TYPE',
      '`replacement` must be a bigint; got 0.',
    ],
    [
      () => stale.compareExchange!(0, 0n, 0n),
      'ERR_STREAM_DESTROYED',
      'compareExchange: the connection is closed.',
    ],
  ],
  'RemoteMemory.compareExchangeSync': [
    [
      () => memory.compareExchangeSync!(0, 2n ** 63n, 0n),
      'ERR_OUT_OF_RANGE',
      '`expected` must be a signed 64-bit integer; got 9223372036854775808n.',
    ],
  ],
  'RemoteMemory.fetchAdd': [
    [() => memory.fetchAdd!(0, 1), 'ERR_INVALID_ARG_TYPE', '`value` must be a bigint; got 1.'],
    [
      () => memory.fetchAdd!(64, 1n),
      'ERR_OUT_OF_RANGE',
      'Accessed bytes must be within the 64 bytes of the memory; got 8 bytes at offset 64.',
    ],
    [
      () => readonly.fetchAdd!(0, 1n),
      'EACCES',
      'The memory is read-only. The peer must expose it with writable: true.',
    ],
  ],
  'RemoteMemory.fetchAddSync': [
    [
      () => memory.fetchAddSync!(0, undefined),
      'ERR_INVALID_ARG_TYPE',
      '`value` must be a bigint; got undefined.',
    ],
  ],
  'RemoteMemory.map': [
    [
      () => memory.map!(),
      'ENOTSUP',
      'map: the memory cannot be mapped: the peer did not expose it with views: true. Use read().',
    ],
    [() => stale.map!(), 'ERR_STREAM_DESTROYED', 'map: the connection is closed.'],
  ],
  'RemoteOptions.signal': [
    [
      () => memory.write!(0, U8, { signal: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`signal` must be an AbortSignal; got 5.',
    ],
  ],
  createSharedMap: [
    [
      () => createSharedMap!(),
      'ERR_INVALID_ARG_TYPE',
      '`options` of createSharedMap() must be an object; got undefined.',
    ],
    [
      () => createSharedMap!({ entries: 8 }),
      'ERR_INVALID_ARG_VALUE',
      '`name` or `port` of createSharedMap() must be given; got neither.',
    ],
    [
      () => createSharedMap!({ entries: 8, port: 0, codec: 'xml' }),
      'ERR_INVALID_ARG_VALUE',
      "`codec` must be 'bytes', 'string', 'json', 'v8' or an object with encode() and decode(); got 'xml'.",
    ],
    [
      () => createSharedMap!({ entries: 8, port: 0, ttl: 5 }),
      'ERR_INVALID_ARG_VALUE',
      '`ttl` must be given to set(); got it among the options of createSharedMap().',
    ],
  ],
  'SharedMapOptions.entries': [
    [
      () => createSharedMap!({ entries: 0, port: 0 }),
      'ERR_OUT_OF_RANGE',
      '`entries` must be an integer from 1 to 67108864; got 0.',
    ],
  ],
  'SharedMapOptions.bytes': [
    [
      () => createSharedMap!({ entries: 8, port: 0, bytes: 5 }),
      'ERR_OUT_OF_RANGE',
      '`bytes` must be an integer from 65536 to 4294901760; got 5.',
    ],
  ],
  'SharedMapOptions.counters': [
    [
      () => createSharedMap!({ entries: 8, port: 0, counters: 0 }),
      'ERR_OUT_OF_RANGE',
      '`counters` must be an integer from 1 to 1048576; got 0.',
    ],
  ],
  'SharedMapOptions.name': [
    [
      () => createSharedMap!({ entries: 8, name: '/' }),
      'ERR_INVALID_ARG_VALUE',
      '`name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got \'/\'.',
    ],
  ],
  'SharedMapOptions.port': [
    [
      () => createSharedMap!({ entries: 8, port: -1 }),
      'ERR_SOCKET_BAD_PORT',
      '`port` must be an integer from 0 to 65535; got -1.',
    ],
  ],
  'SharedMapOptions.host': [
    [
      () => createSharedMap!({ entries: 8, port: 0, host: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`host` must be an address or a host name; got 5.',
    ],
  ],
  openSharedMap: [
    [
      () => openSharedMap!(null),
      'ERR_INVALID_ARG_TYPE',
      '`options` of openSharedMap() must be an object; got null.',
    ],
    [
      () => openSharedMap!({}),
      'ERR_INVALID_ARG_VALUE',
      '`name` or `port` of openSharedMap() must be given; got neither.',
    ],
    [
      () => openSharedMap!({ port: FREE, entries: 5 }),
      'ERR_INVALID_ARG_VALUE',
      '`entries` must be given to createSharedMap(); got it among the options of openSharedMap().',
    ],
    [
      () => openSharedMap!({ port: untyped(map.address!()).port, host: HOST, codec: 'json' }),
      'ERR_INVALID_ARG_VALUE',
      "`codec` must be 'bytes', as for the owner; got 'json'.",
    ],
  ],
  'OpenSharedMapOptions.name': [
    [
      () => openSharedMap!({ name: 5 }),
      'ERR_INVALID_ARG_VALUE',
      '`name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got 5.',
    ],
  ],
  'OpenSharedMapOptions.port': [
    [
      () => openSharedMap!({ port: 0 }),
      'ERR_SOCKET_BAD_PORT',
      '`port` must be an integer from 1 to 65535; got 0.',
    ],
  ],
  'OpenSharedMapOptions.host': [
    [
      () => openSharedMap!({ port: FREE, host: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`host` must be an address or a host name; got 5.',
    ],
  ],
  'OpenSharedMapOptions.signal': [
    [
      () => openSharedMap!({ port: FREE, signal: 5 }),
      'ERR_INVALID_ARG_TYPE',
      '`signal` must be an AbortSignal; got 5.',
    ],
  ],
  'SharedMap.set': [
    [() => map.set!(5, 'v'), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got 5.'],
    [
      () => map.set!('k'.repeat(1025), 'v'),
      'ERR_OUT_OF_RANGE',
      '`key` must have at most 1024 bytes in UTF-8; got 1025.',
    ],
    [
      () => map.set!('\ud800', 'v'),
      'ERR_INVALID_ARG_VALUE',
      '`key` must be a well-formed string; got a lone surrogate.',
    ],
    [
      () => map.set!('k', 5),
      'ERR_INVALID_ARG_TYPE',
      '`value` must be a Uint8Array or a string; got a number.',
    ],
    [() => map.set!('k', 'v', 5), 'ERR_INVALID_ARG_TYPE', '`options` of set() must be an object; got 5.'],
    [
      () => map.set!('k', 'v', { tll: 5 }),
      'ERR_INVALID_ARG_VALUE',
      "`options` of set() must contain only ttl; got 'tll'.",
    ],
    [() => closedMap.set!('k', 'v'), 'ERR_STREAM_DESTROYED', 'set: the map is closed.'],
  ],
  'SetOptions.ttl': [
    [
      () => map.set!('k', 'v', { ttl: '5' }),
      'ERR_INVALID_ARG_TYPE',
      "`ttl` must be a number of milliseconds; got '5'.",
    ],
    [
      () => map.set!('k', 'v', { ttl: 0 }),
      'ERR_OUT_OF_RANGE',
      '`ttl` must be a number of milliseconds above 0; got 0.',
    ],
  ],
  'SharedMap.get': [
    [() => map.get!(undefined), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got undefined.'],
    [() => closedMap.get!('k'), 'ERR_STREAM_DESTROYED', 'get: the map is closed.'],
  ],
  'SharedMap.getInto': [
    [() => map.getInto!('k', 'x'), 'ERR_INVALID_ARG_TYPE', '`target` must be a Uint8Array; got a string.'],
    [() => closedMap.getInto!('k', U8), 'ERR_STREAM_DESTROYED', 'getInto: the map is closed.'],
  ],
  'SharedMap.has': [
    [() => map.has!(5), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got 5.'],
    [() => closedMap.has!('k'), 'ERR_STREAM_DESTROYED', 'has: the map is closed.'],
  ],
  'SharedMap.delete': [
    [() => map.delete!(5), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got 5.'],
    [() => closedMap.delete!('k'), 'ERR_STREAM_DESTROYED', 'delete: the map is closed.'],
  ],
  'SharedMap.clear': [[() => closedMap.clear!(), 'ERR_STREAM_DESTROYED', 'clear: the map is closed.']],
  'SharedMap.add': [
    [() => map.add!(5, 1), 'ERR_INVALID_ARG_TYPE', '`name` must be a string; got 5.'],
    [() => map.add!('n', '1'), 'ERR_INVALID_ARG_TYPE', "`amount` must be a number; got '1'."],
    [
      () => map.add!('n', 1.5),
      'ERR_OUT_OF_RANGE',
      '`amount` must be an integer from -(2 ** 53 - 1) to 2 ** 53 - 1; got 1.5.',
    ],
    [() => closedMap.add!('n', 1), 'ERR_STREAM_DESTROYED', 'add: the map is closed.'],
  ],
  'SharedMapView.get': [
    [() => view.get!(5), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got 5.'],
    [() => closedView.get!('k'), 'ERR_STREAM_DESTROYED', 'The view of the shared map is closed.'],
  ],
  'SharedMapView.getInto': [
    [() => view.getInto!('k', []), 'ERR_INVALID_ARG_TYPE', '`target` must be a Uint8Array; got an array.'],
    [() => closedView.getInto!('k', U8), 'ERR_STREAM_DESTROYED', 'The view of the shared map is closed.'],
  ],
  'SharedMapView.has': [[() => view.has!(5), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got 5.']],
  'SharedMapView.getAsync': [
    [() => view.getAsync!(5), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got 5.'],
  ],
  'SharedMapView.set': [
    [
      () => view.set!('k', {}),
      'ERR_INVALID_ARG_TYPE',
      '`value` must be a Uint8Array or a string; got an object.',
    ],
    [
      () => view.set!('k', 'v', { ttl: -1 }),
      'ERR_OUT_OF_RANGE',
      '`ttl` must be a number of milliseconds above 0; got -1.',
    ],
  ],
  'SharedMapView.delete': [
    [() => view.delete!(null), 'ERR_INVALID_ARG_TYPE', '`key` must be a string; got null.'],
  ],
  'SharedMapView.add': [
    [
      () => view.add!('n', 2 ** 53),
      'ERR_OUT_OF_RANGE',
      '`amount` must be an integer from -(2 ** 53 - 1) to 2 ** 53 - 1; got 9007199254740992.',
    ],
  ],
  'SharedMapView.addAsync': [
    [() => view.addAsync!('n', null), 'ERR_INVALID_ARG_TYPE', '`amount` must be a number; got null.'],
  ],
  'Socket.setTimeout': [
    [
      () => socket.setTimeout!('5'),
      'ERR_INVALID_ARG_TYPE',
      "`ms` must be a number of milliseconds; got '5'.",
    ],
    [
      () => socket.setTimeout!(2 ** 31),
      'ERR_OUT_OF_RANGE',
      '`ms` must be from 0 to 2147483647 milliseconds; got 2147483648.',
    ],
    [() => socket.setTimeout!(5, 5), 'ERR_INVALID_ARG_TYPE', '`callback` must be a function; got 5.'],
  ],
};

provoke(test, rows);

test('each function, method and option has rows', () => {
  complete(doorsOf('networkdirect/net'), rows, [
    [/\.(?:un)?ref$/, 'without arguments and in every state'],
    [/^Codec\./, 'written by the program'],
    [/^(?:new NetError|new RemoteMemory)$/, 'not created by programs'],
    [/^(?:SharedMap|SharedMapView)\.(?:address|close)$/, 'without arguments, and closing twice is permitted'],
    [/^(?:Server|Socket)\.address$/, 'null or empty in other states'],
    [/^Server\.close(?:All|Idle)Connections$/, 'without arguments and in every state'],
    [/^(?:ExposedMemory|LentMemory)\.release$/, 'without arguments, and releasing twice is permitted'],
    [/^Channel\.destroy$/, 'ends with any reason'],
    [
      /^Socket\.(?:setNoDelay|setKeepAlive|resetAndDestroy|destroySoon|pause|resume)$/,
      'without arguments and in every state',
    ],
    [/^NodeSocketOptions\./, 'accepted for programs of node:net, without effect'],
    [/\.(?:allowHalfOpen|pauseOnConnect)$/, 'as in node:net, any value that counts as true'],
  ]);
});

test.run();
