/** Loads DLLs, and binds functions by address. */
import { Status, StatusError } from '../ioctl/status.js';
import { nativeBytes } from './steady-memory.js';
import { type Address, type Koffi, loadKoffi, type NativeFunction } from './win32.js';

/** LoadLibraryExW: the DLL's dependencies are searched for in its own folder and the system folder only. */
const LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR = 0x100;
const LOAD_LIBRARY_SEARCH_SYSTEM32 = 0x800;

/** Functions of Windows that load DLLs by their full path and find functions in them. */
export interface Loader {
  /** Returns the module handle; 0 if the DLL cannot be loaded. */
  load(path: string): number;
  lastError(): number;
  /** Returns the address of an exported function, or 0 if it is not exported. */
  find(module: number, name: string): Address;
  /** The system folder as Windows reports it, not as the environment does. */
  systemFolder(): string;
  /** Returns a JavaScript function that calls the function at an address. */
  functionAt(address: bigint, result: string, parameters: readonly unknown[]): NativeFunction;
  /** The koffi type of a GUID that is passed by value. */
  readonly guid: unknown;
}

const guidMembers = {
  Data1: 'uint32_t',
  Data2: 'uint16_t',
  Data3: 'uint16_t',
  Data4Low: 'uint32_t',
  Data4High: 'uint32_t',
};

let loader: Loader | undefined;

/** Created once, because koffi never frees a declared type or function, and a device may be opened repeatedly. */
export function libraryLoader(): Loader {
  loader ??= bind(loadKoffi());
  return loader;
}

function bind(koffi: Koffi): Loader {
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
      const memory = nativeBytes().memory(1024);
      const length = Number(getSystemDirectory(memory.address, 512));
      if (length === 0 || length > 512)
        throw new StatusError(Status.NOT_SUPPORTED, 'Windows did not return the name of its system folder.');
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

/** Loads a DLL, which stays loaded until the process ends. @throws StatusError NOT_SUPPORTED if it cannot be loaded */
export function loadLibrary(path: string): number {
  const windows = libraryLoader();
  const module = windows.load(path);
  if (module !== 0) return module;
  throw new StatusError(
    Status.NOT_SUPPORTED,
    `${path} cannot be loaded (error ${windows.lastError()} of LoadLibrary). It may be of another architecture, or a DLL that it depends on is missing.`,
  );
}
