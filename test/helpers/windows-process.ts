/** Windows calls for processes and threads that Node.js lacks. */
import { createRequire } from 'node:module';

type Call = (...values: readonly unknown[]) => number;

interface Functions {
  readonly snapshot: Call;
  readonly first: Call;
  readonly next: Call;
  readonly openThread: Call;
  readonly describe: Call;
  readonly openProcess: Call;
  readonly suspend: Call;
  readonly handles: Call;
  readonly close: Call;
}

const handle = 'intptr_t';
const u32 = 'uint32_t';
/** Access rights (winnt.h). */
const THREAD_QUERY_LIMITED_INFORMATION = 0x800;
const PROCESS_SUSPEND_RESUME = 0x800;
const CURRENT_PROCESS = -1;
const SNAPSHOT_OF_THREADS = 4;
/** THREADENTRY32 (tlhelp32.h): seven 32-bit numbers; the first is the size in bytes. */
const ENTRY_WORDS = 7;
const ENTRY_BYTES = 28;

let loaded: Functions | undefined;

function functions(): Functions {
  if (loaded !== undefined) return loaded;
  const koffi = createRequire(import.meta.url)('koffi') as {
    load(path: string): {
      func(convention: string, name: string, result: string, parameters: readonly string[]): Call;
    };
  };
  const [kernel32, ntdll] = [koffi.load('kernel32.dll'), koffi.load('ntdll.dll')];
  const call = (name: string, result: string, ...parameters: string[]): Call =>
    (name.startsWith('Nt') ? ntdll : kernel32).func('__stdcall', name, result, parameters);
  loaded = {
    snapshot: call('CreateToolhelp32Snapshot', handle, u32, u32),
    first: call('Thread32First', 'int', handle, 'void *'),
    next: call('Thread32Next', 'int', handle, 'void *'),
    openThread: call('OpenThread', handle, u32, 'int', u32),
    describe: call('GetThreadDescription', 'int32_t', handle, '_Out_ str16 *'),
    openProcess: call('OpenProcess', handle, u32, 'int', u32),
    suspend: call('NtSuspendProcess', 'int32_t', handle),
    handles: call('GetProcessHandleCount', 'int', handle, 'void *'),
    close: call('CloseHandle', 'int', handle),
  };
  return loaded;
}

function nameOf(thread: number): string {
  const { openThread, describe, close } = functions();
  const opened = openThread(THREAD_QUERY_LIMITED_INFORMATION, 0, thread);
  if (opened === 0) return ''; // the thread has just exited
  const name: (string | null)[] = [null];
  describe(opened, name);
  close(opened);
  return name[0] ?? '';
}

/** The names of this process's threads; '' for one without a name. */
export function threadNames(): string[] {
  const { snapshot, first, next, close } = functions();
  const all = snapshot(SNAPSHOT_OF_THREADS, 0);
  const entry = new Uint32Array(ENTRY_WORDS);
  entry[0] = ENTRY_BYTES;
  const names: string[] = [];
  for (let more = first(all, entry); more !== 0; more = next(all, entry)) {
    const [, , thread, owner] = entry;
    if (owner === process.pid) names.push(nameOf(thread!));
  }
  close(all);
  return names;
}

/** The open handles of this process; always 0 under Wine, which does not count them. */
export function handleCount(): number {
  const count = new Uint32Array(1);
  functions().handles(CURRENT_PROCESS, count);
  return count[0]!;
}

/** Stops a process, as SIGSTOP does elsewhere. */
export function suspendProcess(pid: number): void {
  const { openProcess, suspend, close } = functions();
  const process = openProcess(PROCESS_SUSPEND_RESUME, 0, pid);
  const status = process === 0 ? -1 : suspend(process);
  close(process);
  if (status < 0) throw new Error(`Cannot suspend process ${pid}: ${status}`);
}
