/** In-memory connection management that a test controls. */
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import type {
  CmConnection,
  CmConnectParameters,
  CmEvents,
  CmListenerControl,
  CmListenParameters,
  CmPath,
  CmQpParameters,
  CmReply,
  CmRequest,
  CmState,
  ConnectionManager,
  SidrInquiry,
  SidrListener,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
  SidrReply,
  SidrRequest,
  SidrState,
} from '../../kernel-bridge/kernel/cm/service.js';
import { kernelOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';
import { noPath } from './fake-hca.js';

export const otherGid = gidOfAddress('192.0.2.9');
export const ownGid = gidOfAddress('192.0.2.2');

/** A connection that records calls. The test plays the peer through {@link events}. */
export class FakeConnection implements CmConnection {
  state: CmState = 'idle';
  readonly localCommId = 0x0304_0001;
  readonly remoteCommId = 0x0700_0001;
  readonly receivePsn = 0x00ab_cdef;
  events: CmEvents = {};
  readonly calls: string[] = [];
  accepted: { parameters: CmQpParameters; privateData: Uint8Array } | undefined;

  constructor(readonly parameters?: CmConnectParameters) {}

  ready(): void {
    this.calls.push('ready');
  }
  accept(parameters: CmQpParameters, privateData: Uint8Array): void {
    this.calls.push('accept');
    this.accepted = { parameters, privateData };
  }
  reject(privateData: Uint8Array): void {
    this.calls.push(`reject ${privateData.length}`);
  }
  disconnect(): void {
    this.calls.push('disconnect');
  }
  communicationEstablished(): void {
    this.calls.push('communicationEstablished');
  }
  abandon(): void {
    this.calls.push('abandon');
  }
  dreqOnExit(): { path: CmPath; mad: Uint8Array } {
    return { path: noPath, mad: new Uint8Array(256).fill(0xdd) };
  }
}

/** A listener whose requests are created by the test. */
export class FakeListener implements CmListenerControl {
  readonly requests: { connection: FakeConnection; request: CmRequest }[] = [];
  closed = false;

  constructor(readonly parameters: CmListenParameters) {}

  get waiting(): number {
    return this.requests.length;
  }
  takeRequest(): { connection: FakeConnection; request: CmRequest } | undefined {
    return this.requests.shift();
  }
  close(): void {
    this.closed = true;
  }
  /** Simulates the arrival of a REQ. */
  arrive(request: Partial<CmRequest> = {}): FakeConnection {
    const connection = new FakeConnection();
    this.requests.push({ connection, request: cmRequest(request) });
    this.parameters.onRequest();
    return connection;
  }
}

/** A lookup that the test replies to through {@link events}. */
export class FakeLookup implements SidrLookup {
  state: SidrState = 'reqSent';
  readonly requestId = 0x0304_0002;

  constructor(
    readonly parameters: SidrLookupParameters,
    public events: SidrLookupEvents,
  ) {}

  abandon(): void {
    this.state = 'over';
  }
  /** Delivers the peer's reply. */
  answer(more: Partial<SidrReply> = {}): void {
    this.state = 'over';
    this.events.answered?.({
      status: 0,
      qpn: 0x0c_0003,
      qkey: 0x0123_4567,
      info: new Uint8Array(0),
      privateData: new Uint8Array(136).fill(0x53),
      ...more,
    });
  }
}

/** A received lookup that records the reply. */
export class FakeInquiry implements SidrInquiry {
  state: SidrState = 'reqReceived';
  events: SidrInquiry['events'] = {};
  readonly calls: string[] = [];
  accepted: { qpn: number; qkey: number; privateData: Uint8Array } | undefined;

  accept(qpn: number, qkey: number, privateData: Uint8Array): void {
    this.calls.push('accept');
    this.accepted = { qpn, qkey, privateData };
  }
  reject(privateData: Uint8Array): void {
    this.calls.push(`reject ${privateData.length}`);
  }
  abandon(): void {
    this.calls.push('abandon');
  }
}

/** A listener whose lookups are created by the test. */
export class FakeSidrListener implements SidrListener {
  readonly requests: { inquiry: FakeInquiry; request: SidrRequest }[] = [];
  closed = false;

  constructor(readonly parameters: CmListenParameters) {}

  get waiting(): number {
    return this.requests.length;
  }
  takeRequest(): { inquiry: FakeInquiry; request: SidrRequest } | undefined {
    return this.requests.shift();
  }
  close(): void {
    this.closed = true;
  }
  /** Simulates the arrival of a SIDR_REQ. */
  arrive(request: Partial<SidrRequest> = {}): FakeInquiry {
    const inquiry = new FakeInquiry();
    const { serviceId } = this.parameters;
    const whole: SidrRequest = {
      serviceId,
      localAddress: ownGid,
      localPort: Number(serviceId & 0xffffn),
      peerAddress: otherGid,
      peerPort: 40_000,
      path: { ...noPath, source: ownGid, destination: otherGid, hopLimit: 64 },
      pkey: 0xffff,
      privateData: new Uint8Array(180).fill(0x54),
      ...request,
    };
    this.requests.push({ inquiry, request: whole });
    this.parameters.onRequest();
    return inquiry;
  }
}

/** A connection manager without a wire. */
export class FakeCm implements ConnectionManager {
  readonly options = kernelOptionsSchema.parse({}).cm;
  readonly connections: FakeConnection[] = [];
  readonly listeners: FakeListener[] = [];
  readonly lookups: FakeLookup[] = [];
  readonly sidrListeners: FakeSidrListener[] = [];
  /** Thrown by listen() and listenForLookups(). */
  listenError: Error | undefined;
  /** Called by connect() and lookup(), to simulate platforms that cannot send MADs. */
  onConnect: () => void = () => {};
  closed = false;

  receive(): void {}
  listen(parameters: CmListenParameters): FakeListener {
    if (this.listenError) throw this.listenError;
    const listener = new FakeListener(parameters);
    this.listeners.push(listener);
    return listener;
  }
  connect(parameters: CmConnectParameters, events: CmEvents): FakeConnection {
    const connection = new FakeConnection(parameters);
    connection.events = events;
    this.connections.push(connection);
    this.onConnect();
    return connection;
  }
  listenForLookups(parameters: CmListenParameters): FakeSidrListener {
    if (this.listenError) throw this.listenError;
    const listener = new FakeSidrListener(parameters);
    this.sidrListeners.push(listener);
    return listener;
  }
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): FakeLookup {
    const lookup = new FakeLookup(parameters, events);
    this.lookups.push(lookup);
    this.onConnect();
    return lookup;
  }
  counters(): Record<string, number> {
    return {};
  }
  close(): void {
    this.closed = true;
  }
}

/** The content of a REQ. */
export function cmRequest(more: Partial<CmRequest> = {}): CmRequest {
  return {
    serviceId: 0x0106_1388n,
    localAddress: ownGid,
    localPort: 0,
    peerAddress: otherGid,
    peerPort: 40_000,
    path: { ...noPath, source: ownGid, destination: otherGid, hopLimit: 64 },
    peerQpn: 0x0a_0001,
    sendPsn: 0x11_1111,
    responderResources: 4,
    initiatorDepth: 8,
    retryCount: 5,
    rnrRetryCount: 7,
    pathMtu: 2,
    localAckTimeout: 18,
    pkey: 0xffff,
    peerUsesSrq: false,
    privateData: new Uint8Array(56).fill(0x51),
    ...more,
  };
}

/** The content of a REP. */
export function cmReply(more: Partial<CmReply> = {}): CmReply {
  return {
    peerQpn: 0x0b_0002,
    sendPsn: 0x22_2222,
    responderResources: 3,
    initiatorDepth: 2,
    rnrRetryCount: 7,
    targetAckDelay: 15,
    peerUsesSrq: false,
    privateData: new Uint8Array(196).fill(0x52),
    ...more,
  };
}
