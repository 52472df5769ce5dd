/** The NetworkDirect v2 providers of this host, from the Winsock catalogue or from the environment. */
import { win32 } from 'node:path';
import { libraryLoader } from '../library-loader.js';
import { nativeBytes } from '../steady-memory.js';
import { loadKoffi, type NativeFunction } from '../win32.js';
import { guidText } from './slots.js';

/** The environment variable that replaces the catalogue: absolute paths, separated by `;`. */
export const providersVariable = 'NETWORKDIRECT_ND_PROVIDERS';

/** A NetworkDirect provider of this host, from the Winsock catalogue or `NETWORKDIRECT_ND_PROVIDERS`. */
export interface NdProviderEntry {
  /** File name of the DLL, such as `mlx5nd.dll`. The option `hca` accepts it. */
  readonly library: string;
  /** Absolute path of the DLL. */
  readonly path: string;
  /** Name in the catalogue; empty if the entry comes from the environment. */
  readonly protocol: string;
  /** GUID of the provider, as text. */
  readonly id: string;
  /** File version, such as `24.4.26429.0`; empty if the file has none. */
  readonly version: string;
  /** Why the DLL is not loaded; missing if it can be. */
  readonly refused?: string;
}

/** WSAPROTOCOL_INFOW: its size, and offsets of its members, in bytes. */
const Info = {
  ...{ size: 628, serviceFlags: 0, providerFlags: 16, id: 20, version: 72 },
  ...{ socketType: 88, protocol: 92, maxOffset: 96, name: 116 },
} as const;
/** XP1_GUARANTEED_DELIVERY, _GUARANTEED_ORDER, _MESSAGE_ORIENTED, _CONNECT_DATA. */
const SERVICE = 0x8e;
/** PFL_HIDDEN, PFL_NETWORKDIRECT_PROVIDER. */
const PROVIDER = 0x14;
const VERSION = 0x2_0000;
const NO_GUID = '00000000-0000-0000-0000-000000000000';
/** Maximum length of a path, in characters. */
const longestPath = 1024;

/** WSCEnumProtocols and WSCGetProviderPath, by the DLL that exports them. */
const catalogues = new Map<string, { readonly enumerate: NativeFunction; readonly path: NativeFunction }>();

function catalogueOf(library: string) {
  let found = catalogues.get(library);
  if (found === undefined) {
    const dll = loadKoffi().load(library);
    const call = (name: string): NativeFunction =>
      dll.func('__stdcall', name, 'int', ['uintptr_t', 'uintptr_t', 'uintptr_t', 'uintptr_t']);
    found = { enumerate: call('WSCEnumProtocols'), path: call('WSCGetProviderPath') };
    catalogues.set(library, found);
  }
  return found;
}

/** Reads the entries of NetworkDirect v2 providers from the catalogue of a DLL. */
function protocolsOf(library: string): { id: string; idBytes: Uint8Array; protocol: string }[] {
  const { enumerate } = catalogueOf(library);
  const numbers = nativeBytes().memory(8);
  const size = numbers.words;
  // The catalogue may grow between the two calls.
  for (let tries = 0; tries < 4; tries++) {
    const room = size[0]!;
    const buffer = nativeBytes().memory(Math.max(room, 8));
    const count = Number(enumerate(0, buffer.address, numbers.address, numbers.address + 4));
    if (count < 0 && size[0]! > room) continue;
    const { bytes } = buffer;
    return Array.from({ length: Math.max(0, Math.min(count, Math.floor(room / Info.size))) }, (_, i) => {
      const view = new DataView(bytes.buffer, i * Info.size, Info.size);
      const name = Buffer.from(bytes.buffer, i * Info.size + Info.name, Info.size - Info.name);
      const isProvider =
        (view.getUint32(Info.serviceFlags, true) & SERVICE) === SERVICE &&
        (view.getUint32(Info.providerFlags, true) & PROVIDER) === PROVIDER &&
        view.getInt32(Info.version, true) === VERSION &&
        view.getInt32(Info.socketType, true) === -1 &&
        view.getInt32(Info.protocol, true) === 0 &&
        view.getInt32(Info.maxOffset, true) === 0;
      const idBytes = bytes.slice(i * Info.size + Info.id, i * Info.size + Info.id + 16);
      const protocol = name.toString('utf16le').replace(/\0.*$/s, '');
      return { isProvider, id: guidText(idBytes), idBytes, protocol };
    }).filter(({ isProvider }) => isProvider);
  }
  return [];
}

function pathOf(library: string, idBytes: Uint8Array): string {
  // The id, the length, an error code, and the path.
  const { address, bytes, words } = nativeBytes().memory(24 + 2 * longestPath);
  bytes.set(idBytes);
  words[4] = longestPath;
  const failed = Number(catalogueOf(library).path(address, address + 24, address + 16, address + 20));
  return failed === 0 ? Buffer.from(bytes.subarray(24)).toString('utf16le').replace(/\0.*$/s, '') : '';
}

/** Expands the variables of a path. The system folder is the one that Windows reports, not that of the environment. */
export function expanded(path: string, systemFolder: string): string {
  return path.replace(/%([^%]+)%/g, (all, name: string) =>
    /^(SystemRoot|windir)$/i.test(name) ? win32.dirname(systemFolder) : (process.env[name] ?? all),
  );
}

/** Returns why a path is not loaded; undefined if it is absolute, so that the current folder is irrelevant. */
export function refusalOf(path: string): string | undefined {
  if (/^[A-Za-z]:[\\/]/.test(path) && !path.includes('%')) return undefined;
  return `\`path\` of a provider must be absolute, such as C:\\Windows\\System32\\mlx5nd.dll; got '${path}'.`;
}

function entry(path: string, id: string, protocol: string): NdProviderEntry {
  const refused = refusalOf(path);
  return {
    library: win32.basename(path),
    path,
    protocol,
    id,
    version: refused === undefined ? fileVersion(path) : '',
    ...(refused === undefined ? {} : { refused }),
  };
}

/**
 * Lists the providers of this host in the order of the catalogue, each DLL once.
 *
 * @param library - the DLL that exports the catalogue's functions
 * @throws StatusError NOT_SUPPORTED if koffi is not installed
 */
export function readCatalogue(
  library = 'ws2_32.dll',
  environment: Readonly<Record<string, string | undefined>> = process.env,
): NdProviderEntry[] {
  const named = environment[providersVariable];
  const folder = libraryLoader().systemFolder();
  const all =
    named !== undefined
      ? named.split(';').flatMap((path) => (path.trim() === '' ? [] : entry(path.trim(), NO_GUID, '')))
      : protocolsOf(library).map(({ id, idBytes, protocol }) =>
          entry(expanded(pathOf(library, idBytes), folder), id, protocol),
        );
  const paths = all.map(({ path }) => path.toLowerCase());
  return all.filter((_, i) => paths.indexOf(paths[i]!) === i);
}

let versions: readonly NativeFunction[] | undefined;

/** GetFileVersionInfoSizeW, GetFileVersionInfoW, and VerQueryValueW. */
function versionFunctions(): readonly NativeFunction[] {
  if (versions === undefined) {
    const dll = loadKoffi().load('version.dll');
    const u32 = 'uint32_t';
    const call = (name: string, ...parameters: readonly string[]): NativeFunction =>
      dll.func('__stdcall', name, u32, parameters);
    versions = [
      call('GetFileVersionInfoSizeW', 'str16', 'uintptr_t'),
      call('GetFileVersionInfoW', 'str16', u32, u32, 'uintptr_t'),
      call('VerQueryValueW', 'uintptr_t', 'str16', 'uintptr_t', 'uintptr_t'),
    ];
  }
  return versions;
}

/** Returns the version in a file's VS_FIXEDFILEINFO; empty if it has none or cannot be read. */
function fileVersion(path: string): string {
  const [size, read, query] = versionFunctions();
  const length = Number(size!(path, 0));
  if (length === 0) return '';
  const buffer = nativeBytes().memory(length);
  const found = nativeBytes().memory(16);
  if (read!(path, 0, length, buffer.address) === 0) return '';
  if (query!(buffer.address, '\\', found.address, found.address + 8) === 0) return '';
  const at = found.words[0]! + found.words[1]! * 2 ** 32 - buffer.address;
  if (!(at >= 0 && at + 16 <= length)) return '';
  const view = new DataView(buffer.bytes.buffer, at);
  return [10, 8, 14, 12].map((word) => view.getUint16(word, true)).join('.');
}
