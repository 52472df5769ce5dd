/** Traffic class, flow label and hop limit of a queue pair's address vector, as found on the guest's link. */
import assert from 'node:assert/strict';
import { SIGNALED } from './interop-side.js';
import { type Hosts, IbvWc } from './verbs-guest.js';

const SIZE = 3000;
/** Our request, in packets of 1024 bytes. */
const PACKETS = 3;
const route = { trafficClass: 0x68, flowLabel: 0x54321, hopLimit: 9 } as const;

export async function routeOfOurs(hosts: Hosts): Promise<void> {
  const { qp, queue, memory } = await hosts.pair({ size: SIZE, route });
  const { trafficClass, flowLabel, hopLimit } = qp.query();
  assert.deepEqual({ trafficClass, flowLabel, hopLimit }, route);
  await hosts.watch();
  await hosts.receive(0, SIZE);
  qp.send('send', memory.sge(), SIGNALED);
  await queue.next();
  const [there] = await hosts.completions(1);
  assert.equal(there?.status, IbvWc.SUCCESS);
  for (const { version, class: seen, label, hops } of await hosts.seen(PACKETS)) {
    assert.equal(seen, trafficClass);
    assert.equal(hops, hopLimit);
    assert.equal(label, version === 4 ? 0 : flowLabel);
  }
}
