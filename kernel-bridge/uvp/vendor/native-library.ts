/**
 * Finds a provider's DLL and its functions. LIBRARY_QUERY returns its name. Because its code runs in this process, it is only loaded from
 * folders of administrators.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { win32 } from 'node:path';
import { Status, StatusError } from '../../ioctl/status.js';
import { type Loader, libraryLoader, loadLibrary } from '../../windows/library-loader.js';
import { nativeBytes } from '../../windows/steady-memory.js';
import type { Address, NativeFunction } from '../../windows/win32.js';
import { type UvpSlotName, uvpSlots } from './uvp-slots.js';

/** Maximum length of a name. A driver returns at most 32 bytes, which include ".dll" and the NUL (WV_MAX_LIB_NAME). */
const longestName = 27;
const plainName = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/** The required functions of the file system. */
export interface Folders {
  /** Returns the path of a file after following all links; undefined if it does not exist. */
  file(path: string): string | undefined;
  /** Returns the names in a folder; none if it does not exist. */
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

/** Whether a file is within a folder. Like Windows, ignores case. */
function within(folder: string, path: string): boolean {
  const prefix = `${folder.toLowerCase().replace(/\\+$/, '')}\\`;
  return path.toLowerCase().startsWith(prefix);
}

/**
 * Returns the path of a provider's DLL in the system folder or in a package of the driver store, which both belong to administrators. The
 * name cannot contain a folder, and links to other folders are refused. Neither the current folder nor PATH is searched.
 *
 * @param system - the system folder, `C:\Windows\System32`
 * @throws StatusError NOT_SUPPORTED if the name is invalid, or none or several packages contain the DLL
 */
export function libraryPath(name: string, system: string, folders: Folders = realFolders): string {
  if (!plainName.test(name) || name.length > longestName || name.includes('..')) {
    refuse(
      `The name of the device's provider must be at most ${longestName} letters, digits, '_', '-' and '.', without a folder; got '${name}'.`,
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
        `${win32.join(place, file)} is a link to ${path}. Providers are only loaded from ${system} and its subfolders.`,
      );
    }
    // A DLL in the system folder belongs to the driver package that was installed last.
    if (place === system) return path;
    found.push(path);
  }
  if (found.length === 0) {
    refuse(
      `The device's provider ${file} is neither in ${system} nor in ${store}. Reinstall the HCA's driver package with its user-mode part.`,
    );
  }
  if (found.length > 1) {
    refuse(
      `Several driver packages contain ${file}: ${found.join(', ')}. Remove the old ones (pnputil /delete-driver).`,
    );
  }
  return found[0]!;
}

/** The functions of a provider by name, without those that it lacks. */
export type UvpTable = { readonly [K in UvpSlotName]?: NativeFunction };

/** The members of IID_UVP, {A1F1EA66-4D17-4D04-B910-893F658241D0}. */
const uvpInterface = {
  Data1: 0xa1f1ea66,
  Data2: 0x4d17,
  Data3: 0x4d04,
  Data4Low: 0x3f8910b9,
  Data4High: 0xd0418265,
};
const pointerBytes = process.arch === 'ia32' ? 4 : 8;

/**
 * Loads a provider and returns its functions. The DLL stays loaded until the process ends.
 *
 * @throws StatusError NOT_SUPPORTED if it is missing, cannot be loaded, or lacks a mandatory function
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
    refuse(`${path} does not have the interface of WinVerbs: uvp_get_interface returned ${result}.`);
  const view = new DataView(memory.bytes.buffer);
  const table: { [K in UvpSlotName]?: NativeFunction } = {};
  for (const [i, { name, result: resultType, parameters }] of uvpSlots.entries()) {
    const at = i * pointerBytes;
    const address = pointerBytes === 8 ? view.getBigUint64(at, true) : BigInt(view.getUint32(at, true));
    if (address === 0n || parameters === undefined) continue;
    table[name] = windows.functionAt(address, resultType, parameters);
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
