/**
 * The attacker of connection management: `mad-flood setup`, in JSON. It sends MADs from its addresses, `packets` at a
 * time on its parent's request. If it listens, it receives the MADs that victims send to it. It replies to their lookups as requested, and
 * also sends other replies.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { IP_CM_HEADER_SIZE, parseMad } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { seeded } from '../helpers/random.js';
import { NONCE_BYTES } from './lookups.js';
import {
  type Knowledge,
  type MadAim,
  MadMaker,
  madIn,
  type SeenConnection,
  type SeenRequest,
} from './mads.js';
import { PacketWriter, ROCE_PORT } from './packets.js';

export interface MadSetup {
  readonly seed: number;
  readonly kind: 'sidr' | 'cm';
  readonly destination: string;
  /** Its addresses; victims look up the first one. */
  readonly sources: readonly string[];
  /** Whether it has RoCE's port at these addresses. */
  readonly listens: boolean;
  /** Whether the first address is that of victims' partners. */
  readonly partners: boolean;
}

export interface MadBurst {
  readonly packets: number;
  /** Victims' ports for connections and for lookups. */
  readonly churn: readonly number[];
  readonly lookups: number;
  /** What another attacker knows. */
  readonly knowledge: Knowledge;
}

export interface MadsSent {
  /** Number of packets since the previous reply. */
  readonly packets: number;
  readonly refused: number;
  readonly knowledge: Knowledge;
}

const { seed, kind, destination, sources, listens, partners } = JSON.parse(process.argv[2]!) as MadSetup;
const random = seeded(seed);
const maker = new MadMaker(random);
/** Maximum number of stored items of each kind. */
const MOST_KNOWN = 64;
const requests: SeenRequest[] = [];
const connections: SeenConnection[] = [];
/** Maximum delay of the correct reply, in milliseconds. */
const LATE_MS = 20;
let sent = 0;
let refused = 0;
let flying = 0;
let landed: () => void = () => {};

interface Gun {
  readonly source: string;
  readonly socket: Socket;
  readonly writer: PacketWriter;
}

async function gun(source: string): Promise<Gun> {
  const socket = createSocket({
    type: 'udp4',
    lookup: (address, _options, callback) => callback(null, address, 4),
  });
  const listening = once(socket, 'listening');
  socket.bind(listens ? ROCE_PORT : 0, source);
  await listening;
  socket.setSendBufferSize(1 << 20);
  socket.setRecvBufferSize(1 << 22);
  const way = { source, sourcePort: socket.address().port, destination };
  return { source, socket, writer: new PacketWriter(way) };
}

const guns = await Promise.all(sources.map(gun));
const first = guns[0]!;

function keep<T>(list: T[], one: T): void {
  list.push(one);
  if (list.length > MOST_KNOWN) list.shift();
}

function fire({ socket, writer }: Gun, mad: Uint8Array, sound = false): void {
  sent++;
  flying++;
  socket.send(writer.wrap(maker.packet(mad, sound)), ROCE_PORT, destination, (error) => {
    if (error !== null) refused++;
    if (--flying === 0) landed();
  });
}

/** Sends replies that must have no effect, before and after the requested one. */
function answer(asked: SeenRequest): void {
  const wrong = (): void => {
    for (let n = maker.below(4); n > 0; n--) {
      if (maker.below(3) === 0 && guns.length > 1) {
        const right = maker.rightAnswer(asked) ?? maker.wrongAnswer(asked);
        fire(guns[1 + maker.below(guns.length - 1)]!, right);
      } else fire(first, maker.wrongAnswer(asked));
    }
  };
  wrong();
  const right = maker.rightAnswer(asked);
  setTimeout(() => {
    wrong();
    if (right !== undefined) for (let n = maker.below(3); n >= 0; n--) fire(first, right, true);
    wrong();
  }, maker.below(LATE_MS));
}

for (const { socket } of guns) {
  socket.on('message', (packet) => {
    const mad = madIn(packet);
    const message = mad && parseMad(mad);
    if (message === undefined || typeof message === 'string') return;
    const transactionId = String(message.header.transactionId);
    if (message.name === 'SIDR_REQ') {
      const { requestId, serviceId, privateData } = message.body;
      const nonce = [...privateData.subarray(IP_CM_HEADER_SIZE, IP_CM_HEADER_SIZE + NONCE_BYTES)];
      const seen = { requestId, transactionId, serviceId: String(serviceId), nonce };
      keep(requests, seen);
      answer(seen);
    } else if (message.name === 'REP') {
      const { localCommId: theirs, remoteCommId: mine, localQpn: qpn, localCaGuid } = message.body;
      keep(connections, { theirs, mine, transactionId, qpn, caGuid: String(localCaGuid) });
    }
  });
}

function shoot(knowledge: Knowledge, ports: Pick<MadAim, 'churn' | 'lookups'>): void {
  const which = random() < 0.5 ? 0 : maker.below(guns.length);
  const by = guns[which]!;
  const aim = { ...ports, source: by.source, destination, partners: partners && which === 0 };
  fire(by, madFor(aim, knowledge, listens && which === 0));
}

function madFor(aim: MadAim, knowledge: Knowledge, asked: boolean): Uint8Array {
  if (kind === 'cm') return maker.message(aim, knowledge);
  const seen = knowledge.requests.length > 0 ? maker.pick(knowledge.requests) : undefined;
  if (seen === undefined || maker.below(2) === 0) return maker.question(aim, knowledge);
  return asked ? maker.wrongAnswer(seen) : maker.forgedAnswer(seen, aim);
}

process.on('disconnect', () => process.exit(0));
process.on('message', async ({ packets, knowledge, churn, lookups }: MadBurst) => {
  const all: Knowledge = listens ? { requests, connections } : knowledge;
  for (let n = 0; n < packets; n++) shoot(all, { churn, lookups });
  if (flying > 0) {
    await new Promise<void>((resolve) => {
      landed = resolve;
    });
  }
  process.send!({ packets: sent, refused, knowledge: { requests, connections } } satisfies MadsSent);
  sent = 0;
  refused = 0;
});
process.send!('ready');
