/**
 * A process to be killed: `victim port clients seed` opens its own port, reports it, and runs `clients` clients that repeat sessions with a
 * listener: connect, messages in both directions, disconnect. On request it exits normally.
 */
import { openProvider, QpAttr, QpState, WvSend } from '../../winverbs/index.js';
import { ADDRESS, openListener, openSide, take, toInit } from './loopback.js';
import { seeded } from './random.js';

const [port, clients, seed] = process.argv.slice(2).map(Number) as [number, number, number];
const peer = { family: 4, address: ADDRESS, port } as const;
const provider = openProvider();
const { peer: own } = openListener(provider);
process.on('message', () => process.exit(0));
process.send!(own.port);

async function client(random: () => number): Promise<never> {
  // Clients are in different phases when the process is killed.
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, random() * 6));
  const side = openSide(provider);
  const sgl = [{ region: side.region, offset: 0, length: 64 }];
  for (;;) {
    const ep = provider.createConnectEndpoint();
    ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    ep.resolveRoute(peer);
    await ep.connect(side.qp, peer, {});
    const { privateData } = ep.query();
    const remote = Buffer.from(privateData);
    for (let n = 0; n < 2; n++) side.qp.postReceive('answer', sgl);
    await pause();
    await ep.accept(null, {});
    for (let n = 0; n < 2; n++) {
      side.qp.send('message', sgl, WvSend.SIGNALED);
      // Takes the completion of the Send, and the reply.
      await take(side.cq, 2);
      await pause();
    }
    if (remote.length === 0) throw new Error('The listener did not send private data.');
    await ep.disconnect();
    ep.release();
    side.qp.modify({ qpState: QpState.RESET }, QpAttr.STATE);
    toInit(side.qp);
  }
}

await Promise.all(Array.from({ length: clients }, (_, n) => client(seeded(seed + n))));
