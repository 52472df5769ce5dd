/**
 * A process of this user that owns the names and the port like a process with another version of this package. It only sends packets on
 * request. It uses Python, because Node.js cannot create such sockets.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expectedIcrc } from './pcap.js';

const ROCE_PORT = 4791;
const LOOPBACK = '127.0.0.1';

/**
 * Arguments: `join` to share the port or `alone` to own it exclusively, followed by names. Each input line contains the source of a
 * datagram (`port`, `beside`) and its bytes.
 */
const HOLDER = `
import socket, sys
def udp(port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(('', port))
    return s
held = []
for name in sys.argv[2:]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind('\\0' + name)
    s.listen(64)
    held.append(s)
ways = {'beside': udp(${ROCE_PORT + 1})}
if sys.argv[1] == 'join':
    ways['port'] = udp(${ROCE_PORT})
    held.append(udp(${ROCE_PORT}, socket.AF_INET6))
print('ready', flush=True)
for line in sys.stdin:
    way, packet = line.split()
    ways[way].sendto(bytes.fromhex(packet), ('${LOOPBACK}', ${ROCE_PORT}))
    print('ready', flush=True)
`;

/** A steering probe (udp/steering.h) with this magic number, for an index of the port's socket group. */
function probe(magic: number, slot: number, index: number, from: number): Buffer {
  const [ipBytes, udpBytes, bthBytes, icrcBytes] = [20, 8, 12, 4];
  const length = ipBytes + udpBytes + bthBytes + 16 + icrcBytes;
  const ip = Buffer.alloc(length);
  ip[0] = 0x45;
  ip.writeUInt16BE(length, 2);
  ip[6] = 0x40;
  ip[9] = 17;
  for (const at of [12, 16]) ip.set(LOOPBACK.split('.').map(Number), at);
  const udp = ip.subarray(ipBytes);
  udp.writeUInt16BE(from, 0);
  udp.writeUInt16BE(ROCE_PORT, 2);
  udp.writeUInt16BE(length - ipBytes, 4);
  const bth = udp.subarray(udpBytes);
  bth[0] = 0x1f;
  bth.writeUInt16BE(0xffff, 2);
  bth[5] = 0xff;
  bth[7] = index;
  for (const [i, word] of [magic, slot, 1, index].entries()) bth.writeUInt32LE(word, bthBytes + 4 * i);
  ip.writeUInt32LE(expectedIcrc(ip), length - icrcBytes);
  return bth;
}

export class OtherVersion {
  private constructor(private readonly child: ChildProcess) {}

  /** Starts a process that owns names and a socket that shares UDP 4791. */
  static async holding(names: readonly string[], port: 'join' | 'alone'): Promise<OtherVersion> {
    const other = new OtherVersion(
      spawn('python3', ['-c', HOLDER, port, ...names], { stdio: ['pipe', 'pipe', 'inherit'] }),
    );
    await other.#ready();
    return other;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Sends a probe to each of the first indexes of the group. */
  async probe(magic: number, slot: number, way: 'port' | 'beside'): Promise<void> {
    const from = way === 'port' ? ROCE_PORT : ROCE_PORT + 1;
    for (let index = 0; index < 8; index += 1) {
      this.child.stdin!.write(`${way} ${probe(magic, slot, index, from).toString('hex')}\n`);
      await this.#ready();
    }
  }

  async end(): Promise<void> {
    const ended = once(this.child, 'close');
    this.child.stdin!.end();
    await ended;
  }

  async #ready(): Promise<void> {
    const lines = createInterface({ input: this.child.stdout! });
    await once(lines, 'line');
    lines.close();
  }
}
