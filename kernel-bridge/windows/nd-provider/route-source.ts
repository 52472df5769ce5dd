import { decodeSockaddr, encodeSockaddr, SOCKADDR_BYTES, type SocketAddress } from '../../ioctl/sockaddr.js';
import { nativeBytes } from '../steady-memory.js';
import { loadKoffi, type NativeFunction } from '../win32.js';
import { sockaddrLength } from './layouts.js';

const SOCK_DGRAM = 2;
const SIO_ROUTING_INTERFACE_QUERY = 0xc800_0014;

interface Sockets {
  readonly open: NativeFunction;
  readonly control: NativeFunction;
  readonly close: NativeFunction;
}

let sockets: Sockets | undefined;

function socketsOf(): Sockets {
  if (sockets === undefined) {
    // Node.js has initialized Winsock.
    const dll = loadKoffi().load('ws2_32.dll');
    const [i32, u32, p] = ['int', 'uint32_t', 'uintptr_t'];
    sockets = {
      open: dll.func('__stdcall', 'socket', p, [i32, i32, i32]),
      control: dll.func('__stdcall', 'WSAIoctl', i32, [p, u32, p, u32, p, u32, p, p, p]),
      close: dll.func('__stdcall', 'closesocket', i32, [p]),
    };
  }
  return sockets;
}

/** Returns the source address of the route to a remote address; undefined without a route, or if Windows does not report it. */
export function routeSource(remote: SocketAddress): SocketAddress | undefined {
  const { open, control, close } = socketsOf();
  const to = encodeSockaddr({ ...remote, port: 0 });
  const memory = nativeBytes().memory(2 * 32 + 8);
  memory.bytes.set(to);
  const socket = Number(open(to[0], SOCK_DGRAM, 0));
  // INVALID_SOCKET is all ones.
  if (!(socket < 2 ** 32)) return undefined;
  const { address } = memory;
  const length = sockaddrLength(remote.family);
  const failed = control(
    ...[socket, SIO_ROUTING_INTERFACE_QUERY, address, length],
    ...[address + 32, SOCKADDR_BYTES, address + 64, 0, 0],
  );
  close(socket);
  if (failed !== 0) return undefined;
  try {
    return { ...decodeSockaddr(memory.bytes.subarray(32, 32 + SOCKADDR_BYTES)), port: 0 };
  } catch {
    return undefined;
  }
}
