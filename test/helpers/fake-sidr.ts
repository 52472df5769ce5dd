/** Service id resolution without a wire: look-ups and answers are recorded, and the test plays the peer. */
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import type {
  CmListenParameters,
  SidrInquiry,
  SidrListener,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
  SidrReply,
  SidrRequest,
  SidrState,
} from '../../kernel-bridge/kernel/cm/service.js';

const otherGid = gidOfAddress('192.0.2.9');
const ownGid = gidOfAddress('192.0.2.2');

/** A look-up that the test answers through {@link events}. */
export class FakeLookup implements SidrLookup {
  state: SidrState = 'reqSent';
  readonly requestId = 0x0304_0002;

  constructor(
    readonly parameters: SidrLookupParameters,
    public events: SidrLookupEvents,
  ) {}

  abandon(): void {
    this.state = 'over';
  }
  /** The peer answers. */
  answer(more: Partial<SidrReply> = {}): void {
    this.state = 'over';
    this.events.answered?.({
      status: 0,
      qpn: 0x0c_0003,
      qkey: 0x0123_4567,
      info: new Uint8Array(0),
      privateData: new Uint8Array(136).fill(0x53),
      ...more,
    });
  }
}

/** A received look-up; records the answer. */
export class FakeInquiry implements SidrInquiry {
  state: SidrState = 'reqReceived';
  events: SidrInquiry['events'] = {};
  readonly calls: string[] = [];
  accepted: { qpn: number; qkey: number; privateData: Uint8Array } | undefined;

  accept(qpn: number, qkey: number, privateData: Uint8Array): void {
    this.calls.push('accept');
    this.accepted = { qpn, qkey, privateData };
  }
  reject(privateData: Uint8Array): void {
    this.calls.push(`reject ${privateData.length}`);
  }
  abandon(): void {
    this.calls.push('abandon');
  }
}

/** A listener whose look-ups come from the test. */
export class FakeSidrListener implements SidrListener {
  readonly requests: { inquiry: FakeInquiry; request: SidrRequest }[] = [];
  closed = false;

  constructor(readonly parameters: CmListenParameters) {}

  get waiting(): number {
    return this.requests.length;
  }
  takeRequest(): { inquiry: FakeInquiry; request: SidrRequest } | undefined {
    return this.requests.shift();
  }
  close(): void {
    this.closed = true;
  }
  /** A SIDR_REQ arrives. */
  arrive(request: Partial<SidrRequest> = {}): FakeInquiry {
    const inquiry = new FakeInquiry();
    const { serviceId } = this.parameters;
    const whole: SidrRequest = {
      serviceId,
      localAddress: ownGid,
      localPort: Number(serviceId & 0xffffn),
      peerAddress: otherGid,
      peerPort: 40_000,
      path: {
        source: ownGid,
        destination: otherGid,
        flowLabel: 0,
        trafficClass: 0,
        hopLimit: 64,
        scopeId: 0,
      },
      pkey: 0xffff,
      privateData: new Uint8Array(180).fill(0x54),
      ...request,
    };
    this.requests.push({ inquiry, request: whole });
    this.parameters.onRequest();
    return inquiry;
  }
}
