import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { Capacity, EpOption, RnrRetry } from '../kernel-bridge/ioctl/constants.js';
import type { Input } from '../kernel-bridge/ioctl/layout.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { encodeSockaddr } from '../kernel-bridge/ioctl/sockaddr.js';
import {
  epAttributesRoom,
  type WvIoConnectParam,
  WvIoEpAccept,
  WvIoEpAttributes,
  WvIoEpConnect,
  WvIoEpDisconnect,
  WvIoId,
  WvIoObject,
} from '../kernel-bridge/ioctl/structs.js';
import { checkedSmall } from './checked-numbers.js';
import { WVConnectQueuePair } from './connect-queue-pair.js';
import { addressOrAny, addressOrNone, checkedData, WVEndpoint } from './endpoint.js';
import { explainAccept } from './explain.js';
import type {
  IWVConnectEndpoint,
  IWVConnectQueuePair,
  SocketAddress,
  WvConnectAttributes,
  WvConnectParam,
} from './interfaces.js';
import type { WVProvider } from './provider.js';
import { defaultRetryCount, defaultRnrRetryCount } from './retry-counts.js';
import { socketAddress } from './socket-address.js';
import { checkedObject, guarded, Status, WvError } from './status.js';

const NO_BYTES = new Uint8Array(0);

/** Joins the private data in the structure with the bytes that follow it. */
function dataOf(
  { data, dataLength }: { data: Uint8Array; dataLength: number },
  rest: Uint8Array,
): Uint8Array {
  const whole = new Uint8Array(dataLength + rest.length);
  whole.set(data.subarray(0, dataLength));
  whole.set(rest, dataLength);
  return whole;
}

/** The queue pair of an outstanding Connect or Accept; it becomes the endpoint's own on success. */
interface Candidate {
  readonly qp: WVConnectQueuePair;
  held: boolean;
  request: Overlapped<void> | undefined;
}

const NO_CANDIDATES: readonly Candidate[] = [];

/**
 * IWVConnectEndpoint: establishes and ends connections (IBA 1 §12, RDMA IP CM service). On the active side, call
 * bindAddress, resolveRoute and connect, then accept or reject the reply. On the passive side, call bindAddress and
 * listen, pass another endpoint to getRequest, then accept or reject the request on that endpoint. A call in the wrong
 * state fails with INVALID_DEVICE_STATE. A second connect, accept or disconnect while one is outstanding fails with
 * DEVICE_BUSY.
 */
export class WVConnectEndpoint extends WVEndpoint implements IWVConnectEndpoint {
  private listening = false;
  /** The connection's queue pair, held until the endpoint is destroyed. */
  private qp: WVConnectQueuePair | undefined = undefined;
  /** Outstanding Connects and Accepts, rarely more than one; empty once the endpoint is connected. */
  private candidates = NO_CANDIDATES;
  private outstanding: Overlapped<void> | undefined = undefined;

  /** @internal */
  constructor(provider: WVProvider, id: bigint) {
    super('connect endpoint', provider, id, Capacity.REJ_DATA, 'IWVConnectEndpoint');
  }

  /**
   * Accepts requests for this address from now on (EP_LISTEN). `backlog` is the maximum number of waiting requests;
   * further ones are refused. 0 selects the soft kernel's limit (1024 for each listener, 4096 for each thread). With
   * `pkey`, requests for other partitions are refused as well; without it, every partition of the port is accepted.
   *
   * @throws WvError ADDRESS_ALREADY_EXISTS (the port is in use), INVALID_DEVICE_STATE, INVALID_PARAMETER (not a 16-bit
   *   number, or, with `pkey`, not the soft kernel)
   * @category Connect
   */
  override listen(backlog: number, pkey?: number): void {
    super.listen(backlog, pkey);
    this.listening = true;
  }

  /**
   * Waits for a connection request on this listener and moves it into `endpoint`, a fresh one of the same provider
   * (EP_GET_REQUEST). Its query() then returns the peer's address and private data.
   *
   * Completes with SUCCESS, CANCELED, INVALID_DEVICE_STATE (not listening), CONNECTION_IN_USE (`endpoint` is not
   * fresh).
   * @category Connect
   */
  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void> {
    return this.nextRequest(endpoint instanceof WVConnectEndpoint ? endpoint : undefined, endpoint);
  }

  /**
   * Requests a connection (EP_CONNECT). The request completes when the peer has replied. Read query().privateData, then
   * call accept() or reject().
   *
   * Completes with SUCCESS, CONNECTION_REFUSED (the peer's private data can be queried), TIMEOUT (no reply, and
   * connect() may be called again), HOST_UNREACHABLE, NETWORK_UNREACHABLE, CONNECTION_ABORTED (an iWARP device could not
   * establish it), CANCELED.
   *
   * @throws WvError INVALID_BUFFER_SIZE (more than 56 bytes of private data), INVALID_PARAMETER
   * @category Connect
   */
  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void> {
    this.check();
    const mine = this.checkedQp(qp);
    const input = WvIoEpConnect.encodeOnce({
      id: this.id,
      qpId: mine.id,
      peerAddress: { sockAddr: encodeSockaddr(socketAddress(peer, 'peer')) },
      param: this.parameters(mine, param, Capacity.CONNECT_DATA),
    });
    return this.withQp(mine, (succeeded, failed) =>
      this.overlapped<void>(IoctlCode.EP_CONNECT, input, 0, succeeded, failed),
    );
  }

  /**
   * Accepts the peer's request or reply (EP_ACCEPT). On the passive side it accepts the request and completes when the
   * peer is ready. On the active side it accepts the reply to connect(), and `qp` may be null. The queue pair is in RTS
   * when the call has completed.
   *
   * Completes with SUCCESS, CONNECTION_REFUSED (the active side has rejected the connection), IO_TIMEOUT (the active
   * side does not reply), CONNECTION_ABORTED, CANCELED.
   *
   * @throws WvError INVALID_BUFFER_SIZE (more private data than IWVProvider.maxAcceptData), INVALID_PARAMETER (no queue
   *   pair)
   * @category Connect
   */
  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void> {
    this.check();
    this.outstanding?.settle();
    const mine = qp === null ? this.qp : this.checkedQp(qp);
    if (mine === undefined) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        '`qp` must be a queue pair; got null. Only after connect() may it be null.',
      );
    }
    const sink = mine.pd.verbs.ndModifyQp(mine.handle);
    const input = this.acceptInput(mine, param);
    const replied = this.qp;
    return this.withQp(mine, (succeeded, failed) =>
      this.overlapped<void>(
        IoctlCode.EP_ACCEPT,
        input,
        sink.size,
        (output) => {
          sink.moved(output);
          succeeded();
        },
        (error) => {
          failed();
          return explainAccept(error, mine.type, replied !== undefined && replied !== mine);
        },
        sink.address,
      ),
    );
  }

  /**
   * Ends the connection (EP_DISCONNECT). When the call returns, the queue pair is in ERROR and its requests are
   * flushed. The overlapped request completes when the peer has confirmed.
   *
   * Completes with SUCCESS (also when the peer disconnects at the same time), or with TIMEOUT if the peer did not
   * confirm; the connection has ended even then.
   *
   * @throws WvError INVALID_DEVICE_STATE (the endpoint never had a connection)
   * @category Connect
   */
  disconnect(): Overlapped<void> {
    this.check();
    this.outstanding?.settle();
    // The kernel refers to this queue pair, or to that of an unfinished Connect or Accept.
    const mine = this.qp ?? this.candidates[0]?.qp;
    if (mine === undefined) {
      throw new WvError(
        Status.INVALID_DEVICE_STATE,
        'The endpoint must have a connection to disconnect; it never had one.',
      );
    }
    const sink = mine.pd.verbs.ndModifyQp(mine.handle);
    const input = WvIoEpDisconnect.encodeOnce({ id: this.id, qpId: mine.id });
    const request = this.overlapped<void>(
      IoctlCode.EP_DISCONNECT,
      input,
      sink.size,
      (output) => sink.moved(output),
      undefined,
      sink.address,
    );
    this.awaitBegun();
    return request;
  }

  /**
   * Returns when the kernel has started all earlier requests. The kernel executes requests in order, but an overlapped
   * request may not have reached the kernel yet when its call returns.
   */
  private awaitBegun(): void {
    try {
      this.file.callId(IoctlCode.EP_QUERY, this.id, WvIoEpAttributes.size);
    } catch {
      // The request itself reports its errors.
    }
  }

  /**
   * See {@link IWVConnectEndpoint.keepQueuePairOnDisconnect} (EP_MODIFY). @throws WvError INVALID_PARAMETER (not the
   * soft kernel)
   * @category Connect
   */
  keepQueuePairOnDisconnect(keep: boolean): void {
    if (typeof keep !== 'boolean')
      throw new WvError(Status.INVALID_PARAMETER, `\`keep\` must be a boolean; got ${shown(keep)}.`);
    this.check();
    const head = WvIoId.encodeOnce({ id: this.id, data: EpOption.KEEP_QP });
    this.file.callWith(IoctlCode.EP_MODIFY, head, Uint8Array.of(keep ? 1 : 0, 0, 0, 0));
  }

  /**
   * Waits for the end of the connection (EP_DISCONNECT_NOTIFY). It never completes with SUCCESS; it completes with
   * CONNECTION_DISCONNECTED (either side has disconnected), TIMEOUT (this side's disconnect() was not confirmed),
   * CONNECTION_ABORTED (the connection was lost) or CANCELED.
   * @category Connect
   */
  notifyDisconnect(): Overlapped<void> {
    this.check();
    const input = WvIoObject.encodeOnce({ id: this.id });
    return this.overlapped<void>(IoctlCode.EP_DISCONNECT_NOTIFY, input, 0, () => undefined);
  }

  /**
   * Returns addresses, device, the peer's last private data, and read depths as seen from this side (EP_QUERY).
   * @category Connect
   */
  query(): WvConnectAttributes {
    this.check();
    const output = this.file.callId(IoctlCode.EP_QUERY, this.id, epAttributesRoom);
    return guarded('EP_QUERY', () => {
      const { localAddress, peerAddress, device, param } = WvIoEpAttributes.decode(output);
      const { connect, backlog } = param;
      const listener = this.listening;
      return {
        localAddress: addressOrAny(localAddress.sockAddr),
        peerAddress: addressOrNone(peerAddress.sockAddr),
        device,
        privateData: listener ? NO_BYTES : dataOf(connect, output.subarray(WvIoEpAttributes.size)),
        responderResources: listener ? 0 : Number(connect.responderResources),
        initiatorDepth: listener ? 0 : Number(connect.initiatorDepth),
        retryCount: connect.retryCount,
        rnrRetryCount: connect.rnrRetryCount,
        backlog: listener ? Number(backlog) : 0,
      };
    });
  }

  protected override destroy(): void {
    super.destroy();
    for (const candidate of this.candidates) this.drop(candidate);
    this.qp?.removeChild(this);
    this.qp = undefined;
  }

  /** Starts a Connect or Accept with a queue pair, which becomes the endpoint's own only on success. */
  private withQp(
    qp: WVConnectQueuePair,
    start: (succeeded: () => void, failed: () => void) => Overlapped<void>,
  ): Overlapped<void> {
    const candidate: Candidate = { qp, held: true, request: undefined };
    qp.addChild(this);
    this.candidates = [...this.candidates, candidate];
    try {
      const request = start(
        () => this.adopt(candidate),
        () => this.drop(candidate),
      );
      candidate.request = request;
      this.outstanding = request;
      return request;
    } catch (error) {
      this.drop(candidate);
      throw error;
    }
  }

  private adopt(candidate: Candidate): void {
    if (!candidate.held) return;
    this.ended(candidate);
    const before = this.qp;
    this.qp = candidate.qp;
    before?.removeChild(this);
  }

  private drop(candidate: Candidate): void {
    if (!candidate.held) return;
    this.ended(candidate);
    candidate.qp.removeChild(this);
  }

  /** Removes the candidate of a completed request, whatever its result. */
  private ended(candidate: Candidate): void {
    candidate.held = false;
    const others = this.candidates.filter((other) => other !== candidate);
    this.candidates = others.length === 0 ? NO_CANDIDATES : others;
    if (this.outstanding === candidate.request) this.outstanding = undefined;
  }

  private checkedQp(qp: IWVConnectQueuePair): WVConnectQueuePair {
    if (!(qp instanceof WVConnectQueuePair) || qp.pd.device.provider !== this.provider) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`qp\` must be a connect queue pair of the endpoint's provider; got ${shown(qp)}.`,
      );
    }
    qp.check();
    return qp;
  }

  /** Private data that does not fit into the structure follows it. */
  private acceptInput(qp: WVConnectQueuePair, param: WvConnectParam): Uint8Array {
    const parameters = this.parameters(qp, param, this.provider.maxAcceptData);
    const { data } = parameters;
    if (data.length <= Capacity.CONNECT_DATA) {
      return WvIoEpAccept.encodeOnce({ id: this.id, qpId: qp.id, param: parameters });
    }
    const input = new Uint8Array(WvIoEpAccept.size + data.length - Capacity.CONNECT_DATA);
    const head = data.subarray(0, Capacity.CONNECT_DATA);
    WvIoEpAccept.encode({ id: this.id, qpId: qp.id, param: { ...parameters, data: head } }, input);
    input.set(data.subarray(Capacity.CONNECT_DATA), WvIoEpAccept.size);
    return input;
  }

  /** `most` is the maximum length of private data, in bytes. */
  private parameters(
    qp: WVConnectQueuePair,
    param: WvConnectParam,
    most: number,
  ): Input<typeof WvIoConnectParam> & { data: Uint8Array } {
    checkedObject('param', param, 'privateData, depths and counts, all optional');
    const data = checkedData(param.privateData, most);
    const depth = (what: string, value: number) => BigInt(checkedSmall(what, value, 0xffff_ffff));
    return {
      responderResources: depth('responderResources', param.responderResources ?? qp.responderResources),
      initiatorDepth: depth('initiatorDepth', param.initiatorDepth ?? qp.initiatorDepth),
      retryCount: checkedSmall('retryCount', param.retryCount ?? defaultRetryCount, 7),
      rnrRetryCount: checkedSmall(
        'rnrRetryCount',
        param.rnrRetryCount ?? defaultRnrRetryCount(qp.srq !== undefined),
        RnrRetry.FOR_EVER,
      ),
      dataLength: data.length,
      data,
    };
  }
}
