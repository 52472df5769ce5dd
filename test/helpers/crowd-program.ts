/**
 * A process with honest clients of `networkdirect/net`, which executes {@link CrowdOrder}s received over IPC. It sends `ready` once its
 * adapter is open, so that opening it does not count as connection time.
 */
import { once } from 'node:events';
import { connect, connectChannel, createChannelServer } from '../../nd/net/index.js';

/** An order: what the clients do, how many of them, and the server's port. */
export interface CrowdOrder {
  /**`channels`, `streams`: connects all at the same time, then closes them. `hasty`: connects streams and destroys them immediately.
   *`endless`: connects
   * streams one after another until it is killed.
   */
  readonly what: 'channels' | 'streams' | 'hasty' | 'endless';
  readonly count: number;
  readonly port: number;
  /** Address of the server; default: 127.0.0.1. */
  readonly address?: string | undefined;
}

/** Duration of each connection in ms, and the errors of those that failed. */
export interface CrowdReport {
  readonly times: number[];
  readonly failures: string[];
}

const ADDRESS = '127.0.0.1';

async function attempt({ what, port, address = ADDRESS }: CrowdOrder): Promise<void> {
  if (what === 'channels') {
    await (await connectChannel(port, address)).close();
    return;
  }
  const socket = connect(port, address);
  const closed = once(socket, 'close');
  if (what === 'hasty') socket.destroy();
  else {
    await once(socket, 'connect');
    socket.end();
    socket.resume();
  }
  await closed;
}

async function run(order: CrowdOrder): Promise<CrowdReport> {
  const report: CrowdReport = { times: [], failures: [] };
  const one = async (): Promise<void> => {
    const begun = performance.now();
    try {
      await attempt(order);
      report.times.push(performance.now() - begun);
    } catch (error) {
      report.failures.push(error instanceof Error ? error.message : String(error));
    }
  };
  if (order.what === 'endless') for (;;) await one();
  await Promise.all(Array.from({ length: order.count }, one));
  return report;
}

process.on('disconnect', () => process.exit(0));
process.on('message', async (order: CrowdOrder) => process.send!(await run(order)));

const warm = createChannelServer(() => {});
warm.listen(0, ADDRESS);
await once(warm, 'listening');
await (await connectChannel(warm.address()!.port, ADDRESS)).close();
process.send!('ready');
