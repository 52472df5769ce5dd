/**
 * Continuous service lookups by victims. The partner replies correctly, the attacker arbitrarily.
 */
import type { IWVProvider, SocketAddress } from '../../winverbs/index.js';
import { openDatagramSide } from '../helpers/datagram-side.js';
import { outcomeName } from '../helpers/outcome.js';
import { seeded } from '../helpers/random.js';
import { type Activity, asking, newHealth, watched } from './activity.js';

/** A lookup's requested behaviour and its unique number. */
export const NONCE_BYTES = 8;
/** First byte of the nonce: how the attacker ends the lookup, after replies that must not end it. */
export const Wish = { accept: 0, refuse: 1, silence: 2 } as const;
/** The status of its refusals. */
export const REFUSED_STATUS = 2;
/** Number of concurrent lookups. */
const AT_ONCE = 6;
const SILENT_MS = 40;
/** Status of a refusal because the queue is full, which a stranger may cause. */
const CROWDED_STATUS = 3;

/** The Q_Key of a lookup's reply. Replies of the attacker also derive the QPN from the nonce. */
export const qkeyOf = (nonce: Uint8Array): number => Buffer.from(nonce).readUInt32BE(4) & 0x7fff_ffff;
export const qpnOf = (nonce: Uint8Array): number => 0x10_0000 + (Buffer.from(nonce).readUInt32BE(1) & 0xffff);

/** Replies to all lookups. */
export function serveLookups(
  provider: IWVProvider,
  address: string,
): Activity & { port: number; qpn: number } {
  const health = newHealth('lookups, served');
  const side = openDatagramSide(provider, address);
  const listener = provider.createDatagramEndpoint();
  listener.bindAddress({ family: 4, address, port: 0 });
  listener.listen(0);
  let stopped = false;
  const running = watched(health, 'listener', async () => {
    while (!stopped) {
      const asked = provider.createDatagramEndpoint();
      try {
        await listener.getRequest(asked);
      } catch (error) {
        asked.release();
        if (stopped) return;
        throw error;
      }
      const nonce = asked.query().privateData.subarray(0, NONCE_BYTES);
      // A new lookup with the id of an earlier one withdraws that one.
      await outcomeName(asked.accept({ qp: side.qp, qkey: qkeyOf(nonce), privateData: nonce }));
      asked.release();
      health.rounds++;
    }
  });
  return {
    port: listener.query().localAddress.port,
    qpn: side.qp.qpn,
    health,
    asks: false,
    stop: async () => {
      stopped = true;
      listener.release();
      await running;
      side.release();
    },
  };
}

/** Looks `qpn` up at the partner, and at the attacker if there is one. */
export function askLookups(
  provider: IWVProvider,
  from: string,
  right: SocketAddress & { qpn: number },
  attacker: SocketAddress,
  seed: number,
): Activity {
  const health = newHealth('lookups', { right: 0, accepted: 0, refused: 0, cancelled: 0, crowded: 0 });
  const { figures } = health;
  const random = seeded(seed);

  async function one(): Promise<void> {
    const nonce = Buffer.from(Array.from({ length: NONCE_BYTES }, () => Math.floor(random() * 256)));
    const toAttacker = random() < 0.5;
    nonce[0] = toAttacker ? Math.floor(random() * 3) : 0xff;
    const peer = toAttacker ? attacker : { family: right.family, address: right.address, port: right.port };
    const endpoint = provider.createDatagramEndpoint();
    try {
      endpoint.bindAddress({ family: 4, address: from, port: 0 });
      const asking = endpoint.lookup(peer, nonce);
      if (nonce[0] === Wish.silence) {
        setTimeout(() => asking.cancel(), SILENT_MS);
      }
      const how = await outcomeName(asking);
      const wanted =
        { [Wish.refuse]: 'CONNECTION_REFUSED', [Wish.silence]: 'CANCELED' }[nonce[0]!] ?? 'SUCCESS';
      const { qpn, qkey, sidrStatus, privateData } =
        how !== 'SUCCESS' && how !== 'CONNECTION_REFUSED'
          ? { qpn: 0, qkey: 0, sidrStatus: 0, privateData: nonce }
          : endpoint.query(peer);
      if (!toAttacker && how === 'CONNECTION_REFUSED' && sidrStatus === CROWDED_STATUS) {
        figures.crowded!++;
        return;
      }
      const whose = toAttacker ? 'the attacker’s' : 'the partner’s';
      if (how !== wanted) throw new Error(`${whose}: ended in ${how} (${sidrStatus}), not ${wanted}`);
      if (how === 'SUCCESS') {
        const expected = toAttacker ? qpnOf(nonce) : right.qpn;
        if (qpn !== expected || qkey !== qkeyOf(nonce)) {
          throw new Error(
            `${whose}: queue pair ${qpn} with Q_Key ${qkey}, not ${expected} with ${qkeyOf(nonce)}`,
          );
        }
      }
      if (how === 'CONNECTION_REFUSED' && sidrStatus !== REFUSED_STATUS) {
        throw new Error(`${whose}: refused with ${sidrStatus}, not ${REFUSED_STATUS}`);
      }
      if (!nonce.equals(privateData.subarray(0, NONCE_BYTES)))
        throw new Error(`${whose}: a reply to another one`);
      const kind = { SUCCESS: 'accepted', CONNECTION_REFUSED: 'refused' }[how] ?? 'cancelled';
      figures[toAttacker ? kind : 'right']!++;
      health.rounds++;
    } finally {
      endpoint.release();
    }
  }

  return asking(health, AT_ONCE, one, () => random() * 3);
}
