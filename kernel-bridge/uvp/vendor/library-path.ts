/**
 * Where a provider's DLL may come from. LIBRARY_QUERY answers a name, and code of that name runs in this process: only an administrator may
 * have put it there.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { win32 } from 'node:path';
import { Status, StatusError } from '../../ioctl/status.js';

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
