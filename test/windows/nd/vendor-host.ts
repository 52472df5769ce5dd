/** SPI v2 over the stand-in provider, for tests: an adapter and sides of one process. */
import { providersVariable } from '../../../kernel-bridge/windows/nd-provider/index.js';
import { HostV2, type SideV2, type SideV2Options } from '../../../nd/cli/sides/v2-side.js';
import { allocate, type Nd2SharedReceiveQueueOptions } from '../../../nd/index.js';
import { PROVIDER } from './nd2-standin.js';

/** Size of a side's memory in bytes. */
export const SIDE_BYTES = 8192;

/** Makes this the only provider of this process and of those that it starts. */
export function onlyProvider(path = PROVIDER): void {
  process.env[providersVariable] = path;
}

/** Opens the stand-in's adapter, selected by the name of its DLL. */
export function openHost(): HostV2 {
  onlyProvider();
  return new HostV2('127.0.0.1', { hca: 'standin-nd2.dll' });
}

export function openSide(host: HostV2, options: SideV2Options = {}): SideV2 {
  return host.newSide({ inlineDataSize: 0, ...options, bytes: options.bytes ?? allocate(SIDE_BYTES) });
}

/** Creates two connected sides. */
export async function openPair(host: HostV2, options: SideV2Options = {}): Promise<{ a: SideV2; b: SideV2 }> {
  const [a, b] = [openSide(host, options), openSide(host, options)];
  await host.join(a, b);
  return { a, b };
}

/** Creates a side, connected to a queue pair of context `srq` whose three Receives are those of a shared receive queue. */
export async function openShared(host: HostV2, options: Omit<Nd2SharedReceiveQueueOptions, 'depth'> = {}) {
  const { adapter } = host;
  const shared = adapter.createSharedReceiveQueue({ depth: 8, ...options });
  const [a, b] = [openSide(host), openSide(host)];
  const queue = adapter.createCompletionQueue(16);
  const queuePair = adapter.createQueuePairWithSrq({
    receiveCompletionQueue: queue,
    initiatorCompletionQueue: queue,
    sharedReceiveQueue: shared,
    context: 'srq',
    initiatorQueueDepth: 4,
  });
  for (let i = 0; i < 3; i++) shared.receive(i, b.sge(100 * i, 100));
  const requested = host.listening.request(b);
  const connecting = a.connect(host.listening.address);
  await requested;
  const accepted = b.connector.accept(queuePair);
  await connecting;
  await a.connector.completeConnect();
  await accepted;
  return { shared, a, b, queue, queuePair };
}

/** Disconnects: one side starts, and the other is notified and follows. */
export async function disconnect(active: SideV2, passive: SideV2): Promise<void> {
  const notified = passive.notifyDisconnect();
  const ending = active.disconnect();
  await notified;
  await passive.disconnect();
  await ending;
}
