/**
 * A provider's DLL: where it may come from, and its functions. LIBRARY_QUERY answers a name, and code of that name runs in this process: only
 * an administrator may have put it there.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { win32 } from 'node:path';
import { Status, StatusError } from '../../ioctl/status.js';
import { type Address, type Koffi, loadKoffi, type NativeFunction } from '../../windows/win32.js';
import { type UvpSlotName, uvpSlots } from './uvp-slots.js';

/** A driver answers at most 32 bytes, with ".dll" and the zero behind it (WV_MAX_LIB_NAME). */
const longestName = 27;
const plainName = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/** What is asked of the file system. */
export interface Folders {
  /** The path of a file once all links are followed; undefined: there is no such file. */
  file(path: string): string | undefined;
  /** Names in a folder; none if there is no such folder. */
  list(folder: string): readonly string[];
}

const realFolders: Folders = {
  file(path) {
    try {
      const real = realpathSync.native(path);
      return statSync(real).isFile() ? real : undefined;
    } catch {
      return undefined;
    }
  },
  list(folder) {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  },
};

function refuse(message: string): never {
  throw new StatusError(Status.NOT_SUPPORTED, message);
}

/** Whether a file lies within a folder, as Windows compares names. */
function within(folder: string, path: string): boolean {
  const prefix = `${folder.toLowerCase().replace(/\\+$/, '')}\\`;
  return path.toLowerCase().startsWith(prefix);
}

/**
 * The path of the DLL of this name. It lies in the system's folder, or in one package of the driver store. Both belong to administrators. The
 * name is one plain word, so it names no other folder; a link that leads out of these folders is refused. Neither the current folder nor PATH
 * is looked at.
 *
 * @param system - the system's folder, `C:\Windows\System32`
 * @throws StatusError NOT_SUPPORTED: there is none, the name is none, or several packages have one.
 */
export function libraryPath(name: string, system: string, folders: Folders = realFolders): string {
  if (!plainName.test(name) || name.length > longestName || name.includes('..')) {
    refuse(
      `The device names '${name}' as its user-mode verbs provider; a name is at most ${longestName} letters, digits, '_', '-' and '.', without a folder.`,
    );
  }
  const file = `${name}.dll`;
  const store = win32.join(system, 'DriverStore', 'FileRepository');
  const places = [system, ...folders.list(store).map((folder) => win32.join(store, folder))];
  const found: string[] = [];
  for (const place of places) {
    const path = folders.file(win32.join(place, file));
    if (path === undefined) continue;
    if (!within(system, path)) {
      refuse(
        `${win32.join(place, file)} leads to ${path}, outside of ${system}; a provider is not loaded from there.`,
      );
    }
    // What the system's folder has is what the driver package has installed last.
    if (place === system) return path;
    found.push(path);
  }
  if (found.length === 0) {
    refuse(
      `The device's user-mode verbs provider ${file} is neither in ${system} nor in ${store}. Install the HCA's driver package again, with its user-mode part.`,
    );
  }
  if (found.length > 1) {
    refuse(
      `Several driver packages have ${file}, and nothing says which belongs to the driver that runs: ${found.join(', ')}. Remove the old ones (pnputil /delete-driver).`,
    );
  }
  return found[0]!;
}

/** Memory that native code reads and writes during a call. It is of this thread's JavaScript, and does not move. */
export interface SteadyMemory {
  readonly address: Address;
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
}

/** What the provider's side needs of native code besides its own functions. */
export interface UvpNative {
  /** Zeroed memory, in words. */
  memory(bytes: number): SteadyMemory;
  /** The address of a buffer's bytes; it stays as long as the buffer is not detached. */
  addressOf(bytes: Uint8Array): Address;
  /** Copies bytes between addresses. */
  copy(to: Address, from: Address, length: number): void;
}

/** The functions of a provider by their names; those that it lacks are missing. */
export type UvpTable = { readonly [K in UvpSlotName]?: NativeFunction };

/** LoadLibraryExW: its own dependencies come from its own folder and the system's, from nowhere else. */
const LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR = 0x100;
const LOAD_LIBRARY_SEARCH_SYSTEM32 = 0x800;

/** IID_UVP, {A1F1EA66-4D17-4D04-B910-893F658241D0}: the members of a GUID. */
const uvpInterface = {
  Data1: 0xa1f1ea66,
  Data2: 0x4d17,
  Data3: 0x4d04,
  Data4Low: 0x3f8910b9,
  Data4High: 0xd0418265,
};
const guidMembers = {
  Data1: 'uint32_t',
  Data2: 'uint16_t',
  Data3: 'uint16_t',
  Data4Low: 'uint32_t',
  Data4High: 'uint32_t',
};

const pointerBytes = process.arch === 'ia32' ? 4 : 8;

let native: UvpNative | undefined;

/** @throws StatusError NOT_SUPPORTED: there is no koffi. */
export function uvpNative(): UvpNative {
  native ??= bind(loadKoffi());
  return native;
}

function bind(koffi: Koffi): UvpNative {
  const move = koffi
    .load('ntdll.dll')
    .func('__stdcall', 'RtlMoveMemory', 'void', ['uintptr_t', 'uintptr_t', 'uintptr_t']);
  const addressOf = (bytes: Uint8Array): Address => Number(koffi.address(bytes));
  return {
    memory(size) {
      // V8 moves small arrays that it has made itself, but not those over an ArrayBuffer.
      const buffer = new ArrayBuffer(Math.ceil(size / 8) * 8);
      const bytes = new Uint8Array(buffer);
      return { address: addressOf(bytes), bytes, words: new Uint32Array(buffer) };
    },
    addressOf,
    copy: (to, from, length) => {
      move(to, from, length);
    },
  };
}

/** The functions of Windows that load a library. */
interface Loader {
  load(path: string): number;
  lastError(): number;
  find(module: number, name: string): number;
  /** The system's folder, as the system and not the environment says. */
  systemFolder(): string;
  /** The function at an address. */
  functionAt(address: bigint, result: string, parameters: readonly unknown[]): NativeFunction;
  /** The type of a GUID. */
  readonly guid: unknown;
}

let loader: Loader | undefined;

/** Made once: koffi keeps every type and function that it was told of, and a device may be opened again and again. */
function libraryLoader(): Loader {
  loader ??= bindLoader(loadKoffi());
  return loader;
}

function bindLoader(koffi: Koffi): Loader {
  const kernel32 = koffi.load('kernel32.dll');
  const win32 = (name: string, result: string, ...parameters: readonly string[]): NativeFunction =>
    kernel32.func('__stdcall', name, result, parameters);
  const getSystemDirectory = win32('GetSystemDirectoryW', 'uint32_t', 'uintptr_t', 'uint32_t');
  const load = win32('LoadLibraryExW', 'uintptr_t', 'str16', 'uintptr_t', 'uint32_t');
  const lastError = win32('GetLastError', 'uint32_t');
  const find = win32('GetProcAddress', 'uintptr_t', 'uintptr_t', 'str');
  const prototypes = new Map<string, unknown>();
  return {
    load: (path) => Number(load(path, 0, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32)),
    lastError: () => Number(lastError()),
    find: (module, name) => Number(find(module, name)),
    systemFolder() {
      const memory = uvpNative().memory(1024);
      const length = Number(getSystemDirectory(memory.address, 512));
      if (length === 0 || length > 512) refuse('Windows did not return the name of its system folder.');
      return Buffer.from(memory.bytes.subarray(0, 2 * length)).toString('utf16le');
    },
    functionAt(address, result, parameters) {
      const key = [result, ...parameters.map((one) => (typeof one === 'string' ? one : 'guid'))].join();
      let prototype = prototypes.get(key);
      if (prototype === undefined) {
        prototype = koffi.proto('__stdcall', null, result, parameters);
        prototypes.set(key, prototype);
      }
      return koffi.decode(address, prototype);
    },
    guid: koffi.struct(guidMembers),
  };
}

/**
 * Loads the provider of this name and asks it for its functions. It stays loaded until the process ends.
 *
 * @throws StatusError NOT_SUPPORTED: there is none, it cannot be loaded, or it lacks a function that every device needs.
 */
export function loadUvpTable(library: string): UvpTable {
  const windows = libraryLoader();
  const path = libraryPath(library, windows.systemFolder());
  const module = windows.load(path);
  if (module === 0) {
    refuse(
      `${path} cannot be loaded (error ${windows.lastError()} of LoadLibrary); it may be of another architecture, or lack a DLL that it needs.`,
    );
  }
  const entry = windows.find(module, 'uvp_get_interface');
  if (entry === 0) refuse(`${path} is not a user-mode verbs provider: it does not export uvp_get_interface.`);
  return readTable(windows, path, entry);
}

function readTable(windows: Loader, path: string, entry: Address): UvpTable {
  const getInterface = windows.functionAt(BigInt(entry), 'uint32_t', [windows.guid, 'uintptr_t']);
  const memory = uvpNative().memory(uvpSlots.length * pointerBytes);
  const result = Number(getInterface(uvpInterface, memory.address));
  if (result !== 0)
    refuse(`${path} does not have the interface of WinVerbs: uvp_get_interface answered ${result}.`);
  const view = new DataView(memory.bytes.buffer);
  const table: { [K in UvpSlotName]?: NativeFunction } = {};
  for (const [i, { name, result: answer, parameters }] of uvpSlots.entries()) {
    const at = i * pointerBytes;
    const address = pointerBytes === 8 ? view.getBigUint64(at, true) : BigInt(view.getUint32(at, true));
    if (address === 0n || parameters === undefined) continue;
    table[name] = windows.functionAt(address, answer, parameters);
  }
  const missing = uvpSlots.filter(({ name, mandatory }) => mandatory && table[name] === undefined);
  if (missing.length > 0) {
    refuse(
      `${path} lacks ${missing.map(({ name }) => name).join(', ')}; a provider must have ${mandatoryNames()}.`,
    );
  }
  return table;
}

function mandatoryNames(): string {
  return uvpSlots
    .filter(({ mandatory }) => mandatory)
    .map(({ name }) => name)
    .join(', ');
}
