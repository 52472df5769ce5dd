// A process or a Worker with a soft kernel and its software HCA, which ends in the given way: soft-program.js WAY.
import { once } from 'node:events';
import { parentPort, Worker } from 'node:worker_threads';
import { openProvider } from '../../winverbs/index.js';

const way = process.argv[2]!;
const provider = openProvider({ kernel: 'soft', startTimeoutMs: 60_000 });
if (provider.queryDeviceList().length === 0) throw new Error('The provider does not list a device.');

function startWorker(inner: string): Worker {
  return new Worker(process.argv[1]!, { argv: [inner] });
}

switch (way) {
  case 'exit':
    process.exit(7);
    break;
  case 'release':
    provider.release();
    break;
  case 'throw':
    throw new Error('on purpose');
  case 'stay':
    parentPort!.postMessage('opened');
    setInterval(() => undefined, 1000);
    break;
  case 'exit-with-worker': {
    await once(startWorker('stay'), 'message');
    process.exit(7);
    break;
  }
  case 'terminate': {
    const worker = startWorker('stay');
    await once(worker, 'message');
    process.exitCode = 7 + (await worker.terminate());
    break;
  }
  case 'worker': {
    const [code] = await once(startWorker('natural'), 'exit');
    process.exitCode = 7 + (code as number);
    break;
  }
}
