/**
 * The attacker of the wire: a process that sends packets with correct ICRCs to given queue pairs. `flood
 * source destination seed [descriptor…]`; its parent sends it the targets and the number of packets. The descriptors
 * are sockets whose packets have the IP ID assumed by the ICRCs (`zeroIds`). Without them, the OS increments IDs.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { seeded } from '../helpers/random.js';
import { type Aim, type AimMessage, GROUP, PacketWriter, ROCE_PORT } from './packets.js';

export interface Burst {
  readonly aims: readonly AimMessage[];
  readonly packets: number;
  /** QPNs that must not be attacked. */
  readonly forbidden: readonly number[];
}

export interface Sent {
  readonly packets: number;
  /** Number of packets with a wrong ICRC or length. */
  readonly damaged: number;
  /**
   * Damaged packets that every raw socket receives (raw_wire.cc): those of a reliable transport to the multicast QPN.
   */
  readonly damagedForAll: number;
  /** Packets refused by the local OS. */
  readonly refused: number;
}

const [source = '', destination = '', seed, ...descriptors] = process.argv.slice(2);
const random = seeded(Number(seed));
/** One socket sends most packets, so that receivers open a socket for it. The others are short-lived. */
const COUNTED_SOCKETS = 3;
/** Maximum number of packets from any other socket. */
const MOST_BY_ONE = 20_000;

interface Gun {
  readonly socket: Socket;
  readonly direct: PacketWriter;
  readonly group: PacketWriter;
  left: number;
}

async function gun(descriptor?: number): Promise<Gun> {
  const socket = createSocket({
    type: 'udp4',
    lookup: (address, _options, callback) => callback(null, address, 4),
  });
  const listening = once(socket, 'listening');
  if (descriptor === undefined) socket.bind(0, source);
  else socket.bind({ fd: descriptor });
  await listening;
  socket.setMulticastInterface(source);
  socket.setSendBufferSize(1 << 20);
  const way = { source, sourcePort: socket.address().port };
  return {
    socket,
    direct: new PacketWriter({ ...way, destination }),
    group: new PacketWriter({ ...way, destination: GROUP }),
    left: descriptor === undefined ? MOST_BY_ONE : Infinity,
  };
}

const guns = await Promise.all(
  descriptors.length > 0
    ? descriptors.map((descriptor) => gun(Number(descriptor)))
    : Array.from({ length: COUNTED_SOCKETS }, () => gun()),
);

/** Lower opcodes belong to reliable connections. */
const UNRELIABLE_FROM = 0x20;

function isForAll(bytes: Uint8Array): boolean {
  const qpn = (bytes[5]! << 16) | (bytes[6]! << 8) | bytes[7]!;
  return bytes[0]! < UNRELIABLE_FROM && (qpn <= 1 || qpn === 0xff_ffff);
}

async function fire({ aims: reported, packets, forbidden }: Burst): Promise<Sent> {
  const aims = reported.map(
    (aim): Aim => ({ ...aim, memory: { ...aim.memory, address: BigInt(aim.memory.address) } }),
  );
  const spared = new Set(forbidden);
  const sent = { packets: 0, damaged: 0, damagedForAll: 0, refused: 0 };
  let waiting = 0;
  let done: () => void = () => {};
  const send = (by: Gun, bytes: Uint8Array, to: string): void => {
    sent.packets++;
    waiting++;
    by.socket.send(bytes, ROCE_PORT, to, (error) => {
      if (error !== null) sent.refused++;
      if (--waiting === 0) done();
    });
  };
  // Fragments are sent first, to connections that are still alive and keep them. Later packets may end a connection.
  for (const aim of aims) {
    if (aim.kind === 'rc') send(guns[0]!, guns[0]!.direct.makeFragment(aim), destination);
  }
  while (sent.packets < packets) {
    const aim = aims[Math.floor(random() * aims.length)]!;
    const which = random() < 0.8 ? 0 : Math.floor(random() * guns.length);
    const by = guns[which]!;
    if (which !== 0 && by.left-- === 0) {
      by.socket.close();
      guns[which] = await gun();
      continue;
    }
    const toGroup = aim.kind === 'ud' && random() < 0.5;
    const { bytes, fate } = toGroup
      ? by.group.make({ ...aim, qpn: 0xff_ffff }, random, spared)
      : by.direct.make(aim, random, spared);
    if (fate === 'damaged') {
      sent.damaged++;
      if (isForAll(bytes)) sent.damagedForAll++;
    }
    send(by, bytes, toGroup ? GROUP : destination);
  }
  if (waiting > 0) {
    await new Promise<void>((resolve) => {
      done = resolve;
    });
  }
  return sent;
}

process.on('disconnect', () => process.exit(0));
process.on('message', async (burst: Burst) => process.send!(await fire(burst)));
process.send!('ready');
