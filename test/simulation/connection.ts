/** A program's connections in the simulation. Each carries a flow, ends when the flow is complete, and reports if it is lost. */
import type { CmConnection, CmPath, CmQpParameters } from '../../kernel-bridge/kernel/cm/service.js';
import type { SimulatedHost } from './host.js';
import type { Traffic } from './native-simulation.js';
import type { World } from './world.js';

export const SERVICE = 0x0106_1c06n;
const PORT = 0x1c06;
const LOCAL_PORT = 40_000;
const DEPTH = 16;
const RNR_TIMEOUT_SIDES = 3;
const NS_PER_MS = 1e6;
const ACK_UNIT_MS = 4.096e-3;
/** The engine adds 25% to timeouts, and a clock may be 10% slow. */
const TIMEOUT_MARGIN = 1.25 * 1.15;
/** RNR waits may last a second plus the longest timer (docs/internals/wire.md). Queues of the network add to that. */
const RNR_AND_QUEUES_MS = 3000;
const IB_MTU = { 256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5 } as const;

export interface ConnectionSettings {
  readonly mtu: keyof typeof IB_MTU;
  /** Payload of packets that both links support beyond the MTU, in bytes; 0: none. */
  readonly packetBytes: number;
  /** Code of the ACK timeout, 4.096 µs × 2^code. */
  readonly ackTimeoutCode: number;
  readonly minRnrTimer: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  /** Whether peers are treated as instances of this package, which agree on extensions. */
  readonly ours: boolean;
}

export const usualSettings: ConnectionSettings = {
  mtu: 4096,
  packetBytes: 0,
  ackTimeoutCode: 14,
  minRnrTimer: 12,
  retryCount: 7,
  rnrRetryCount: 6,
  ours: true,
};

/**
 * Maximum time without progress while requests are outstanding. A connection that has made none after all retries and RNR waits is lost.
 */
function longestSilenceMs({ ackTimeoutCode, retryCount }: ConnectionSettings): number {
  return ACK_UNIT_MS * 2 ** ackTimeoutCode * (retryCount + 1) * TIMEOUT_MARGIN + RNR_AND_QUEUES_MS;
}

/** A flow and its result. */
export interface FlowPlan {
  readonly client: SimulatedHost;
  readonly server: SimulatedHost;
  readonly forth?: Traffic | undefined;
  readonly back?: Traffic | undefined;
  /** Whether the connection may be lost, as in a partition. */
  readonly mayFail: boolean;
  /** Overrides the world's setting. */
  readonly ours?: boolean;
  /** Called when the flow has completed without a loss. */
  readonly onDone?: (flow: FlowConnection) => void;
  /** Called when the flow has failed: refused, timed out, or lost. `established`: whether data may have been transferred. */
  readonly onLost?: (flow: FlowConnection, why: string, established: boolean) => void;
}

export type FlowState = 'connecting' | 'running' | 'done' | 'lost';

/** The active side. */
export class FlowConnection {
  readonly flow: number;
  readonly plan: FlowPlan;
  state: FlowState = 'connecting';
  readonly #world: World;
  readonly #endpoint: number;
  readonly #connection: CmConnection;
  /** Whether stop() was called, possibly before the connection was established. */
  #stopped = false;

  constructor(world: World, plan: FlowPlan) {
    this.#world = world;
    this.plan = plan;
    this.flow = world.native.addFlow(
      plan.forth,
      plan.back,
      plan.mayFail,
      longestSilenceMs(world.settings) * NS_PER_MS,
    );
    this.#endpoint = world.native.makeEndpoint(plan.client.vertex, this.flow, 0);
    world.watchEndpoint(this.#endpoint, (why) => this.#lose(why));
    const privateData = new Uint8Array(4);
    new DataView(privateData.buffer).setUint32(0, this.flow);
    this.#connection = plan.client.cm!.connect(
      {
        serviceId: SERVICE,
        path: pathBetween(plan.client, plan.server),
        localPort: LOCAL_PORT,
        peerPort: PORT,
        qp: parametersOf(world, this.#endpoint),
        pathMtu: IB_MTU[world.settings.mtu],
        packetBytes: world.settings.packetBytes,
        ackTimeoutCode: world.settings.ackTimeoutCode,
        privateData,
      },
      {
        replied: (reply) => this.#onReply(reply),
        rejected: ({ reason }) => this.#over(`refused (${reason})`),
        timedOut: () => this.#over('no answer'),
        disconnected: () => this.#over('disconnected by the peer'),
        disconnectCompleted: () => this.#over('disconnected'),
      },
    );
  }

  /** Stops issuing requests. The connection ends when the outstanding ones are complete. */
  stop(): void {
    this.#stopped = true;
    if (this.state === 'running') this.#world.native.stopFlow(this.flow);
  }

  /** Called when the flow is complete or has failed. */
  finished(failed: boolean): void {
    if (this.state !== 'running') return;
    if (failed) {
      this.#lose('requests failed');
      return;
    }
    this.state = 'done';
    this.#endEndpoint();
    this.#connection.disconnect();
    this.plan.onDone?.(this);
  }

  /** Called when its host has crashed. */
  forget(): void {
    this.#settleLost('crashed');
  }

  #onReply(reply: PeerOfQp): void {
    const { client, server } = this.plan;
    const path = pathBetween(client, server);
    if (!this.#world.bring(this.#endpoint, this.flow, path, this.#connection.receivePsn, reply)) return;
    this.#connection.ready();
    this.#world.native.setDreqOnExit(this.#endpoint, path, this.#connection.dreqOnExit()!.mad);
    this.state = 'running';
    if (!this.#world.native.startFlow(this.flow, this.#endpoint, server.vertex, reply.peerQpn))
      this.#lose('the server has no such queue pair any more');
    if (this.#stopped) this.stop();
  }

  /** The end of the connection, reported by connection management. */
  #over(why: string): void {
    this.#endEndpoint();
    this.#settleLost(why);
  }

  /** A loss, reported by the queue pair. */
  #lose(why: string): void {
    if (this.state === 'done' || this.state === 'lost') return;
    this.#connection.abandon();
    this.#endEndpoint();
    this.#settleLost(why);
  }

  #settleLost(why: string): void {
    if (this.state === 'done' || this.state === 'lost') return;
    const established = this.state === 'running';
    this.state = 'lost';
    if (!this.plan.mayFail) this.#world.fail(`flow ${this.flow} was lost: ${why}`);
    this.plan.onLost?.(this, why, established);
  }

  #endEndpoint(): void {
    this.#world.endEndpoint(this.#endpoint);
  }
}

/** A server that accepts all requests, on a host that has just started. */
export function serve(world: World, server: SimulatedHost, backlog = 0): void {
  const listener = server.cm!.listen({
    serviceId: SERVICE,
    address: undefined,
    backlog,
    onRequest: () => {
      for (let taken = listener.takeRequest(); taken !== undefined; taken = listener.takeRequest())
        accept(world, server, taken);
    },
  });
}

type Taken = NonNullable<ReturnType<ReturnType<NonNullable<SimulatedHost['cm']>['listen']>['takeRequest']>>;

function accept(world: World, server: SimulatedHost, { connection, request }: Taken): void {
  const flow = new DataView(request.privateData.buffer, request.privateData.byteOffset).getUint32(0);
  const endpoint = world.native.makeEndpoint(server.vertex, flow, 1);
  const end = () => world.endEndpoint(endpoint);
  const lose = (why: string): void => {
    if (!world.mayFail(flow)) world.fail(`flow ${flow} was lost at its server: ${why}`);
    connection.abandon();
    end();
  };
  world.watchEndpoint(endpoint, lose, () => connection.communicationEstablished());
  connection.events = {
    established: () => world.setDreqOnExit(endpoint, connection),
    // A duplicate of an old request is accepted, and abandoned when no reply arrives.
    rejected: end,
    timedOut: end,
    disconnected: end,
    disconnectCompleted: end,
  };
  const path = { ...request.path, source: server.gid, destination: request.peerAddress };
  if (world.bring(endpoint, flow, path, connection.receivePsn, request)) {
    connection.accept(parametersOf(world, endpoint), new Uint8Array(0));
  }
}

function parametersOf(world: World, endpoint: number): CmQpParameters {
  return {
    qpn: world.native.bring(endpoint),
    responderResources: DEPTH,
    initiatorDepth: DEPTH,
    retryCount: world.settings.retryCount,
    rnrRetryCount: world.settings.rnrRetryCount,
    srq: false,
  };
}

function pathBetween(from: SimulatedHost, to: SimulatedHost): CmPath {
  return { source: from.gid, destination: to.gid, flowLabel: 0, trafficClass: 0, hopLimit: 64, scopeId: 0 };
}

/** Information that both sides exchange besides the path. */
export interface PeerOfQp {
  readonly peerQpn: number;
  readonly sendPsn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly peerExtensions?: number;
}

/** The attributes of a queue pair that moves to RTS. */
export function attributesOf(settings: ConnectionSettings, path: CmPath, receivePsn: number, peer: PeerOfQp) {
  return {
    path,
    pathMtu: settings.mtu,
    destinationQpn: peer.peerQpn,
    receivePsn,
    sendPsn: peer.sendPsn,
    responderResources: Math.min(DEPTH, peer.responderResources),
    initiatorDepth: Math.min(DEPTH, peer.initiatorDepth),
    minRnrTimer: settings.minRnrTimer,
    ackTimeout: settings.ackTimeoutCode,
    retryCount: settings.retryCount,
    rnrRetry: settings.rnrRetryCount,
    rnrTimeout: RNR_TIMEOUT_SIDES,
    extensions: settings.ours ? (peer.peerExtensions ?? 0) : 0,
  };
}
