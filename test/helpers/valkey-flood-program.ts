/** A server of Valkey's RDMA transport that floods its first client: with `commands`, or with `counts` of no bytes. */
import { command, Opcode, ValkeyPeer } from './valkey-peer.js';

/** Requests before it looks at completions; all make one. */
const BURST = 32;
const listener = ValkeyPeer.listen();
console.log(listener.port);
const peer = await listener.next();
await peer.named();
const nothing = Buffer.alloc(0);
for (;;) {
  for (let n = 0; n < BURST; n += 1) {
    if (process.argv[2] === 'commands') peer.send(command(Opcode.KEEPALIVE));
    else peer.write(nothing);
  }
  await peer.sent(BURST);
}
