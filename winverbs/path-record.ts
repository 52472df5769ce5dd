/** Path records: `ib_path_rec_t` (IBA 1 §15.2.5.16). */
import { IbPathRecord } from '../kernel-bridge/ioctl/structs.js';
import { gidOf } from './address-vector.js';
import { checkedSmall } from './checked-numbers.js';
import type { WvPathRecord } from './interfaces.js';
import { Status, WvError } from './status.js';

/** Selector "exactly" in the high two bits of MTU and packet life time. */
const EXACTLY = 0x80;
const VALUE = 0x3f;

const MTUS = [256, 512, 1024, 2048, 4096];

function mtuCode(mtu: number): number {
  const code = MTUS.indexOf(mtu) + 1;
  if (code === 0 && mtu !== 0) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `The path MTU is ${mtu}; it takes ${MTUS.join(', ')} bytes, or 0 for the port's.`,
    );
  }
  return code;
}

function dscp(trafficClass: number): number {
  const checked = checkedSmall('The traffic class', trafficClass, 0xff);
  if ((checked & 3) === 0) return checked;
  const text = `The traffic class is ${trafficClass}; it takes a DSCP shifted left by two, a multiple of 4 (the option ecn sets the marks).`;
  throw new WvError(Status.INVALID_PARAMETER, text);
}

/** The 64 bytes of a path. @throws WvError INVALID_PARAMETER, INVALID_ADDRESS, naming the member. */
export function encodePathRecord(path: WvPathRecord): Uint8Array {
  if (typeof path !== 'object' || path === null) {
    throw new WvError(Status.INVALID_PARAMETER, `A path record is an object, not ${String(path)}.`);
  }
  const { flowLabel = 0, trafficClass = 0, hopLimit = 0, pkey = 0, mtu = 0, packetLifeTime = 0 } = path;
  const label = checkedSmall('The flow label', flowLabel, 0xf_ffff);
  const hops = checkedSmall('The hop limit', hopLimit, 0xff);
  return IbPathRecord.encode({
    sgid: gidOf(path.sourceGid),
    dgid: gidOf(path.destinationGid),
    hopFlowRaw: ((label << 8) | hops) >>> 0,
    tclass: dscp(trafficClass),
    numPath: 1,
    pkey: checkedSmall('The P_Key', pkey, 0xffff),
    mtu: EXACTLY | mtuCode(mtu),
    pktLife: EXACTLY | checkedSmall('The packet life time', packetLifeTime, VALUE),
  });
}

/** The path of 64 bytes. */
export function decodePathRecord(bytes: Uint8Array): Required<WvPathRecord> & { sourceGid: Uint8Array } {
  const { sgid, dgid, hopFlowRaw, tclass, pkey, mtu, pktLife } = IbPathRecord.decode(bytes);
  return {
    sourceGid: sgid,
    destinationGid: dgid,
    flowLabel: (hopFlowRaw >>> 8) & 0xf_ffff,
    hopLimit: hopFlowRaw & 0xff,
    trafficClass: tclass,
    pkey,
    mtu: MTUS[(mtu & VALUE) - 1] ?? 0,
    packetLifeTime: pktLife & VALUE,
  };
}
