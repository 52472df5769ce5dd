/**
 * A provider's DLL: where it may come from, and its functions. LIBRARY_QUERY answers a name, and code of that name runs in this process: only
 * an administrator may have put it there.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { win32 } from 'node:path';
import { Status, StatusError } from '../../ioctl/status.js';
import { type Loader, libraryLoader, loadLibrary } from '../../windows/library-loader.js';
import { nativeBytes } from '../../windows/steady-memory.js';
import type { Address, NativeFunction } from '../../windows/win32.js';
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

/** The functions of a provider by their names; those that it lacks are missing. */
export type UvpTable = { readonly [K in UvpSlotName]?: NativeFunction };

/** IID_UVP, {A1F1EA66-4D17-4D04-B910-893F658241D0}: the members of a GUID. */
const uvpInterface = {
  Data1: 0xa1f1ea66,
  Data2: 0x4d17,
  Data3: 0x4d04,
  Data4Low: 0x3f8910b9,
  Data4High: 0xd0418265,
};
const pointerBytes = process.arch === 'ia32' ? 4 : 8;

/**
 * Loads the provider of this name and asks it for its functions. It stays loaded until the process ends.
 *
 * @throws StatusError NOT_SUPPORTED: there is none, it cannot be loaded, or it lacks a function that every device needs.
 */
export function loadUvpTable(library: string): UvpTable {
  const windows = libraryLoader();
  const path = libraryPath(library, windows.systemFolder());
  const module = loadLibrary(path);
  const entry = windows.find(module, 'uvp_get_interface');
  if (entry === 0) refuse(`${path} is not a user-mode verbs provider: it does not export uvp_get_interface.`);
  return readTable(windows, path, entry);
}

function readTable(windows: Loader, path: string, entry: Address): UvpTable {
  const getInterface = windows.functionAt(BigInt(entry), 'uint32_t', [windows.guid, 'uintptr_t']);
  const memory = nativeBytes().memory(uvpSlots.length * pointerBytes);
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
