import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { IpProtocol, type IWVConnectEndpoint, type SocketAddress, Status } from '../../winverbs/index.js';
import { checkOptions, isCount } from '../core/argument-checks.js';
import { checkBacklog, ListenerBase } from '../core/listener-base.js';
import type { INDListen, NdListenOptions } from '../spi/v1.js';
import { refuse } from '../status.js';
import type { Adapter } from './adapter.js';

/** Checks the protocol. Throws INVALID_PARAMETER_3 if it is not a number of a protocol, NOT_SUPPORTED for UDP. */
export function checkProtocol(what: string, protocol: number = IpProtocol.TCP): number {
  if (!isCount(protocol, 0, 255)) {
    throw refuse(
      Status.INVALID_PARAMETER_3,
      what,
      `\`protocol\` must be an integer from 0 to 255; got ${shown(protocol)}.`,
    );
  }
  if (protocol === IpProtocol.UDP) {
    throw refuse(
      Status.NOT_SUPPORTED,
      what,
      '`protocol` must not be 17 (UDP), which has no connections. Use 6 (TCP).',
    );
  }
  return protocol;
}

/** Throws INVALID_PARAMETER unless it is a port, including 0. */
export function checkPort(what: string, port: number, name = 'port'): void {
  if (!isCount(port, 0, 65_535)) {
    throw refuse(
      Status.INVALID_PARAMETER,
      what,
      `\`${name}\` must be an integer from 0 (a free port) to 65535; got ${shown(port)}.`,
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
