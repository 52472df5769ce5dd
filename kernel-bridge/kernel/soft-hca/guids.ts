/** GUIDs of the software HCA's devices. */

/** EUI-64 of a MAC with the universal/local bit flipped, as IPv6 and RoCE node GUIDs have it. */
export function guidOfMac(mac: Uint8Array): bigint {
  const b = (index: number): number => mac[index] ?? 0;
  const eui = [b(0) ^ 2, b(1), b(2), 0xff, 0xfe, b(3), b(4), b(5)];
  return eui.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/**
 * A GUID for an interface that has no MAC of its own (loopback, TUN, WireGuard, PPP): by its name and the host's identity, so that it
 * stays with the interface, also over a restart, and differs between interfaces and between hosts. Marked as local, so it is no MAC's.
 * By FNV-1a, because Node's hashes take longer to load than all else that a kernel needs to start. 62 bits do not reveal a machine id of 128.
 */
export function localGuid(identity: string, name: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(`${identity}\n${name}`)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  // In the flipped form a cleared bit says "locally administered"; a group bit has no place in a GUID.
  return hash & ~(3n << 56n);
}
