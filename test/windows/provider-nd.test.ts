// Both versions of the NetworkDirect SPI on Windows, through all layers: ND, WinVerbs, IOCTLs and a provider DLL, down to the stand-ins.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { Host, Side } from '../../nd/cli/sides/connected-side.js';
import { HostV1 } from '../../nd/cli/sides/v1-side.js';
import { HostV2 } from '../../nd/cli/sides/v2-side.js';
import { allocate, Status } from '../../nd/index.js';
import { clean as cleanDriver, Standin, statusOf } from './standin.js';
import { StandinProvider } from './standin-provider.js';

const standin = new Standin();
const uvp = new StandinProvider();

type AnyHost = Host<Side>;
const hosts: Readonly<Record<string, () => AnyHost>> = { v1: () => new HostV1(), v2: () => new HostV2() };

function clean(name: string, run: (host: AnyHost) => Promise<void>): void {
  for (const [version, open] of Object.entries(hosts)) {
    cleanDriver(test, standin, `${version}: ${name}`, async () => {
      const before = uvp.live;
      const host = open();
      await run(host);
      host.release();
      assert.is(uvp.fault(), '');
      assert.is(uvp.live, before, 'objects of the provider');
    });
  }
}

/** Waits for the next completion of a side. */
async function next(side: Side, which: 'inbound' | 'outbound') {
  while (!side.take(which)) await side.notify(which);
  return { ...side.done };
}

function options() {
  return { bytes: allocate(4096) };
}

/** Disconnects: one side starts, and the other is notified and follows. */
async function disconnect(active: Side, passive: Side): Promise<void> {
  const notified = passive.notifyDisconnect();
  const ending = active.disconnect();
  await statusOf(() => notified);
  await passive.disconnect();
  await ending;
}

clean('messages in both directions, private data and notifications', async (host) => {
  const [a, b] = [host.side(options()), host.side(options())];
  let request = '';
  await host.join(a, b, {
    connect: { privateData: Buffer.from('join') },
    accept: { privateData: Buffer.from('agrees') },
    onRequest: () => {
      request = Buffer.from(b.privateData).toString('latin1', 0, 4);
    },
  });
  assert.is(request, 'join');
  assert.is(Buffer.from(a.privateData).toString('latin1', 0, 6), 'agrees');
  for (let i = 0; i < 20; i++) {
    const [from, to] = i % 2 ? [a, b] : [b, a];
    const notified = to.notify('inbound');
    to.receive(`receive ${i}`, to.sge(100, 100));
    from.send(`send ${i}`, from.sge(0, i));
    await notified;
    const got = await next(to, 'inbound');
    assert.equal([got.context, got.status, got.bytes], [`receive ${i}`, Status.SUCCESS, i]);
    const sent = await next(from, 'outbound');
    assert.equal([sent.context, sent.status], [`send ${i}`, Status.SUCCESS]);
  }
  await disconnect(a, b);
  a.release(true);
  b.release(true);
});

clean('a window, and Writes and Reads through it', async (host) => {
  const [a, b] = [host.side(options()), host.side(options())];
  await host.join(a, b);
  const far = allocate(8192);
  const near = allocate(8192);
  const [memory, own] = [await host.register(far), await host.register(near)];
  const { address, token } = b.open(memory);
  const remote = a.remoteAt(address, far.length, token);
  near.set(Buffer.from('through the window'), 10);
  a.write('write', own.sge(10, 18), remote, 500);
  assert.equal([(await next(a, 'outbound')).context, a.done.status], ['write', Status.SUCCESS]);
  assert.is(Buffer.from(far.subarray(500, 518)).toString(), 'through the window');
  a.read('read', own.sge(1000, 18), remote, 500);
  assert.is((await next(a, 'outbound')).context, 'read');
  assert.is(Buffer.from(near.subarray(1000, 1018)).toString(), 'through the window');
  a.write('beyond', own.sge(0, 100), remote, 8150);
  assert.is.not((await next(a, 'outbound')).status, Status.SUCCESS);
  a.release();
  b.release();
  memory.release();
  own.release();
});

clean('requests outstanding at a disconnect are canceled, in order', async (host) => {
  const [a, b] = [host.side(options()), host.side(options())];
  await host.join(a, b);
  for (let i = 0; i < 10; i++) {
    a.receive(`r${i}`, a.sge(0, 10));
    a.send(`s${i}`, a.sge(0, 10));
    b.receive(`p${i}`, b.sge(0, 5));
  }
  // The first message is too long for its Receive, so the connection fails.
  assert.is.not((await next(a, 'outbound')).status, Status.SUCCESS);
  await statusOf(() => a.disconnect().abortOn(AbortSignal.timeout(1)));
  await statusOf(() => b.disconnect());
  for (let i = 1; i < 10; i++) {
    assert.equal([(await next(a, 'outbound')).context, a.done.status], [`s${i}`, Status.CANCELED]);
  }
  for (let i = 0; i < 10; i++) {
    assert.equal([(await next(a, 'inbound')).context, a.done.status], [`r${i}`, Status.CANCELED]);
  }
  a.release(true);
  b.release(true);
});

clean('a connection request that is not accepted, and memory that cannot be registered', async (host) => {
  const [a, b] = [host.side(options()), host.side(options())];
  const requested = host.listening.request(b);
  const connecting = a.connect(host.listening.address);
  await requested;
  b.release();
  assert.is(await statusOf(() => connecting), Status.CONNECTION_REFUSED);
  a.release();
  assert.is(await statusOf(() => host.register(new Uint8Array(100))), Status.NOT_SUPPORTED);
  (await host.register(new Uint8Array(new SharedArrayBuffer(100)))).release();
});

test.run();
