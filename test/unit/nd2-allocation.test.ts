import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Nd2OpFlag, Nd2RemoteMemory, type Nd2Result } from '../../nd/index.js';
import type { WvCompletion } from '../../winverbs/index.js';
import { openFake2, queuePairOf, registered2 } from '../helpers/nd2-fixture.js';

test('v2: posting requests and taking results allocate nothing', () => {
  const { adapter, pd } = openFake2();
  const memory = registered2(adapter, pd, 1);
  const { queuePair, qp, receives, initiators } = queuePairOf(adapter, pd, { depth: 8, context: {} });
  // Without the logging of the fakes, which must not be measured.
  const contexts: unknown[] = [];
  let posted = 0;
  let next = 0;
  const keep = (context: unknown): void => {
    contexts[posted++] = context;
  };
  qp.send = keep;
  qp.write = keep;
  qp.read = keep;
  let received: unknown;
  qp.postReceive = (context) => {
    received = context;
  };
  const completion: WvCompletion = {
    context: undefined,
    qpContext: undefined,
    opcode: 0,
    status: 0,
    length: 16,
    flags: 0,
    immediateData: 0,
    sourceQpn: 0,
    vendorCode: 0,
    pkeyIndex: 0,
    sLid: 0,
    sl: 0,
    dLidPathBits: 0,
  };
  const { sendCq, receiveCq } = qp.create;
  // The Write is silent: it never completes.
  sendCq.poll = (completions: WvCompletion[]) => {
    if (++next >= posted) return 0;
    completion.context = contexts[next];
    completions[0] = completion;
    return 1;
  };
  receiveCq.poll = (completions: WvCompletion[]) => {
    if (received === undefined) return 0;
    completion.context = received;
    received = undefined;
    completions[0] = completion;
    return 1;
  };
  const sgl = [{ memory, offset: 0, length: 1000 }];
  const small = [{ memory: new Uint8Array(16), offset: 0, length: 16 }];
  const remote = new Nd2RemoteMemory(0x7fff_1234_5678n, 0xdead_beef);
  const context = {};
  const results: Nd2Result[] = [];
  const round = (): void => {
    posted = 0;
    next = 0;
    queuePair.receive(context, sgl);
    queuePair.write(context, sgl, remote, 64, Nd2OpFlag.SILENT_SUCCESS);
    queuePair.read(context, sgl, remote, 64);
    queuePair.send(context, small, Nd2OpFlag.INLINE | Nd2OpFlag.READ_FENCE);
    if (initiators.getResults(results, 1) + initiators.getResults(results, 1) !== 2) throw new Error('lost');
    if (receives.getResults(results, 1) !== 1) throw new Error('lost');
  };
  for (let i = 0; i < 50_000; i += 1) round();
  // The lowest of several runs, because the engine may compile or collect garbage in any one.
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 10; run += 1) {
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 20_000; i += 1) round();
    const grown = process.memoryUsage().heapUsed - before;
    if (grown >= 0) least = Math.min(least, grown);
  }
  assert.ok(least < 20_000 * 4, `the heap grew by ${(least / 20_000).toFixed(1)} bytes per round`);
});

test.run();
