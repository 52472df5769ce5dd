/**
 * The targets in a victim: queue pairs whose numbers the attacker knows, and memory that shows what the attacker has
 * changed.
 */
import {
  type IWVProvider,
  QpAttr,
  QpState,
  RemoteMemory,
  WvAccess,
  type WvCompletion,
  WvDatagram,
  WvSend,
} from '../../winverbs/index.js';
import { ALL_ACCESS, connect, openSide } from '../helpers/loopback.js';
import { seeded } from '../helpers/random.js';
import { type AimMessage, GROUP } from './packets.js';

const BYTES = 8192;
const CANARY = 0xc5;
const DEPTH = 8;

export interface Target {
  aims(): AimMessage[];
  /** Does a part of a program's work. Returns true if the target has ended and must be replaced. */
  work(): boolean;
  /** Reports memory changed without permission, one sentence each. */
  damage(): string[];
  release(): void;
}

/** Registered memory between canaries, and memory for which an attacker has no key, or a key without access. */
class Field {
  readonly #all = new Uint8Array(new ArrayBuffer(5 * BYTES)).fill(CANARY);
  readonly open = this.#all.subarray(BYTES, 2 * BYTES);
  readonly readOnly = this.#all.subarray(3 * BYTES, 4 * BYTES);

  damage(): string[] {
    const found: string[] = [];
    for (let n = 0; n < this.#all.length; n++) {
      if (this.#all[n] === CANARY || (n >= BYTES && n < 2 * BYTES)) continue;
      found.push(`byte ${n - BYTES} of the registered ${BYTES} has become ${this.#all[n]}`);
      if (found.length === 3) break;
    }
    return found;
  }
}

/** Both ends of a connection. */
export async function openConnectionTarget(
  provider: IWVProvider,
  seed: number,
  pkeyIndex: number,
  address: string,
): Promise<Target> {
  const random = seeded(seed);
  const sides = [1, 2].map(() => {
    const side = openSide(provider, {}, 64, address);
    side.qp.modify(
      { qpState: QpState.INIT, pkeyIndex, portNumber: 1, accessFlags: 0 },
      QpAttr.STATE | QpAttr.PKEY_INDEX,
    );
    const field = new Field();
    const region = side.pd.registerMemory(field.open, ALL_ACCESS);
    const readOnly = side.pd.registerMemory(field.readOnly, WvAccess.REMOTE_READ);
    const elsewhere = side.device.allocateProtectionDomain();
    const foreign = new Field();
    const foreignRegion = elsewhere.registerMemory(foreign.open, ALL_ACCESS);
    foreign.open.fill(CANARY);
    return { side, field, region, readOnly, elsewhere, foreign, foreignRegion, received: 0, sent: 0 };
  });
  const [a, b] = sides as [(typeof sides)[0], (typeof sides)[0]];
  await connect(provider, a.side, b.side, address);
  const qpns = sides.map(({ side }) => side.qp.query().qpn);
  const polled: WvCompletion[] = [];
  return {
    aims: () =>
      sides.map(({ side, field, region, readOnly, foreignRegion }, n) => {
        const { sendPsn, receivePsn } = side.qp.query();
        return {
          qpn: qpns[n]!,
          peerQpn: qpns[1 - n]!,
          kind: 'rc',
          sendPsn,
          receivePsn,
          pkey: side.device.queryPkey(1, pkeyIndex),
          qkey: 0,
          rkey: region.rkey,
          memory: { address: String(region.address), length: field.open.length },
          foreignKeys: [readOnly.rkey, foreignRegion.rkey],
        };
      }),
    work: () => {
      if (sides.some(({ side }) => side.qp.state === QpState.ERROR)) return true;
      for (const end of sides) {
        const { side, region } = end;
        for (let n = side.cq.poll(polled, 64); n > 0; n = side.cq.poll(polled, 64)) {
          for (const { context } of polled.slice(0, n)) {
            if (context === 'receive') end.received--;
            else end.sent--;
          }
        }
        try {
          for (; end.received < DEPTH; end.received++) {
            side.qp.postReceive('receive', [{ region, offset: 512 * end.received, length: 512 }]);
          }
        } catch {
          return true;
        }
      }
      const { side, region } = a;
      const remote = new RemoteMemory({ address: BigInt(b.region.address), rkey: b.region.rkey });
      const sgl = [{ region, offset: 4096, length: Math.floor(random() * 512) }];
      try {
        if (a.sent < DEPTH) {
          a.sent++;
          const what = random();
          if (what < 0.4) side.qp.send('send', sgl, WvSend.SIGNALED);
          else if (what < 0.7) side.qp.write('write', sgl, WvSend.SIGNALED, remote, 0);
          else side.qp.read('read', sgl, WvSend.SIGNALED, remote, 0);
        }
      } catch {
        return true;
      }
      return false;
    },
    damage: () =>
      sides.flatMap(({ field, foreign }) => [
        ...field.damage(),
        ...foreign.damage(),
        ...(foreign.open.every((byte) => byte === CANARY) ? [] : ['memory of another protection domain']),
      ]),
    release: () => {
      for (const { side, elsewhere } of sides) {
        side.release();
        elsewhere.release();
      }
    },
  };
}

/** A UD queue pair in a group. */
export async function openDatagramTarget(
  provider: IWVProvider,
  pkeyIndex: number,
  address: string,
): Promise<Target> {
  const device = provider.openDevice(provider.translateAddress(address).deviceGuid);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(64);
  const depths = { sendDepth: DEPTH, sendSge: 1, receiveDepth: DEPTH, receiveSge: 1 };
  const qp = pd.createDatagramQueuePair({ sendCq: cq, receiveCq: cq, ...depths });
  qp.start(WvDatagram.QKEY, { pkeyIndex });
  await qp.attachMulticast(GROUP);
  const field = new Field();
  const region = pd.registerMemory(field.open, ALL_ACCESS);
  const readOnly = pd.registerMemory(field.readOnly, WvAccess.REMOTE_READ);
  const polled: WvCompletion[] = [];
  let received = 0;
  const { qpn } = qp.query();
  return {
    aims: () => [
      {
        qpn,
        peerQpn: 0xff_ffff,
        kind: 'ud',
        sendPsn: 0,
        receivePsn: 0,
        pkey: device.queryPkey(1, pkeyIndex),
        qkey: WvDatagram.QKEY,
        rkey: region.rkey,
        memory: { address: String(region.address), length: field.open.length },
        foreignKeys: [readOnly.rkey],
      },
    ],
    work: () => {
      if (qp.state === QpState.ERROR) return true;
      for (let n = cq.poll(polled, 64); n > 0; n = cq.poll(polled, 64)) received -= n;
      for (; received < DEPTH; received++) {
        // Some Receives are shorter than the messages.
        const length = received % 2 === 0 ? 1000 : 100;
        qp.postReceive('receive', [{ region, offset: 1000 * received, length }]);
      }
      return false;
    },
    damage: () => field.damage(),
    release: () => {
      for (const object of [qp, cq, pd, device]) object.release();
    },
  };
}
