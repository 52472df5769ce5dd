/** Listeners and connectors: establishing, refusing and abandoning connections. */
import { Status } from '../../index.js';
import { CANCELED, End, receives, SUCCESS, sends } from '../case-context.js';
import { Group } from './define.js';

const group = new Group('connect');
export const connectCases = group.cases;

const { PENDING } = Status;
const text = (words: string): number[] => [...new TextEncoder().encode(words)];

function startsWith(data: readonly number[], expected: readonly number[]): boolean {
  return (
    expected.every((byte, i) => data[i] === byte) && data.slice(expected.length).every((byte) => byte === 0)
  );
}

for (const active of ['near', 'far'] as const) {
  group.add(`${active}-connects`, '§IND2Connector::Connect, ::CompleteConnect, ::Accept', async (t) => {
    const { near, far, address } = await t.pair({ active });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      await to.post(...receives(1));
      await from.post(...sends(1));
      t.run(await to.received(1), 1, SUCCESS, 'A message');
      t.run(await from.done(1), 1, SUCCESS, 'Its Send');
    }
    const [connecting, accepting] = active === 'near' ? [near, far] : [far, near];
    const here = await connecting.party.localAddress(connecting.link);
    const there = await accepting.party.localAddress(accepting.link);
    t.same(there.port, address.port, "The accepting side's port is the listener's");
    t.same(
      await accepting.party.peerAddress(accepting.link),
      here,
      "The connecting side's address, at its peer",
    );
    t.same(
      await connecting.party.peerAddress(connecting.link),
      there,
      "The accepting side's address, at its peer",
    );
    t.ok(here.port > 0, 'The local port of the connecting side', 'a port', String(here.port));
  });
}

group.add('needs-accept', '§IND2Connector::Connect: completes when the peer accepts', async (t) => {
  const { near, far, connected } = await t.requested();
  t.status(await t.near.statusNow(connected), PENDING, 'Connect before the peer accepts');
  const accepted = await t.far.accept(far.link);
  await t.ends(t.near, connected, SUCCESS, 'Connect when the peer has accepted');
  t.status(await near.postStatus(sends(1)[0]!), Status.CONNECTION_INVALID, 'Send before CompleteConnect');
  await t.ends(t.near, await t.near.complete(near.link), SUCCESS, 'CompleteConnect');
  await t.ends(t.far, accepted, SUCCESS, 'Accept');
});

group.add('private-data', '§IND2Connector::GetPrivateData, §INDConnector::GetConnectionData', async (t) => {
  const request = text('from who connects');
  const reply = text('from who accepts');
  const { near, far, connected } = await t.requested({ request });
  const offered = await t.far.peerData(far.link);
  t.ok(startsWith(offered.data, request), 'Private data of Connect', String(request), String(offered.data));
  const accepted = await t.far.accept(far.link, reply);
  await t.ends(t.near, connected, SUCCESS, 'Connect');
  const replied = await t.near.peerData(near.link);
  t.ok(startsWith(replied.data, reply), 'Private data of Accept', String(reply), String(replied.data));
  await t.ends(t.near, await t.near.complete(near.link), SUCCESS, 'CompleteConnect');
  await t.ends(t.far, accepted, SUCCESS, 'Accept');
});

group.add(
  'private-data-limits',
  '§IND2Connector::Connect, ::Accept: INVALID_BUFFER_SIZE beyond the limits',
  async (t) => {
    const { callerData, calleeData } = t.nearInfo.limits;
    const bytes = (length: number) => Array.from({ length }, (_, i) => (i * 5 + 1) & 0xff);
    const near = await End.make(t.near);
    const far = await End.make(t.far);
    const { listener, address } = await t.listen('far');
    const refusedConnect = await t.near.connect(near.link, address, { data: bytes(callerData + 1) });
    await t.ends(t.near, refusedConnect, Status.INVALID_BUFFER_SIZE, `Connect with ${callerData + 1} bytes`);
    // Nothing has changed, so the same connector can connect.
    const requested = await t.far.awaitRequest(listener, far.link);
    const connected = await t.near.connect(near.link, address, { data: bytes(callerData) });
    await t.ends(t.far, requested, SUCCESS, 'GetConnectionRequest');
    const offered = await t.far.peerData(far.link);
    t.ok(
      startsWith(offered.data, bytes(callerData)),
      'As much private data as Connect allows',
      'all of it',
      String(offered.data),
    );
    const refusedAccept = await t.far.accept(far.link, bytes(calleeData + 1));
    await t.ends(t.far, refusedAccept, Status.INVALID_BUFFER_SIZE, `Accept with ${calleeData + 1} bytes`);
    const accepted = await t.far.accept(far.link, bytes(calleeData));
    await t.ends(t.near, connected, SUCCESS, 'Connect');
    const replied = await t.near.peerData(near.link);
    t.ok(
      startsWith(replied.data, bytes(calleeData)),
      'As much private data as Accept allows',
      'all of it',
      String(replied.data),
    );
    await t.ends(t.near, await t.near.complete(near.link), SUCCESS, 'CompleteConnect');
    await t.ends(t.far, accepted, SUCCESS, 'Accept');
  },
);

group.add('no-private-data', '§IND2Connector::GetPrivateData: none was sent', async (t) => {
  const { far } = await t.requested();
  const { data } = await t.far.peerData(far.link);
  t.ok(
    data.every((byte) => byte === 0),
    'Private data of a Connect without any',
    'none, or zeros',
    String(data),
  );
});

group.add('read-limits', '§IND2Connector::GetReadLimits: within both sides’ limits', async (t) => {
  const { near, far, connected } = await t.requested({
    near: { inboundReads: 3, outboundReads: 5 },
    far: { inboundReads: 4, outboundReads: 2 },
  });
  const offer = await t.far.peerData(far.link);
  t.same(
    [offer.inboundReads, offer.outboundReads],
    [5, 3],
    "The request's offer: inbound is the peer's outbound",
  );
  const accepted = await t.far.accept(far.link);
  await t.ends(t.near, connected, SUCCESS, 'Connect');
  const reply = await t.near.peerData(near.link);
  t.same([reply.inboundReads, reply.outboundReads], [2, 4], "The reply's limits");
  await t.ends(t.near, await t.near.complete(near.link), SUCCESS, 'CompleteConnect');
  await t.ends(t.far, accepted, SUCCESS, 'Accept');
});

group.add(
  'read-limits-reduced',
  '§IND2Connector::Connect: limits above the adapter’s are reduced',
  async (t) => {
    const { far } = await t.requested({ near: { inboundReads: 1_000_000, outboundReads: 1_000_000 } });
    const { inboundReads, outboundReads } = t.farInfo.limits;
    const offer = await t.far.peerData(far.link);
    t.ok(
      offer.inboundReads <= inboundReads && offer.outboundReads <= outboundReads,
      'Read limits of a request for a million',
      `at most ${inboundReads} and ${outboundReads}`,
      `${offer.inboundReads} and ${offer.outboundReads}`,
    );
  },
);

group.add(
  'refused-without-listener',
  '§IND2Connector::Connect: CONNECTION_REFUSED, then a retry',
  async (t) => {
    const near = await End.make(t.near);
    const far = await End.make(t.far);
    await near.post(...receives(2));
    const gone = await t.listen('far');
    await t.far.release(gone.listener);
    await t.ends(
      t.near,
      await t.near.connect(near.link, gone.address, {}),
      Status.CONNECTION_REFUSED,
      'Connect to a port without a listener',
    );
    const { port } = await t.near.localAddress(near.link);
    const { listener, address } = await t.listen('far');
    await t.join(near, far, listener, address);
    t.same((await t.near.localAddress(near.link)).port, port, 'The local port of the second Connect');
    await far.post(...sends(2));
    t.run(await near.received(2), 2, SUCCESS, 'Receives posted before the failed Connect');
  },
);

group.add('rejected', '§IND2Connector::Reject: by the accepting side, with data', async (t) => {
  const { near, far, connected } = await t.requested();
  await near.post(...receives(1));
  const why = text('not today');
  await t.far.reject(far.link, why);
  await t.ends(t.near, connected, Status.CONNECTION_REFUSED, 'A rejected Connect');
  const { data } = await t.near.peerData(near.link);
  t.ok(startsWith(data, why), 'Private data of Reject', String(why), String(data));
  // The connector and its endpoint are unchanged.
  const next = await End.make(t.far);
  const { listener, address } = await t.listen('far');
  await t.join(near, next, listener, address);
  await next.post(...sends(1));
  t.run(await near.received(1), 1, SUCCESS, 'A Receive posted before');
});

group.add('reject-data-limit', '§IND2Connector::Reject: INVALID_BUFFER_SIZE beyond the limit', async (t) => {
  const { far, connected } = await t.requested();
  const { calleeData } = t.farInfo.limits;
  await t.refused(
    t.far.reject(far.link, Array(calleeData + 1).fill(1)),
    Status.INVALID_BUFFER_SIZE,
    `Reject with ${calleeData + 1} bytes`,
  );
  await t.far.reject(far.link, Array(calleeData).fill(1));
  await t.ends(t.near, connected, Status.CONNECTION_REFUSED, 'Connect');
});

group.add('reply-rejected', '§IND2Connector::Reject: by the connecting side, after the reply', async (t) => {
  const { near, far, connected } = await t.requested();
  await far.post(...receives(2));
  const accepted = await t.far.accept(far.link);
  await t.ends(t.near, connected, SUCCESS, 'Connect');
  await t.near.reject(near.link, text('changed my mind'));
  await t.ends(
    t.far,
    accepted,
    [Status.CONNECTION_REFUSED, Status.CONNECTION_ABORTED],
    'Accept whose reply was rejected',
  );
  t.run(await far.received(2), 2, CANCELED, 'Receives of the accepting side');
});

group.add(
  'reply-abandoned',
  '§IND2Connector::Accept: the peer leaves between reply and CompleteConnect',
  async (t) => {
    const { near, far, connected } = await t.requested();
    await far.post(...receives(2));
    const accepted = await t.far.accept(far.link);
    await t.ends(t.near, connected, SUCCESS, 'Connect');
    await t.near.release(near.link, 'connector');
    await t.ends(
      t.far,
      accepted,
      [Status.CONNECTION_REFUSED, Status.CONNECTION_ABORTED],
      'Accept whose peer has released its connector',
    );
    t.run(await far.received(2), 2, CANCELED, 'Receives of the accepting side');
  },
);

group.add('cancel-connect', '§IND2Overlapped::CancelOverlappedRequests: of Connect', async (t) => {
  const { near, far, connected } = await t.requested();
  t.same(await t.near.cancel(near.link), [CANCELED], 'Connect, when Cancel has returned');
  await t.ends(t.near, connected, CANCELED, 'A cancelled Connect');
  await t.ends(
    t.far,
    await t.far.accept(far.link),
    [Status.CONNECTION_ABORTED, Status.CONNECTION_REFUSED],
    'Accept of a request whose Connect was cancelled',
  );
});

group.add(
  'cancel-nothing',
  '§IND2Overlapped::CancelOverlappedRequests: with nothing outstanding',
  async (t) => {
    const near = await End.make(t.near);
    const { listener } = await t.listen('near');
    for (const object of [near.link, near.inbound, listener]) {
      t.same(await t.near.cancel(object), [], 'Cancel with nothing outstanding');
    }
  },
);

group.add(
  'head-to-head',
  '§IND2Connector::Connect: simultaneous Connects establish two connections',
  async (t) => {
    const listening = { near: await t.listen('near'), far: await t.listen('far') };
    const ends = {
      near: [await End.make(t.near), await End.make(t.near)],
      far: [await End.make(t.far), await End.make(t.far)],
    };
    const [nearActive, nearPassive] = ends.near as [End, End];
    const [farActive, farPassive] = ends.far as [End, End];
    await Promise.all([
      t.join(nearActive, farPassive, listening.far.listener, listening.far.address),
      t.join(farActive, nearPassive, listening.near.listener, listening.near.address),
    ]);
    await farPassive.post(...receives(1, 64, 1));
    await nearPassive.post(...receives(1, 64, 2));
    await nearActive.post(...sends(1));
    await farActive.post(...sends(1));
    t.results(await farPassive.received(1), [[1, SUCCESS]], 'Message of one connection');
    t.results(await nearPassive.received(1), [[2, SUCCESS]], 'Message of the other');
  },
);

group.add(
  'data-before-accept-is-seen',
  '§IND2Connector::Accept: data may come before its completion',
  async (t) => {
    const { near, far, connected } = await t.requested();
    await far.post(...receives(1));
    const accepted = await t.far.accept(far.link);
    await t.ends(t.near, connected, SUCCESS, 'Connect');
    await t.ends(t.near, await t.near.complete(near.link), SUCCESS, 'CompleteConnect');
    await near.post(...sends(1));
    t.run(await far.received(1), 1, SUCCESS, 'A message received before the result of Accept is read');
    await t.ends(t.far, accepted, SUCCESS, 'Accept');
  },
);

group.add(
  'endpoint-in-use',
  '§IND2Connector::Connect, ::Accept: CONNECTION_ACTIVE for a queue pair in use',
  async (t) => {
    const { near, address } = await t.pair();
    const other = await End.make(t.near, { endpointOf: near.link });
    await t.ends(
      t.near,
      await t.near.connect(other.link, address, {}),
      Status.CONNECTION_ACTIVE,
      'Connect with a connected queue pair',
    );
    const { listener, address: own } = await t.listen('near');
    const far = await End.make(t.far);
    const third = await End.make(t.near, { endpointOf: near.link });
    const requested = await t.near.awaitRequest(listener, third.link);
    await t.far.connect(far.link, own, {});
    await t.ends(t.near, requested, SUCCESS, 'GetConnectionRequest');
    await t.ends(
      t.near,
      await t.near.accept(third.link),
      Status.CONNECTION_ACTIVE,
      'Accept with a connected queue pair',
    );
  },
);

group.add('bad-addresses', '§IND2Connector::Connect: invalid addresses', async (t) => {
  const near = await End.make(t.near);
  for (const address of ['', 'nonsense', '300.1.2.3:5', '127.0.0.1:70000', '::g']) {
    await t.ends(
      t.near,
      await t.near.connect(near.link, address, {}),
      Status.INVALID_ADDRESS,
      `Connect to '${address}'`,
    );
  }
});

group.add('unreachable', '§IND2Connector::Connect: no path to such an address, then a retry', async (t) => {
  if (t.nearInfo.family === 6) t.skip('The wildcard address of this case is an IPv4 address.');
  const near = await End.make(t.near);
  const far = await End.make(t.far);
  await near.post(...receives(1));
  await t.ends(
    t.near,
    await t.near.connect(near.link, { address: '0.0.0.0', port: 5 }, {}),
    [
      Status.BAD_NETWORK_NAME,
      Status.NETWORK_UNREACHABLE,
      Status.HOST_UNREACHABLE,
      Status.INVALID_ADDRESS,
      Status.CONNECTION_REFUSED,
    ],
    'Connect to the wildcard address',
  );
  const { listener, address } = await t.listen('far');
  await t.join(near, far, listener, address);
});

group.add(
  'endpoint-arguments',
  '§INDConnector::CreateEndpoint: INVALID_PARAMETER_3 to _6, limits work',
  async (t) => {
    const { receives: r, requests, receiveSge, requestSge, cqEntries } = t.nearInfo.limits;
    const limits = [
      ['receives', r, Status.INVALID_PARAMETER_3],
      ['requests', requests, Status.INVALID_PARAMETER_4],
      ['receiveSge', receiveSge, Status.INVALID_PARAMETER_5],
      ['requestSge', requestSge, Status.INVALID_PARAMETER_6],
    ] as const;
    for (const [name, limit, status] of limits) {
      for (const value of [0, -1, limit + 1, 1.5]) {
        await t.refused(
          t.near.link({ [name]: value, memory: 0 }),
          status,
          `CreateEndpoint with ${name} ${value}`,
        );
      }
      t.step(`creating an endpoint with ${name} ${limit}`);
      const link = await t.near.link({ [name]: limit, memory: 0, cqEntries: Math.min(cqEntries, 128) });
      await t.near.release(link);
    }
    for (const [name, status] of [
      ['inboundReads', Status.INVALID_PARAMETER_7],
      ['outboundReads', Status.INVALID_PARAMETER_8],
    ] as const) {
      await t.refused(t.near.link({ [name]: -1, memory: 0 }), status, `CreateEndpoint with ${name} -1`);
    }
  },
  ['v1'],
);

group.add(
  'connect-again-and-again',
  '§IND2Connector: connecting and disconnecting, many times',
  async (t) => {
    const { listener, address } = await t.listen('far');
    for (let round = 0; round < 40; round += 1) {
      const near = await End.make(t.near, { memory: 1024 });
      const far = await End.make(t.far, { memory: 65_536 });
      await t.join(near, far, listener, address);
      const gone = await t.far.notifyDisconnect(far.link);
      await t.disconnect(near);
      await t.ends(t.far, gone, SUCCESS, 'NotifyDisconnect');
      for (const end of [near, far]) {
        await end.party.release(end.link);
        await end.party.release(end.inbound);
        await end.party.release(end.outbound);
      }
    }
  },
);
