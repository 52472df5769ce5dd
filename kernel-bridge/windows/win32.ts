import { createRequire } from 'node:module';
import { Status, StatusError } from '../ioctl/status.js';

/** A function of native code. */
export type NativeFunction = ((...values: readonly unknown[]) => unknown) & {
  async(...values: readonly unknown[]): void;
};

/** The part of koffi that this folder uses. */
export interface Koffi {
  load(path: string): {
    func(convention: string, name: string, result: string, parameters: readonly string[]): NativeFunction;
  };
  alloc(type: string, length: number): unknown;
  free(pointer: unknown): void;
  address(pointer: unknown): bigint;
  view(pointer: unknown, length: number): ArrayBuffer;
  struct(members: Readonly<Record<string, string>>): unknown;
  proto(convention: string, name: null, result: string, parameters: readonly unknown[]): unknown;
  /** Returns the function at an address. */
  decode(pointer: bigint, prototype: unknown): NativeFunction;
  /** The `napi_env` of this thread. */
  readonly node?: { readonly env: unknown };
}

/** A HANDLE, which has 32 significant bits. */
export type Handle = number;

/** A native address, below 2^47. */
export type Address = number;

/** Memory outside V8's heap, which does not move and remains allocated until `free`. */
export interface NativeMemory {
  readonly address: Address;
  readonly bytes: Uint8Array;
  free(): void;
}

/** The functions of Windows that device files use. NTSTATUS results are unsigned. */
export interface Native {
  /** Allocates zeroed memory. @throws StatusError INSUFFICIENT_RESOURCES */
  allocate(bytes: number): NativeMemory;
  /** Closes a handle when this thread's environment ends, as by `worker.terminate()` or `process.exit()`. Returns the handle. */
  own(handle: Handle): Handle;
  /** Closes a handle that was passed to {@link own}. */
  close(handle: Handle): void;
  /** Registers a function of one pointer to be called when this thread's environment ends, in reverse order of registration. */
  atEnd(call: Address, argument: Address): void;
  /** Reverts an {@link atEnd}. */
  notAtEnd(call: Address, argument: Address): void;

  createFile(handleAt: Address, access: number, attributes: Address, ioStatus: Address): number;
  deviceIoControl(
    file: Handle,
    event: Handle,
    context: number,
    ioStatus: Address,
    code: number,
    input: Address,
    inputLength: number,
    output: Address,
    outputLength: number,
  ): number;
  readFile(file: Handle, context: number, ioStatus: Address, buffer: Address, length: number): number;
  /** `NtCancelIoFileEx`; `ioStatus` 0 selects all requests of the file. `resultAt` receives an IO_STATUS_BLOCK. */
  cancelIo(file: Handle, ioStatus: Address, resultAt: Address): number;
  /** `NtWaitForSingleObject`; `timeoutAt` is the address of a LARGE_INTEGER. */
  waitForSingleObject(handle: Handle, timeoutAt: Address): number;

  /** Creates a manual-reset event. Returns 0 on failure. */
  createEvent(): Handle;
  clearEvent(event: Handle): void;
  /** Creates a completion port. Returns 0 on failure. */
  createPort(): Handle;
  /** Associates a file with a port and a completion key. Returns false on failure. */
  associate(file: Handle, port: Handle, key: number): boolean;
  post(port: Handle, key: number): void;
  /** `GetQueuedCompletionStatusEx` without waiting. Returns whether there were packets. */
  dequeue(port: Handle, entries: Address, count: number, removedAt: Address): boolean;
  /** `GetQueuedCompletionStatusEx` on a thread of libuv's pool. */
  dequeueAsync(
    port: Handle,
    entries: Address,
    count: number,
    removedAt: Address,
    timeoutMs: number,
    done: (error: unknown, removed: number) => void,
  ): void;
  /** Opens or creates a named mutex. A thread that acquires it by waiting holds it until the thread ends. Returns 0 on failure. */
  createMutex(name: string): Handle;
  /** Creates the server end of a named pipe for one local client. Returns 0 on failure. */
  createPipe(name: string): Handle;
}

const FILE_SHARE_READ_WRITE = 3;
const FILE_OPEN = 1;
const FILE_NON_DIRECTORY_FILE = 0x40;
const PIPE_DUPLEX_OVERLAPPED_FIRST = 0x4008_0003;
const PIPE_REJECT_REMOTE_CLIENTS = 8;
const invalidHandle = -1;
/** Maximum bytes of a buffer. */
const mostBytes = 1 << 30;

const requireModule = createRequire(import.meta.url);

/** Depends on koffi and re-exports it, because package managers may hide koffi from this module. */
const KOFFI_PACKAGE = '@networkdirect/win32-x64';

/** @throws StatusError NOT_SUPPORTED if koffi is not installed */
export function loadKoffi(): Koffi {
  let cause: unknown;
  // Clones, and programs on other architectures, depend on koffi directly.
  for (const name of [`${KOFFI_PACKAGE}/koffi.cjs`, 'koffi']) {
    try {
      return requireModule(name) as Koffi;
    } catch (error) {
      cause = error;
    }
  }
  const source =
    process.arch === 'x64'
      ? `It is a dependency of the optional package ${KOFFI_PACKAGE}, which is not installed`
      : `No package of networkdirect for ${process.arch} depends on it`;
  throw new StatusError(
    Status.NOT_SUPPORTED,
    `Windows drivers and providers require the package koffi. ${source}. Run npm install koffi.`,
    { cause },
  );
}

let native: Native | undefined;

/**
 * Returns the functions of Windows, which the first call loads.
 *
 * @throws StatusError NOT_SUPPORTED if koffi is not installed, or the process is not a 64-bit process
 */
export function loadNative(): Native {
  native ??= bind(loadKoffi());
  return native;
}

/** The layouts of structures in this folder require a 64-bit process. */
function checkArchitecture(): void {
  if (process.arch === 'x64' || process.arch === 'arm64') return;
  throw new StatusError(
    Status.NOT_SUPPORTED,
    `Windows drivers and providers require a 64-bit Node.js; this one is for ${process.arch}.`,
  );
}

const handle = 'intptr_t';
const pointer = 'uintptr_t';
const u32 = 'uint32_t';

function bind(koffi: Koffi): Native {
  checkArchitecture();
  const ntdll = koffi.load('ntdll.dll');
  const nt = (
    name: string,
    ...parameters: readonly string[]
  ): ((...values: readonly unknown[]) => number) => {
    const call = ntdll.func('__stdcall', name, 'uint32_t', parameters);
    return (...values) => call(...values) as number;
  };
  const close = nt('NtClose', handle);
  const { ntClose, add, remove } = endHooks(koffi);
  return {
    allocate: (bytes) => allocate(koffi, bytes),
    own: (owned) => {
      if (owned > 0) add(ntClose, owned);
      return owned;
    },
    close: (owned) => {
      remove(ntClose, owned);
      close(owned);
    },
    atEnd: add,
    notAtEnd: remove,
    ...files(nt),
    ...ports(koffi),
  };
}

type NtFunction = (
  name: string,
  ...parameters: readonly string[]
) => (...values: readonly unknown[]) => number;

function files(
  nt: NtFunction,
): Pick<
  Native,
  'createFile' | 'deviceIoControl' | 'readFile' | 'cancelIo' | 'clearEvent' | 'waitForSingleObject'
> {
  const outs = [pointer, pointer, pointer] as const;
  const create = nt('NtCreateFile', pointer, u32, ...outs, u32, u32, u32, u32, pointer, u32);
  const control = nt('NtDeviceIoControlFile', handle, handle, ...outs, u32, pointer, u32, pointer, u32);
  const read = nt('NtReadFile', handle, handle, ...outs, pointer, u32, pointer, pointer);
  const wait = nt('NtWaitForSingleObject', handle, 'uint8_t', pointer);
  const clear = nt('NtClearEvent', handle);
  return {
    createFile: (handleAt, access, attributes, ioStatus) =>
      create(
        handleAt,
        access,
        attributes,
        ioStatus,
        0,
        0,
        FILE_SHARE_READ_WRITE,
        FILE_OPEN,
        FILE_NON_DIRECTORY_FILE,
        0,
        0,
      ),
    deviceIoControl: (file, event, context, ioStatus, ...request) =>
      control(file, event, 0, context, ioStatus, ...request),
    readFile: (file, context, ioStatus, buffer, length) =>
      read(file, 0, 0, context, ioStatus, buffer, length, 0, 0),
    cancelIo: nt('NtCancelIoFileEx', handle, pointer, pointer),
    clearEvent: (event) => {
      clear(event);
    },
    waitForSingleObject: (waited, timeoutAt) => wait(waited, 0, timeoutAt),
  };
}

function ports(
  koffi: Koffi,
): Pick<
  Native,
  | 'createEvent'
  | 'createPort'
  | 'createMutex'
  | 'associate'
  | 'post'
  | 'dequeue'
  | 'dequeueAsync'
  | 'createPipe'
> {
  const kernel32 = koffi.load('kernel32.dll');
  const win32 = (name: string, result: string, ...parameters: readonly string[]): NativeFunction =>
    kernel32.func('__stdcall', name, result, parameters);
  const createEvent = win32('CreateEventW', handle, pointer, 'int', 'int', pointer);
  const createPort = win32('CreateIoCompletionPort', handle, handle, handle, pointer, u32);
  const post = win32('PostQueuedCompletionStatus', 'int', handle, u32, pointer, pointer);
  const dequeue = win32('GetQueuedCompletionStatusEx', 'int', handle, pointer, u32, pointer, u32, 'int');
  const createMutex = win32('CreateMutexW', handle, pointer, 'int', 'str16');
  const createPipe = win32('CreateNamedPipeW', handle, 'str16', u32, u32, u32, u32, u32, u32, pointer);
  return {
    createEvent: () => Number(createEvent(0, 1, 0, 0)),
    createPort: () => Number(createPort(invalidHandle, 0, 0, 1)),
    associate: (file, port, key) => Number(createPort(file, port, key, 0)) === port,
    post: (port, key) => {
      post(port, 0, key, 0);
    },
    dequeue: (port, entries, count, removedAt) => dequeue(port, entries, count, removedAt, 0, 0) !== 0,
    dequeueAsync: (port, entries, count, removedAt, timeoutMs, done) =>
      dequeue.async(port, entries, count, removedAt, timeoutMs, 0, done),
    createMutex: (name) => Number(createMutex(0, 0, name)),
    createPipe: (name) => {
      const pipe = Number(
        createPipe(name, PIPE_DUPLEX_OVERLAPPED_FIRST, PIPE_REJECT_REMOTE_CLIENTS, 1, 0, 0, 0, 0),
      );
      return pipe === invalidHandle ? 0 : pipe;
    },
  };
}

function allocate(koffi: Koffi, bytes: number): NativeMemory {
  let memory: unknown;
  try {
    if (bytes <= mostBytes) memory = koffi.alloc('uint8_t', bytes);
  } catch {
    // The failure is reported below.
  }
  if (memory === undefined || memory === null) {
    throw new StatusError(
      Status.INSUFFICIENT_RESOURCES,
      `Cannot allocate ${bytes} bytes for the buffers of a request.`,
    );
  }
  const view = new Uint8Array(koffi.view(memory, bytes)).fill(0);
  return { address: Number(koffi.address(memory)), bytes: view, free: () => koffi.free(memory) };
}

/**
 * Closes handles of a terminated Worker, which no longer runs JavaScript; they would otherwise remain open in the process. Node.js calls
 * native functions at that time (`napi_add_env_cleanup_hook`), and `NtClose` has a suitable signature.
 */
function endHooks(koffi: Koffi): {
  readonly ntClose: Address;
  add(call: Address, argument: number): void;
  remove(call: Address, argument: number): void;
} {
  try {
    const kernel32 = koffi.load('kernel32.dll');
    const module = kernel32.func('__stdcall', 'GetModuleHandleW', 'uintptr_t', ['str16'])('ntdll.dll');
    const getProcAddress = kernel32.func('__stdcall', 'GetProcAddress', 'uintptr_t', ['uintptr_t', 'str']);
    const ntClose = Number(getProcAddress(module, 'NtClose'));
    const program = koffi.load(process.execPath);
    const hook = (name: string): NativeFunction =>
      program.func('__cdecl', name, 'int', ['void *', 'uintptr_t', 'uintptr_t']);
    const add = hook('napi_add_env_cleanup_hook');
    const remove = hook('napi_remove_env_cleanup_hook');
    const env = koffi.node?.env;
    if (env === undefined) throw new Error('no napi_env');
    return {
      ntClose,
      add: (call, argument) => void add(env, call, argument),
      remove: (call, argument) => void remove(env, call, argument),
    };
  } catch {
    // A program may embed Node.js outside its executable. Handles of Workers then remain open until the process ends.
    return { ntClose: 0, add: () => {}, remove: () => {} };
  }
}
