import type { IWVConnectEndpoint, Overlapped, SocketAddress } from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import type { INDConnector, INDListen, NdListenOptions } from '../spi/v1.js';
import { refuse, v1Call, v1Error } from '../status.js';
import { type Adapter, isCount } from './adapter.js';
import { Connector } from './connector.js';
import { NdOverlappedBase } from './object.js';

const TCP = 6;
const UDP = 17;

/** INVALID_PARAMETER_3 unless a connection can use the protocol; UDP has no connections: NOT_SUPPORTED. */
export function checkProtocol(what: string, protocol: number = TCP): void {
  if (!isCount(protocol, 0, 255)) {
    throw refuse(
      Status.INVALID_PARAMETER_3,
      what,
      `An IP protocol is a number from 0 to 255, not ${protocol}.`,
    );
  }
  if (protocol === UDP) {
    throw refuse(Status.NOT_SUPPORTED, what, 'Protocol 17 (UDP) has no connections; use 6 (TCP).');
  }
}

/** INVALID_PARAMETER unless it is a port, 0 included. */
export function checkPort(what: string, port: number): void {
  if (!isCount(port, 0, 65_535)) {
    throw refuse(
      Status.INVALID_PARAMETER,
      what,
      `A port is a number from 0 (a free one) to 65535, not ${port}.`,
    );
  }
}

/** INDListen over an IWVConnectEndpoint that listens. */
export class Listen extends NdOverlappedBase implements INDListen {
  readonly address: SocketAddress;
  readonly #adapter: Adapter;
  readonly #wv: IWVConnectEndpoint;

  constructor(adapter: Adapter, options: NdListenOptions) {
    super();
    const what = 'Listen';
    const { port = 0, backlog = 0, protocol } = options;
    if (!isCount(backlog, 0, 0xffff_ffff)) {
      throw refuse(
        Status.INVALID_PARAMETER_1,
        what,
        `The backlog is a number of requests, 0 for no limit, not ${backlog}.`,
      );
    }
    checkProtocol(what, protocol);
    checkPort(what, port);
    const wv = v1Call(what, () => adapter.provider.createConnectEndpoint());
    try {
      wv.bindAddress({ ...adapter.address, port });
      wv.listen(backlog);
      this.address = wv.query().localAddress;
    } catch (error) {
      wv.release();
      throw v1Error(error, what);
    }
    this.#wv = wv;
    this.#adapter = adapter;
    adapter.hold();
  }

  get port(): number {
    return this.address.port;
  }

  getConnectionRequest(connector: INDConnector): Overlapped<void> {
    const what = 'GetConnectionRequest';
    this.alive(what);
    if (!(connector instanceof Connector) || connector.adapter !== this.#adapter) {
      throw refuse(
        Status.INVALID_PARAMETER_1,
        what,
        'The connector is not one of the adapter instance that listens.',
      );
    }
    return connector.awaitRequest((endpoint) => this.#wv.getRequest(endpoint));
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    v1Call(what, () => this.#wv.cancelOverlappedRequests());
  }

  protected end(): void {
    this.#wv.release();
    this.#adapter.letGo();
  }
}
