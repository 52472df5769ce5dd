/**
 * A program whose Worker blocks forever, and the ways to end it. The process exits with 7 if it can.
 *
 *   blocked-program.js exit|nested|terminate|vm WAY     WAY: one of `waits`
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { runInThisContext } from 'node:vm';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { WvIoId } from '../../kernel-bridge/ioctl/structs.js';
import { openProvider, WvError } from '../../winverbs/index.js';
import type { KernelFile } from '../../winverbs/kernel-file.js';
import { readTraces } from './traces.js';

const ADDRESS = '127.0.0.1';
const provider = () => openProvider();

/** Calls that wait for a connection or a message that never arrives. */
export const waits: Readonly<Record<string, () => () => void>> = {
  'an overlapped IOCTL': () => {
    const all = provider();
    const listener = all.createConnectEndpoint();
    listener.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    listener.listen(8);
    return () => listener.getRequest(all.createConnectEndpoint()).getResult({ wait: true });
  },
  'an event of a completion queue': () => {
    const all = provider();
    const cq = all.openDevice(all.translateAddress(ADDRESS).deviceGuid).createCompletionQueue(4);
    return () => cq.notify('any').getResult({ wait: true });
  },
  'a blocking IOCTL': () => {
    const all = provider();
    const cq = all.openDevice(all.translateAddress(ADDRESS).deviceGuid).createCompletionQueue(4);
    const { file, id } = cq as unknown as { file: KernelFile; id: bigint };
    return () => file.call(IoctlCode.CQ_NOTIFY, WvIoId.encode({ id }), 0);
  },
};

type Mode = 'block' | 'parent' | 'vm';
interface Task {
  readonly mode: Mode;
  readonly way: string;
}

function startWorker(task: Task): Worker {
  return new Worker(process.argv[1]!, { workerData: task });
}

/** Waits until a Worker blocks or is about to. */
async function blocks(worker: Worker): Promise<void> {
  await once(worker, 'message');
  await sleep(150);
}

function block(way: string): void {
  const wait = waits[way]!();
  parentPort?.postMessage('blocks');
  wait();
}

/** A timeout ends only the script. Its thread and the request continue. */
function blockInScript(way: string): string {
  const wait = waits[way]!();
  Reflect.set(globalThis, 'wait', wait);
  try {
    runInThisContext('wait()', { timeout: 100 });
  } catch (error) {
    return error instanceof WvError ? error.message : String((error as { code?: unknown }).code);
  }
  return 'it did not wait';
}

async function main(mode: string, way: string): Promise<void> {
  if (mode === 'vm') {
    const reported = blockInScript(way);
    console.log(reported);
    process.exit(7);
  }
  const worker = startWorker({ mode: mode === 'nested' ? 'parent' : 'block', way });
  if (mode === 'nested') {
    const [code] = await once(worker, 'exit');
    process.exit(Number(code));
  }
  await blocks(worker);
  if (mode === 'terminate') {
    await worker.terminate();
    console.log(readTraces().engineThreads);
  }
  process.exit(7);
}

if (isMainThread) {
  const [mode, way] = process.argv.slice(2);
  if (mode !== undefined && way !== undefined) await main(mode, way);
} else {
  const { mode, way } = workerData as Task;
  if (mode === 'parent') {
    await blocks(startWorker({ mode: 'block', way }));
    process.exit(7);
  }
  block(way);
}
