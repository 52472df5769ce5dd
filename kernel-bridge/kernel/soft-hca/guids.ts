/** GUIDs of the software HCA's devices. */

/** The EUI-64 of a MAC with the universal/local bit inverted, as in IPv6 and RoCE node GUIDs. */
export function guidOfMac(mac: Uint8Array): bigint {
  const b = (index: number): number => mac[index] ?? 0;
  const eui = [b(0) ^ 2, b(1), b(2), 0xff, 0xfe, b(3), b(4), b(5)];
  return eui.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/**
 * The GUID of an interface without a MAC of its own (loopback, TUN, WireGuard, PPP), derived from its name and the
 * host's identity. It is constant for the interface, even after a restart, and differs between interfaces and between
 * hosts. It is marked as local, so it differs from the GUID of every MAC. The hash is FNV-1a, because loading Node's
 * hashes takes longer than everything else that a kernel needs to start. A hash of 62 bits does not reveal a machine id
 * of 128 bits.
 */
export function localGuid(identity: string, name: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(`${identity}\n${name}`)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  // In the inverted form a cleared bit means "locally administered"; the group bit is not valid in a GUID.
  return hash & ~(3n << 56n);
}
