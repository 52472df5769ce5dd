/** Path records: `ib_path_rec_t` (IBA 1 §15.2.5.16). */
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { IbPathRecord } from '../kernel-bridge/ioctl/structs.js';
import { checkedGid } from './address-vector.js';
import { checkedSmall } from './checked-numbers.js';
import type { WvPathRecord } from './interfaces.js';
import { Status, WvError } from './status.js';

/** The selector "exactly" in the upper two bits of MTU and packet lifetime. */
const EXACTLY = 0x80;
const VALUE = 0x3f;

const MTUS = [256, 512, 1024, 2048, 4096];

function mtuCode(mtu: number): number {
  const code = MTUS.indexOf(mtu) + 1;
  if (code === 0 && mtu !== 0) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`mtu\` must be one of ${MTUS.join(', ')} bytes, or 0 for the port's; got ${shown(mtu)}.`,
    );
  }
  return code;
}

function dscp(trafficClass: number): number {
  const checked = checkedSmall('trafficClass', trafficClass, 0xff);
  if ((checked & 3) === 0) return checked;
  const text = `\`trafficClass\` must be a DSCP shifted left by two, a multiple of 4; got ${shown(trafficClass)}. Use the option ecn for the ECN bits.`;
  throw new WvError(Status.INVALID_PARAMETER, text);
}

/** Encodes a path as 64 bytes. @throws WvError INVALID_PARAMETER, INVALID_ADDRESS, naming the member. */
export function encodePathRecord(path: WvPathRecord): Uint8Array {
  if (typeof path !== 'object' || path === null) {
    throw new WvError(Status.INVALID_PARAMETER, `\`path\` must be a path record; got ${shown(path)}.`);
  }
  const { flowLabel = 0, trafficClass = 0, hopLimit = 0, pkey = 0, mtu = 0, packetLifeTime = 0 } = path;
  const label = checkedSmall('flowLabel', flowLabel, 0xf_ffff);
  const hops = checkedSmall('hopLimit', hopLimit, 0xff);
  return IbPathRecord.encode({
    sgid: checkedGid('sourceGid', path.sourceGid),
    dgid: checkedGid('destinationGid', path.destinationGid),
    hopFlowRaw: ((label << 8) | hops) >>> 0,
    tclass: dscp(trafficClass),
    numPath: 1,
    pkey: checkedSmall('pkey', pkey, 0xffff),
    mtu: EXACTLY | mtuCode(mtu),
    pktLife: EXACTLY | checkedSmall('packetLifeTime', packetLifeTime, VALUE),
  });
}

/** Decodes a path of 64 bytes. */
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
