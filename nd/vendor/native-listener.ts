import type { OverlappedObject } from '../../kernel-bridge/windows/nd-provider/index.js';
import { type Overlapped, type SocketAddress, Status, StatusError } from '../../winverbs/index.js';
import type { EndpointBelow } from '../core/below.js';
import { addressFrom, withAddress } from './native-address.js';
import type { NativeConnector } from './native-connector.js';

/** Unlike in WinVerbs, connectors and listeners are different objects. */
function isListener(): never {
  throw new StatusError(Status.INVALID_DEVICE_REQUEST);
}

/** IND2Listener of a provider. */
export class NativeListener implements EndpointBelow {
  readonly resolveRoute = isListener;
  readonly connect = isListener;
  readonly accept = isListener;
  readonly reject = isListener;
  readonly disconnect = isListener;
  readonly notifyDisconnect = isListener;
  readonly keepQueuePairOnDisconnect = isListener;

  constructor(private readonly com: OverlappedObject<'IND2Listener'>) {}

  bindAddress(address: SocketAddress): SocketAddress {
    withAddress(this.com, 'Bind', address);
    return this.query().localAddress;
  }

  listen(backlog: number): void {
    this.com.run('Listen', backlog);
  }

  getRequest(connector: EndpointBelow): Overlapped<void> {
    const { address } = (connector as NativeConnector).com;
    return this.com.start('GetConnectionRequest', () => [address], { repeats: true });
  }

  query(): ReturnType<EndpointBelow['query']> {
    const localAddress = addressFrom(this.com, 'GetLocalAddress');
    return {
      localAddress,
      peerAddress: undefined,
      privateData: new Uint8Array(0),
      responderResources: 0,
      initiatorDepth: 0,
    };
  }

  cancelOverlappedRequests(): void {
    this.com.cancelAll();
  }

  release(): void {
    this.com.release();
  }
}
