/**
 * Service id resolution on both sides: finds the exchange of a message and the listener of a request, and sends the
 * replies that need no listener (IBA 1 §12.11; RDMA IP CM Service, annex A11).
 */
import { gidEquals, gidKey, isUnicastGid } from './gids.js';
import { type Listener, ListenerTable } from './listener-table.js';
import { type CmBody, type CmMessage, emitMad, SidrStatus } from './mad-layouts.js';
import { answerPath, isConnectableQpn, readIpCmHeader } from './messages.js';
import type {
  CmListenParameters,
  CmPlatform,
  Gid,
  SidrInquiry,
  SidrListener,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
  SidrRequest,
  SidrState,
} from './service.js';
import { sourceOf } from './shares.js';
import { type ReceivedSidrReq, SidrExchange, type SidrHost } from './sidr-exchange.js';

/** Maximum number of stored replies for peers that may repeat their request; beyond it the oldest are released early. */
export const SIDR_ANSWER_LIMIT = 4096;

/** Source and destination of a MAD. */
interface Origin {
  readonly source: Gid;
  readonly destination: Gid;
  readonly scopeId: number;
  /** The sender, as in connection-manager.ts. */
  readonly sender: number;
}

type Received<N extends 'SIDR_REQ' | 'SIDR_REP'> = Extract<CmMessage, { name: N }>;
type Taken = { inquiry: SidrInquiry; request: SidrRequest };

const inquiryKey = (requestId: number, source: Gid) => `${requestId.toString(16)}/${gidKey(source)}`;

export class SidrManager implements SidrHost {
  readonly platform: CmPlatform;
  readonly options: SidrHost['options'];
  readonly #count: (counter: string) => void;
  readonly #lookups = new Map<number, SidrExchange>();
  /** Waiting and completed requests, by the peer's id and address. */
  readonly #inquiries = new Map<string, SidrExchange>();
  /** Requests with a stored reply, oldest first. */
  readonly #answered = new Set<SidrExchange>();
  readonly #listeners = new ListenerTable<Taken>();
  readonly #requestedAt = new Map<SidrExchange, Listener<Taken>>();

  constructor(host: Pick<SidrHost, 'platform' | 'options' | 'count'>) {
    this.platform = host.platform;
    this.options = host.options;
    this.#count = (counter) => host.count(counter);
  }

  listen(parameters: CmListenParameters): SidrListener {
    return this.#listeners.add(parameters);
  }

  /** `requestId` 0: no id was available. */
  lookup(
    parameters: SidrLookupParameters,
    events: SidrLookupEvents,
    requestId: number,
    transactionId: bigint,
  ): SidrLookup {
    let exchange: SidrExchange;
    try {
      exchange = new SidrExchange(this, { lookup: parameters, requestId, transactionId });
    } catch (error) {
      if (requestId !== 0) this.platform.releaseCommId(requestId);
      throw error;
    }
    exchange.events = events;
    if (requestId === 0) {
      this.#count('noCommId');
      exchange.refuseLater();
    } else {
      exchange.dispatch('lookup');
    }
    return exchange;
  }

  counters(): Record<string, number> {
    return {
      lookups: this.#lookups.size,
      sidrWaiting: this.#listeners.waiting,
      sidrAnswered: this.#answered.size,
    };
  }

  close(): void {
    for (const listener of this.#listeners.all) listener.close();
    for (const exchange of [...this.#lookups.values(), ...this.#inquiries.values()]) {
      exchange.abandon();
      exchange.silence();
    }
    this.#lookups.clear();
    this.#inquiries.clear();
    this.#answered.clear();
    this.#requestedAt.clear();
  }

  // ── Events of exchanges (SidrHost) ─────────────────────────────────────────────────────────────────────────

  count(counter: string): void {
    this.#count(counter);
  }

  sidrChanged(exchange: SidrExchange, before: SidrState): void {
    const { state, received } = exchange;
    if (before === 'reqReceived') {
      this.#requestedAt.get(exchange)?.forget(exchange);
      this.#requestedAt.delete(exchange);
    }
    if (!received) {
      if (state === 'reqSent') this.#lookups.set(exchange.requestId, exchange);
      else if (this.#lookups.delete(exchange.requestId)) this.platform.releaseCommId(exchange.requestId);
      return;
    }
    const key = inquiryKey(exchange.requestId, exchange.path.destination);
    if (state !== 'over') this.#inquiries.set(key, exchange);
    else if (this.#inquiries.get(key) === exchange) this.#inquiries.delete(key);
    if (state === 'answered') this.#answered.add(exchange);
    else this.#answered.delete(exchange);
    if (this.#answered.size > SIDR_ANSWER_LIMIT) {
      for (const oldest of this.#answered) {
        oldest.dispatch('expired');
        break;
      }
    }
  }

  // ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────

  onReq({ header, body }: Received<'SIDR_REQ'>, origin: Origin): void {
    const { transactionId } = header;
    const known = this.#inquiries.get(inquiryKey(body.requestId, origin.source));
    if (known?.received && isSameReq(known.received, transactionId, body)) {
      known.dispatch('req');
      return;
    }
    if (!isUnicastGid(origin.source)) {
      this.count('dropped.badAddress');
      return;
    }
    known?.dispatch('stale');
    const verdict = this.#judge(body, origin);
    if (verdict === 'dropped') return;
    if ('status' in verdict) {
      this.#refuse(verdict.status, transactionId, body, origin);
      return;
    }
    const { listener, request } = verdict;
    const source = sourceOf(origin.source, origin.sender);
    const exchange = new SidrExchange(this, { received: { body, source, transactionId, request } });
    this.#requestedAt.set(exchange, listener);
    exchange.dispatch('admit');
    listener.add(exchange);
  }

  /** The listener of this request, the status of its refusal, or `dropped` if the peer has to repeat it. */
  #judge(
    body: CmBody<'SIDR_REQ'>,
    { source, destination, scopeId, sender }: Origin,
  ): { listener: Listener<Taken>; request: SidrRequest } | { status: number } | 'dropped' {
    if (!this.#listeners.has(body.serviceId)) return { status: SidrStatus.unsupportedServiceId };
    const header = readIpCmHeader(body.serviceId, body.privateData, source, destination);
    if (header === 'badVersion') return { status: SidrStatus.unsupportedVersion };
    if (header === 'badAddress') return { status: SidrStatus.rejected };
    if (this.platform.acceptsPkey?.(destination, body.pkey) === false) return { status: SidrStatus.rejected };
    const listener = this.#listeners.find(body.serviceId, destination);
    if (!listener || listener.parameters.acceptsPkey?.(body.pkey) === false)
      return { status: SidrStatus.rejected };
    const admission = listener.admit(sourceOf(source, sender));
    if (admission === 'refused') return { status: SidrStatus.noQp };
    if (admission === 'dropped') {
      this.count('dropped.sidr.noRoom');
      return admission;
    }
    const request: SidrRequest = {
      serviceId: body.serviceId,
      localAddress: destination,
      localPort: header.localPort,
      peerAddress: source,
      peerPort: header.peerPort,
      path: answerPath(source, destination, scopeId),
      pkey: body.pkey,
      privateData: header.privateData,
    };
    return { listener, request };
  }

  onRep({ header, body }: Received<'SIDR_REP'>, origin: Origin): void {
    const exchange = this.#lookups.get(body.requestId);
    if (!exchange) {
      this.count('unknown.SIDR_REP');
      return;
    }
    if (!gidEquals(exchange.path.destination, origin.source)) {
      this.count('dropped.wrongSource');
      return;
    }
    if (!isAnswerTo(exchange, header.transactionId, body)) {
      this.count('dropped.otherRequest');
      return;
    }
    if (body.status === SidrStatus.ok && !isConnectableQpn(body.qpn)) {
      this.count('dropped.badQpn');
      return;
    }
    const { status, qpn, qkey, privateData } = body;
    const info = body.info.slice(0, Math.min(body.infoLength, body.info.length));
    exchange.dispatch('rep', { reply: { status, qpn, qkey, info, privateData } });
  }

  /** Sends a reply for which no state is stored. */
  #refuse(
    status: number,
    transactionId: bigint,
    { requestId, serviceId }: CmBody<'SIDR_REQ'>,
    { source, destination, scopeId }: Origin,
  ): void {
    this.count(`refused.sidr.${status}`);
    this.count('sent.SIDR_REP');
    const mad = emitMad('SIDR_REP', transactionId, { requestId, status, serviceId });
    this.platform.sendMad(answerPath(source, destination, scopeId), mad);
  }
}

/** Whether a SIDR_REQ repeats that of this exchange. Comparing ids is not enough: a restarted peer reuses them. */
function isSameReq(
  received: ReceivedSidrReq,
  transactionId: bigint,
  { serviceId, privateData }: CmBody<'SIDR_REQ'>,
): boolean {
  return (
    received.transactionId === transactionId &&
    received.body.serviceId === serviceId &&
    Buffer.compare(received.body.privateData, privateData) === 0
  );
}

/**
 * Whether a SIDR_REP is the reply to this request. Every reply repeats the transaction id. Older Linux kernels omit the
 * service id in replies without a queue pair.
 */
function isAnswerTo(
  { transactionId, serviceId }: SidrExchange,
  answered: bigint,
  body: CmBody<'SIDR_REP'>,
): boolean {
  return answered === transactionId && (body.status !== SidrStatus.ok || body.serviceId === serviceId);
}
