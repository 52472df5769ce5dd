import { test } from 'uvu';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { RemoteMemory, type WvCompletion, WvSend } from '../../winverbs/index.js';
import { allocatesNothing } from '../helpers/allocates.js';
import { writeCqe } from '../helpers/fake-hca.js';
import { openPair } from '../helpers/rig-door.js';

test('posting and polling allocate nothing', () => {
  const { qp, cq, cqRing, pd, token, setState, hca } = openPair();
  setState(3);
  // Disables the fake's log of doorbells, which must not be measured.
  hca.log.push = () => 0;
  const region = pd.registerMemory(new Uint8Array(64), 0);
  const sgl = [{ region, offset: 0, length: 16 }];
  const remote = new RemoteMemory({ address: 0x7fff_1234_5678n, rkey: 0xdead_beef });
  const completions: WvCompletion[] = [];
  const context = {};
  const send = { token, wqe: 0, length: 16 };
  const receive = { token, wqe: 0, length: 16, flags: abi.cqeFlagReceiveQueue };
  let index = 0;
  const round = () => {
    qp.write(context, sgl, WvSend.SIGNALED, remote, 4096);
    qp.send(context, sgl, WvSend.SIGNALED | WvSend.INLINE);
    qp.postReceive(context, sgl);
    send.wqe = index + 1;
    receive.wqe = index >> 1;
    index += 2;
    writeCqe(cqRing, send);
    writeCqe(cqRing, receive);
    if (cq.poll(completions, 4) !== 2) throw new Error('two completions were expected');
  };
  allocatesNothing(round);
});

test.run();
