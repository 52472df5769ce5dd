/** HTTP, HTTP/2 and TLS of Node.js over the streams of `networkdirect/net`. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import { text } from 'node:stream/consumers';
import tls from 'node:tls';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connect, createServer, type Server } from '../../nd/net/index.js';
import { endAll, listening } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

test.after.each(endAll);

const HOST = '127.0.0.1';

/** A server that passes its streams to a server of Node.js. */
async function carrying(upper: {
  emit(event: 'connection', stream: unknown): boolean;
}): Promise<[Server, number]> {
  const server = createServer({ allowHalfOpen: true }, (socket) => void upper.emit('connection', socket));
  return [server, await listening(server)];
}

test('HTTP: requests share keep-alive connections, and long bodies arrive', async () => {
  const web = http.createServer(async (request, response) => {
    const body = await text(request);
    response.end(`${request.method} ${request.url} ${body.length}`);
  });
  let connections = 0;
  const [server, port] = await carrying(web);
  server.on('connection', () => (connections += 1));
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  // The type of Node.js names net.Socket but accepts any Duplex.
  Object.assign(agent, { createConnection: () => connect(port, HOST) });
  const ask = async (method: string, path: string, body?: Buffer): Promise<string> => {
    const request = http.request({ agent, method, path });
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return await text(response);
  };
  assert.equal(
    await Promise.all([
      ask('GET', '/a'),
      ask('POST', '/b', Buffer.alloc(3_000_000, 'b')),
      ask('PUT', '/c', Buffer.alloc(10, 'c')),
      ask('GET', '/d'),
    ]),
    ['GET /a 0', 'POST /b 3000000', 'PUT /c 10', 'GET /d 0'],
  );
  assert.is(connections, 2);
  agent.destroy();
  await server.close();
});

test('HTTP/2: streams of one connection', async () => {
  const [server, port] = await carrying(
    http2.createServer((request, response) => void response.end(`2 ${request.url}`)),
  );
  const session = http2.connect(`http://${HOST}`, { createConnection: () => connect(port, HOST) });
  const ask = (path: string): Promise<string> => text(session.request({ ':path': path }).setEncoding('utf8'));
  assert.equal(await Promise.all(['/a', '/b', '/c'].map(ask)), ['2 /a', '2 /b', '2 /c']);
  session.close();
  await server.close();
});

test('TLS: all sent data arrives, no matter how the connection ends; another key is rejected', async () => {
  const psk = randomBytes(32);
  const options = { ciphers: 'PSK', maxVersion: 'TLSv1.2', minVersion: 'TLSv1.2' } as const;
  const secure = tls.createServer(
    { ...options, pskCallback: () => psk },
    (stream) => void stream.pipe(stream),
  );
  const refusals: string[] = [];
  secure.on('tlsClientError', (error) => refusals.push(error.message));
  const [server, port] = await carrying(secure);
  const dial = (key: Buffer): tls.TLSSocket =>
    tls.connect({
      ...options,
      // The type of Node.js names net.Socket but accepts any Duplex.
      socket: connect(port, HOST, { allowHalfOpen: true }) as never,
      pskCallback: () => ({ psk: key, identity: 'test' }),
      checkServerIdentity: () => undefined,
    });
  for (const length of [1, 500_000, 5_000_000]) {
    const sent = patternOf(length);
    const stream = dial(psk);
    stream.end(sent);
    const came: Buffer[] = [];
    for await (const chunk of stream) came.push(chunk as Buffer);
    assert.ok(Buffer.concat(came).equals(sent), `${length} bytes`);
  }
  const stranger = dial(randomBytes(32));
  await once(stranger, 'error');
  assert.is(refusals.length, 1);
  await server.close();
});

test.run();
