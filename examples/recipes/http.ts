// HTTP of Node.js between processes over connections of this package, with a server and a keep-alive agent.
//
//   node dist/examples/recipes/http.js
import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { connect, createServer } from 'networkdirect/net';

async function serve(name: string): Promise<void> {
  // Any request handler works, including those of Express, Fastify or Koa.
  const web = http.createServer(async (request, response) => {
    if (request.url === '/upload') response.end(`${(await text(request)).length} characters have come`);
    else response.writeHead(404).end('there is no such page');
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => void web.emit('connection', socket));
  server.listen({ name });
  await once(server, 'listening');
  process.send!('ready');
  await once(process, 'message');
  // Finishes the pending requests, then ends the connections.
  web.closeIdleConnections();
  await server.close();
  process.disconnect();
}

async function main(): Promise<void> {
  const name = `web-${process.pid}`;
  const child = fork(new URL(import.meta.url), [name]);
  await once(child, 'message');
  const agent = new http.Agent({ keepAlive: true });
  let connections = 0;
  // The types of Node.js require net.Socket here, but any Duplex works.
  const createConnection = (): never => {
    connections += 1;
    return connect({ name, allowHalfOpen: true }) as never;
  };
  agent.createConnection = createConnection;
  const ask = async (path: string, body: string): Promise<string> => {
    const request = http.request({ agent, method: 'POST', path });
    request.end(body);
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    return `${response.statusCode}: ${await text(response)}`;
  };
  console.log(await ask('/upload', 'x'.repeat(100_000)));
  console.log(await ask('/other', ''));
  console.log(`connections: ${connections}`);
  agent.destroy();
  child.send('stop');
  await once(child, 'exit');
}

const [name] = process.argv.slice(2);
if (name !== undefined) await serve(name);
else await main();
