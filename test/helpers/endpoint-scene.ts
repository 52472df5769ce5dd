/** Kernel endpoints in each of their states, and the requests of applications. */
import * as assert from 'uvu/assert';
import { sockaddrData } from '../../kernel-bridge/ioctl/sockaddr.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { Endpoint } from '../../kernel-bridge/kernel/filter/connect-endpoint.js';
import type {
  EndpointRequest,
  EndpointState,
} from '../../kernel-bridge/kernel/filter/connect-endpoint-states.js';
import { WvFile } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { KernelRig, type Submitted } from './kernel-rig.js';
import { cmReply, type FakeConnection, type FakeListener } from './rig-cm.js';

/** An endpoint in a given state, with all objects that it needs. */
export interface Scene {
  rig: KernelRig;
  id: bigint;
  endpoint: Endpoint;
  qp: bigint;
  handle: number;
  connection: FakeConnection | undefined;
  listener: { id: bigint; control: FakeListener };
  /** The request that is pending in this state. */
  waiting: Submitted | undefined;
}

/** The endpoint with an id: tests check its state, which no IOCTL returns. */
export function endpointOf(rig: KernelRig, id: bigint): Endpoint {
  for (const file of rig.kernel.io.fileObjects) {
    if (file.context instanceof WvFile) {
      const endpoint = file.context.endpoints.get(Number(id));
      if (endpoint instanceof Endpoint) return endpoint;
    }
  }
  throw new Error(`no endpoint ${id}`);
}

/** Brings an endpoint into a state with an application's requests. */
export function scene(state: EndpointState): Scene {
  const rig = new KernelRig();
  const { qp, handle } = rig.queuePair();
  const listener = rig.listener(6000);
  const id = rig.endpoint();
  const it: Scene = {
    rig,
    id,
    endpoint: endpointOf(rig, id),
    qp,
    handle,
    connection: undefined,
    listener,
    waiting: undefined,
  };
  const active = (): void => {
    rig.bind(id);
    rig.route(id);
    it.waiting = rig.connect(id, qp);
    it.connection = rig.cm.connections[0]!;
  };
  const replied = (): void => {
    active();
    it.connection!.events.replied!(cmReply());
    it.waiting = undefined;
  };
  const connected = (): void => {
    replied();
    rig.accept(id, qp);
  };
  const passive = (): void => {
    rig.getRequest(listener.id, id);
    it.connection = listener.control.arrive();
  };
  const steps: Record<EndpointState, () => void> = {
    idle: () => {},
    addressBound: () => void rig.bind(id),
    listening: () => {
      rig.bind(id, 7000);
      rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog: 1n }));
    },
    queued: () => {
      it.waiting = rig.getRequest(listener.id, id);
    },
    routeResolved: () => {
      rig.bind(id);
      rig.route(id);
    },
    activeConnect: active,
    activeReplied: replied,
    passiveConnect: passive,
    passiveAccepting: () => {
      passive();
      it.waiting = rig.accept(id, qp);
    },
    connected,
    activeDisconnect: () => {
      connected();
      it.waiting = rig.disconnect(id);
    },
    passiveDisconnect: () => {
      connected();
      it.connection!.events.disconnected!();
    },
    disconnected: () => {
      replied();
      it.connection!.events.rejected!({
        reason: 28,
        ari: new Uint8Array(0),
        privateData: new Uint8Array(148),
      });
    },
    destroying: () => void rig.ioctl('EP_DESTROY', rig.id(id)),
  };
  steps[state]();
  assert.is(it.endpoint.state, state);
  return it;
}

/** A request of each kind for the endpoint of a scene. */
export function ask({ rig, id, qp, listener }: Scene, request: EndpointRequest): Submitted {
  const peerAddress = sockaddrData({ family: 4, address: '192.0.2.9', port: 5000 });
  const all: Record<EndpointRequest, () => Submitted> = {
    bind: () => rig.bind(id),
    modify: () => rig.route(id),
    listen: () => rig.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog: 1n })),
    getRequest: () => rig.getRequest(id, rig.endpoint()),
    assign: () => rig.getRequest(listener.id, id),
    connect: () => rig.connect(id, qp, { peerAddress }),
    accept: () => rig.accept(id, qp),
    reject: () => rig.ioctl('EP_REJECT', s.WvIoId.encode({ id })),
    disconnect: () => rig.disconnect(id),
    notifyDisconnect: () => rig.notify(id),
    query: () => rig.ioctl('EP_QUERY', rig.id(id)),
    cancel: () => rig.ioctl('EP_CANCEL', rig.id(id)),
    destroy: () => rig.ioctl('EP_DESTROY', rig.id(id)),
  };
  return all[request]();
}
