import { IpProtocol, type IWVConnectEndpoint, type SocketAddress, Status } from '../../winverbs/index.js';
import { checkOptions, isCount } from '../core/argument-checks.js';
import { checkBacklog, ListenerBase } from '../core/listener-base.js';
import type { INDListen, NdListenOptions } from '../spi/v1.js';
import { refuse } from '../status.js';
import type { Adapter } from './adapter.js';

/** The protocol. INVALID_PARAMETER_3 unless a connection can use it; UDP has no connections: NOT_SUPPORTED. */
export function checkProtocol(what: string, protocol: number = IpProtocol.TCP): number {
  if (!isCount(protocol, 0, 255)) {
    throw refuse(
      Status.INVALID_PARAMETER_3,
      what,
      `An IP protocol is a number from 0 to 255, not ${protocol}.`,
    );
  }
  if (protocol === IpProtocol.UDP) {
    throw refuse(Status.NOT_SUPPORTED, what, 'Protocol 17 (UDP) has no connections; use 6 (TCP).');
  }
  return protocol;
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

/** INDListen: bound and listening from the start. */
export class Listen extends ListenerBase implements INDListen {
  protected get interfaces() {
    return ['INDOverlapped', 'INDListen'] as const;
  }

  readonly address: SocketAddress;
  protected readonly wv: IWVConnectEndpoint;

  constructor(adapter: Adapter, options: NdListenOptions) {
    const what = 'Listen';
    checkOptions(what, options, { port: true, backlog: true, protocol: true });
    const { port = 0, backlog = 0, protocol } = options;
    checkBacklog(what, backlog, Status.INVALID_PARAMETER_1);
    const checked = checkProtocol(what, protocol);
    checkPort(what, port);
    adapter.checkPresent(what);
    const wv = adapter.call(what, () => adapter.provider.createConnectEndpoint(checked));
    let address: SocketAddress;
    try {
      wv.bindAddress({ ...adapter.address, port });
      wv.listen(backlog, adapter.pkey);
      address = wv.query().localAddress;
    } catch (error) {
      wv.release();
      throw adapter.error(error, what);
    }
    super(adapter);
    this.address = address;
    this.wv = wv;
  }

  get port(): number {
    return this.address.port;
  }

  protected listening(): IWVConnectEndpoint {
    return this.wv;
  }
}
