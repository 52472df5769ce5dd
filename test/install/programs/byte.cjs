// Opens the software HCA, sends a byte over networkdirect/net, and returns what comes back.
const { once } = require('node:events');

module.exports = async ({ connect, createServer }) => {
  const server = createServer((socket) => socket.pipe(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect(server.address().port, '127.0.0.1');
  socket.write(Buffer.of(42));
  const [chunk] = await once(socket, 'data');
  socket.end();
  await once(socket, 'close');
  server.close();
  await once(server, 'close');
  return `received ${chunk[0]}`;
};
