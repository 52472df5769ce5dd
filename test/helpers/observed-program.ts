// A process that others observe. Its two connected queue pairs exchange as many messages as an IPC message requests.
import { connectedPair, take } from './loopback.js';

/** Data that observers must not see. */
const SECRET = 'held by the observed process';

const { a, b } = await connectedPair(
  { bytes: Buffer.alloc(8192, SECRET) },
  { bytes: Buffer.alloc(4096, SECRET) },
);
const { localAddress, peerAddress } = a.ep.query();
process.on('message', async (count: number) => {
  for (let n = 0; n < count; n++) {
    b.qp.postReceive('r', []);
    a.qp.send('s', [], 4);
    await take(a.cq, 1);
    await take(b.cq, 1);
  }
  process.send!({ exchanged: count });
});
process.send!({
  secret: SECRET,
  keys: [a, b].flatMap(({ region }) => [region.lkey, region.rkey]),
  local: localAddress,
  remote: peerAddress,
});
