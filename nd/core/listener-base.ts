import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { type Overlapped, Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';
import type { AdapterObject } from './adapter-object.js';
import { isCount } from './argument-checks.js';
import type { EndpointBelow } from './below.js';
import { ConnectorBase } from './connector-base.js';
import { NdOverlappedBase } from './nd-object.js';

/** Base of INDListen and IND2Listener, over an endpoint below. */
export abstract class ListenerBase extends NdOverlappedBase {
  readonly adapter: AdapterObject;

  constructor(adapter: AdapterObject) {
    super();
    this.adapter = adapter;
    adapter.addChild(this);
  }

  /** Returns the listening endpoint. Throws INVALID_DEVICE_STATE if it does not listen. */
  protected abstract listening(what: string): EndpointBelow;

  /** The WinVerbs endpoint, if it exists yet. */
  protected abstract readonly wv: EndpointBelow | undefined;

  getConnectionRequest(connector: unknown): Overlapped<void> {
    const what = 'GetConnectionRequest';
    this.alive(what);
    const wv = this.listening(what);
    if (!(connector instanceof ConnectorBase) || connector.adapter !== this.adapter) {
      throw refuse(
        Status.INVALID_PARAMETER_1,
        what,
        `\`connector\` must belong to the listener's adapter instance; got ${shown(connector)}.`,
      );
    }
    return this.issued(connector.awaitRequest((endpoint) => wv.getRequest(endpoint)));
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    const { wv } = this;
    if (wv !== undefined) this.adapter.call(what, () => wv.cancelOverlappedRequests());
  }

  protected end(): void {
    this.wv?.release();
    this.adapter.removeChild(this);
  }
}

/** Throws `status` for an invalid backlog. */
export function checkBacklog(what: string, backlog: number, status: number): void {
  if (!isCount(backlog, 0, 0xffff_ffff)) {
    throw refuse(
      status,
      what,
      `\`backlog\` must be a number of requests, or 0 for the maximum; got ${shown(backlog)}.`,
    );
  }
}
