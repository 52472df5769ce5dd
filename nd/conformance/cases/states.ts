/** The connector's states: the status of each method that a state forbids, which must change nothing. */
import { Status } from '../../index.js';
import { type CaseContext, End, SUCCESS, statusOf } from '../case-context.js';
import type { HalfAddress } from '../half.js';
import { Group } from './define.js';

const group = new Group('state');
export const stateCases = group.cases;

const INV = Status.CONNECTION_INVALID;
const ACT = Status.CONNECTION_ACTIVE;
const ABT = Status.CONNECTION_ABORTED;
const STATE = Status.INVALID_DEVICE_STATE;
const NASSOC = Status.ADDRESS_NOT_ASSOCIATED;
const DISC = Status.CONNECTION_DISCONNECTED;
const OK = Status.SUCCESS;

const methods = {
  getConnectionRequest: async (t, { link }, { listener }) =>
    await t.near.settled(await t.near.awaitRequest(listener, link)),
  connect: async (t, { link }, { address }) => await t.near.settled(await t.near.connect(link, address, {})),
  completeConnect: async (t, { link }) => await t.near.settled(await t.near.complete(link)),
  accept: async (t, { link }) => await t.near.settled(await t.near.accept(link)),
  reject: async (t, { link }) => await statusOf(t.near.reject(link)),
  getConnectionData: async (t, { link }) => await statusOf(t.near.peerData(link)),
  getLocalAddress: async (t, { link }) => await statusOf(t.near.localAddress(link)),
  getPeerAddress: async (t, { link }) => await statusOf(t.near.peerAddress(link)),
  notifyDisconnect: async (t, { link }) => await t.near.settled(await t.near.notifyDisconnect(link)),
  disconnect: async (t, { link }) => await t.near.settled(await t.near.disconnect(link)),
} as const satisfies Record<
  string,
  (t: CaseContext, near: End, own: { listener: number; address: HalfAddress }) => Promise<number>
>;
type Method = keyof typeof methods;

/** The forbidden methods and their statuses. If documents and drivers differ, either status is accepted. */
const refusals = {
  idle: {
    completeConnect: [INV],
    accept: [INV, ACT],
    reject: [STATE, INV],
    getConnectionData: [INV, STATE],
    getLocalAddress: [NASSOC, INV],
    getPeerAddress: [INV],
    notifyDisconnect: [INV, STATE],
    disconnect: [INV],
  },
  bound: {
    getConnectionRequest: [ACT],
    completeConnect: [INV],
    accept: [INV, ACT],
    reject: [STATE, INV],
    // A refusal may have data that consists of zeros.
    getConnectionData: [INV, STATE, OK],
    getPeerAddress: [INV],
    notifyDisconnect: [INV, STATE],
    disconnect: [INV],
  },
  queued: {
    getConnectionRequest: [ACT],
    connect: [STATE, ACT],
    completeConnect: [INV],
    accept: [INV, ACT],
    reject: [STATE, INV],
    getConnectionData: [STATE, INV],
    getLocalAddress: [NASSOC, INV],
    getPeerAddress: [INV],
    notifyDisconnect: [INV, STATE],
    disconnect: [INV],
  },
  requested: {
    getConnectionRequest: [ACT],
    connect: [ACT],
    completeConnect: [INV],
    notifyDisconnect: [INV, STATE],
    disconnect: [INV],
  },
  connecting: {
    getConnectionRequest: [ACT],
    connect: [ACT],
    completeConnect: [INV],
    accept: [ACT, INV],
    reject: [STATE, INV],
    getConnectionData: [STATE, INV],
    notifyDisconnect: [INV, STATE],
    disconnect: [INV],
  },
  replied: {
    getConnectionRequest: [ACT],
    connect: [ACT],
    accept: [ACT, INV],
    notifyDisconnect: [INV, STATE],
    disconnect: [INV],
  },
  accepting: {
    getConnectionRequest: [ACT],
    connect: [ACT],
    completeConnect: [INV],
    accept: [ACT, INV],
    reject: [STATE, INV],
    notifyDisconnect: [INV, STATE],
    disconnect: [INV],
  },
  connected: {
    getConnectionRequest: [ACT],
    connect: [ACT],
    completeConnect: [INV],
    accept: [ACT, INV],
    reject: [STATE, INV],
  },
  'peer-disconnected': {
    getConnectionRequest: [ACT],
    connect: [ACT, STATE],
    completeConnect: [INV, ABT],
    accept: [ACT, INV],
    reject: [STATE, INV],
  },
  disconnected: {
    getConnectionRequest: [ACT],
    connect: [STATE, ACT],
    completeConnect: [ABT, INV],
    accept: [ABT, INV, ACT],
    reject: [INV, STATE],
    getConnectionData: [INV, STATE],
    notifyDisconnect: [DISC, INV],
    disconnect: [INV],
  },
} as const satisfies Record<string, Partial<Record<Method, readonly number[]>>>;
type State = keyof typeof refusals;

/** Brings a connector of near's into each state; the returned function checks that the state is unchanged. */
const reach: Readonly<Record<State, (t: CaseContext) => Promise<{ near: End; still: () => Promise<void> }>>> =
  {
    async idle(t) {
      const near = await End.make(t.near);
      const far = await End.make(t.far);
      return {
        near,
        async still() {
          const { listener, address } = await t.listen('far');
          await t.join(near, far, listener, address);
        },
      };
    },
    async bound(t) {
      const near = await End.make(t.near);
      const { listener, address } = await t.listen('far');
      await t.far.release(listener);
      await t.ends(
        t.near,
        await t.near.connect(near.link, address, {}),
        Status.CONNECTION_REFUSED,
        'Connect',
      );
      return {
        near,
        async still() {
          const next = await t.listen('far');
          await t.join(near, await End.make(t.far), next.listener, next.address);
        },
      };
    },
    async queued(t) {
      const near = await End.make(t.near);
      const { listener, address } = await t.listen('near');
      const requested = await t.near.awaitRequest(listener, near.link);
      return {
        near,
        async still() {
          t.status(await t.near.statusNow(requested), Status.PENDING, 'GetConnectionRequest');
          const far = await End.make(t.far);
          const connected = await t.far.connect(far.link, address, {});
          await t.ends(t.near, requested, SUCCESS, 'GetConnectionRequest');
          await t.near.reject(near.link);
          await t.ends(t.far, connected, Status.CONNECTION_REFUSED, 'Connect');
        },
      };
    },
    async requested(t) {
      const { near, far, connected } = await t.requested({ active: 'far' });
      return {
        near,
        async still() {
          const accepted = await t.near.accept(near.link);
          await t.ends(t.far, connected, SUCCESS, 'Connect');
          await t.ends(t.far, await t.far.complete(far.link), SUCCESS, 'CompleteConnect');
          await t.ends(t.near, accepted, SUCCESS, 'Accept');
        },
      };
    },
    async connecting(t) {
      const { near, far, connected } = await t.requested();
      return {
        near,
        async still() {
          await t.far.accept(far.link);
          await t.ends(t.near, connected, SUCCESS, 'Connect');
        },
      };
    },
    async replied(t) {
      const { near, far, connected } = await t.requested();
      const accepted = await t.far.accept(far.link);
      await t.ends(t.near, connected, SUCCESS, 'Connect');
      return {
        near,
        async still() {
          await t.ends(t.near, await t.near.complete(near.link), SUCCESS, 'CompleteConnect');
          await t.ends(t.far, accepted, SUCCESS, 'Accept');
        },
      };
    },
    async accepting(t) {
      const { near, far, connected } = await t.requested({ active: 'far' });
      const accepted = await t.near.accept(near.link);
      await t.ends(t.far, connected, SUCCESS, 'Connect');
      return {
        near,
        async still() {
          await t.ends(t.far, await t.far.complete(far.link), SUCCESS, 'CompleteConnect');
          await t.ends(t.near, accepted, SUCCESS, 'Accept');
        },
      };
    },
    async connected(t) {
      const { near } = await t.pair();
      return { near, still: () => t.disconnect(near) };
    },
    async 'peer-disconnected'(t) {
      const { near, far } = await t.pair();
      const gone = await t.near.notifyDisconnect(near.link);
      await t.disconnect(far);
      await t.ends(t.near, gone, SUCCESS, 'NotifyDisconnect');
      return { near, still: () => t.disconnect(near) };
    },
    async disconnected(t) {
      const { near } = await t.pair();
      await t.disconnect(near);
      return { near, still: async () => {} };
    },
  };

for (const state of Object.keys(refusals) as State[]) {
  group.add(state, '§IND2Connector, §INDConnector: statuses of methods by state', async (t) => {
    const own = await t.listen('near');
    const { near, still } = await reach[state](t);
    const row: Partial<Record<Method, readonly number[]>> = refusals[state];
    for (const [method, expected] of Object.entries(row) as [Method, readonly number[]][]) {
      t.step(`${method} in the state ${state}`);
      t.status(await methods[method](t, near, own), expected, `${method} in the state ${state}`);
    }
    await still();
  });
}
