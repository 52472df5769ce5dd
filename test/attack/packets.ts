/**
 * RoCEv2 packets with correct ICRCs, for queue pairs whose numbers are known. Most are valid, and some have a few changed fields. Their
 * ICRCs assume IPv4 packets of an unconnected UDP socket, with ID 0 and DF.
 */

/** What an attacker knows about a queue pair, which is as much as its peer knows. */
export interface Aim {
  readonly qpn: number;
  readonly peerQpn: number;
  readonly kind: 'rc' | 'ud';
  /** The PSN of its next request, and the PSN that it expects of its peer. */
  sendPsn: number;
  receivePsn: number;
  readonly pkey: number;
  /** Q_Key of datagrams. */
  readonly qkey: number;
  readonly rkey: number;
  /** The memory of `rkey`. */
  readonly memory: { readonly address: bigint; readonly length: number };
  /** Keys of the same process that this queue pair must not use: of another protection domain, or without the right. */
  readonly foreignKeys: readonly number[];
}

/** An aim, serialized for messages between processes. */
export interface AimMessage extends Omit<Aim, 'memory'> {
  readonly memory: { readonly address: string; readonly length: number };
}

/** A group with the datagram targets as members. */
export const GROUP = '239.77.0.1';

/** The source and destination of packets. */
export interface Way {
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
}

/** The intended kind of a packet. */
export type Fate = 'valid' | 'changed' | 'damaged';

export interface Made {
  /** The packet from the BTH to the ICRC. */
  readonly bytes: Uint8Array;
  readonly fate: Fate;
}

export const ROCE_PORT = 4791;
const IP_BYTES = 20;
const BTH_AT = IP_BYTES + 8;
const BTH_BYTES = 12;
const ICRC_BYTES = 4;
const MAX_PAYLOAD = 4096;
/** Offset of the ICRC in the longest packet. */
const LONGEST = BTH_AT + 128 + MAX_PAYLOAD;
const PSN_MASK = 0xff_ffff;

const op = {
  sendFirst: 0x00,
  sendMiddle: 0x01,
  sendLast: 0x02,
  sendOnly: 0x04,
  sendOnlyImmediate: 0x05,
  writeFirst: 0x06,
  writeLast: 0x08,
  writeOnly: 0x0a,
  writeOnlyImmediate: 0x0b,
  readRequest: 0x0c,
  readFirst: 0x0d,
  readOnly: 0x10,
  acknowledge: 0x11,
  atomicAcknowledge: 0x12,
  compareSwap: 0x13,
  fetchAdd: 0x14,
  sendLastInvalidate: 0x16,
  sendOnlyInvalidate: 0x17,
  datagram: 0x64,
  datagramImmediate: 0x65,
  congestion: 0x81,
  /** A fragment of a packet. Peers negotiate fragmentation. */
  fragment: 0xe1,
} as const;
/** Size of a fragment's offset and its packet's length, 16 bits each. */
const PLACE_BYTES = 4;
/** Offsets of fragments are multiples of this. So are the lengths of all but a packet's last fragment (objects/fragment_state.h). */
const FRAGMENT_UNIT = 256;

/** Most packets of attackers are short and complete, because the fast path accepts only these. */
const rcOpcodes: readonly number[] = [
  ...Array.from({ length: 8 }, () => op.sendOnly),
  ...Array.from({ length: 8 }, () => op.writeOnly),
  ...Array.from({ length: 6 }, () => op.acknowledge),
  ...Array.from({ length: 3 }, () => op.fragment),
  ...Object.values(op),
];

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb8_8320 : crc >>> 1;
  return crc;
});
/** Whether a packet is a response, which has a PSN of the queue pair's own requests. */
const isAnswer = (opcode: number): boolean => opcode >= op.readFirst && opcode <= op.atomicAcknowledge;
/** The CRC register after eight bytes of ones, which replace the missing local route header (IBA 1 annex A17). */
const ICRC_SEED = 0xdebb_20e3;

/** Writes packets into one buffer, which the next packet reuses. */
export class PacketWriter {
  /** An IP packet whose fields that the ICRC does not cover are all ones. */
  readonly #bytes = new Uint8Array(LONGEST + 64);
  readonly #view = new DataView(this.#bytes.buffer);

  constructor(way: Way) {
    const view = this.#view;
    view.setUint8(0, 0x45);
    view.setUint8(1, 0xff);
    view.setUint16(6, 0x4000); // DF
    view.setUint8(8, 0xff);
    view.setUint8(9, 17);
    view.setUint16(10, 0xffff);
    this.#bytes.set(way.source.split('.').map(Number), 12);
    this.#bytes.set(way.destination.split('.').map(Number), 16);
    view.setUint16(20, way.sourcePort);
    view.setUint16(22, ROCE_PORT);
    view.setUint16(26, 0xffff);
  }

  /**
   * Creates a packet for `aim` from a seeded random generator. Most are valid or have one to three changed fields; a few have a wrong ICRC
   * or length. Packets that a queue pair accepts advance its PSNs. `forbidden`: QPNs that must not be attacked.
   */
  make(aim: Aim, random: () => number, forbidden: ReadonlySet<number>): Made {
    const below = (n: number): number => Math.floor(random() * n);
    const view = this.#view;
    const opcode = aim.kind === 'ud' ? op.datagram + below(2) : rcOpcodes[below(rcOpcodes.length)]!;
    view.setUint8(BTH_AT, opcode);
    view.setUint16(BTH_AT + 2, aim.pkey);
    view.setUint32(BTH_AT + 4, aim.qpn);
    const answers = isAnswer(opcode);
    const psn = answers ? (aim.sendPsn - 1) & PSN_MASK : aim.receivePsn;
    let at = BTH_AT + BTH_BYTES;
    const payload = this.#payloadOf(opcode, below);
    at = this.#extend(at, opcode, aim, payload, below);
    const padded = payload + (-payload & 3);
    for (let n = 0; n < padded; n += 4) view.setUint32(at + n, 0xa77a_c000 + n);
    if (opcode === op.fragment) this.#fillFragment(at, payload, aim, below);
    else if (opcode === op.acknowledge) this.#fillReport(at, payload, aim, below);
    view.setUint8(BTH_AT + 1, below(2) * 0x80 + (padded - payload) * 0x10);
    view.setUint32(BTH_AT + 8, (below(3) === 0 ? 0x8000_0000 : 0) + psn);
    let end = at + padded;

    let fate: Fate = 'valid';
    if (below(5) < 3) {
      fate = 'changed';
      for (let n = 1 + (below(3) === 0 ? below(3) : 0); n > 0; n--) end = this.#change(aim, end, psn, below);
    } else if (aim.kind === 'rc' && opcode < op.readFirst) {
      aim.receivePsn = (aim.receivePsn + 1) & PSN_MASK;
    }
    const qpn = view.getUint32(BTH_AT + 4) & PSN_MASK;
    if (forbidden.has(qpn)) view.setUint32(BTH_AT + 4, aim.qpn);
    return this.#finish(end, fate, below);
  }

  /** The beginning of a packet whose other fragments never arrive. */
  makeFragment(aim: Aim): Uint8Array {
    const view = this.#view;
    view.setUint8(BTH_AT, op.fragment);
    view.setUint8(BTH_AT + 1, 0);
    view.setUint16(BTH_AT + 2, aim.pkey);
    view.setUint32(BTH_AT + 4, aim.qpn);
    view.setUint32(BTH_AT + 8, aim.receivePsn);
    const at = BTH_AT + BTH_BYTES;
    view.setUint16(at, 0);
    view.setUint16(at + 2, 2 * FRAGMENT_UNIT);
    return this.#finish(at + PLACE_BYTES + FRAGMENT_UNIT, 'valid', () => 1).bytes;
  }

  /** Creates a packet with these bytes from the BTH to the last pad byte. */
  wrap(bth: Uint8Array): Uint8Array {
    this.#bytes.set(bth, BTH_AT);
    return this.#finish(BTH_AT + bth.length, 'valid', () => 1).bytes;
  }

  #payloadOf(opcode: number, below: (n: number) => number): number {
    const short = below(8) !== 0;
    switch (opcode) {
      case op.acknowledge:
        return below(4) === 0 ? 8 * below(below(8) === 0 ? 500 : 8) : 0;
      case op.fragment:
        return PLACE_BYTES + (short ? FRAGMENT_UNIT * (1 + below(4)) : BTH_BYTES + 4 * below(500));
      case op.readRequest:
      case op.atomicAcknowledge:
      case op.compareSwap:
      case op.fetchAdd:
        return 0;
      case op.congestion:
        return 16;
      case op.sendFirst:
      case op.sendMiddle:
      case op.writeFirst:
      case op.readFirst:
        return short ? 1024 : 4096;
      default:
        return short ? below(100) : below(1500);
    }
  }

  /** Writes the extension headers of an opcode. */
  #extend(start: number, opcode: number, aim: Aim, payload: number, below: (n: number) => number): number {
    const view = this.#view;
    let at = start;
    const { address, length } = aim.memory;
    const reth = (bytes: number): void => {
      view.setBigUint64(at, address + BigInt(below(Math.max(1, length - bytes)) & ~7));
      view.setUint32(at + 8, aim.rkey);
      view.setUint32(at + 12, bytes);
      at += 16;
    };
    switch (opcode) {
      case op.writeFirst:
        reth(8192);
        break;
      case op.writeOnly:
      case op.writeOnlyImmediate:
        reth(payload);
        break;
      case op.readRequest:
        reth(below(4) === 0 ? below(9000) : below(600));
        break;
      case op.compareSwap:
      case op.fetchAdd:
        view.setBigUint64(at, address + BigInt(below(length - 8) & ~7));
        view.setUint32(at + 8, aim.rkey);
        view.setBigUint64(at + 12, BigInt(below(1000)));
        view.setBigUint64(at + 20, 0n);
        at += 28;
        break;
      case op.datagram:
      case op.datagramImmediate:
        view.setUint32(at, aim.qkey);
        view.setUint32(at + 4, 0x20_0000 + below(1000));
        at += 8;
        break;
      case op.acknowledge:
      case op.atomicAcknowledge:
      case op.readFirst:
      case op.readOnly:
        // Most of these are ACKs, but some are RNR NAKs and NAKs.
        view.setUint32(at, ((below(6) === 0 ? 0x20 * below(4) + below(5) : 0x1f) << 24) + below(1000));
        at += 4;
        break;
    }
    const immediate = [
      op.sendOnlyImmediate,
      op.writeOnlyImmediate,
      op.datagramImmediate,
    ] as readonly number[];
    if (immediate.includes(opcode)) {
      view.setUint32(at, 0x1111_1111);
      at += 4;
    } else if (opcode === op.sendLastInvalidate || opcode === op.sendOnlyInvalidate) {
      view.setUint32(at, below(4) === 0 ? aim.rkey : below(2 ** 32));
      at += 4;
    } else if (opcode === op.atomicAcknowledge) {
      view.setBigUint64(at, 7n);
      at += 8;
    }
    return at;
  }

  /** Writes ranges of PSNs that the peer claims to have: in order and below the next PSN to send, or anywhere. */
  #fillReport(start: number, bytes: number, aim: Aim, below: (n: number) => number): void {
    let psn = (aim.sendPsn - (bytes >> 1) - below(4)) & PSN_MASK;
    for (let at = start; at < start + bytes; at += 8) {
      const last = (psn + below(2)) & PSN_MASK;
      this.#view.setUint32(at, psn);
      this.#view.setUint32(at + 4, last);
      psn = below(100) === 0 ? below(2 ** 24) : (last + 2 + below(2)) & PSN_MASK;
    }
  }

  /** Writes a fragment of a packet for the same queue pair: all of it, its beginning, or a later part. */
  #fillFragment(start: number, bytes: number, aim: Aim, below: (n: number) => number): void {
    const view = this.#view;
    const inner = bytes - PLACE_BYTES;
    const offset = below(3) === 0 ? inner * below(4) : 0;
    view.setUint16(start, offset);
    view.setUint16(start + 2, below(3) === 0 ? offset + inner : offset + inner + below(3000));
    const opcode = rcOpcodes[below(rcOpcodes.length)]!;
    view.setUint8(start + PLACE_BYTES, opcode);
    view.setUint8(start + PLACE_BYTES + 1, below(2) * 0x80 + below(4) * 0x10);
    view.setUint16(start + PLACE_BYTES + 2, aim.pkey);
    view.setUint32(start + PLACE_BYTES + 4, aim.qpn);
    view.setUint32(start + PLACE_BYTES + 8, aim.receivePsn);
  }

  /** Changes one field; returns the packet's new end. */
  #change(aim: Aim, end: number, psn: number, below: (n: number) => number): number {
    const view = this.#view;
    const anywhere = (bytes: number): number => BTH_AT + BTH_BYTES + below(Math.max(1, bytes));
    switch (below(15)) {
      case 0:
        view.setUint8(BTH_AT, below(4) === 0 ? below(256) : below(0x18));
        return end;
      case 1:
        view.setUint8(BTH_AT + 1, below(256));
        return end;
      case 2:
        view.setUint16(BTH_AT + 2, [0x7fff, 0x8000, 0, 0xffff, below(0x1_0000)][below(5)]!);
        return end;
      case 3:
        // The peer's QPN, QPs 0 and 1, the multicast QPN, an adjacent QPN, or a random one.
        view.setUint32(
          BTH_AT + 4,
          [aim.peerQpn, 0, 1, 0xff_ffff, aim.qpn ^ (1 << below(24)), below(0x100_0000)][below(6)]!,
        );
        return end;
      case 4:
        view.setUint8(BTH_AT + 4, below(256));
        return end;
      case 5:
      case 6:
      case 7:
        view.setUint32(
          BTH_AT + 8,
          (below(128) << 24) * 2 +
            ((psn + [below(8) - 4, below(400) - 200, below(2 ** 24)][below(3)]!) & PSN_MASK),
        );
        return end;
      case 8:
        return Math.max(end - 4 * below(8), BTH_AT + BTH_BYTES);
      case 9:
        view.setUint32(end, below(2 ** 32));
        return Math.min(end + 4 * (1 + below(8)), LONGEST);
      case 10:
        // The address of a RETH: around both ends of the memory, or anywhere.
        view.setBigUint64(
          BTH_AT + BTH_BYTES,
          [
            aim.memory.address - BigInt(below(64)),
            aim.memory.address + BigInt(aim.memory.length + below(64) - 32),
            BigInt.asUintN(64, -BigInt(below(4096))),
            BigInt(below(2 ** 47)),
          ][below(4)]!,
        );
        return end;
      case 11:
        view.setUint32(
          BTH_AT + BTH_BYTES + 8,
          [...aim.foreignKeys, aim.rkey ^ (1 << below(32)), below(2 ** 32)][
            below(aim.foreignKeys.length + 2)
          ]!,
        );
        return end;
      case 12:
        view.setUint32(BTH_AT + BTH_BYTES + 12, [0, 1, 0x8000_0000, 0xffff_ffff, below(9000)][below(5)]!);
        return end;
      default:
        view.setUint8(anywhere(end - BTH_AT - BTH_BYTES), below(256));
        return end;
    }
  }

  /** Appends the ICRC, occasionally a wrong one or one extra byte. */
  #finish(last: number, made: Fate, below: (n: number) => number): Made {
    const view = this.#view;
    const bytes = this.#bytes;
    const whole = last + ICRC_BYTES;
    view.setUint16(2, whole);
    view.setUint16(24, whole - IP_BYTES);
    const covered = bytes[BTH_AT + 4]!;
    bytes[BTH_AT + 4] = 0xff;
    let crc = ICRC_SEED;
    for (let n = 0; n < last; n++) crc = crcTable[(crc ^ bytes[n]!) & 0xff]! ^ (crc >>> 8);
    bytes[BTH_AT + 4] = covered;
    view.setUint32(last, ~crc >>> 0, true);
    let fate = made;
    let end = whole;
    if (below(40) === 0) {
      fate = 'damaged';
      if (below(2) === 0) bytes[last + below(4)]! ^= 1 << below(8);
      else end += 1 + below(3);
    }
    return { bytes: bytes.slice(BTH_AT, end), fate };
  }
}
