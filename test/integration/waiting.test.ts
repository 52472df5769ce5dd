/** Threads that wait for completions: how their requests end, and that waiting does not delay others. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openProvider, RemoteMemory, Status, WcStatus, WvAccess, WvSend } from '../../winverbs/index.js';
import { ADDRESS, connectedPair, take } from '../helpers/loopback.js';
import { outcome } from '../helpers/outcome.js';
import { programFile } from '../helpers/programs.js';

const program = programFile(new URL('../helpers/busy-program.js', import.meta.url));
const STEP = 20;

test('requests that bypass the kernel are cancelled and ended like other requests', async () => {
  const { a, b, release } = await connectedPair();
  // The first request of a queue goes through the kernel, and so does the first one after all were cancelled.
  for (let round = 0; round < 4; round++) {
    for (let n = 0; n < 3; n++) {
      const one = b.cq.notify('any');
      one.cancel();
      assert.is(await outcome(one), Status.CANCELED);
    }
    const all = [b.cq.notify('any'), b.cq.notify('solicited'), b.cq.notify('any')];
    b.cq.cancelOverlappedRequests();
    assert.equal(
      await Promise.all(all.map(outcome)),
      all.map(() => Status.CANCELED),
    );
  }
  for (let round = 0; round < 4; round++) {
    b.qp.postReceive(round, []);
    const event = b.cq.notify('any');
    const cancelled = b.cq.notify('solicited');
    cancelled.cancel();
    assert.is(await outcome(cancelled), Status.CANCELED);
    a.qp.send(round, [], WvSend.SIGNALED);
    if (round % 2 === 0) await event;
    else event.getResult({ wait: true });
    await take(b.cq, 1);
    await take(a.cq, 1);
  }
  const provider = openProvider();
  const device = provider.openDevice(provider.translateAddress(ADDRESS).deviceGuid);
  const cq = device.createCompletionQueue(4);
  const first = cq.notify('any');
  await sleep(1); // has reached the kernel in most cases
  const second = cq.notify('any');
  cq.release();
  assert.equal(await Promise.all([first, second].map(outcome)), [Status.CANCELED, Status.CANCELED]);
  device.release();
  provider.release();
  release();
});

test('a program that computes while it should wait on its event loop does not delay its peer', async () => {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const provider = openProvider();
  try {
    const address = { family: 4, address: '127.0.0.1', port: 0 } as const;
    const peer = { ...address, port: Number(await next()) };
    const device = provider.openDevice(provider.translateAddress(address).deviceGuid);
    const pd = device.allocateProtectionDomain();
    const cq = device.createCompletionQueue(64);
    const source = new Int32Array(new SharedArrayBuffer(8));
    const region = pd.registerMemory(new Uint8Array(source.buffer), WvAccess.LOCAL_WRITE);
    const qp = pd.createConnectQueuePair({
      sendCq: cq,
      receiveCq: cq,
      sendDepth: 4,
      sendSge: 1,
      receiveDepth: 4,
      receiveSge: 1,
    });
    const endpoint = provider.createConnectEndpoint();
    endpoint.bindAddress(address);
    endpoint.resolveRoute(peer);
    await endpoint.connect(qp, peer, {});
    await endpoint.accept(null, {});
    const [, at, rkey] = (await next()).split(' ');
    const remote = new RemoteMemory({ address: BigInt(at!), rkey: Number(rkey) });
    for (const how of ['callback', 'immediate', 'callback', 'callback', 'immediate']) {
      child.stdin.write(`${how}\n`);
      // Each Write is acknowledged while the other program's JavaScript only polls its memory.
      for (let n = 0; n < STEP; n++) {
        source[0]!++;
        qp.write(n, [{ region, offset: 0, length: 4 }], WvSend.SIGNALED, remote, 0);
        const [completion] = await take(cq, 1);
        assert.is(completion?.status, WcStatus.SUCCESS);
      }
      assert.is(await next(), 'served');
    }
  } finally {
    const ended = once(child, 'exit');
    child.stdin.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(timer);
    provider.release();
  }
});

test.run();
