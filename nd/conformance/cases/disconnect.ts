/** The end of connections: by either side, by both, by an error, by release. */
import { Status } from '../../index.js';
import {
  ALLOW_READ,
  CANCELED,
  type CaseContext,
  type End,
  receives,
  SILENT_SUCCESS,
  SUCCESS,
  sends,
  statusOf,
} from '../case-context.js';
import { Group } from './define.js';

const group = new Group('disconnect');
export const disconnectCases = group.cases;

const { PENDING } = Status;

/** Both assignments of the roles of the acting side and its peer. */
async function roles(
  t: CaseContext,
  acting: 'near' | 'far',
  active: 'near' | 'far' = 'near',
): Promise<{ here: End; there: End }> {
  const { near, far } = await t.pair({ active });
  return acting === 'near' ? { here: near, there: far } : { here: far, there: near };
}

for (const acting of ['near', 'far'] as const) {
  const who = acting === 'near' ? 'connecter' : 'accepter';

  group.add(`${who}-both-sides`, '§IND2Connector::Disconnect, ::NotifyDisconnect', async (t) => {
    const { here, there } = await roles(t, acting);
    const own = await here.party.notifyDisconnect(here.link);
    const theirs = await there.party.notifyDisconnect(there.link);
    t.status(await here.party.statusNow(own), PENDING, 'NotifyDisconnect while connected');
    await t.disconnect(here);
    await t.ends(here.party, own, t.statuses.ownDisconnect, 'NotifyDisconnect of the side that disconnects');
    await t.ends(there.party, theirs, SUCCESS, 'NotifyDisconnect of its peer');
    // The peer's own Disconnect has no effect.
    await t.ends(
      there.party,
      await there.party.notifyDisconnect(there.link),
      SUCCESS,
      'NotifyDisconnect after the end',
    );
    await t.ends(there.party, await there.party.disconnect(there.link), SUCCESS, "The peer's Disconnect");
    for (const end of [here, there]) {
      await t.ends(
        end.party,
        await end.party.disconnect(end.link),
        Status.CONNECTION_INVALID,
        'Disconnect of a disconnected connector',
      );
    }
  });

  group.add(
    `${who}-own-requests`,
    '§IND2Connector::Disconnect: outstanding requests are cancelled',
    async (t) => {
      const { here } = await roles(t, acting);
      await here.party.inOneTurn([
        ['post', here.link, [...receives(5), ...sends(4, 64, 50)]],
        ['disconnect', here.link],
      ]);
      t.run(await here.received(5), 5, CANCELED, 'Receives of the side that disconnects');
      const done = await here.done(4);
      t.same(
        done.map(({ context }) => context),
        [50, 51, 52, 53],
        'Sends of the side that disconnects',
      );
      t.ok(
        done.every(({ status }) => status !== SUCCESS),
        'Sends without a Receive',
        'CANCELED',
        'SUCCESS',
      );
      for (const cq of [here.inbound, here.outbound]) {
        t.same(await here.party.poll(cq, 8), [], 'A second result for any request');
      }
    },
  );

  group.add(
    `${who}-peers-requests`,
    "§IND2Connector::NotifyDisconnect: the peer's queue pair is flushed",
    async (t) => {
      const { here, there } = await roles(t, acting);
      await there.post(...receives(7));
      await t.disconnect(here);
      t.run(await there.received(7), 7, CANCELED, "The peer's Receives");
      t.same(await there.party.poll(there.inbound, 8), [], 'A second result for any Receive');
    },
  );

  group.add(
    `${who}-delivers-first`,
    '§IND2Connector::Disconnect: completed requests are delivered',
    async (t) => {
      const { here, there } = await roles(t, acting);
      await there.post(...receives(10, 1000));
      await here.post(...sends(6, 1000));
      t.run(await here.done(6), 6, SUCCESS, 'Sends before Disconnect');
      await t.disconnect(here);
      const got = await there.received(10);
      t.run(got.slice(0, 6), 6, SUCCESS, 'Receives of messages sent before Disconnect');
      t.run(got.slice(6), 4, CANCELED, 'The other Receives', 6);
    },
  );

  group.add(
    `${who}-peer-keeps`,
    '§NdAdapterOptions: keepQueuePairsOnDisconnect leaves the flush to the program',
    async (t) => {
      const keeper = acting === 'near' ? t.far : t.near;
      const status = await statusOf(keeper.begin({ keepQueuePairsOnDisconnect: true }));
      if (status === Status.INVALID_PARAMETER)
        t.skip('This provider does not support keepQueuePairsOnDisconnect.');
      t.status(status, SUCCESS, 'OpenAdapter');
      const { here, there } = await roles(t, acting);
      await there.post(...receives(3));
      const notified = await there.party.notifyDisconnect(there.link);
      await t.disconnect(here);
      await t.ends(there.party, notified, SUCCESS, 'NotifyDisconnect of the side that keeps its queue pair');
      t.same(await there.party.poll(there.inbound, 8), [], 'Receives of a queue pair that is kept');
      await t.ends(there.party, await there.party.disconnect(there.link), SUCCESS, 'Its own Disconnect');
      t.run(await there.received(3), 3, CANCELED, 'Receives after its own Disconnect');
    },
  );

  group.add(`${who}-posts-after`, '§IND2Connector::Disconnect: later requests are cancelled', async (t) => {
    const { here, there } = await roles(t, acting);
    await t.disconnect(here);
    for (const end of [here, there]) {
      await end.post(...receives(1, 64, 8));
      t.results(await end.received(1), [[8, CANCELED]], 'A Receive posted after the end');
      const status = await end.postStatus(sends(1, 64, 9)[0]!);
      t.status(status, [SUCCESS, Status.CONNECTION_INVALID], 'A Send posted after the end');
      if (status === SUCCESS) t.results(await end.done(1), [[9, CANCELED]], 'That Send');
    }
  });

  group.add(
    `${who}-released-connector`,
    '§IND2Connector: releasing it while connected is a Disconnect',
    async (t) => {
      const { here, there } = await roles(t, acting);
      await there.post(...receives(3));
      const gone = await there.party.notifyDisconnect(there.link);
      await here.party.release(here.link, 'connector');
      await t.ends(there.party, gone, SUCCESS, 'NotifyDisconnect of the peer');
      t.run(await there.received(3), 3, CANCELED, 'Receives of the peer');
    },
  );

  group.add(
    `${who}-released-endpoint`,
    '§IND2QueuePair: releasing it while connected ends the connection',
    async (t) => {
      const { here, there } = await roles(t, acting);
      await here.post(...receives(3));
      await here.party.release(here.link, 'endpoint');
      t.run(await here.received(3), 3, CANCELED, 'Receives of a released queue pair');
      await there.post(...sends(1));
      const [result] = await there.done(1);
      t.ok(
        result !== undefined && result.status !== SUCCESS,
        'A Send to a released queue pair',
        'a failure',
        result === undefined ? 'nothing' : 'SUCCESS',
      );
    },
  );

  group.add(
    `${who}-cancel-notify`,
    '§IND2Overlapped::CancelOverlappedRequests: of NotifyDisconnect',
    async (t) => {
      const { here, there } = await roles(t, acting);
      await here.party.notifyDisconnect(here.link);
      await here.party.notifyDisconnect(here.link);
      t.same(
        await here.party.cancel(here.link),
        [CANCELED, CANCELED],
        'Two requests, when Cancel has returned',
      );
      await there.post(...receives(1));
      await here.post(...sends(1));
      t.run(await there.received(1), 1, SUCCESS, 'A message on the connection, which still exists');
      const again = await here.party.notifyDisconnect(here.link);
      await t.disconnect(there);
      await t.ends(here.party, again, SUCCESS, 'NotifyDisconnect issued after Cancel');
    },
  );
}

group.add('both-at-once', '§IND2Connector::Disconnect: both sides may, and both succeed', async (t) => {
  for (let round = 0; round < 6; round += 1) {
    const { near, far } = await t.pair();
    for (const end of [near, far]) await end.post(...receives(3));
    const requests = await Promise.all([t.near.disconnect(near.link), t.far.disconnect(far.link)]);
    await t.ends(t.near, requests[0], SUCCESS, "Near's Disconnect");
    await t.ends(t.far, requests[1], SUCCESS, "Far's Disconnect");
    for (const end of [near, far]) t.run(await end.received(3), 3, CANCELED, 'Receives');
  }
});

group.add('twice', '§IND2Connector::Disconnect: while disconnecting', async (t) => {
  const { near } = await t.pair();
  const calls = await t.near.inOneTurn([
    ['disconnect', near.link],
    ['disconnect', near.link],
  ]);
  const [first, second] = calls.map((call) => ('value' in call ? call.value : -1)) as [number, number];
  await t.ends(
    t.near,
    second,
    [Status.INVALID_DEVICE_STATE, Status.CONNECTION_INVALID],
    'Disconnect while the first is outstanding',
  );
  await t.ends(t.near, first, SUCCESS, 'The first Disconnect');
});

group.add(
  'several-notifications',
  '§IND2Connector::NotifyDisconnect: several may be outstanding',
  async (t) => {
    const { near, far } = await t.pair();
    const waiting: number[] = [];
    for (let i = 0; i < 4; i += 1) waiting.push(await t.near.notifyDisconnect(near.link));
    await t.disconnect(far);
    for (const request of waiting)
      await t.ends(t.near, request, SUCCESS, 'One of four NotifyDisconnect requests');
  },
);

group.add(
  'at-once-after-connecting',
  '§IND2Connector::NotifyDisconnect: allowed from CompleteConnect on',
  async (t) => {
    const { near, far, connected } = await t.requested();
    const accepted = await t.far.accept(far.link);
    await t.ends(t.near, connected, SUCCESS, 'Connect');
    const calls = await t.near.inOneTurn([
      ['complete', near.link],
      ['notifyDisconnect', near.link],
    ]);
    const [completed, notified] = calls.map((call) => ('value' in call ? call.value : -1)) as [
      number,
      number,
    ];
    await t.ends(t.near, completed, SUCCESS, 'CompleteConnect');
    t.status(await t.near.statusNow(notified), PENDING, 'NotifyDisconnect');
    await t.ends(t.far, accepted, SUCCESS, 'Accept');
    await t.disconnect(far);
    await t.ends(t.near, notified, SUCCESS, 'NotifyDisconnect when the peer disconnects');
  },
);

group.add('silent-requests', '§ND_OP_FLAG_SILENT_SUCCESS: cancelled requests have a result', async (t) => {
  const { near } = await t.pair();
  const status = await t.near.inOneTurn([
    ['disconnect', near.link],
    ['post', near.link, sends(5, 64, 0, SILENT_SUCCESS)],
  ]);
  t.ok('value' in status[1], 'Posting', 'possible', 'refused');
  const accepted =
    'value' in status[1] ? status[1].value.filter((posted) => posted.status === SUCCESS).length : 0;
  t.run(await near.done(accepted), accepted, CANCELED, 'Silent Sends posted while disconnecting');
});

group.add('others-unharmed', '§IND2Connector::Disconnect: other connections are not affected', async (t) => {
  const first = await t.pair();
  const second = await t.pair();
  await second.far.post(...receives(2));
  await second.near.post(...sends(1));
  await t.disconnect(first.near);
  await second.near.post(...sends(1, 64, 1));
  t.run(await second.far.received(2), 2, SUCCESS, 'Receives of another connection');
});

group.add('error-ends-both', '§ND2_RESULT: any failed request ends the connection', async (t) => {
  const { near, far } = await t.pair();
  const ends = [await t.near.notifyDisconnect(near.link), await t.far.notifyDisconnect(far.link)];
  for (const end of [near, far]) await end.post(...receives(2));
  const { target } = await far.open(ALLOW_READ, 64);
  await near.post({ op: 'read', context: 'r', pieces: [{ at: 0, length: 65 }], target });
  t.results(await near.done(1), [['r', t.statuses.remoteAccess]], 'A Read beyond its window');
  t.run(await near.received(2), 2, CANCELED, 'Receives of the side that failed');
  t.run(await far.received(2), 2, CANCELED, 'Receives of its peer');
  await t.ends(t.far, ends[1]!, SUCCESS, "NotifyDisconnect of the failed side's peer");
});

group.add('local-error-ends-both', '§ND2_RESULT: any failed request ends the connection', async (t) => {
  const { near, far } = await t.pair();
  const gone = await t.far.notifyDisconnect(far.link);
  const memory = await t.near.memory(4096);
  await near.post({ op: 'receive', context: 'r', pieces: [{ memory, at: 0, length: 4096 }] }, ...receives(2));
  await t.ends(t.near, await t.near.deregister(memory), SUCCESS, 'Deregister under a Receive');
  await far.post(...sends(1));
  t.results(
    await near.received(3),
    [
      ['r', Status.ACCESS_VIOLATION],
      [0, CANCELED],
      [1, CANCELED],
    ],
    'A Receive whose memory was deregistered, and those after it',
  );
  await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect of the peer');
});

group.add('results-after-release', '§IND2CompletionQueue: results outlive the queue pair', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...receives(4));
  await near.post(...sends(2));
  t.run(await near.done(2), 2, SUCCESS, 'Sends');
  await t.far.release(far.link);
  const got = await far.received(4);
  t.run(got.slice(0, 2), 2, SUCCESS, 'Completed Receives');
  t.run(got.slice(2), 2, CANCELED, 'Outstanding Receives', 2);
});

group.add('release-in-any-order', '§IUnknown: objects may be released in any order', async (t) => {
  const orders = [
    ['inbound', 'outbound', 'endpoint', 'connector'],
    ['connector', 'endpoint', 'outbound', 'inbound'],
    ['endpoint', 'inbound', 'connector', 'outbound'],
    ['outbound', 'connector', 'inbound', 'endpoint'],
  ] as const;
  for (const order of orders) {
    const { near, far } = await t.pair();
    const gone = await t.far.notifyDisconnect(far.link);
    await near.post(...receives(3), ...sends(2));
    await t.near.notify(near.inbound, 'any');
    await t.near.notifyDisconnect(near.link);
    for (const part of order) await t.near.release(near.link, part);
    await t.ends(
      t.far,
      gone,
      SUCCESS,
      `NotifyDisconnect of the peer, when ${order.join(', ')} were released`,
    );
  }
});

group.add(
  'release-while-connecting',
  '§IND2Connector: releasing it while connecting notifies the peer',
  async (t) => {
    const { near, far } = await t.requested();
    await t.near.release(near.link, 'connector');
    await t.ends(
      t.far,
      await t.far.accept(far.link),
      [Status.CONNECTION_ABORTED, Status.CONNECTION_REFUSED],
      'Accept of a request whose connector was released',
    );
  },
);
