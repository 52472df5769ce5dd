import {
  type IWVCompletionQueue,
  type IWVConnectQueuePair,
  type IWVProvider,
  openProvider,
  QpAttr,
  QpState,
  RemoteMemory,
  WvAccess,
  type WvCompletion,
  type WvMemoryRegion,
  type WvQpCreate,
} from '../../winverbs/index.js';

export const ADDRESS = '127.0.0.1';
export const ALL_ACCESS =
  WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.MW_BIND;

export type QpChange = Partial<Omit<WvQpCreate, 'sendCq' | 'receiveCq'>>;

/** What one side of a connection has of its own. */
export function openSide(provider: IWVProvider, change: QpChange = {}, bytes = 8192, address = ADDRESS) {
  const { deviceGuid } = provider.translateAddress(address);
  const device = provider.openDevice(deviceGuid);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(64);
  const qp = pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    sendDepth: 16,
    sendSge: 4,
    receiveDepth: 16,
    receiveSge: 4,
    maxInlineSend: 128,
    ...change,
  });
  toInit(qp);
  const memory = Buffer.alloc(bytes);
  const region = pd.registerMemory(memory, ALL_ACCESS);
  const ep = provider.createConnectEndpoint();
  const remote = remoteOf(region);
  const release = () => {
    for (const object of [ep, qp, cq, pd, device]) object.release();
  };
  return { device, pd, cq, qp, memory, region, ep, remote, release };
}

export type Side = ReturnType<typeof openSide>;

export function toInit(qp: IWVConnectQueuePair): void {
  qp.modify({ qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags: 0 }, QpAttr.STATE);
}

export function remoteOf(region: WvMemoryRegion): RemoteMemory {
  return new RemoteMemory({ address: BigInt(region.address), rkey: region.rkey });
}

/** A listener on a free port of an address. */
export function openListener(provider: IWVProvider, address = ADDRESS, backlog = 8) {
  const listener = provider.createConnectEndpoint();
  listener.bindAddress({ family: 4, address, port: 0 });
  listener.listen(backlog);
  const peer = { family: 4, address, port: listener.query().localAddress.port } as const;
  return { listener, peer };
}

/** Connects `a` (active) to `b`, with private data both ways; answers what each side got. */
export async function connect(provider: IWVProvider, a: Side, b: Side, address = ADDRESS) {
  const { listener, peer } = openListener(provider, address);
  const request = listener.getRequest(b.ep);
  a.ep.bindAddress({ family: 4, address, port: 0 });
  a.ep.resolveRoute(peer);
  const connecting = a.ep.connect(a.qp, peer, { privateData: Buffer.from('from a') });
  await request;
  const atB = b.ep.query();
  const accepting = b.ep.accept(b.qp, { privateData: Buffer.from('from b') });
  await connecting;
  const atA = a.ep.query();
  await a.ep.accept(null, {});
  await accepting;
  listener.release();
  return { atA, atB };
}

export async function connectedPair(changeA: QpChange = {}, changeB: QpChange = {}) {
  const provider = openProvider();
  const a = openSide(provider, changeA);
  const b = openSide(provider, changeB);
  const told = await connect(provider, a, b);
  const release = () => {
    a.release();
    b.release();
    provider.release();
  };
  return { provider, a, b, release, ...told };
}

/** Takes exactly `n` completions, sleeping in between. */
export async function take(cq: IWVCompletionQueue, n: number): Promise<WvCompletion[]> {
  const taken: WvCompletion[] = [];
  for (;;) {
    const some: WvCompletion[] = [];
    cq.poll(some, n - taken.length);
    taken.push(...some);
    if (taken.length === n) return taken;
    await cq.notify('any');
  }
}
