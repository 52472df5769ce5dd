/** Connection requests of a stranger to servers of `networkdirect/net`, with a valid hello and no further messages. */
import { randomBytes } from 'node:crypto';
import { encodeHello, type Hello, Kind } from '../../nd/net/connection/frames.js';
import { Forger, forgedReq, ipCmHeaderOf } from './forged-mads.js';
import { honest } from './net-raw.js';

const HEADER_BYTES = 36;
const REQ_DATA = 92;

/** The hello of an honest peer with a stream. */
export const streaming: Hello = {
  kind: Kind.STREAM,
  slots: 16,
  slotBytes: 65_552,
  maxMessageBytes: 0,
  ringBytes: 2 ** 22,
};

/** Timing announced by the stranger. The server repeats its REP after the timeout, up to `retries` times. */
export interface HalfOpenTiming {
  readonly localResponseTimeout: number;
  readonly maxCmRetries: number;
}

/** The maximum that the specification allows, which takes minutes. */
const patient: HalfOpenTiming = { localResponseTimeout: 20, maxCmRetries: 15 };
/** The server gives up immediately. */
export const hasty: HalfOpenTiming = { localResponseTimeout: 8, maxCmRetries: 0 };
/** The server waits for 0.3 s, so that as many connections as it admits are half open at the same time. */
export const brief: HalfOpenTiming = { localResponseTimeout: 16, maxCmRetries: 0 };

/** Packets with requests to a server, each for another connection, and the sender's addresses. */
export async function halfOpenReqs(
  address: string,
  port: number,
  kind: 'stream' | 'channel',
  timing: HalfOpenTiming = patient,
  source = address,
): Promise<{ forger: Forger; packetOf: (n: number) => Uint8Array }> {
  const forger = await Forger.open(address, source);
  const privateData = new Uint8Array(REQ_DATA);
  privateData.set(ipCmHeaderOf(source, address).subarray(0, HEADER_BYTES));
  privateData.set(encodeHello(kind === 'stream' ? streaming : honest), HEADER_BYTES);
  // A new CA GUID, so that these requests neither repeat those of an earlier stranger nor refer to its queue pairs.
  const localCaGuid = randomBytes(8).readBigUInt64BE();
  const packetOf = (n: number): Uint8Array =>
    forger.packet(
      forgedReq(
        address,
        port,
        // A QPN that no process owns, because QPNs of this host contain the number of a slot.
        {
          localCommId: 0x7e00_0000 + n,
          localQpn: 0xfe_0000 + (n & 0xffff),
          localCaGuid,
          startingPsn: n,
          privateData,
          ...timing,
        },
        source,
        BigInt(n + 1),
      ),
    );
  return { forger, packetOf };
}
