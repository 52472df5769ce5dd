// Failures of every method of a vendor's provider: the status is one of the SPI, the error names the method and the DLL,
// and all objects are released.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { HostV2, SideV2 } from '../../../nd/cli/sides/v2-side.js';
import { allocate, Nd2MrFlag, Nd2OpFlag, NdError, Status, statusName } from '../../../nd/index.js';
import { ADAPTER_ID, clean, Nd2Standin } from './nd2-standin.js';
import { openHost, openPair, openSide } from './vendor-host.js';

const standin = new Nd2Standin();

/** Results of a provider, and the statuses that programs get. */
const statuses = [
  [0xc000_009a, Status.INSUFFICIENT_RESOURCES],
  [0xc000_00e5, Status.INTERNAL_ERROR],
  [0x8000_4001, Status.NOT_SUPPORTED],
  [0x8007_000e, Status.NO_MEMORY],
] as const;

/** Two sides. They are connected in the scene `connected` only. */
interface Scene {
  readonly host: HostV2;
  readonly a: SideV2;
  readonly b: SideV2;
}

/** A call that fails when the provider's method does. */
type Attempt = (scene: Scene) => unknown;

const anywhere: Readonly<Record<string, Attempt>> = {
  'IND2Provider::ResolveAddress': ({ host }) => host.provider.resolveAddress('127.0.0.1'),
  'IND2Provider::OpenAdapter': ({ host }) => host.provider.openAdapter(ADAPTER_ID),
  'IND2Adapter::CreateOverlappedFile': ({ host }) => host.provider.openAdapter(ADAPTER_ID),
  'IND2Adapter::Query': ({ host }) => host.adapter.query(),
  'IND2Adapter::QueryAddressList': ({ host }) => host.adapter.queryAddressList(),
  'IND2Adapter::CreateCompletionQueue': ({ host }) => host.adapter.createCompletionQueue(8),
  'IND2Adapter::CreateMemoryRegion': ({ host }) => host.register(allocate(64)),
  'IND2Adapter::CreateMemoryWindow': ({ host }) => host.adapter.createMemoryWindow(),
  'IND2Adapter::CreateSharedReceiveQueue': ({ host }) => host.adapter.createSharedReceiveQueue({ depth: 4 }),
  'IND2Adapter::CreateQueuePair': ({ host, a }) =>
    host.adapter.createQueuePair({
      receiveCompletionQueue: a.inbound,
      initiatorCompletionQueue: a.inbound,
      receiveQueueDepth: 1,
      initiatorQueueDepth: 1,
    }),
  'IND2Adapter::CreateQueuePairWithSrq': ({ host, a }) => {
    const shared = host.adapter.createSharedReceiveQueue({ depth: 4 });
    try {
      host.adapter.createQueuePairWithSrq({
        receiveCompletionQueue: a.inbound,
        initiatorCompletionQueue: a.inbound,
        sharedReceiveQueue: shared,
        initiatorQueueDepth: 1,
      });
    } finally {
      shared.release();
    }
  },
  'IND2Adapter::CreateConnector': ({ host }) => {
    const connector = host.adapter.createConnector();
    try {
      connector.bind('127.0.0.1');
    } finally {
      connector.release();
    }
  },
  'IND2Adapter::CreateListener': ({ host }) => host.listen(),
  'IND2CompletionQueue::GetNotifyAffinity': ({ a }) => a.inbound.getNotifyAffinity(),
  'IND2CompletionQueue::Resize': ({ a }) => a.inbound.resize(200),
  'IND2CompletionQueue::Notify': ({ a }) => a.inbound.notify('any'),
  'IND2MemoryRegion::Register': ({ host }) => host.register(allocate(64)),
  'IND2QueuePair::Receive': ({ a }) => a.queuePair.receive('r', a.sge(0, 8)),
  'IND2Listener::Bind': ({ host }) => host.listen(),
  'IND2Listener::Listen': ({ host }) => host.listen(),
  'IND2Listener::GetLocalAddress': ({ host }) => {
    const listener = host.listen();
    try {
      return listener.address;
    } finally {
      listener.release();
    }
  },
};

const unconnected: Readonly<Record<string, Attempt>> = {
  'IND2Connector::Bind': ({ a }) => a.connector.bind('127.0.0.1'),
  'IND2Connector::Connect': ({ host, a }) => a.connect(host.listening.address),
  'IND2Listener::GetConnectionRequest': ({ host, a }) => host.listening.request(a),
  'IND2QueuePair::Flush': ({ a }) => a.queuePair.flush(),
};

const requested: Readonly<Record<string, Attempt>> = {
  'IND2Connector::Accept': ({ b }) => b.accept(),
  'IND2Connector::Reject': ({ b }) => b.connector.reject(),
  'IND2Connector::GetReadLimits': ({ b }) => b.connector.getReadLimits(),
  'IND2Connector::GetPrivateData': ({ b }) => b.privateData,
  'IND2Connector::GetPeerAddress': ({ b }) => b.peerAddress,
};

const connected: Readonly<Record<string, Attempt>> = {
  'IND2Connector::NotifyDisconnect': ({ a }) => a.notifyDisconnect(),
  'IND2Connector::Disconnect': ({ a }) => a.disconnect(),
  'IND2QueuePair::Send': ({ a }) => a.queuePair.send('s', a.sge(0, 8)),
  'IND2QueuePair::Read': ({ a, b }) => a.queuePair.read('d', a.sge(0, 8), b.remote),
  'IND2QueuePair::Write': ({ a, b }) => a.queuePair.write('w', a.sge(0, 8), b.remote),
  'IND2QueuePair::Bind': ({ host, a }) => {
    const window = host.adapter.createMemoryWindow();
    try {
      a.queuePair.bind('b', a.region, window, 0, 8, Nd2OpFlag.ALLOW_READ);
    } finally {
      window.release();
    }
  },
  'IND2QueuePair::Invalidate': ({ host, a }) => {
    const window = host.adapter.createMemoryWindow();
    try {
      a.queuePair.invalidate('i', window);
    } finally {
      window.release();
    }
  },
};

/** Returns the error of a call, or of the request that it starts. */
async function errorOf(attempt: () => unknown): Promise<unknown> {
  try {
    await attempt();
  } catch (error) {
    return error;
  }
  return undefined;
}

function check(error: unknown, method: string, status: number, expected: number): void {
  const what = `${method} ${status.toString(16)}: ${error}`;
  assert.ok(error instanceof NdError, what);
  assert.is(statusName(error.status), statusName(expected), what);
  assert.ok(error.message.includes(method), what);
  assert.ok(error.message.includes('standin-nd2.dll'), what);
}

const overlapped = new Set([
  'IND2CompletionQueue::Notify',
  'IND2MemoryRegion::Register',
  'IND2Connector::Connect',
  'IND2Connector::Accept',
  'IND2Connector::NotifyDisconnect',
  'IND2Connector::Disconnect',
  'IND2Listener::GetConnectionRequest',
]);

async function fails(
  scene: Scene,
  method: string,
  attempt: Attempt,
  status: number,
  expected: number,
  late: boolean,
) {
  // Registers memory and starts listening.
  void [scene.a.region, scene.b.region, scene.host.listening];
  if (late) standin.end(method, status);
  else standin.fail(method, status);
  check(await errorOf(() => attempt(scene)), method, status, expected);
}

const scenes: Readonly<Record<string, () => Promise<Scene>>> = {
  unconnected: async () => {
    const host = openHost();
    return { host, a: openSide(host), b: openSide(host) };
  },
  requested: async () => {
    const host = openHost();
    const [a, b] = [openSide(host), openSide(host)];
    const request = host.listening.request(b);
    // The Connect ends when the sides are released.
    errorOf(() => a.connect(host.listening.address));
    await request;
    return { host, a, b };
  },
  connected: async () => {
    const host = openHost();
    return { host, ...(await openPair(host)) };
  },
};

for (const [where, attempts] of Object.entries({
  unconnected: { ...anywhere, ...unconnected },
  requested,
  connected,
})) {
  for (const [method, attempt] of Object.entries(attempts)) {
    clean(test, standin, `${method} fails`, async () => {
      for (const late of overlapped.has(method) ? [false, true] : [false]) {
        for (const [status, expected] of statuses) {
          const scene = await scenes[where]!();
          await fails(scene, method, attempt, status, expected, late);
          for (const object of [scene.a, scene.b, scene.host]) object.release();
        }
      }
    });
  }
}

clean(test, standin, 'CompleteConnect fails, at once or later', async () => {
  for (const late of [false, true]) {
    const host = openHost();
    const [a, b] = [openSide(host), openSide(host)];
    const request = host.listening.request(b);
    const connecting = a.connect(host.listening.address);
    await request;
    const accepted = errorOf(() => b.accept());
    await connecting;
    await fails(
      { host, a, b },
      'IND2Connector::CompleteConnect',
      () => a.completeConnect(),
      0xc000_00e5,
      Status.INTERNAL_ERROR,
      late,
    );
    for (const object of [a, b, host]) object.release();
    await accepted;
  }
});

clean(
  test,
  standin,
  'Deregister fails: the memory stays registered and can be deregistered later',
  async () => {
    const host = openHost();
    const region = host.adapter.createMemoryRegion();
    await region.register(allocate(64), Nd2MrFlag.ALLOW_LOCAL_WRITE);
    for (const [status, expected] of statuses) {
      standin.fail('IND2MemoryRegion::Deregister', status);
      check(await errorOf(() => region.deregister()), 'IND2MemoryRegion::Deregister', status, expected);
      standin.end('IND2MemoryRegion::Deregister', status);
      check(await errorOf(() => region.deregister()), 'IND2MemoryRegion::Deregister', status, expected);
    }
    assert.is(region.length, 64);
    await region.deregister();
    region.release();
    host.release();
  },
);

clean(test, standin, 'methods of a shared receive queue fail', async () => {
  const host = openHost();
  const side = openSide(host);
  const shared = host.adapter.createSharedReceiveQueue({ depth: 4, notifyThreshold: 1 });
  const calls: Readonly<Record<string, () => unknown>> = {
    GetNotifyAffinity: () => shared.getNotifyAffinity(),
    Modify: () => shared.modify(5, 0),
    Notify: () => shared.notify(),
    Receive: () => shared.receive('r', side.sge(0, 8)),
  };
  void side.region;
  for (const [method, call] of Object.entries(calls)) {
    for (const [status, expected] of statuses) {
      standin.fail(`IND2SharedReceiveQueue::${method}`, status);
      check(await errorOf(call), `IND2SharedReceiveQueue::${method}`, status, expected);
    }
  }
  for (const object of [shared, side, host]) object.release();
});

clean(test, standin, 'CancelOverlappedRequests fails: pending requests continue', async () => {
  const host = openHost();
  const side = openSide(host);
  const notified = side.inbound.notify('any');
  standin.fail('IND2CompletionQueue::CancelOverlappedRequests', Status.UNSUCCESSFUL);
  const error = await errorOf(() => side.inbound.cancelOverlappedRequests());
  assert.is(notified.completed, false);
  assert.ok(error === undefined || error instanceof NdError);
  side.queuePair.receive('r', []);
  side.queuePair.flush();
  await notified;
  side.release();
  host.release();
});

test.run();
