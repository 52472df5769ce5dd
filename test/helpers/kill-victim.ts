/**
 * A process that is to be killed: `victim port` holds a port of its own, tells it, and makes sessions with a listener
 * for ever: connect, write, read, messages both ways, disconnect.
 */
import { openProvider, QpAttr, QpState, WvSend } from '../../winverbs/index.js';
import { ADDRESS, openListener, openSide, take, toInit } from './loopback.js';

const peer = { family: 4, address: ADDRESS, port: Number(process.argv[2]) } as const;
const provider = openProvider();
const { peer: own } = openListener(provider);
process.send!(own.port);

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
  await ep.accept(null, {});
  for (let n = 0; n < 2; n++) {
    side.qp.send('message', sgl, WvSend.SIGNALED);
    // Its own completion and the answer.
    await take(side.cq, 2);
  }
  if (remote.length === 0) throw new Error('The listener has sent no private data.');
  await ep.disconnect();
  ep.release();
  side.qp.modify({ qpState: QpState.RESET }, QpAttr.STATE);
  toInit(side.qp);
}
