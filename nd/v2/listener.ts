import type { SocketAddress } from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import { isWildcard, parseAddress } from '../core/address.js';
import type { EndpointBelow } from '../core/below.js';
import { checkBacklog, ListenerBase } from '../core/listener-base.js';
import type { NdAddress } from '../spi/common-types.js';
import type { IND2Listener } from '../spi/v2.js';
import { refuse } from '../status.js';

/** IND2Listener: bound first, then listening. */
export class Listener extends ListenerBase implements IND2Listener {
  protected get interfaces() {
    return ['IND2Overlapped', 'IND2Listener'] as const;
  }

  protected wv: EndpointBelow | undefined = undefined;
  #listening = false;

  bind(address: NdAddress): void {
    const what = 'Bind';
    this.alive(what);
    if (this.wv !== undefined) throw refuse(Status.ADDRESS_ALREADY_ASSOCIATED, what);
    const { adapter } = this;
    // An address may outlive its device; a listener on it would wait forever.
    adapter.checkPresent(what);
    const parsed = parseAddress(address, what);
    const wildcard = isWildcard(parsed);
    const local = wildcard ? parsed : adapter.ownAddress(parsed, what);
    const wv = adapter.call(what, () => adapter.endpointBelow(true));
    try {
      // The wildcard stands only for the addresses of this adapter.
      if (wildcard) wv.bindAddress(local, this.adapter.deviceAddress);
      else wv.bindAddress(local);
    } catch (error) {
      wv.release();
      throw adapter.error(error, what);
    }
    this.wv = wv;
  }

  listen(backlog = 0): void {
    const what = 'Listen';
    this.alive(what);
    checkBacklog(what, backlog, Status.INVALID_PARAMETER);
    const { wv } = this;
    if (wv === undefined || this.#listening) {
      throw refuse(
        Status.INVALID_DEVICE_STATE,
        what,
        this.#listening
          ? 'The listener is already listening.'
          : 'The listener must be bound; call bind() first.',
      );
    }
    this.adapter.call(what, () => wv.listen(backlog, this.adapter.pkey));
    this.#listening = true;
  }

  getLocalAddress(): SocketAddress {
    const what = 'GetLocalAddress';
    this.alive(what);
    const { wv } = this;
    if (wv === undefined) {
      throw refuse(Status.INVALID_DEVICE_STATE, what, 'The listener must be bound; call bind() first.');
    }
    return this.adapter.call(what, () => wv.query().localAddress);
  }

  protected listening(what: string): EndpointBelow {
    if (this.wv === undefined || !this.#listening) {
      throw refuse(Status.INVALID_DEVICE_STATE, what, 'The listener must be listening; call listen() first.');
    }
    return this.wv;
  }
}
