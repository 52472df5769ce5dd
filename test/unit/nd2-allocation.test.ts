import { test } from 'uvu';
import { Nd2OpFlag, Nd2RemoteMemory, type Nd2Result } from '../../nd/index.js';
import { allocatesNothing, completing } from '../helpers/allocates.js';
import { openFake2, queuePairOf, registered2 } from '../helpers/nd2-fixture.js';

test('v2: posting requests and taking results allocate nothing', () => {
  const { adapter, pd } = openFake2();
  const memory = registered2(adapter, pd, 1);
  const { queuePair, qp, receives, initiators } = queuePairOf(adapter, pd, { depth: 8, context: {} });
  const begin = completing(qp);
  const sgl = [{ memory, offset: 0, length: 1000 }];
  const small = [{ memory: new Uint8Array(16), offset: 0, length: 16 }];
  const remote = new Nd2RemoteMemory(0x7fff_1234_5678n, 0xdead_beef);
  const context = {};
  const results: Nd2Result[] = [];
  allocatesNothing(() => {
    begin();
    queuePair.receive(context, sgl);
    queuePair.write(context, sgl, remote, 64, Nd2OpFlag.SILENT_SUCCESS);
    queuePair.read(context, sgl, remote, 64);
    queuePair.send(context, small, Nd2OpFlag.INLINE | Nd2OpFlag.READ_FENCE);
    if (initiators.getResults(results, 1) + initiators.getResults(results, 1) !== 2) throw new Error('lost');
    if (receives.getResults(results, 1) !== 1) throw new Error('lost');
  });
});

test.run();
