/** Every request and every event in every state of a connect endpoint. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import {
  type EndpointRequest,
  type EndpointSignal,
  type EndpointState,
  endpointRequests,
  endpointSignals,
  endpointStates,
} from '../../kernel-bridge/kernel/filter/connect-endpoint-states.js';
import { ask, scene } from '../helpers/endpoint-scene.js';
import { expect } from '../helpers/kernel-rig.js';
import { cmReply } from '../helpers/rig-cm.js';

/** Status and next state by state and request. Missing entries fail with INVALID_DEVICE_STATE and have no effect. */
const expectedRequests: Record<
  EndpointState,
  Partial<Record<EndpointRequest, [status: number, next: EndpointState]>>
> = {
  idle: { bind: [Status.SUCCESS, 'addressBound'], assign: [Status.PENDING, 'queued'] },
  addressBound: { modify: [Status.SUCCESS, 'routeResolved'], listen: [Status.SUCCESS, 'listening'] },
  listening: { getRequest: [Status.PENDING, 'listening'] },
  queued: {},
  routeResolved: { modify: [Status.SUCCESS, 'routeResolved'], connect: [Status.PENDING, 'activeConnect'] },
  activeConnect: {
    connect: [Status.DEVICE_BUSY, 'activeConnect'],
    reject: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.PENDING, 'activeConnect'],
    cancel: [Status.SUCCESS, 'routeResolved'],
  },
  activeReplied: {
    accept: [Status.SUCCESS, 'connected'],
    reject: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.PENDING, 'activeReplied'],
  },
  passiveConnect: {
    accept: [Status.PENDING, 'passiveAccepting'],
    reject: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.PENDING, 'passiveConnect'],
  },
  passiveAccepting: {
    accept: [Status.DEVICE_BUSY, 'passiveAccepting'],
    notifyDisconnect: [Status.PENDING, 'passiveAccepting'],
    cancel: [Status.SUCCESS, 'disconnected'],
  },
  connected: {
    disconnect: [Status.PENDING, 'activeDisconnect'],
    notifyDisconnect: [Status.PENDING, 'connected'],
  },
  activeDisconnect: {
    disconnect: [Status.DEVICE_BUSY, 'activeDisconnect'],
    notifyDisconnect: [Status.PENDING, 'activeDisconnect'],
    cancel: [Status.SUCCESS, 'disconnected'],
  },
  passiveDisconnect: {
    disconnect: [Status.SUCCESS, 'disconnected'],
    notifyDisconnect: [Status.CONNECTION_DISCONNECTED, 'passiveDisconnect'],
  },
  disconnected: {
    accept: [Status.CONNECTION_ABORTED, 'disconnected'],
    notifyDisconnect: [Status.CONNECTION_ABORTED, 'disconnected'],
  },
  destroying: {},
};

function expectedRequest(state: EndpointState, request: EndpointRequest): [number, EndpointState] {
  if (state === 'destroying') return [Status.NOT_FOUND, state];
  const reported = expectedRequests[state][request];
  if (reported) return reported;
  if (request === 'query' || request === 'cancel') return [Status.SUCCESS, state];
  if (request === 'destroy') return [Status.SUCCESS, 'destroying'];
  if (request === 'assign') return [Status.CONNECTION_IN_USE, state];
  return [Status.INVALID_DEVICE_STATE, state];
}

for (const state of endpointStates) {
  test(`every request in state ${state}`, () => {
    for (const request of endpointRequests) {
      const it = scene(state);
      const [status, next] = expectedRequest(state, request);
      const asked = ask(it, request);
      expect(asked, status, `${state} ${request}`);
      assert.is(it.endpoint.state, next, `${state} ${request}`);
      // A rejected request has no effect.
      if (next === state && it.waiting) expect(it.waiting, Status.PENDING, `${state} ${request}`);
      assert.equal(it.rig.faults, [], `${state} ${request}`);
      expect(it.rig.close(), Status.SUCCESS);
      assert.is(it.rig.kernel.io.counters.abandonedIrps, 0, `${state} ${request}`);
      assert.equal(it.rig.hca.objectCounts(), {
        pd: 0,
        mr: 0,
        mw: 0,
        cq: 0,
        qp: 0,
        srq: 0,
        ring: 0,
        range: 0,
      });
      assert.is(it.rig.hca.claims.size, 0);
    }
  });
}

/** Next state by state and event, and the status of the waiting request. Other events are ignored. */
const expectedSignals: Record<
  EndpointState,
  Partial<Record<EndpointSignal, [next: EndpointState, waiting?: number]>>
> = {
  idle: {},
  addressBound: {},
  listening: {},
  queued: {},
  routeResolved: {},
  activeConnect: {
    replied: ['activeReplied', Status.SUCCESS],
    rejected: ['routeResolved', Status.CONNECTION_REFUSED],
    timedOut: ['routeResolved', Status.TIMEOUT],
    connectCancelled: ['routeResolved', Status.CANCELED],
  },
  activeReplied: {
    rejected: ['disconnected'],
    timedOut: ['disconnected'],
    peerDisconnected: ['disconnected'],
  },
  passiveConnect: {
    rejected: ['disconnected'],
    timedOut: ['disconnected'],
    peerDisconnected: ['disconnected'],
  },
  passiveAccepting: {
    established: ['connected', Status.SUCCESS],
    firstPacket: ['passiveAccepting', Status.PENDING],
    rejected: ['disconnected', Status.CONNECTION_REFUSED],
    timedOut: ['disconnected', Status.IO_TIMEOUT],
    peerDisconnected: ['passiveDisconnect', Status.SUCCESS],
    lost: ['disconnected', Status.CONNECTION_ABORTED],
    acceptCancelled: ['disconnected', Status.CANCELED],
  },
  connected: {
    rejected: ['passiveDisconnect'],
    peerDisconnected: ['passiveDisconnect'],
    lost: ['passiveDisconnect'],
  },
  activeDisconnect: {
    peerDisconnected: ['disconnected', Status.SUCCESS],
    disconnectAnswered: ['disconnected', Status.SUCCESS],
    rejected: ['disconnected', Status.SUCCESS],
    disconnectTimedOut: ['disconnected', Status.TIMEOUT],
    disconnectCancelled: ['disconnected', Status.CANCELED],
  },
  passiveDisconnect: {},
  disconnected: {},
  destroying: {},
};

/** {@link expectedSignals}, plus the loss of the device, which ends everything that depends on it. */
function expectedSignal(state: EndpointState, signal: EndpointSignal): [EndpointState, number?] | undefined {
  if (signal !== 'deviceLost') return expectedSignals[state][signal];
  if (['idle', 'queued', 'disconnected', 'destroying'].includes(state)) return undefined;
  const waits = ['activeConnect', 'passiveAccepting', 'activeDisconnect'].includes(state);
  return waits ? ['disconnected', Status.DEVICE_REMOVED] : ['disconnected'];
}

for (const state of endpointStates) {
  test(`every event in state ${state}`, () => {
    for (const signal of endpointSignals) {
      // These two events only occur with a request of the listener, see below.
      if (state === 'queued' && (signal === 'delivered' || signal === 'unassigned')) continue;
      const it = scene(state);
      const { ignoredSignals } = it.endpoint;
      const reject = { reason: 28, ari: new Uint8Array(0), privateData: new Uint8Array(148).fill(0x53) };
      const waitedFor = {
        connectCancelled: it.waiting,
        acceptCancelled: it.waiting,
        disconnectCancelled: it.waiting,
      };
      const reported = expectedSignal(state, signal);
      if (reported && signal in waitedFor) waitedFor[signal as keyof typeof waitedFor]!.cancel();
      else
        it.endpoint.signal(
          signal,
          signal === 'replied' ? { reply: cmReply() } : signal === 'rejected' ? { reject } : undefined,
        );
      assert.is(it.endpoint.state, reported?.[0] ?? state, `${state} ${signal}`);
      if (!reported) assert.is(it.endpoint.ignoredSignals, ignoredSignals + 1, `${state} ${signal}`);
      if (reported?.[1] !== undefined) expect(it.waiting!, reported[1], `${state} ${signal}`);
      else if (it.waiting) expect(it.waiting, Status.PENDING, `${state} ${signal}`);
      assert.equal(it.rig.faults, [], `${state} ${signal}`);
      expect(it.rig.close(), Status.SUCCESS);
      assert.is(it.rig.kernel.io.counters.abandonedIrps, 0);
    }
  });
}

test.run();
