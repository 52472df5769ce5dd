import {
  argumentMemory,
  type ComObject,
  decodeAddressList,
  decodeSockaddr,
  encodeSockaddr,
  type SlotOf,
  sockaddrLength,
} from '../../kernel-bridge/windows/nd-provider/index.js';
import { type SocketAddress, Status } from '../../winverbs/index.js';

const SOCKADDR_ROOM = 32;
/** Maximum attempts, because a list may grow between two calls. */
const TRIES = 8;

/** Calls a method that fills a buffer, given pointers to the buffer and to its size. Returns the bytes. @throws StatusError */
export function bytesFrom<I extends 'IND2Provider' | 'IND2Adapter' | 'IND2Connector' | 'IND2Listener'>(
  com: ComObject<I>,
  method: SlotOf<I>,
  room: number,
): Uint8Array {
  let size = room;
  for (let tries = 1; ; tries++) {
    const memory = argumentMemory(8 + size);
    memory.words[0] = size;
    const result = com.call(method, size === 0 ? 0 : memory.address + 8, memory.address);
    const needed = memory.words[0]!;
    if (result === Status.SUCCESS) return memory.bytes.subarray(8, 8 + Math.min(needed, size));
    if (result !== Status.BUFFER_OVERFLOW || needed <= size || tries === TRIES)
      throw com.failure(method, result);
    size = needed;
  }
}

/** Returns the addresses of a provider or an adapter. @throws StatusError */
export function addressList(com: ComObject<'IND2Provider'> | ComObject<'IND2Adapter'>): SocketAddress[] {
  return decodeAddressList(bytesFrom(com as ComObject<'IND2Provider'>, 'QueryAddressList', 0));
}

/** Whether a list contains an address, in any notation. @throws StatusError INVALID_ADDRESS */
export function lists(list: readonly SocketAddress[], { family, address }: SocketAddress): boolean {
  const { address: text } = decodeSockaddr(encodeSockaddr({ family, address, port: 0 }));
  return list.some((own) => own.address === text);
}

/** Calls a method that returns an address. @throws StatusError */
export function addressFrom<I extends 'IND2Connector' | 'IND2Listener'>(
  com: ComObject<I>,
  method: SlotOf<I>,
): SocketAddress {
  const bytes = new Uint8Array(SOCKADDR_ROOM);
  bytes.set(bytesFrom(com, method, 28));
  return decodeSockaddr(bytes.subarray(0, 28));
}

/** Calls a method whose first two arguments are an address and its length. @throws StatusError */
export function withAddress<I extends 'IND2Provider' | 'IND2Connector' | 'IND2Listener'>(
  com: ComObject<I>,
  method: SlotOf<I>,
  address: SocketAddress,
  ...values: readonly unknown[]
): void {
  const memory = argumentMemory(SOCKADDR_ROOM);
  memory.bytes.set(encodeSockaddr(address));
  com.run(method, memory.address, sockaddrLength(address.family), ...values);
}
