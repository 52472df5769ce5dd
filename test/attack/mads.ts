/** MADs with correct, nearly correct or random fields, and the packets that carry them. */
import {
  CmAttribute,
  type CmBody,
  CmMad,
  type CmMessageName,
  cmLayouts,
  emitMad,
  MAD_HEADER_SIZE,
  MAD_SIZE,
} from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { forgedReq, ipCmHeaderOf } from '../helpers/forged-mads.js';
import { qkeyOf, qpnOf, REFUSED_STATUS, Wish } from './lookups.js';

const BTH_DETH_BYTES = 20;
const UD_SEND_ONLY = 0x64;
const GSI_QPN = 1;
const GSI_QKEY = 0x8001_0000;
const DEFAULT_PKEY = 0xffff;
const UDP_SERVICE = 0x0111_0000n;
/** Distance from a known id: ids are allocated sequentially. */
const AROUND = 12;
/** A QPN that does not exist. */
const WRONG_QPN = 0xba_d000;
/** The high bits of the attacker's own ids and QPNs: a slot without a process. */
const OWN_SLOT = 0x7e;

/** A SIDR_REQ that the attacker has received. */
export interface SeenRequest {
  readonly requestId: number;
  /** In decimal. */
  readonly transactionId: string;
  readonly serviceId: string;
  readonly nonce: readonly number[];
}

/** Data of a REP to the attacker, for its own connection. */
export interface SeenConnection {
  readonly theirs: number;
  readonly mine: number;
  readonly transactionId: string;
  readonly qpn: number;
  readonly caGuid: string;
}

/** What an attacker knows about victims. */
export interface Knowledge {
  readonly requests: readonly SeenRequest[];
  readonly connections: readonly SeenConnection[];
}

/** The targets of an attacker. */
export interface MadAim {
  readonly source: string;
  readonly destination: string;
  /** Ports of both victims for connections and for lookups. */
  readonly churn: readonly number[];
  readonly lookups: number;
  /** Whether this is the address of the victims' partner. No MAD may then be entirely correct. */
  readonly partners: boolean;
}

/** Creates MADs from a seeded random generator. */
export class MadMaker {
  constructor(private readonly random: () => number) {}

  below(n: number): number {
    return Math.floor(this.random() * n);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)]!;
  }

  bits(bits: number): bigint {
    let all = 0n;
    for (let n = 0; n < bits; n += 16) all = (all << 16n) | BigInt(this.below(0x1_0000));
    return BigInt.asUintN(bits, all);
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }

  /** A packet for QP1 from the BTH to the end of the MAD; occasionally malformed. */
  packet(mad: Uint8Array, sound: boolean): Uint8Array {
    const wrong = sound || this.below(12) !== 0 ? -1 : this.below(7);
    const size = wrong === 0 ? this.pick([0, 4, 24, 252, 260, 1024]) : MAD_SIZE;
    const packet = new Uint8Array(BTH_DETH_BYTES + size);
    const view = new DataView(packet.buffer);
    packet[0] = wrong === 1 ? this.below(256) : UD_SEND_ONLY;
    packet[1] = wrong === 2 ? this.below(256) : 0;
    view.setUint16(
      2,
      wrong === 3 ? this.pick([0, 0x8000, 0x7fff, 0x8001, this.below(0x1_0000)]) : DEFAULT_PKEY,
    );
    // QP0, the multicast QPN, or a queue pair that accepts no MADs.
    view.setUint32(4, wrong === 4 ? this.pick([0, 0xff_ffff, OWN_SLOT << 16]) : GSI_QPN);
    view.setUint32(8, this.below(0x100_0000));
    view.setUint32(
      12,
      wrong === 5 ? this.pick([0, 0x0123_4567, GSI_QKEY ^ 1, this.below(2 ** 32)]) : GSI_QKEY,
    );
    view.setUint32(16, wrong === 6 ? this.below(0x100_0000) : GSI_QPN);
    packet.set(mad.subarray(0, size), BTH_DETH_BYTES);
    return packet;
  }

  /** The MAD with another header, or with some bytes changed. */
  damaged(mad: Uint8Array): Uint8Array {
    const changed = Uint8Array.from(mad);
    switch (this.below(3)) {
      case 0:
        changed[this.below(4)]! = this.below(256);
        break;
      case 1:
        new DataView(changed.buffer).setUint16(16, this.pick([0, 0xf, 0x1b, 0x20, this.below(0x1_0000)]));
        break;
      default:
        for (let n = 1 + this.below(4); n > 0; n--) {
          changed[MAD_HEADER_SIZE + this.below(MAD_SIZE - MAD_HEADER_SIZE)]! = this.below(256);
        }
    }
    return changed;
  }

  // ── Service id resolution ──────────────────────────────────────────────────────────────────────────────────

  /** The reply that a lookup requests, or undefined if it requests none. It is sent last. */
  rightAnswer({ requestId, transactionId, serviceId, nonce }: SeenRequest): Uint8Array | undefined {
    const wish = nonce[0];
    if (wish === Wish.silence) return undefined;
    const bytes = Uint8Array.from(nonce);
    const accepted = wish === Wish.accept;
    return emitMad('SIDR_REP', BigInt(transactionId), {
      requestId,
      status: accepted ? 0 : REFUSED_STATUS,
      qpn: accepted ? qpnOf(bytes) : 0,
      qkey: accepted ? qkeyOf(bytes) : 0,
      // Older Linux kernels omit the service ID in refusals.
      serviceId: accepted || this.below(2) === 0 ? BigInt(serviceId) : 0n,
      infoLength: this.below(256),
      info: this.bytes(72),
      privateData: bytes,
    });
  }

  /** A reply from the looked-up address, for another lookup. */
  wrongAnswer({ requestId, transactionId, serviceId, nonce }: SeenRequest): Uint8Array {
    const right = BigInt(transactionId);
    const any = this.pick([0, 0, 1, 2, 3, 4, 5, this.below(256)]);
    const wrong = { requestId, status: any, qpn: WRONG_QPN, qkey: 0xbad, serviceId: BigInt(serviceId) };
    const body = { ...wrong, infoLength: this.below(256), privateData: Uint8Array.from(nonce) };
    switch (this.below(4)) {
      case 0:
        return emitMad('SIDR_REP', right, { ...body, requestId: (requestId ^ (1 << this.below(32))) >>> 0 });
      case 1:
        return emitMad('SIDR_REP', this.otherTransaction(right), body);
      case 2:
        return emitMad('SIDR_REP', right, { ...body, status: 0, serviceId: this.otherService(serviceId) });
      default:
        return emitMad('SIDR_REP', right, { ...body, status: 0, qpn: this.pick([0, 1, 0xff_ffff]) });
    }
  }

  /** A forged reply from an address that may have been looked up at about the time of `seen`. */
  forgedAnswer(seen: SeenRequest, { partners }: MadAim): Uint8Array {
    const requestId = this.below(3) === 0 ? seen.requestId : this.near(seen.requestId);
    // The low half of the transaction id is the request id. The partner's address must not have both right.
    const right = ((BigInt(seen.transactionId) >> 32n) << 32n) | BigInt(requestId);
    const transactionId = partners ? this.otherTransaction(right) : right;
    return emitMad('SIDR_REP', transactionId, {
      requestId,
      status: this.pick([0, 0, 1, 2, 3]),
      qpn: WRONG_QPN,
      qkey: 0xbad,
      serviceId: this.below(2) === 0 ? BigInt(seen.serviceId) : this.bits(64),
      privateData: Uint8Array.from(seen.nonce),
    });
  }

  /** A lookup, valid or of random bytes; occasionally with the id of a victim's lookup. */
  question({ source, destination, lookups }: MadAim, { requests }: Knowledge): Uint8Array {
    const seen = requests.length > 0 && this.below(4) === 0 ? this.pick(requests) : undefined;
    const privateData = this.bytes(216);
    privateData.set(ipCmHeaderOf(source, destination));
    const port = this.below(8) === 0 ? this.below(0x1_0000) : lookups;
    const mad = emitMad('SIDR_REQ', this.bits(64), {
      requestId: seen === undefined ? this.ownId() : this.near(seen.requestId),
      pkey: this.below(8) === 0 ? this.below(0x1_0000) : DEFAULT_PKEY,
      serviceId: UDP_SERVICE | BigInt(port),
      privateData,
    });
    return this.below(3) === 0 ? this.damaged(mad) : mad;
  }

  // ── Connections ────────────────────────────────────────────────────────────────────────────────────────────

  /** A message of any kind: for the attacker's own connections, for guessed ones, or for none. */
  message(aim: MadAim, { connections }: Knowledge): Uint8Array {
    const names = Object.keys(CmAttribute) as CmMessageName[];
    const name = this.below(4) === 0 ? 'REQ' : this.pick(names);
    const seen = connections.length > 0 && this.below(8) !== 0 ? this.pick(connections) : undefined;
    const mad = name === 'REQ' ? this.request(aim, seen) : this.answer(name, aim, seen);
    return this.below(5) === 0 ? this.damaged(mad) : mad;
  }

  private request(
    { source, destination, churn, partners }: MadAim,
    seen: SeenConnection | undefined,
  ): Uint8Array {
    // The GUID of a victim's device, with a queue pair that may be its own.
    const asVictim = seen !== undefined && (partners || this.below(4) === 0);
    const says: Partial<CmBody<'REQ'>> = {
      localCommId: asVictim && this.below(2) === 0 ? this.near(seen.theirs) : this.ownId(),
      localQpn: asVictim ? this.nearQpn(seen.qpn) : (OWN_SLOT << 16) | this.below(0x1_0000),
      localCaGuid: asVictim ? BigInt(seen.caGuid) : this.below(4) === 0 ? this.bits(64) : 0x0e00_0001n,
      startingPsn: this.below(0x100_0000),
      responderResources: this.below(256),
      initiatorDepth: this.below(256),
      retryCount: this.below(8),
    };
    switch (this.below(12)) {
      case 0:
        Object.assign(says, { pathMtu: this.below(16) });
        break;
      case 1:
        Object.assign(says, { transportType: this.below(4), extendedTransport: this.below(8) });
        break;
      case 2:
        Object.assign(says, { primaryRemoteGid: this.bytes(16) });
        break;
      case 3:
        Object.assign(says, { primaryLocalGid: this.bytes(16) });
        break;
      case 4:
        Object.assign(says, { pkey: this.below(0x1_0000) });
        break;
      case 5:
        Object.assign(says, { serviceId: this.bits(64) });
        break;
      case 6:
        Object.assign(says, { privateData: this.bytes(92) });
        break;
      case 7:
        Object.assign(says, { localQpn: this.pick([0, 1, 0xff_ffff]) });
        break;
    }
    return forgedReq(destination, this.pick(churn), says, source, this.below(8) === 0 ? 1n : this.bits(64));
  }

  private answer(name: CmMessageName, { partners }: MadAim, seen: SeenConnection | undefined): Uint8Array {
    const own = seen !== undefined && this.below(3) !== 0;
    const transactionId = own ? BigInt(seen.transactionId) : this.bits(64);
    const ids = {
      localCommId: own && this.below(4) !== 0 ? seen.mine : this.ownId(),
      remoteCommId: seen === undefined ? Number(this.bits(32)) : own ? seen.theirs : this.near(seen.theirs),
    };
    const qpn = seen !== undefined && this.below(4) !== 0 ? seen.qpn : this.below(0x100_0000);
    // With the partner's address and correct ids, the MAD would be genuine.
    const localCommId = partners && own ? this.ownId() : ids.localCommId;
    const bodies: { [N in CmMessageName]?: Partial<CmBody<N>> } = {
      MRA: { message: this.below(4), serviceTimeout: this.below(32) },
      REJ: {
        message: this.below(4),
        reason: this.pick([1, 4, 6, 10, 28, this.below(0x1_0000)]),
        ariLength: this.below(128),
        ari: this.bytes(72),
        remoteCommId: this.below(4) === 0 ? 0 : ids.remoteCommId,
      },
      REP: {
        localQpn: this.pick([0, 1, 0xff_ffff, qpn, (OWN_SLOT << 16) | this.below(0x1_0000)]),
        startingPsn: this.below(0x100_0000),
        localCaGuid: seen === undefined ? this.bits(64) : BigInt(seen.caGuid),
        privateData: this.bytes(196),
      },
      DREQ: { remoteQpn: qpn },
      LAP: { remoteQpn: qpn },
    };
    const layout = cmLayouts[name] as { encode(value: object, to: Uint8Array, at: number): Uint8Array };
    if (this.below(6) === 0) {
      // Only the ids are correct.
      const mad = emitMad(name as 'RTU', transactionId, {});
      mad.set(this.bytes(MAD_SIZE - MAD_HEADER_SIZE), MAD_HEADER_SIZE);
      const view = new DataView(mad.buffer);
      view.setUint32(MAD_HEADER_SIZE, localCommId);
      view.setUint32(MAD_HEADER_SIZE + 4, ids.remoteCommId);
      return mad;
    }
    const mad = emitMad(name as 'RTU', transactionId, {});
    const body = name === 'SIDR_REQ' || name === 'SIDR_REP' ? { requestId: ids.remoteCommId } : ids;
    layout.encode({ ...body, localCommId, ...bodies[name] }, mad, MAD_HEADER_SIZE);
    return mad;
  }

  private ownId(): number {
    return ((OWN_SLOT << 24) | this.below(0x100_0000)) >>> 0;
  }

  /** An id near the given one, or rarely that id itself. */
  private near(id: number): number {
    return (id - AROUND + this.below(2 * AROUND + 1)) >>> 0;
  }

  /** A queue pair near the given one, of the same process or an adjacent one. */
  private nearQpn(qpn: number): number {
    return (this.near(qpn) & 0xffff) | (this.pick([qpn >>> 16, 0, 1, 2]) << 16);
  }

  private otherTransaction(right: bigint): bigint {
    const other = this.pick([0n, 1n, right ^ (1n << BigInt(32 + this.below(32))), this.bits(64)]);
    return other === right ? ~right & 0xffff_ffff_ffff_ffffn : other;
  }

  private otherService(right: string): bigint {
    return this.pick([0n, BigInt(right) ^ (1n << BigInt(this.below(64))), BigInt(right) + 1n]);
  }
}

/** Whether a packet may be a MAD for the attacker. */
export function madIn(packet: Uint8Array): Uint8Array | undefined {
  if (packet.length < BTH_DETH_BYTES + MAD_SIZE || packet[0] !== UD_SEND_ONLY) return undefined;
  const mad = packet.subarray(BTH_DETH_BYTES, BTH_DETH_BYTES + MAD_SIZE);
  return mad[1] === CmMad.managementClass ? mad : undefined;
}
