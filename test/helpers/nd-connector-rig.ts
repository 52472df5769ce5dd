/** A connector of either SPI version on in-memory WinVerbs, with a queue pair and a listener, in any state. */
import * as assert from 'uvu/assert';
import type { ConnectorBase } from '../../nd/core/connector-base.js';
import type { ConnectorMethod, ConnectorState } from '../../nd/core/connector-states.js';
import type { QueuePairBase } from '../../nd/core/queue-pair-base.js';
import { type IND2Listener, type INDListen, type Overlapped, Status } from '../../nd/index.js';
import type { Connector as ConnectorV1 } from '../../nd/v1/connector.js';
import type { Endpoint } from '../../nd/v1/endpoint.js';
import type { Connector as ConnectorV2 } from '../../nd/v2/connector.js';
import type { QueuePair } from '../../nd/v2/queue-pair.js';
import type { FakeEndpoint, FakePd, FakeProvider, FakeQp } from './fake-winverbs.js';
import { endpointOf, openFake, result, statusOf } from './nd-fixture.js';
import { openFake2, queuePairOf } from './nd2-fixture.js';

export const OWN = '10.0.0.1';
export const PEER = '10.0.0.2:4000';
export const DATA = new Uint8Array([1, 2, 3]);

/** Statuses that the versions name differently. */
export interface Says {
  readonly timeout: number;
  /** Status of NotifyDisconnect when this side disconnects. */
  readonly ownDisconnect: number;
  /** Status of Disconnect without the peer's confirmation. */
  readonly unconfirmed: number;
  /** Status for an address that another endpoint has. */
  readonly taken: number;
}

type Options = { privateData?: Uint8Array };

export abstract class ConnectorRig {
  abstract readonly wvProvider: FakeProvider;
  abstract readonly connector: ConnectorBase;
  abstract readonly queuePair: QueuePairBase;
  abstract readonly qp: FakeQp;
  abstract readonly listener: IND2Listener | INDListen;
  abstract readonly says: Says;

  abstract newConnector(): ConnectorBase;
  abstract newQueuePair(): QueuePairBase;
  /** The sizes of private data that `query` reports. */
  abstract dataSizes(): { maxCallerData: number; maxCalleeData: number };
  abstract connectWith(
    connector: ConnectorBase,
    queuePair: QueuePairBase,
    peer: string | object,
    options?: Options,
  ): Overlapped<void>;
  abstract acceptWith(queuePair: QueuePairBase, privateData?: Uint8Array): Overlapped<void>;
  abstract privateData(): Uint8Array;
  abstract readLimits(): { inbound: number; outbound: number };
  /** Posts a Receive. */
  abstract receive(): void;
  abstract getConnectionRequest(connector: ConnectorBase): Overlapped<void>;
  /** Assigns an address to a connector if there is a separate method for that. */
  abstract bind(connector: ConnectorBase): void;
  protected abstract bringBound(): void;

  /** The WinVerbs endpoint of the connector. */
  get wv(): FakeEndpoint {
    return this.wvProvider.endpoints.at(-1)!;
  }

  /** The WinVerbs endpoint of the listener. */
  get listening(): FakeEndpoint {
    return this.wvProvider.endpoints[0]!;
  }

  bound(): this {
    this.bind(this.connector);
    return this;
  }

  connect(peer: string | object = PEER, options: Options = { privateData: DATA }): Overlapped<void> {
    return this.connectWith(this.connector, this.queuePair, peer, options);
  }

  accept(privateData?: Uint8Array): Overlapped<void> {
    return this.acceptWith(this.queuePair, privateData);
  }

  /** Ends the latest request with a name on the connector's WinVerbs endpoint; the result is not delivered yet. */
  end(name: string, status: number = Status.SUCCESS): void {
    const request = this.wv.request(name);
    if (status === Status.SUCCESS) request.succeed(undefined);
    else request.fail(status);
  }

  bring(state: ConnectorState): this {
    const { connector } = this;
    const steps: Record<ConnectorState, () => void> = {
      Idle: () => {},
      Bound: () => this.bringBound(),
      Queued: () => void this.getConnectionRequest(connector),
      Requested: () => {
        this.bring('Queued');
        this.listening.request('getRequest').succeed(undefined);
      },
      Accepting: () => void this.bring('Requested').accept(),
      Connecting: () => void this.bound().connect(),
      Replied: () => this.bring('Connecting').end('connect'),
      Completing: () => void this.bring('Replied').connector.completeConnect(),
      Connected: () => this.bring('Completing').end('accept'),
      ActiveDisconnect: () => void this.bring('Connected').connector.disconnect(),
      PassiveDisconnect: () => {
        this.bring('Connected').connector.notifyDisconnect();
        this.end('notifyDisconnect', Status.CONNECTION_DISCONNECTED);
      },
      Disconnected: () => this.bring('ActiveDisconnect').end('disconnect'),
    };
    steps[state]();
    assert.is(connector.state, state);
    return this;
  }

  /** Calls a method. Returns the status of its rejection, or SUCCESS if it is accepted. */
  try(method: ConnectorMethod): number {
    const { connector } = this;
    const other = this.newQueuePair();
    const calls: Record<ConnectorMethod, () => unknown> = {
      bind: () => this.bind(connector),
      getConnectionRequest: () => this.getConnectionRequest(connector),
      connect: () => this.connectWith(connector, other, PEER),
      completeConnect: () => connector.completeConnect(),
      accept: () => this.acceptWith(other),
      reject: () => connector.reject(DATA),
      getReadLimits: () => this.readLimits(),
      getPrivateData: () => this.privateData(),
      getLocalAddress: () => connector.getLocalAddress(),
      getPeerAddress: () => connector.getPeerAddress(),
      notifyDisconnect: () => connector.notifyDisconnect(),
      disconnect: () => connector.disconnect(),
    };
    return statusOf(calls[method]);
  }
}

/** v1: Connect includes Bind, and GetConnectionData corresponds to two methods of v2. */
export class RigV1 extends ConnectorRig {
  static readonly spi = 'v1';
  readonly fake = openFake();
  readonly wvProvider = this.fake.wv;
  readonly connector = this.newConnector();
  readonly #parts = this.#newParts(this.fake.pd);
  readonly queuePair = this.#parts.endpoint;
  readonly qp = this.#parts.qp;
  readonly listener = this.fake.adapter.listen();
  readonly says = {
    timeout: Status.TIMEOUT,
    ownDisconnect: Status.CANCELED,
    unconfirmed: Status.TIMEOUT,
    taken: Status.ADDRESS_ALREADY_EXISTS,
  };

  newConnector() {
    return this.fake.adapter.createConnector() as ConnectorV1;
  }

  newQueuePair() {
    return this.#newParts(this.fake.pd).endpoint;
  }

  dataSizes() {
    return this.fake.adapter.query();
  }

  connectWith(connector: ConnectorBase, queuePair: QueuePairBase, peer: string | object, options?: Options) {
    return (connector as ConnectorV1).connect(queuePair as Endpoint, peer as never, options);
  }

  acceptWith(queuePair: QueuePairBase, privateData?: Uint8Array) {
    return this.connector.accept(queuePair as Endpoint, privateData);
  }

  privateData() {
    return this.connector.getConnectionData().privateData;
  }

  readLimits() {
    const { inboundReadLimit, outboundReadLimit } = this.connector.getConnectionData();
    return { inbound: inboundReadLimit, outbound: outboundReadLimit };
  }

  receive() {
    this.queuePair.receive(result('posted'), []);
  }

  getConnectionRequest(connector: ConnectorBase) {
    return this.listener.getConnectionRequest(connector as ConnectorV1);
  }

  bind() {}

  protected bringBound() {
    this.connect();
    this.end('connect', Status.TIMEOUT);
  }

  #newParts(pd: FakePd) {
    return endpointOf(this.fake.adapter, pd, { connected: false });
  }
}

/** v2: a connector is bound before it connects. */
export class RigV2 extends ConnectorRig {
  static readonly spi = 'v2';
  readonly fake = openFake2();
  readonly wvProvider = this.fake.wv;
  readonly connector = this.newConnector();
  readonly #parts = queuePairOf(this.fake.adapter, this.fake.pd, { connected: false });
  readonly queuePair = this.#parts.queuePair;
  readonly qp = this.#parts.qp;
  readonly listener = this.fake.adapter.createListener();
  readonly says = {
    timeout: Status.IO_TIMEOUT,
    ownDisconnect: Status.CONNECTION_DISCONNECTED,
    unconfirmed: Status.SUCCESS,
    taken: Status.SHARING_VIOLATION,
  };

  constructor() {
    super();
    this.listener.bind(OWN);
    this.listener.listen();
  }

  newConnector() {
    return this.fake.adapter.createConnector() as ConnectorV2;
  }

  newQueuePair() {
    return queuePairOf(this.fake.adapter, this.fake.pd, { connected: false }).queuePair;
  }

  dataSizes() {
    return this.fake.adapter.query();
  }

  connectWith(connector: ConnectorBase, queuePair: QueuePairBase, peer: string | object, options?: Options) {
    return (connector as ConnectorV2).connect(queuePair as QueuePair, peer as never, options);
  }

  acceptWith(queuePair: QueuePairBase, privateData?: Uint8Array) {
    return this.connector.accept(queuePair as QueuePair, privateData === undefined ? {} : { privateData });
  }

  privateData() {
    return this.connector.getPrivateData();
  }

  readLimits() {
    return this.connector.getReadLimits();
  }

  receive() {
    this.queuePair.receive('posted', []);
  }

  getConnectionRequest(connector: ConnectorBase) {
    return this.listener.getConnectionRequest(connector as ConnectorV2);
  }

  bind(connector: ConnectorBase) {
    (connector as ConnectorV2).bind(OWN);
  }

  protected bringBound() {
    this.bound();
  }
}
