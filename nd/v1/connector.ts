import { type Overlapped, Status } from '../../winverbs/index.js';
import { checkOptions } from '../core/argument-checks.js';
import { ConnectorBase } from '../core/connector-base.js';
import type {
  INDConnector,
  INDEndpoint,
  NdAddress,
  NdConnectionData,
  NdConnectOptions,
  NdEndpointOptions,
} from '../spi/v1.js';
import type { NdError } from '../status.js';
import type { Adapter } from './adapter.js';
import { Endpoint } from './endpoint.js';
import { checkPort, checkProtocol } from './listen.js';

/** INDConnector: creates the endpoints, and is bound by Connect. */
export class Connector extends ConnectorBase implements INDConnector {
  protected get interfaces() {
    return ['INDOverlapped', 'INDConnector'] as const;
  }

  readonly #owner: Adapter;
  protected readonly ownDisconnect = Status.CANCELED;

  constructor(adapter: Adapter) {
    super(adapter);
    this.#owner = adapter;
  }

  createEndpoint(options: NdEndpointOptions): INDEndpoint {
    this.alive('CreateEndpoint');
    return this.#owner.createEndpoint(options);
  }

  connect(endpoint: INDEndpoint, address: NdAddress, options: NdConnectOptions = {}): Overlapped<void> {
    // Connect includes Bind.
    const what = this.state === 'Idle' ? this.enter('bind', 'Connect') : this.enter('connect', 'Connect');
    const own = this.checkQueuePair(endpoint, Endpoint, what, 'endpoint');
    checkOptions(what, options, { privateData: true, localPort: true, protocol: true });
    const privateData = this.checkCallerData(options.privateData, what);
    const protocol = checkProtocol(what, options.protocol);
    const { localPort = 0 } = options;
    checkPort(what, localPort, 'localPort');
    const { address: local } = this.#owner;
    const peer = this.peerFrom(local, address, what);
    this.prepare(what, { ...local, port: localPort }, protocol);
    return this.startConnect(what, own, peer, limitsOf(own), privateData);
  }

  accept(endpoint: INDEndpoint, privateData?: Uint8Array): Overlapped<void> {
    const what = this.enter('accept', 'Accept');
    const own = this.checkQueuePair(endpoint, Endpoint, what, 'endpoint');
    return this.startAccept(what, own, limitsOf(own), this.checkCalleeData(privateData, what));
  }

  getConnectionData(): NdConnectionData {
    const what = this.enter('getPrivateData', 'GetConnectionData');
    const attributes = this.attributes(what, (all) => all);
    const { inbound, outbound } = this.limited(attributes);
    return {
      inboundReadLimit: inbound,
      outboundReadLimit: outbound,
      privateData: attributes.privateData,
    };
  }

  /** The connection has ended, but the timeout is reported, because in C it is a separate success code. */
  protected disconnectFailure(failure: NdError): NdError {
    return failure;
  }
}

function limitsOf(endpoint: Endpoint) {
  return { inbound: endpoint.inboundReadLimit, outbound: endpoint.outboundReadLimit };
}
