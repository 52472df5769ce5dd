/**
 * Socket addresses in IOCTLs (SOCKADDR_IN and SOCKADDR_IN6, with the family numbers of Windows), as GIDs, and as text.
 * IPv6 text follows RFC 5952; a link-local address has its interface as `%index` (RFC 4007 §11) or `%name`.
 */

import { networkInterfaces } from 'node:os';
import { AddressFamily } from './constants.js';
import { shown } from './shown.js';
import { Status, StatusError } from './status.js';
import { WvIoSockaddrData, WvIoSockaddrIn, WvIoSockaddrIn6 } from './structs.js';

/** An IP address and port. `address` is text, with `%scope` for IPv6 addresses that need it. */
export interface SocketAddress {
  /** 4 for IPv4, 6 for IPv6. */
  readonly family: 4 | 6;
  /** The IP address as text; host names are not accepted. */
  readonly address: string;
  /** 0 to 65535. */
  readonly port: number;
}

/** Size in bytes of an address in an IOCTL, of either family. */
export const SOCKADDR_BYTES = 28;

function notText(value: unknown): never {
  throw new StatusError(Status.INVALID_ADDRESS, `\`address\` must be a string; got ${shown(value)}.`);
}

function invalid(text: string, why: string): never {
  throw new StatusError(Status.INVALID_ADDRESS, `'${text}' is not a valid address: ${why}.`);
}

/** The same check as in `node:net`, whose import takes a starting thread a millisecond. */
const V4_TEXT = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** @internal Four numbers up to 255, without leading zeros. */
export function isIPv4(text: string): boolean {
  return V4_TEXT.test(text);
}

/** An IPv4 address as a number. The caller has checked the text. */
function numberOfV4(text: string): number {
  let number = 0;
  let octet = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit >= 0) {
      octet = octet * 10 + digit;
    } else {
      number = number * 256 + octet;
      octet = 0;
    }
  }
  return number * 256 + octet;
}

function textOfV4(a: number, b: number, c: number, d: number): string {
  return `${a}.${b}.${c}.${d}`;
}

/** The 16-bit groups of a part of an IPv6 address; undefined if it is malformed. */
function groupsOf(piece: string): number[] | undefined {
  if (piece === '') return [];
  const groups: number[] = [];
  const words = piece.split(':');
  for (const [i, word] of words.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(word)) {
      groups.push(Number.parseInt(word, 16));
    } else if (i === words.length - 1 && isIPv4(word)) {
      const number = numberOfV4(word);
      groups.push(number >>> 16, number & 0xffff);
    } else {
      return undefined;
    }
  }
  return groups;
}

/** The 16 bytes of an IPv6 address without scope; undefined if it is invalid. */
function bytesOfV6(text: string): Uint8Array | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map(groupsOf);
  // An embedded IPv4 address is allowed only at the end.
  if (!head || (halves.length === 2 && (!tail || halves[0]!.includes('.')))) return undefined;
  const given = head.length + (tail?.length ?? 0);
  if (tail ? given > 7 : given !== 8) return undefined;
  const groups = [...head, ...new Array<number>(8 - given).fill(0), ...(tail ?? [])];
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

function scopeIdOf(scope: string, text: string): number {
  if (/^\d{1,10}$/.test(scope)) {
    const index = Number(scope);
    return index <= 0xffff_ffff ? index : invalid(text, `interface index ${scope} is above 4294967295`);
  }
  for (const entry of Object.entries(networkInterfaces()).find(([name]) => name === scope)?.[1] ?? []) {
    if (entry.family === 'IPv6' && entry.scopeid > 0) return entry.scopeid;
  }
  return invalid(text, `this host has no interface '${scope}' with an IPv6 link-local address`);
}

/** Splits off the scope: `fe80::1%2` → the address's bytes and 2. */
function parseV6(text: string): { raw: Uint8Array; scopeId: number } {
  if (typeof text !== 'string') return notText(text);
  const [address, scope, ...rest] = text.split('%');
  const raw = rest.length === 0 ? bytesOfV6(address!) : undefined;
  if (!raw) return invalid(text, 'it is neither IPv4 (192.0.2.1) nor IPv6 (2001:db8::1)');
  return { raw, scopeId: scope === undefined ? 0 : scopeIdOf(scope, text) };
}

/** RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as `::`. */
function textOfV6(raw: Uint8Array, scopeId: number): string {
  const scope = scopeId === 0 ? '' : `%${scopeId}`;
  if (isMapped(raw)) return `::ffff:${raw.subarray(12).join('.')}${scope}`;
  const groups = Array.from({ length: 8 }, (_, i) => (raw[2 * i]! << 8) | raw[2 * i + 1]!);
  let best = { start: 0, length: 1 };
  for (let start = 0; start < 8; start++) {
    let end = start;
    while (end < 8 && groups[end] === 0) end++;
    if (end - start > best.length) best = { start, length: end - start };
  }
  const hex = (part: number[]) => part.map((group) => group.toString(16)).join(':');
  if (best.length === 1) return hex(groups) + scope;
  return `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}${scope}`;
}

function isMapped(raw: Uint8Array): boolean {
  if (raw[10] !== 0xff || raw[11] !== 0xff) return false;
  for (let i = 0; i < 10; i++) if (raw[i] !== 0) return false;
  return true;
}

function checkPort(port: number, text: string): void {
  if (Number.isInteger(port) && port >= 0 && port <= 0xffff) return;
  throw new StatusError(
    Status.INVALID_PARAMETER,
    `the port of '${text}' must be an integer from 0 to 65535; got ${port}.`,
  );
}

/** Numeric addresses by their text: a program connects to few addresses, many times. */
const checkedTexts = new Map<string, number>();
const MOST_TEXTS = 64;

function checkedV4(text: string): number {
  const known = checkedTexts.get(text);
  if (known !== undefined) return known;
  if (!isIPv4(text)) invalid(text, 'family 4 requires four numbers, as in 192.0.2.1');
  const number = numberOfV4(text);
  if (checkedTexts.size >= MOST_TEXTS) checkedTexts.clear();
  checkedTexts.set(text, number);
  return number;
}

/** SOCKADDR_IN, byte by byte, because every request with an address needs one. */
function sockaddrOfV4(number: number, port: number): Uint8Array {
  const out = new Uint8Array(SOCKADDR_BYTES);
  out[0] = AddressFamily.IPV4;
  out[2] = port >>> 8;
  out[3] = port;
  for (let i = 0; i < 4; i++) out[4 + i] = number >>> (24 - 8 * i);
  return out;
}

/** The bytes that {@link encodeSockaddr} writes, from a GID. `scopeId` 0: no scope. */
export function sockaddrOfGid(gid: Uint8Array, port: number, scopeId: number): Uint8Array {
  if (isMapped(gid)) {
    return sockaddrOfV4(((gid[12]! << 24) | (gid[13]! << 16) | (gid[14]! << 8) | gid[15]!) >>> 0, port);
  }
  return WvIoSockaddrIn6.encode({
    sin6Family: AddressFamily.IPV6,
    sin6Port: port,
    sin6Addr: gid,
    sin6ScopeId: scopeId,
  });
}

/**
 * The same as {@link decodeSockaddr}, but into a GID.
 *
 * @throws StatusError INVALID_ADDRESS for another family, BUFFER_TOO_SMALL.
 */
export function gidOfSockaddr(bytes: Uint8Array): {
  /** 16 bytes; IPv4 behind ::ffff:0:0/96. */
  gid: Uint8Array;
  /** The port of the address; 0: none. */
  port: number;
  /** The index of the interface of a link-local address; 0 for all others. */
  scopeId: number;
} {
  if (bytes.length < SOCKADDR_BYTES || bytes[0] !== AddressFamily.IPV4 || bytes[1] !== 0) {
    const { address, port } = decodeSockaddr(bytes);
    return { gid: gidOfAddress(address), port, scopeId: scopeIdOfAddress(address) };
  }
  const gid = new Uint8Array(16);
  gid[10] = 0xff;
  gid[11] = 0xff;
  for (let i = 0; i < 4; i++) gid[12 + i] = bytes[4 + i]!;
  return { gid, port: (bytes[2]! << 8) | bytes[3]!, scopeId: 0 };
}

/**
 * Checks an address.
 *
 * @throws StatusError as {@link encodeSockaddr}.
 */
export function checkSocketAddress({ family, address, port }: SocketAddress): void {
  checkPort(port, address);
  if (family === 4) checkedV4(address);
  else encodeSockaddr({ family, address, port });
}

/**
 * Writes an address for an IOCTL: 28 bytes, family 2 or 23, port in network order. The rest is zero.
 *
 * @throws StatusError INVALID_ADDRESS if the text is not an address of its family, INVALID_PARAMETER for the port.
 */
export function encodeSockaddr(address: SocketAddress): Uint8Array {
  const { family, address: text, port } = address;
  checkPort(port, text);
  if (family === 4) return sockaddrOfV4(checkedV4(text), port);
  const out = new Uint8Array(SOCKADDR_BYTES);
  if (family !== 6) invalid(text, `family ${String(family)} is neither 4 nor 6`);
  const { raw, scopeId } = parseV6(text);
  return WvIoSockaddrIn6.encode(
    { sin6Family: AddressFamily.IPV6, sin6Port: port, sin6Addr: raw, sin6ScopeId: scopeId },
    out,
  );
}

/**
 * Reads an address; the inverse of {@link encodeSockaddr}. Scopes are returned as `%index`.
 *
 * @throws StatusError INVALID_ADDRESS for another family, BUFFER_TOO_SMALL.
 */
export function decodeSockaddr(bytes: Uint8Array): SocketAddress {
  const { sinFamily, sinPort, sinAddr } = WvIoSockaddrIn.decode(bytes);
  if (sinFamily === AddressFamily.IPV4) {
    const address = textOfV4(sinAddr >>> 24, (sinAddr >>> 16) & 0xff, (sinAddr >>> 8) & 0xff, sinAddr & 0xff);
    return { family: 4, address, port: sinPort };
  }
  if (sinFamily !== AddressFamily.IPV6) {
    const families = `${AddressFamily.IPV4} (IPv4) or ${AddressFamily.IPV6} (IPv6)`;
    throw new StatusError(Status.INVALID_ADDRESS, `the address family must be ${families}; got ${sinFamily}`);
  }
  const { sin6Port, sin6Addr, sin6ScopeId } = WvIoSockaddrIn6.decode(bytes);
  return { family: 6, address: textOfV6(sin6Addr, sin6ScopeId), port: sin6Port };
}

/** The same as {@link decodeSockaddr}, but returns undefined if no address is set (family 0). */
export function decodeOptionalSockaddr(bytes: Uint8Array): SocketAddress | undefined {
  return WvIoSockaddrIn.decode(bytes).sinFamily === 0 ? undefined : decodeSockaddr(bytes);
}

/** The GID of an IP address: IPv4 is `::ffff:a.b.c.d`; an IPv6 scope is not part of it. */
export function gidOfAddress(address: string): Uint8Array {
  if (typeof address !== 'string') return notText(address);
  if (!isIPv4(address)) return parseV6(address).raw;
  const gid = new Uint8Array(16);
  const number = numberOfV4(address);
  gid[10] = 0xff;
  gid[11] = 0xff;
  gid[12] = number >>> 24;
  gid[13] = number >>> 16;
  gid[14] = number >>> 8;
  gid[15] = number;
  return gid;
}

/** Cached GIDs: a host has few addresses, and few peers. */
const sharedGids: Uint8Array[] = [];
const MOST_SHARED = 16;
let nextShared = 0;

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  // The comparison starts at the end, where addresses differ.
  for (let i = 15; i >= 0; i--) if (a[i] !== b[i]) return false;
  return true;
}

/** An immutable GID, for holders of many mostly equal ones: a recent equal GID, or a copy. */
export function sharedGid(gid: Uint8Array): Uint8Array {
  if (gid.length !== 16) return gid.slice();
  for (const known of sharedGids) if (isSame(known, gid)) return known;
  const copy = new Uint8Array(gid);
  sharedGids[nextShared] = copy;
  nextShared = (nextShared + 1) % MOST_SHARED;
  return copy;
}

/** The IP address of a GID: the inverse of {@link gidOfAddress}. `scopeId` 0: no scope. */
export function addressOfGid(gid: Uint8Array, scopeId = 0): string {
  if (!(gid instanceof Uint8Array) || gid.length !== 16) {
    const given = gid instanceof Uint8Array ? gid.length : shown(gid);
    throw new StatusError(Status.INVALID_PARAMETER, `\`gid\` must have 16 bytes; got ${given}.`);
  }
  return isMapped(gid) ? textOfV4(gid[12]!, gid[13]!, gid[14]!, gid[15]!) : textOfV6(gid, scopeId);
}

/** The interface index of an address's `%scope`; 0 for addresses without one. */
export function scopeIdOfAddress(address: string): number {
  if (typeof address !== 'string') return notText(address);
  return isIPv4(address) ? 0 : parseV6(address).scopeId;
}

/**
 * Reads `1.2.3.4:5`, `[fe80::1%eth0]:5`, or an address alone, which gets `defaultPort`. Names are not resolved.
 *
 * @throws StatusError INVALID_ADDRESS if the text is not an address, INVALID_PARAMETER for the port.
 */
export function parseSocketAddress(text: string, defaultPort = 0): SocketAddress {
  if (typeof text !== 'string') return notText(text);
  const match = /^\[([^\]]*)\](?::(\d{1,6}))?$/.exec(text) ?? /^([\d.]+):(\d{1,6})$/.exec(text);
  const address = match?.[1] ?? text;
  const port = match?.[2] === undefined ? defaultPort : Number(match[2]);
  checkPort(port, text);
  if (isIPv4(address) && !/^\[/.test(text)) return { family: 4, address, port };
  const { raw, scopeId } = parseV6(address);
  return { family: 6, address: textOfV6(raw, scopeId), port };
}

/** The text form that {@link parseSocketAddress} reads: `1.2.3.4:5`, `[::1]:5`. */
export function formatSocketAddress(address: SocketAddress): string {
  return address.family === 4 ? `${address.address}:${address.port}` : `[${address.address}]:${address.port}`;
}

/** The WV_IO_SOCKADDR_DATA of an address; all zero for none. */
export function sockaddrData(address: SocketAddress | undefined): {
  /** 28 bytes; all zero without an address. */
  sockAddr: Uint8Array;
} {
  return address ? { sockAddr: encodeSockaddr(address) } : WvIoSockaddrData.zero();
}
