import { type Overlapped, Status } from '../../winverbs/index.js';
import { checkOptions, readLimit } from '../core/argument-checks.js';
import { ConnectorBase, type ReadLimits } from '../core/connector-base.js';
import type { NdAddress } from '../spi/common-types.js';
import type { IND2Connector, IND2QueuePair, Nd2ConnectOptions, Nd2ReadLimits } from '../spi/v2.js';
import type { NdError } from '../status.js';
import { QueuePair } from './queue-pair.js';

/** IND2Connector. The client binds it; Connect and Accept have read limits. */
export class Connector extends ConnectorBase implements IND2Connector {
  protected get interfaces() {
    return ['IND2Overlapped', 'IND2Connector'] as const;
  }

  protected readonly ownDisconnect = Status.CONNECTION_DISCONNECTED;

  bind(address: NdAddress): void {
    const what = this.enter('bind', 'Bind');
    this.bindTo(this.adapter.ownAddress(address, what), what);
  }

  connect(queuePair: IND2QueuePair, address: NdAddress, options: Nd2ConnectOptions = {}): Overlapped<void> {
    const what = this.enter('connect', 'Connect');
    const own = this.checkQueuePair(queuePair, QueuePair, what, 'queuePair');
    const limits = this.#limits(what, options, Status.INVALID_PARAMETER_4, Status.INVALID_PARAMETER_5);
    const privateData = this.checkCallerData(options.privateData, what);
    const peer = this.peerFrom(this.local, address, what);
    this.prepare(what);
    return this.startConnect(what, own, peer, limits, privateData);
  }

  accept(queuePair: IND2QueuePair, options: Nd2ConnectOptions = {}): Overlapped<void> {
    const what = this.enter('accept', 'Accept');
    const own = this.checkQueuePair(queuePair, QueuePair, what, 'queuePair');
    const limits = this.#limits(what, options, Status.INVALID_PARAMETER_2, Status.INVALID_PARAMETER_3);
    return this.startAccept(what, own, limits, this.checkCalleeData(options.privateData, what));
  }

  getReadLimits(): Nd2ReadLimits {
    const what = this.enter('getReadLimits', 'GetReadLimits');
    return this.attributes(what, (attributes) => this.limited(attributes));
  }

  getPrivateData(): Uint8Array {
    const what = this.enter('getPrivateData', 'GetPrivateData');
    return this.attributes(what, ({ privateData }) => privateData);
  }

  /** The result is the same if the peer does not reply, because the connection has ended, as requested. */
  protected disconnectFailure(failure: NdError): NdError | undefined {
    return failure.status === Status.IO_TIMEOUT ? undefined : failure;
  }

  #limits(what: string, options: Nd2ConnectOptions, inStatus: number, outStatus: number): ReadLimits {
    checkOptions(what, options, { inboundReadLimit: true, outboundReadLimit: true, privateData: true });
    const { maxInboundReads, maxOutboundReads } = this.adapter.bounds;
    return {
      inbound: readLimit(what, 'inboundReadLimit', options.inboundReadLimit, maxInboundReads, inStatus),
      outbound: readLimit(what, 'outboundReadLimit', options.outboundReadLimit, maxOutboundReads, outStatus),
    };
  }
}
