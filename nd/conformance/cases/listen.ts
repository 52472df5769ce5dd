/** Listeners: waiting requests, backlogs, ports. */
import { Status } from '../../index.js';
import { CANCELED, End, receives, SUCCESS, sends } from '../case-context.js';
import { Group } from './define.js';

const group = new Group('connect');
export const listenCases = group.cases;

const { PENDING } = Status;

group.add(
  'cancel-request',
  '§IND2Overlapped::CancelOverlappedRequests: of GetConnectionRequest',
  async (t) => {
    const far = await End.make(t.far);
    const other = await End.make(t.far);
    const near = await End.make(t.near);
    const { listener, address } = await t.listen('far');
    await t.far.awaitRequest(listener, far.link);
    await t.far.awaitRequest(listener, other.link);
    t.same(await t.far.cancel(listener), [CANCELED, CANCELED], 'Two requests, when Cancel has returned');
    // The listener is still listening, and the connector is idle again.
    await t.join(near, far, listener, address);
  },
);

group.add('listener-released', '§IND2Listener: releasing it cancels its waiting requests', async (t) => {
  const far = await End.make(t.far);
  const { listener, address } = await t.listen('far');
  const waiting = await t.far.awaitRequest(listener, far.link);
  await t.far.release(listener);
  await t.ends(t.far, waiting, CANCELED, 'GetConnectionRequest of a released listener');
  const near = await End.make(t.near);
  await t.ends(
    t.near,
    await t.near.connect(near.link, address, {}),
    Status.CONNECTION_REFUSED,
    'Connect to a released listener',
  );
});

group.add('listener-released-later', '§IND2Listener: requests already returned stay valid', async (t) => {
  const near = await End.make(t.near);
  const far = await End.make(t.far);
  const { listener, address } = await t.listen('far');
  const requested = await t.far.awaitRequest(listener, far.link);
  const connected = await t.near.connect(near.link, address, {});
  await t.ends(t.far, requested, SUCCESS, 'GetConnectionRequest');
  await t.far.release(listener);
  const accepted = await t.far.accept(far.link);
  await t.ends(t.near, connected, SUCCESS, 'Connect after the listener was released');
  await t.ends(t.near, await t.near.complete(near.link), SUCCESS, 'CompleteConnect');
  await t.ends(t.far, accepted, SUCCESS, 'Accept');
  await far.post(...receives(1));
  await near.post(...sends(1));
  t.run(await far.received(1), 1, SUCCESS, 'A message');
});

group.add(
  'kept-requests-refused',
  '§IND2Listener: releasing it refuses the waiting connection requests',
  async (t) => {
    const near = await End.make(t.near);
    const { listener, address } = await t.listen('far');
    const connected = await t.near.connect(near.link, address, {});
    await t.far.release(listener);
    await t.ends(t.near, connected, Status.CONNECTION_REFUSED, 'Connect whose request was still waiting');
  },
);

group.add(
  'requests-in-order',
  '§IND2Listener::GetConnectionRequest: one for each request, in order',
  async (t) => {
    const { listener, address } = await t.listen('far');
    const ends: End[] = [];
    const connects: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const near = await End.make(t.near);
      ends.push(near);
      connects.push(await t.near.connect(near.link, address, { data: [i + 1] }));
    }
    const passive: End[] = [];
    for (let i = 0; i < 5; i += 1) {
      const far = await End.make(t.far);
      passive.push(far);
      await t.ends(t.far, await t.far.awaitRequest(listener, far.link), SUCCESS, 'GetConnectionRequest');
      t.same((await t.far.peerData(far.link)).data[0], i + 1, 'The request taken');
    }
    for (const [i, far] of passive.entries()) {
      const accepted = await t.far.accept(far.link);
      await t.ends(t.near, connects[i]!, SUCCESS, 'Connect');
      await t.ends(t.near, await t.near.complete(ends[i]!.link), SUCCESS, 'CompleteConnect');
      await t.ends(t.far, accepted, SUCCESS, 'Accept');
    }
  },
);

group.add(
  'waiting-connectors-in-order',
  '§IND2Listener::GetConnectionRequest: many may be outstanding',
  async (t) => {
    const { listener, address } = await t.listen('far');
    const waiting: { far: End; request: number }[] = [];
    for (let i = 0; i < 4; i += 1) {
      const far = await End.make(t.far);
      waiting.push({ far, request: await t.far.awaitRequest(listener, far.link) });
    }
    for (const [i, { far, request }] of waiting.entries()) {
      const near = await End.make(t.near);
      const connected = await t.near.connect(near.link, address, { data: [i + 10] });
      await t.ends(t.far, request, SUCCESS, `GetConnectionRequest ${i}`);
      t.same((await t.far.peerData(far.link)).data[0], i + 10, 'The request that it got');
      for (const later of waiting.slice(i + 1)) {
        t.status(await t.far.statusNow(later.request), PENDING, 'A later GetConnectionRequest');
      }
      await t.far.reject(far.link);
      await t.ends(t.near, connected, Status.CONNECTION_REFUSED, 'Connect');
    }
  },
);

group.add('backlog', '§IND2Listener::Listen: CONNECTION_REFUSED beyond the backlog', async (t) => {
  const { listener, address } = await t.listen('far', { backlog: 2 });
  const ends: End[] = [];
  const connects: number[] = [];
  for (let i = 0; i < 3; i += 1) {
    const near = await End.make(t.near);
    ends.push(near);
    connects.push(await t.near.connect(near.link, address, { data: [i] }));
  }
  await t.ends(t.near, connects[2]!, Status.CONNECTION_REFUSED, 'The third Connect with a backlog of two');
  for (let i = 0; i < 2; i += 1) {
    const far = await End.make(t.far);
    await t.ends(t.far, await t.far.awaitRequest(listener, far.link), SUCCESS, 'GetConnectionRequest');
    t.same((await t.far.peerData(far.link)).data[0], i, 'The request kept');
  }
});

group.add('no-backlog-limit', '§IND2Listener::Listen: a backlog of 0 means no limit', async (t) => {
  const { listener, address } = await t.listen('far', { backlog: 0 });
  const count = 24;
  const connects: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const near = await End.make(t.near, { memory: 0 });
    connects.push(await t.near.connect(near.link, address, {}));
  }
  for (let i = 0; i < count; i += 1) {
    const far = await End.make(t.far, { memory: 0 });
    await t.ends(t.far, await t.far.awaitRequest(listener, far.link), SUCCESS, 'GetConnectionRequest');
    await t.far.reject(far.link);
  }
  for (const connect of connects) await t.ends(t.near, connect, Status.CONNECTION_REFUSED, 'Connect');
});

group.add('port-in-use', '§IND2Listener::Bind, §INDAdapter::Listen: a port in use', async (t) => {
  const { listener, address } = await t.listen('far');
  await t.refused(t.far.listen({ port: address.port }), t.statuses.addressInUse, 'Listen on a port in use');
  await t.far.release(listener);
  const again = await t.far.listen({ port: address.port });
  t.same((await t.far.listenerAddress(again)).port, address.port, 'The port, once it is free again');
});

group.add('port-zero', '§IND2Listener::Bind: port 0 selects a free one', async (t) => {
  const ports = new Set<number>();
  for (let i = 0; i < 5; i += 1) ports.add((await t.listen('far')).address.port);
  t.same(ports.size, 5, 'Ports of five listeners');
  for (const port of ports) t.ok(port > 0 && port < 65_536, 'A port', '1 to 65535', String(port));
});

group.add(
  "listener's-port-for-connectors",
  '§IND2Connector::Bind: many connectors share a listener’s port',
  async (t) => {
    const own = await t.listen('near');
    for (let i = 0; i < 3; i += 1) {
      const near = await End.make(t.near);
      const far = await End.make(t.far);
      const { listener, address } = await t.listen('far');
      await t.join(near, far, listener, address, { localPort: own.address.port });
      t.same((await t.far.peerAddress(far.link)).port, own.address.port, "The peer's port");
    }
  },
);

group.add(
  'listen-arguments',
  '§INDAdapter::Listen: INVALID_PARAMETER_1, _3, NOT_SUPPORTED for UDP',
  async (t) => {
    for (const backlog of [-1, 1.5, 2 ** 40]) {
      await t.refused(
        t.near.listen({ backlog }),
        Status.INVALID_PARAMETER_1,
        `Listen with backlog ${backlog}`,
      );
    }
    for (const protocol of [-1, 256]) {
      await t.refused(
        t.near.listen({ protocol }),
        Status.INVALID_PARAMETER_3,
        `Listen with protocol ${protocol}`,
      );
    }
    await t.refused(t.near.listen({ protocol: 17 }), Status.NOT_SUPPORTED, 'Listen with UDP');
    for (const port of [-1, 65_536]) {
      await t.refused(t.near.listen({ port }), Status.INVALID_PARAMETER, `Listen at port ${port}`);
    }
    for (const protocol of [0, 6, 123, 255]) {
      const listener = await t.near.listen({ protocol });
      await t.near.release(listener);
    }
  },
  ['v1'],
);

group.add('many-at-once', '§IND2Listener: many connections at once', async (t) => {
  const listening = [await t.listen('far'), await t.listen('far'), await t.listen('far')];
  const pairs = await Promise.all(
    Array.from({ length: 30 }, async (_, i) => {
      const near = await End.make(t.near, { memory: 65_536 });
      const far = await End.make(t.far, { memory: 65_536 });
      const connected = await t.near.connect(near.link, listening[i % 3]!.address, { data: [i] });
      return { near, far, connected, i };
    }),
  );
  // Requests arrive in any order, so private data identifies them.
  await Promise.all(
    pairs.map(async ({ far, i }) => {
      t.status(
        await t.far.settled(await t.far.awaitRequest(listening[i % 3]!.listener, far.link)),
        SUCCESS,
        'GetConnectionRequest',
      );
    }),
  );
  const passive = new Map<number, End>();
  for (const { far } of pairs) {
    passive.set((await t.far.peerData(far.link)).data[0]!, far);
    await far.post(...receives(1));
  }
  t.same(passive.size, 30, 'Different requests');
  await Promise.all(
    pairs.map(async ({ near, connected, i }) => {
      const far = passive.get(i)!;
      const accepted = await t.far.accept(far.link);
      t.status(await t.near.settled(connected), SUCCESS, 'Connect');
      t.status(await t.near.settled(await t.near.complete(near.link)), SUCCESS, 'CompleteConnect');
      t.status(await t.far.settled(accepted), SUCCESS, 'Accept');
      await t.near.fill(near.memory, 32_768, 64, i);
      await near.post(...sends(1));
      t.run(await far.received(1), 1, SUCCESS, 'A message');
      await t.holds(far, 0, 64, i, 'The message of its own connection');
    }),
  );
});
