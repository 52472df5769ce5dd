// A device is removed while many requests of every kind are pending, in two processes at the same time, through the real channel. Also
// tests the statuses that NetworkDirect reports for this.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { injectDeviceFault } from '../../kernel-bridge/index.js';
import { NdError, openNetworkDirect, openNetworkDirect2, statusName } from '../../nd/index.js';
import { programFile } from '../helpers/programs.js';

const program = programFile(new URL('../helpers/unplug-program.js', import.meta.url));

async function run(): Promise<unknown> {
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const [code] = await once(child, 'close');
  assert.is(code, 0);
  return JSON.parse(text);
}

test('every pending request ends in DEVICE_REMOVED, nothing is left, and the device can be plugged in again', async () => {
  const removed = ['DEVICE_REMOVED'];
  const ended = Object.fromEntries(
    [
      'cqAny',
      'cqSolicited',
      'cqError',
      'getRequest',
      'connect',
      'accept',
      'disconnect',
      'lookup',
      'srqNotify',
      'deviceNotify',
      'notifyDisconnect',
      'portEvent',
      'fatalEvent',
    ].map((kind) => [kind, removed]),
  );
  const left = { pd: 0, mr: 0, mw: 0, cq: 0, srq: 0, qp: 0, removing: 0, abandoned: 0, faults: 0 };
  const lookups = ['SUCCESS', 'NOT_FOUND', 'SUCCESS'];
  for (const reported of await Promise.all([run(), run()])) assert.equal(reported, { ended, left, lookups });
});

/** Returns the name of the status of a call or of the request that it starts. */
async function nameOf(call: () => unknown): Promise<string> {
  try {
    await call();
    return 'SUCCESS';
  } catch (error) {
    if (!(error instanceof NdError)) throw error;
    return statusName(error.status);
  }
}

for (const fault of ['unplug', 'fatal'] as const) {
  test(`${fault}: all NetworkDirect requests end in DEVICE_REMOVED, and a new adapter works again`, async () => {
    const address = '127.0.0.1';
    const nd1 = openNetworkDirect();
    const nd2 = openNetworkDirect2();
    const id = nd2.resolveAddress(address);
    const v1 = nd1.openAdapter(address);
    const v2 = nd2.openAdapter(id);
    const [queue1, queue2] = [v1.createCompletionQueue(4), v2.createCompletionQueue(4)];
    const region = v2.createMemoryRegion();
    const waiting = [queue1.notify('any'), queue2.notify('errors')];
    injectDeviceFault(id, fault);
    const bytes = new Uint8Array(64);
    const calls = [
      ...waiting.map((request) => () => request),
      () => queue1.notify('any'),
      () => queue2.notify('solicited'),
      () => queue1.resize(8),
      () => v1.query(),
      () => v2.query(),
      () => v1.createCompletionQueue(4),
      () => v2.createCompletionQueue(4),
      () => v1.createMemoryWindow(),
      () => v2.createMemoryWindow(),
      () => v1.registerMemory(bytes),
      () => region.register(bytes, 0),
    ];
    for (const call of calls) assert.is(await nameOf(call), 'DEVICE_REMOVED', String(call));
    for (const object of [region, queue1, queue2, v1, v2]) object.release();
    injectDeviceFault(id, 'plug');
    const again = nd2.openAdapter(nd2.resolveAddress(address));
    const another = again.createMemoryRegion();
    assert.is(await nameOf(() => another.register(bytes, 0)), 'SUCCESS');
    for (const object of [another, again, nd1, nd2]) object.release();
  });
}

for (const fault of ['unplug', 'fatal'] as const) {
  test(`${fault}: addresses, listeners and connections of the adapter also report DEVICE_REMOVED`, async () => {
    const address = '127.0.0.1';
    const nd1 = openNetworkDirect();
    const nd2 = openNetworkDirect2();
    const id = nd2.resolveAddress(address);
    const v1 = nd1.openAdapter(address);
    const v2 = nd2.openAdapter(id);
    const [queue1, queue2] = [v1.createCompletionQueue(16), v2.createCompletionQueue(16)];
    const pair = () =>
      v2.createQueuePair({
        receiveCompletionQueue: queue2,
        initiatorCompletionQueue: queue2,
        receiveQueueDepth: 1,
        initiatorQueueDepth: 1,
      });
    const bound = () => {
      const connector = v2.createConnector();
      connector.bind(address);
      return connector;
    };
    const listening = (at: string) => {
      const listener = v2.createListener();
      listener.bind(at);
      listener.listen();
      return listener;
    };
    const listener = listening(address);
    const everywhere = listening('0.0.0.0');
    const peer = listener.getLocalAddress();
    const request = async () => {
      const passive = v2.createConnector();
      const requested = listener.getConnectionRequest(passive);
      const active = bound();
      const connect = active.connect(pair(), peer);
      await requested;
      return { active, passive, connect };
    };
    const [asked, rejectable, replied, connected] = [
      await request(),
      await request(),
      await request(),
      await request(),
    ];
    for (const { passive, active, connect } of [replied, connected]) {
      const accept = passive.accept(pair());
      await connect;
      if (active === connected.active) await Promise.all([active.completeConnect(), accept]);
    }
    const v1Connector = v1.createConnector();
    const endpoint = v1Connector.createEndpoint({
      inboundCompletionQueue: queue1,
      outboundCompletionQueue: queue1,
      inboundEntries: 1,
      outboundEntries: 1,
    });
    const [unused, ready, unlistened] = [pair(), bound(), v2.createListener()];
    unlistened.bind(address);
    const waiting = [
      everywhere.getConnectionRequest(v2.createConnector()),
      connected.active.notifyDisconnect(),
      asked.connect,
    ];
    injectDeviceFault(id, fault);
    const calls: (() => unknown)[] = [
      ...waiting.map((waits) => () => waits),
      () => v2.createListener().bind(address),
      () => v2.createListener().bind('0.0.0.0'),
      () => unlistened.listen(),
      () => listener.getConnectionRequest(v2.createConnector()),
      () => everywhere.getConnectionRequest(v2.createConnector()),
      () => ready.connect(unused, peer),
      () => asked.passive.accept(unused),
      () => rejectable.passive.reject(),
      () => replied.active.completeConnect(),
      () => connected.active.disconnect(),
      () => connected.passive.disconnect(),
      () => v1.listen(),
      () => v1Connector.connect(endpoint, peer),
    ];
    // After a fatal error, the address still belongs to the device, and Connect reports the error.
    if (fault === 'unplug') calls.push(bound);
    for (const call of calls) assert.is(await nameOf(call), 'DEVICE_REMOVED', String(call));
    for (const object of [v1Connector, endpoint, queue1, queue2, v1, v2, nd1, nd2]) object.release();
    injectDeviceFault(id, 'plug');
  });
}

test.run();
