/** Completion queues: limits, notification, resizing, overrun. */
import { Status } from '../../index.js';
import {
  ALLOW_READ,
  CANCELED,
  type CaseContext,
  End,
  receives,
  SEND_AND_SOLICIT_EVENT,
  SILENT_SUCCESS,
  SUCCESS,
  sends,
} from '../case-context.js';
import { Group } from './define.js';

const group = new Group('cq');
export const completionCases = group.cases;

const { PENDING } = Status;

group.add('entries-limits', '§IND2Adapter::CreateCompletionQueue: 1 up to the limit', async (t) => {
  const { cqEntries } = t.nearInfo.limits;
  const wrong = t.spi === 'v1' ? Status.INVALID_PARAMETER : Status.INVALID_PARAMETER_3;
  for (const entries of [0, -1, cqEntries + 1, 2 ** 32, 1.5]) {
    await t.refused(t.near.cq(entries), wrong, `CreateCompletionQueue with ${entries} entries`);
  }
  for (const entries of [1, cqEntries]) {
    t.step(`creating a completion queue of ${entries} entries`);
    const cq = await t.near.cq(entries);
    const granted = await t.near.cqEntries(cq);
    t.ok(granted >= entries, 'Entries of the queue', `at least ${entries}`, String(granted));
    await t.near.release(cq);
  }
});

group.add('resize-limits', '§IND2CompletionQueue::Resize: INVALID_PARAMETER beyond the limits', async (t) => {
  const cq = await t.near.cq(16);
  const { cqEntries } = t.nearInfo.limits;
  for (const entries of [0, -1, cqEntries + 1]) {
    await t.refused(t.near.resize(cq, entries), Status.INVALID_PARAMETER, `Resize to ${entries} entries`);
  }
  t.ok((await t.near.cqEntries(cq)) >= 16, 'Entries after a failed Resize', '16', 'fewer');
  await t.near.resize(cq, cqEntries);
  t.ok(
    (await t.near.cqEntries(cq)) >= cqEntries,
    'Entries after Resize to the limit',
    `${cqEntries}`,
    'fewer',
  );
});

group.add(
  'resize-below-content',
  '§IND2CompletionQueue::Resize: BUFFER_OVERFLOW below the waiting completions',
  async (t) => {
    const { near, far } = await t.pair();
    await far.post(...receives(10));
    await near.post(...sends(9, 64, 0, SILENT_SUCCESS), ...sends(1));
    await near.done(1);
    // Once the last completion is reported, those before it have arrived as well.
    const [seen] = await far.received(1);
    t.results([seen!], [[0, SUCCESS]], 'The first Receive');
    await t.refused(
      t.far.resize(far.inbound, 5),
      Status.BUFFER_OVERFLOW,
      'Resize to 5 entries with more waiting',
    );
    await t.far.resize(far.inbound, 64);
    t.run(await far.received(9), 9, SUCCESS, 'Results that waited during Resize', 1);
  },
);

group.add(
  'resize-in-use',
  '§IND2CompletionQueue::Resize: loses no completion and does not stop traffic',
  async (t) => {
    const { near, far } = await t.pair({ near: { cqEntries: 40 }, far: { cqEntries: 40 } });
    for (let round = 0; round < 8; round += 1) {
      await far.post(...receives(30));
      const [, resized] = await near.party.inOneTurn([
        ['post', near.link, sends(30)],
        ['resize', near.outbound, round % 2 === 0 ? 400 : 40],
      ]);
      if ('status' in resized) t.status(resized.status, SUCCESS, 'Resize');
      await t.far.resize(far.inbound, round % 2 === 0 ? 40 : 300);
      t.run(await near.done(30), 30, SUCCESS, 'Sends during Resize');
      t.run(await far.received(30), 30, SUCCESS, 'Receives during Resize');
    }
  },
);

group.add('get-results-max', '§IND2CompletionQueue::GetResults: at most as many as requested', async (t) => {
  const near = await End.make(t.near);
  await near.post(...receives(10));
  await t.near.flush(near.link);
  const first = await near.received(3);
  t.run(first, 3, CANCELED, 'The first three');
  t.run(await near.received(7), 7, CANCELED, 'The rest, none lost or duplicated', 3);
  t.same(await t.near.poll(near.inbound, 5), [], 'An empty queue');
  t.same(await t.near.poll(near.inbound, 0), [], 'GetResults of none');
});

group.add(
  'two-queues-one-cq',
  '§IND2Adapter::CreateQueuePair: both queues on one completion queue',
  async (t) => {
    const cq = await t.near.cq(128);
    const near = await End.make(t.near, { inbound: cq, outbound: cq });
    const far = await End.make(t.far);
    const { listener, address } = await t.listen('far');
    await t.join(near, far, listener, address);
    await near.post(...receives(4));
    await far.post(...receives(4));
    await near.post(...sends(4, 64, 100));
    await far.post(...sends(4));
    const all = await t.near.take(cq, 8);
    t.run(
      all.filter(({ context }) => Number(context) < 100),
      4,
      SUCCESS,
      'Receives in order',
    );
    t.run(
      all.filter(({ context }) => Number(context) >= 100),
      4,
      SUCCESS,
      'Sends in order',
      100,
    );
  },
);

group.add(
  'smaller-than-queues',
  '§IND2Adapter::CreateQueuePair: a completion queue may be smaller than the queues',
  async (t) => {
    const near = await End.make(t.near, { receives: 64, requests: 64, cqEntries: 8 });
    const far = await End.make(t.far);
    const { listener, address } = await t.listen('far');
    await t.join(near, far, listener, address);
    await far.post(...receives(8));
    await near.post(...sends(8));
    t.run(await near.done(8), 8, SUCCESS, 'Eight results in a queue of eight');
  },
);

for (const [name, which] of [
  ['overrun', 'inbound'],
  ['overrun-by-sends', 'outbound'],
] as const) {
  group.add(name, '§IND2CompletionQueue::Notify: BUFFER_OVERFLOW when the queue overruns', async (t) => {
    const small = await t.near.cq(1);
    const depth = (await t.near.cqEntries(small)) + 1;
    const { receives: most, requests } = t.nearInfo.limits;
    if (depth > most || depth > requests)
      t.skip('The smallest completion queue is too large for a queue pair to overrun.');
    const sizes = { receives: depth, requests: depth };
    const { near, far } = await t.pair({ near: { ...sizes, [which]: small }, far: sizes });
    const error = await t.near.notify(small, 'errors');
    await (which === 'inbound' ? near : far).post(...receives(depth, 0));
    if (which === 'inbound') await t.near.flush(near.link);
    else await near.post(...sends(depth, 0));
    await t.ends(
      t.near,
      error,
      [Status.BUFFER_OVERFLOW, Status.DATA_OVERRUN],
      "Notify of 'errors' when the queue overruns",
    );
  });
}

group.add('notify-any', '§IND2CompletionQueue::Notify: ANY', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...receives(2));
  const notified = await t.far.notify(far.inbound, 'any');
  t.status(await t.far.statusNow(notified), PENDING, 'Notify on an empty queue');
  await near.post(...sends(1));
  await t.ends(t.far, notified, SUCCESS, 'Notify when a message has arrived');
  t.run(await far.received(1), 1, SUCCESS, 'The Receive');
});

group.add(
  'notify-missed-nothing',
  '§IND2CompletionQueue::Notify: ends at once if a completion came since GetResults',
  async (t) => {
    const { near, far } = await t.pair();
    await far.post(...receives(8));
    for (let i = 0; i < 8; i += 1) {
      t.same(await t.far.poll(far.inbound, 4), [], 'A drained queue');
      await near.post(...sends(1, 64, i));
      t.run(await near.done(1), 1, SUCCESS, 'The Send', i);
      // The message may already have arrived, or may be about to arrive.
      await t.ends(
        t.far,
        await t.far.notify(far.inbound, 'any'),
        SUCCESS,
        'Notify after the message was sent',
      );
      t.run(await t.far.poll(far.inbound, 4), 1, SUCCESS, 'The result that Notify announced', i);
    }
  },
);

group.add('notify-not-twice', '§IND2CompletionQueue::Notify: a completion is announced once', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...receives(3));
  const first = await t.far.notify(far.inbound, 'any');
  await near.post(...sends(1));
  await t.ends(t.far, first, SUCCESS, 'Notify');
  t.run(await t.far.poll(far.inbound, 4), 1, SUCCESS, 'The Receive');
  const second = await t.far.notify(far.inbound, 'any');
  t.same(await t.far.poll(far.inbound, 4), [], 'A drained queue');
  t.status(await t.far.statusNow(second), PENDING, 'Notify after its completion was announced and taken');
  await near.post(...sends(1));
  await t.ends(t.far, second, SUCCESS, 'Notify of the next');
});

group.add(
  'notify-all-together',
  '§IND2CompletionQueue::Notify: all waiting requests complete together',
  async (t) => {
    const { near, far } = await t.pair();
    await far.post(...receives(1));
    const waiting: number[] = [];
    for (let i = 0; i < 5; i += 1) waiting.push(await t.far.notify(far.inbound, 'any'));
    await near.post(...sends(1));
    for (const request of waiting) await t.ends(t.far, request, SUCCESS, 'One of five Notify requests');
  },
);

/** Waits until an end has been notified of one of its own Sends, so that all earlier events have been reported. */
async function awaitOwnNotify(t: CaseContext, end: End, peer: End): Promise<void> {
  const notified = await end.party.notify(end.outbound, 'any');
  await peer.post(...receives(1));
  await end.post(...sends(1));
  await t.ends(end.party, notified, SUCCESS, 'Notify of a later Send');
}

group.add('notify-solicited', '§IND2CompletionQueue::Notify: SOLICITED', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...receives(2));
  const solicited = await t.far.notify(far.inbound, 'solicited');
  await near.post(...sends(1));
  t.run(await near.done(1), 1, SUCCESS, 'A Send without SEND_AND_SOLICIT_EVENT');
  await awaitOwnNotify(t, far, near);
  t.status(await t.far.statusNow(solicited), PENDING, 'SOLICITED after an unsolicited message');
  await near.post(...sends(1, 64, 1, SEND_AND_SOLICIT_EVENT));
  await t.ends(t.far, solicited, SUCCESS, 'SOLICITED after a Send with SEND_AND_SOLICIT_EVENT');
  t.run(await far.received(2), 2, SUCCESS, 'Both Receives');
});

group.add(
  'notify-solicited-by-failure',
  '§IND2CompletionQueue::Notify: SOLICITED ends with a failed request',
  async (t) => {
    const near = await End.make(t.near);
    await near.post(...receives(1));
    const solicited = await t.near.notify(near.inbound, 'solicited');
    await t.near.flush(near.link);
    await t.ends(t.near, solicited, SUCCESS, 'SOLICITED after a request was cancelled');
  },
);

group.add(
  'notify-any-upgrades',
  '§IND2CompletionQueue::Notify: ANY also ends a waiting SOLICITED',
  async (t) => {
    const { near, far } = await t.pair();
    await far.post(...receives(1));
    const solicited = await t.far.notify(far.inbound, 'solicited');
    const any = await t.far.notify(far.inbound, 'any');
    await near.post(...sends(1));
    await t.ends(t.far, any, SUCCESS, 'ANY');
    await t.ends(t.far, solicited, SUCCESS, 'SOLICITED that was waiting when ANY was issued');
  },
);

group.add(
  'notify-errors',
  '§IND2CompletionQueue::Notify: ERRORS does not include failed requests',
  async (t) => {
    const { near, far } = await t.pair();
    const errors = await t.near.notify(near.outbound, 'errors');
    const any = await t.near.notify(near.outbound, 'any');
    const { target } = await far.open(ALLOW_READ, 64);
    await near.post({ op: 'read', context: 'r', pieces: [{ at: 0, length: 65 }], target });
    await t.ends(t.near, any, SUCCESS, 'ANY after a failed request');
    t.results(await near.done(1), [['r', t.statuses.remoteAccess]], 'A Read that fails');
    t.status(await t.near.statusNow(errors), PENDING, 'ERRORS after a failed request');
    t.same(await t.near.cancel(near.outbound), [CANCELED], 'Cancel of ERRORS');
  },
);

group.add('notify-cancel', '§IND2Overlapped::CancelOverlappedRequests: complete on return', async (t) => {
  const { near, far } = await t.pair();
  await far.post(...receives(1));
  await t.far.notify(far.inbound, 'any');
  await t.far.notify(far.inbound, 'solicited');
  await t.far.notify(far.inbound, 'errors');
  const other = await t.far.notify(far.outbound, 'any');
  t.same(
    await t.far.cancel(far.inbound),
    [CANCELED, CANCELED, CANCELED],
    'Three requests, when Cancel has returned',
  );
  t.status(await t.far.statusNow(other), PENDING, 'Notify of another completion queue');
  t.same(await t.far.cancel(far.inbound), [], 'Cancel with nothing outstanding');
  // The queue can be armed again, and no events are lost.
  const again = await t.far.notify(far.inbound, 'any');
  await near.post(...sends(1));
  await t.ends(t.far, again, SUCCESS, 'Notify after Cancel');
});

group.add('notify-release', '§IND2CompletionQueue: releasing it cancels Notify', async (t) => {
  const near = await End.make(t.near);
  const waiting = await t.near.notify(near.inbound, 'any');
  await t.near.release(near.link, 'inbound');
  await t.ends(t.near, waiting, CANCELED, 'Notify of a released completion queue');
});

group.add('unarmed', '§IND2CompletionQueue: completions accumulate', async (t) => {
  const { near, far } = await t.pair({
    near: { requests: 100, cqEntries: 256 },
    far: { receives: 100, cqEntries: 256 },
  });
  await far.post(...receives(100));
  await near.post(...sends(100));
  t.run(await near.done(100), 100, SUCCESS, 'Sends without a waiting Notify');
  t.run(await far.received(100), 100, SUCCESS, 'Receives without a waiting Notify');
});
