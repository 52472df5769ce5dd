import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdMwDescriptor, NdOpFlag, type NdResult } from '../../nd/index.js';
import type { WvCompletion } from '../../winverbs/index.js';
import { endpointOf, openFake, registered, result } from '../helpers/nd-fixture.js';

test('posting requests and taking results allocate nothing', () => {
  const { adapter, pd } = openFake();
  const memory = registered(adapter, pd);
  const { endpoint, qp, inCq, outCq, inbound, outbound } = endpointOf(adapter, pd, {
    outbound: 8,
    inbound: 8,
  });
  // Without the logging of the fakes, which must not be measured.
  const sent: unknown[] = [undefined, undefined, undefined];
  const received: unknown[] = [undefined];
  let posted = 0;
  const keep = (context: unknown): void => {
    sent[posted++] = context;
  };
  qp.send = keep;
  qp.write = keep;
  qp.read = keep;
  qp.postReceive = (context) => {
    received[0] = context;
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
  const pollOf = (contexts: unknown[], index: () => number) => (completions: WvCompletion[]) => {
    const i = index();
    if (i >= contexts.length || contexts[i] === undefined) return 0;
    completion.context = contexts[i];
    contexts[i] = undefined;
    completions[0] = completion;
    return 1;
  };
  let next = 0;
  // The first of the three is silent: it never completes.
  outCq.poll = pollOf(sent, () => ++next);
  inCq.poll = pollOf(received, () => 0);

  const sgl = [{ memory, offset: 0, length: 1000 }];
  const small = [{ memory, offset: 8, length: 16 }];
  const remote = new NdMwDescriptor(0x7fff_1234_5678n, 4096n, 0xdead_beef);
  const shared = result();
  const results: NdResult[] = [shared];
  const round = (): void => {
    posted = 0;
    next = 0;
    endpoint.receive(shared, sgl);
    endpoint.write(shared, sgl, remote, 64, NdOpFlag.SILENT_SUCCESS);
    endpoint.read(shared, sgl, remote, 64);
    endpoint.send(shared, small, NdOpFlag.READ_FENCE);
    if (outbound.getResults(results, 1) + outbound.getResults(results, 1) !== 2) throw new Error('lost');
    if (inbound.getResults(results, 1) !== 1) throw new Error('lost');
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
