/**
 * Connections that come and go between two victims: each is established, carries a message and is ended by one side.
 */
import {
  type IWVConnectEndpoint,
  type IWVProvider,
  type SocketAddress,
  StatusError,
  WcStatus,
  WvSend,
} from '../../winverbs/index.js';
import { openListener, openSide, type Side, take } from '../helpers/loopback.js';
import { outcomeName } from '../helpers/outcome.js';
import { seeded } from '../helpers/random.js';
import { type Activity, asking, newHealth, sleep, watched } from './activity.js';

/** Prefix of a victim's private data, unknown to attackers. */
const SIGN = Buffer.from('one of us');
const NONCE_BYTES = 8;
const MESSAGE_BYTES = 64;
/** Number of concurrent connections. */
const AT_ONCE = 2;
/** Maximum number of strangers' connections at a time. All others are rejected. */
const STRANGERS = 16;

/** The reply to a request's nonce. */
const answerTo = (nonce: Uint8Array): Buffer => Buffer.from(nonce.map((byte) => byte ^ 0x5a)).reverse();
const messageOf = (nonce: Uint8Array): Buffer => Buffer.alloc(MESSAGE_BYTES, nonce);
/** Which side ends the connection. */
const endsAtServer = (nonce: Uint8Array): boolean => (nonce[0]! & 1) === 1;

async function completed(side: Side): Promise<void> {
  const [completion] = await take(side.cq, 1);
  if (completion!.status !== WcStatus.SUCCESS) throw new Error(`a request ended in ${completion!.status}`);
}

/** Disconnects, or waits for the peer to do so. */
async function end(ep: IWVConnectEndpoint, here: boolean): Promise<void> {
  const how = await outcomeName(here ? ep.disconnect() : ep.notifyDisconnect());
  // If both disconnect at the same time, one side may receive the other's request.
  if (how !== (here ? 'SUCCESS' : 'CONNECTION_DISCONNECTED')) {
    throw new Error(`${here ? 'its own' : 'the peer’s'} disconnect ended in ${how}`);
  }
}

/** Accepts the partner's connections, and some from strangers. */
export function serveChurn(provider: IWVProvider, address: string): Activity & { readonly port: number } {
  const health = newHealth('connections, accepted', { strangers: 0, accepted: 0 });
  const { listener, peer } = openListener(provider, address, 0);
  const open = new Set<() => void>();
  let strangers = 0;
  let stopped = false;

  async function serveOne(ep: IWVConnectEndpoint, nonce: Uint8Array | undefined): Promise<void> {
    const side = openSide(provider, {}, MESSAGE_BYTES, address);
    const release = (): void => {
      if (!open.delete(release)) return;
      ep.release();
      side.release();
    };
    open.add(release);
    try {
      side.qp.postReceive('message', [{ region: side.region, offset: 0, length: MESSAGE_BYTES }]);
      await ep.accept(side.qp, { privateData: answerTo(nonce ?? SIGN) });
      if (nonce === undefined) {
        await Promise.race([outcomeName(ep.notifyDisconnect()), sleep(20)]);
        return;
      }
      await completed(side);
      if (!side.memory.equals(messageOf(nonce))) throw new Error('another message has come');
      await end(ep, endsAtServer(nonce));
      health.rounds++;
    } finally {
      release();
    }
  }

  async function serveStranger(ep: IWVConnectEndpoint): Promise<void> {
    health.figures.strangers!++;
    try {
      if (strangers >= STRANGERS) {
        ep.reject();
        ep.release();
        return;
      }
      strangers++;
      try {
        await serveOne(ep, undefined);
        health.figures.accepted!++;
      } finally {
        strangers--;
      }
    } catch (error) {
      // The peer has given up, or the request was forged.
      if (!(error instanceof StatusError)) throw error;
    }
  }

  const running = watched(health, 'listener', async () => {
    while (!stopped) {
      const ep = provider.createConnectEndpoint();
      try {
        await listener.getRequest(ep);
      } catch (error) {
        ep.release();
        if (stopped) return;
        throw error;
      }
      const data = Buffer.from(ep.query().privateData);
      const known = data.subarray(0, SIGN.length).equals(SIGN);
      const nonce = known ? data.subarray(SIGN.length, SIGN.length + NONCE_BYTES) : undefined;
      if (nonce === undefined) void watched(health, 'stranger', () => serveStranger(ep));
      else void watched(health, 'accepted', () => serveOne(ep, nonce));
    }
  });
  return {
    port: peer.port,
    health,
    asks: false,
    stop: async () => {
      stopped = true;
      listener.release();
      await running;
      for (const release of [...open]) release();
    },
  };
}

/** Connects to a partner, several times concurrently. */
export function askChurn(provider: IWVProvider, from: string, peer: SocketAddress, seed: number): Activity {
  const health = newHealth('connections, requested');
  const random = seeded(seed);

  async function one(): Promise<void> {
    const nonce = Buffer.from(Array.from({ length: NONCE_BYTES }, () => Math.floor(random() * 256)));
    const side = openSide(provider, {}, MESSAGE_BYTES, from);
    try {
      side.ep.bindAddress({ family: 4, address: from, port: 0 });
      side.ep.resolveRoute(peer);
      await side.ep.connect(side.qp, peer, { privateData: Buffer.concat([SIGN, nonce]) });
      const answer = Buffer.from(side.ep.query().privateData.subarray(0, NONCE_BYTES));
      if (!answer.equals(answerTo(nonce))) throw new Error('another answer has come');
      await side.ep.accept(null, {});
      messageOf(nonce).copy(side.memory);
      const sgl = [{ region: side.region, offset: 0, length: MESSAGE_BYTES }];
      side.qp.send('message', sgl, WvSend.SIGNALED);
      await completed(side);
      await end(side.ep, !endsAtServer(nonce));
      health.rounds++;
    } finally {
      side.release();
    }
  }

  return asking(health, AT_ONCE, one, () => random() * 4);
}
