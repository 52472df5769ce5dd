/** Many objects at the same time. */
import { CANCELED, End, receives, SUCCESS, sends } from '../case-context.js';
import { Group } from './define.js';

const group = new Group('scale');
export const scaleCases = group.cases;

/** Number of queue pairs in a case. */
const QUEUE_PAIRS = 2000;
/** Number of simultaneous connections. */
const CONNECTIONS = 150;

group.add(
  'queue-pairs',
  '§IND2Adapter::CreateQueuePair, §INDConnector::CreateEndpoint: thousands',
  async (t) => {
    const { cqEntries } = t.nearInfo.limits;
    const count = Math.min(QUEUE_PAIRS, cqEntries);
    const cq = await t.near.cq(count);
    const links: number[] = [];
    for (let i = 0; i < count; i += 1) {
      t.step(`creating queue pair ${i}`);
      const link = await t.near.link({ memory: 0, inbound: cq, outbound: cq, receives: 2, requests: 2 });
      links.push(link);
      await t.near.post(link, [{ op: 'receive', context: i, pieces: [] }]);
    }
    t.step('flushing all of them');
    for (const link of links) await t.near.flush(link);
    const results = await t.near.take(cq, count);
    t.run(results, count, CANCELED, 'One Receive of each');
    t.same(await t.near.poll(cq, 8), [], 'Further results');
  },
);

group.add('connections', '§IND2Connector: many connections on one completion queue', async (t) => {
  const queues = { near: await t.near.cq(CONNECTIONS * 4), far: await t.far.cq(CONNECTIONS * 4) };
  const { listener, address } = await t.listen('far');
  const options = { receives: 2, requests: 2 };
  const first = {
    near: await End.make(t.near, { ...options, inbound: queues.near, outbound: queues.near }),
    far: await End.make(t.far, { ...options, inbound: queues.far, outbound: queues.far }),
  };
  const pairs: { near: End; far: End }[] = [first];
  for (let i = 1; i < CONNECTIONS; i += 1) {
    pairs.push({
      near: await End.make(t.near, { ...options, memory: 0, inbound: queues.near, outbound: queues.near }),
      far: await End.make(t.far, { ...options, memory: 0, inbound: queues.far, outbound: queues.far }),
    });
  }
  for (const [i, { near, far }] of pairs.entries()) {
    t.step(`establishing connection ${i}`);
    await t.join(near, far, listener, address);
  }
  const at = (memory: number, i: number) => ({ memory, at: i * 100, length: 100 });
  for (const [i, { far }] of pairs.entries()) {
    await far.post({ op: 'receive', context: i, pieces: [at(first.far.memory, i)] });
  }
  for (const [i, { near }] of pairs.entries()) {
    await t.near.fill(first.near.memory, i * 100, 100, i);
    await near.post({ op: 'send', context: i, pieces: [at(first.near.memory, i)] });
  }
  t.step('taking the results of all connections');
  const sent = await t.near.take(queues.near, CONNECTIONS);
  const received = await t.far.take(queues.far, CONNECTIONS);
  for (const [what, results] of [
    ['Sends', sent],
    ['Receives', received],
  ] as const) {
    const sorted = [...results].sort((a, b) => Number(a.context) - Number(b.context));
    t.run(sorted, CONNECTIONS, SUCCESS, `${what}, one of each connection`);
  }
  for (let i = 0; i < CONNECTIONS; i += 1) {
    await t.holds(first.far, i * 100, 100, i, `The message of connection ${i}`);
  }
});

group.add('long-queues', '§IND2Adapter::CreateQueuePair: thousands of requests', async (t) => {
  const { limits } = t.nearInfo;
  const depth = Math.min(4096, limits.receives, limits.requests, t.farInfo.limits.receives);
  const options = { receives: depth, requests: depth, cqEntries: depth };
  const { near, far } = await t.pair({ near: options, far: options });
  await far.post(...receives(depth, 8, 0, 0).map((post) => ({ ...post, pieces: [{ at: 0, length: 8 }] })));
  await near.post(...sends(depth, 8));
  t.run(await near.done(depth), depth, SUCCESS, 'Sends of a full queue');
  t.run(await far.received(depth), depth, SUCCESS, 'Receives of a full queue');
});
