// A process or a Worker for tests of views. It exposes memory from allocate() and executes its peer's requests.
import { once } from 'node:events';
import { parentPort } from 'node:worker_threads';
import { allocate, createChannelServer, type ExposedMemory } from '../../nd/net/index.js';

const memory = allocate(Number(process.argv[2]));
memory.fill(1);
let exposed: ExposedMemory | undefined;

const server = createChannelServer((channel) => {
  channel.onRequest(async (bytes) => {
    const [order, ...words] = String(bytes).split(' ');
    if (order === 'expose') {
      const [from, to] = words.slice(1).map(Number);
      exposed = await server.expose(memory.subarray(from, to), { views: words[0] === 'views' });
      return exposed.handle;
    }
    if (order === 'fill') memory.fill(Number(words[0]));
    if (order === 'release') exposed!.release();
    return Buffer.of(memory[Number(words[1] ?? 0)]!);
  });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const reported = { port: server.address()!.port };
if (parentPort === null) process.send!(reported);
else parentPort.postMessage(reported);
