/**
 * Two versions of this package on one host, and on two: `npm run test:versions`. The other version is built from the
 * commit before dialects had one number, and from this tree with the next number. No matter which is started first, data arrives correctly
 * or a connection fails with an explanation.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { apart, runApart } from '../helpers/apart.js';
import { needing } from '../helpers/needs.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { connectTo, endPeers, Peer, PeerError, type PeerOptions, within } from '../helpers/peer/peer.js';
import type { Layer } from '../helpers/peer/protocol.js';
import { portSharers } from '../helpers/port-sharers.js';
import { type OtherBuild, otherBuild } from './builds.js';

const LOOPBACK = '127.0.0.1';
const PORT = 7000;
const BYTES = 8 << 20;
const LAYERS: readonly Layer[] = ['nd', 'nd2', 'wv'];

const netProgram = fileURLToPath(new URL('./net-program.js', import.meta.url));
const ownProgram = (path: string): string => fileURLToPath(new URL(`../../${path}.js`, import.meta.url));

const children = new Set<ChildProcess>();

/** A process of `net-program`. */
class Net {
  #errors = '';
  readonly #messages: Record<string, unknown>[] = [];
  readonly child: ChildProcess;

  constructor(
    program: (path: string) => string,
    role: string,
    address: string,
    port: number,
    by: readonly string[] = [],
  ) {
    const module = pathToFileURL(program('nd/net/index')).href;
    const [command, ...args] = [...by, process.execPath, netProgram, role, module, address, String(port)];
    this.child = spawn(command!, args, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] });
    children.add(this.child);
    this.child.stderr!.on('data', (chunk) => {
      this.#errors += String(chunk);
    });
    this.child.on('message', (message) => this.#messages.push(message as Record<string, unknown>));
  }

  /** Returns the value of the next message with this name. */
  async reported(name: string): Promise<unknown> {
    for (;;) {
      const at = this.#messages.findIndex((message) => name in message);
      if (at >= 0) return this.#messages.splice(at, 1)[0]![name];
      const ended = this.child.exitCode ?? this.child.signalCode;
      if (ended !== null)
        throw new Error(`It ended with ${ended} before it reported ${name}: ${this.#errors}`);
      await within(
        Promise.race([once(this.child, 'message'), once(this.child, 'close')]),
        `It did not report ${name}`,
      );
    }
  }

  async kill(): Promise<void> {
    const ended = once(this.child, 'close');
    this.child.kill('SIGKILL');
    await ended;
  }
}

async function endAll(): Promise<void> {
  await endPeers();
  const running = [...children].filter(
    ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
  );
  const ends = running.map((child) => once(child, 'close'));
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(ends);
  children.clear();
}

/** A process that has opened its HCA. */
async function opened(options: PeerOptions): Promise<Peer> {
  const peer = await Peer.start(options);
  await (await peer.listen('nd2', LOOPBACK)).release();
  return peer;
}

/** Two processes of one version connect with this layer and exchange data. */
async function connects(layer: Layer, server: Peer, client: Peer, port?: number): Promise<void> {
  const listener = await server.listen(layer, LOOPBACK, port === undefined ? {} : { port });
  const [active, passive] = await connectTo(listener, client, { accepterReceives: 2 });
  await active.send('beside', 'the other version');
  const { receives } = await passive.results(0, 2);
  assert.equal(
    receives.map(({ text }) => text),
    ['beside', 'the other version'],
  );
  assert.is(await active.disconnect(), 'SUCCESS');
  await listener.release();
}

/** A connection between versions on one host ends immediately, with a status. */
async function isRefused(layer: Layer, server: Peer, client: Peer): Promise<void> {
  const listener = await server.listen(layer, LOOPBACK);
  const call = {
    as: client.newLink(),
    layer,
    from: LOOPBACK,
    to: LOOPBACK,
    port: listener.port,
    receives: 0,
    data: '',
  };
  const refused = await client.call('connect', call).catch((error: unknown) => error);
  assert.is(refused instanceof PeerError && refused.status, 'CONNECTION_REFUSED', `${layer}: ${refused}`);
  await listener.release();
}

function tests(other: OtherBuild): void {
  const { name } = other;
  const test = needing(suite(`the ${name} version`), 'namespaces');
  const program = other.program('test/helpers/peer/program');
  const ours = (): Promise<Peer> => opened({});
  const theirs = (): Promise<Peer> => opened({ program });
  const holds = (pid: number): RegExp =>
    new RegExp(`UDP port 4791 .* is held by process ${pid} \\(node\\), which runs another version`);
  test.after.each(endAll);

  test(`${name}: started first, it keeps UDP 4791, and both versions work`, async () => {
    const [a, b] = [await theirs(), await theirs()];
    const [c, d] = await Promise.all([ours(), ours()]);
    const sharers = [a.pid, b.pid].sort((x, y) => x - y);
    assert.equal(portSharers(), sharers);
    for (const { errors } of [c!, d!])
      assert.ok(
        [a, b].some(({ pid }) => holds(pid).test(errors)),
        errors,
      );
    for (const layer of LAYERS) {
      await connects(layer, a, b);
      await connects(layer, c!, d!);
    }
    assert.equal(portSharers(), sharers);
    // A process that starts after they have ended gets the port.
    await Promise.all([a.kill(), b.kill()]);
    const e = await ours();
    assert.equal(portSharers(), [e.pid]);
    await connects('nd2', e, c!);
  });

  test(`${name}: started later, it never shares UDP 4791 with this version, and both work`, async () => {
    const [c, d] = [await ours(), await ours()];
    const [a, b] = await Promise.all([theirs(), theirs()]);
    if (name === 'older') {
      // The other version shares whatever port it finds. This version's processes then end.
      for (const peer of [c, d])
        await peer.said(/is held by process \d+ \(node\), which runs another version/);
      assert.equal(
        portSharers(),
        [a!.pid, b!.pid].sort((x, y) => x - y),
      );
    } else {
      for (const { errors } of [a!, b!])
        assert.ok(
          [c, d].some(({ pid }) => holds(pid).test(errors)),
          errors,
        );
      assert.equal(
        portSharers(),
        [c.pid, d.pid].sort((x, y) => x - y),
      );
    }
    for (const layer of LAYERS) {
      await connects(layer, a!, b!);
      await connects(layer, c, d);
    }
  });

  test(`${name}: connections between the versions on one host are refused at once in both directions`, async () => {
    const [a, c] = [await theirs(), await ours()];
    for (const layer of LAYERS) {
      await isRefused(layer, a, c);
      await isRefused(layer, c, a);
    }
    await c.said(
      new RegExp(`was refused: process ${a.pid} listens there with another version of networkdirect`),
    );
    if (name === 'next')
      await a.said(
        new RegExp(`was refused: process ${c.pid} listens there with another version of networkdirect`),
      );
  });

  test(`${name}: each version has its own ports, and a client connects to the listener of its version`, async () => {
    const [a, b, c, d] = [await theirs(), await theirs(), await ours(), await ours()];
    const [there, here] = [
      await a.listen('nd2', LOOPBACK, { port: PORT }),
      await c.listen('nd2', LOOPBACK, { port: PORT }),
    ];
    for (const [listener, client, text] of [
      [there, b, 'theirs'],
      [here, d, 'ours'],
    ] as const) {
      const [active, passive] = await connectTo(listener, client, { accepterReceives: 1, request: text });
      assert.is(passive.said, text);
      await active.send(text);
      assert.is((await passive.results(0, 1)).receives[0]!.text, text);
    }
  });

  test(`${name}: streams and messages arrive correctly in both versions at once, even when one is killed`, async () => {
    const builds = [other.program, ownProgram];
    const servers = builds.map((of) => new Net(of, 'serve', LOOPBACK, 0));
    const ports: number[] = [];
    for (const server of servers) ports.push((await server.reported('port')) as number);
    const clients = builds.map((of, i) => new Net(of, 'ask', LOOPBACK, ports[i]!));
    for (const client of clients) {
      assert.is(await client.reported('stream'), BYTES);
      assert.is(await client.reported('channel'), 4);
    }
    for (const killed of [0, 1]) {
      const again = builds.map((of) => new Net(of, 'serve', LOOPBACK, 0));
      const there: number[] = [];
      for (const server of again) there.push((await server.reported('port')) as number);
      const streaming = builds.map((of, i) => new Net(of, 'stream', LOOPBACK, there[i]!));
      for (const client of streaming) assert.is(await client.reported('length'), BYTES);
      await again[killed]!.kill();
      const lost = streaming[killed]!;
      let end: unknown = BYTES;
      while (end === BYTES) end = await lost.reported('length');
      assert.type((end as { code?: unknown }).code, 'string', JSON.stringify(end));
      // Connections of the other version continue.
      for (let round = 0; round < 3; round += 1)
        assert.is(await streaming[1 - killed]!.reported('length'), BYTES);
    }
  });

  test(`${name}: networkdirect/net is refused between the versions on one host`, async () => {
    for (const [of, to] of [
      [other.program, ownProgram],
      [ownProgram, other.program],
    ] as const) {
      const server = new Net(of, 'serve', LOOPBACK, 0);
      const client = new Net(to, 'ask', LOOPBACK, (await server.reported('port')) as number);
      for (const what of ['stream', 'channel']) {
        const outcome = await client.reported(what);
        assert.is((outcome as { code?: string }).code, 'ECONNREFUSED', `${what}: ${JSON.stringify(outcome)}`);
      }
      // Each version has its own ports. The next server may get the same port number as this one, and its client would then connect here.
      await server.kill();
    }
  });

  test(`${name}: nd stat of each version shows its own processes, and this one also names the others`, async () => {
    const [a, c] = [await theirs(), await ours()];
    const [ourStat, theirStat] = [await stat(ownProgram), await stat(other.program)];
    assert.match(ourStat, new RegExp(`${a.pid}\\b.*runs another version`));
    assert.match(ourStat, new RegExp(`\\b${c.pid}\\b`));
    assert.match(theirStat, new RegExp(`\\b${a.pid}\\b`));
    if (name === 'next') assert.match(theirStat, new RegExp(`${c.pid}\\b.*runs another version`));
  });

  test(`${name}: two hosts speak plain RoCEv2, and networkdirect/net reports both versions`, async () => {
    const hosts = await TwoHosts.start();
    try {
      const [one, two] = hosts.hosts;
      const [a, c] = await Promise.all([Peer.start({ program, by: one.by }), Peer.start({ by: two.by })]);
      for (const layer of LAYERS) {
        for (const [server, at, client, from] of [
          [a!, one, c!, two],
          [c!, two, a!, one],
        ] as const) {
          const listener = await server.listen(layer, at.address);
          const [active, passive] = await connectTo(listener, client, {
            from: from.address,
            accepterReceives: 2,
          });
          await active.send('over', 'the wire');
          assert.equal(
            (await passive.results(0, 2)).receives.map(({ text }) => text),
            ['over', 'the wire'],
          );
          assert.is(await active.disconnect(), 'SUCCESS');
          await listener.release();
        }
      }
      // The first version that starts owns the host's port.
      await endPeers();
      const server = new Net(ownProgram, 'serve', one.address, 0, one.by);
      const port = (await server.reported('port')) as number;
      const there = new Net(other.program, 'ask', one.address, port, two.by);
      const failed = (await there.reported('stream')) as { code: string; message: string };
      const reported = (await server.reported('clientError')) as { code: string; message: string };
      assert.is(reported.code, 'EPROTO');
      assert.match(
        reported.message,
        name === 'older'
          ? /(?:speaks|uses) version 5 .*this side (?:uses )?version/
          : /(?:speaks|uses) version \d+ .*this side (?:uses )?version \d+/,
      );
      assert.is(failed.code, name === 'older' ? 'ECONNREFUSED' : 'EPROTO');
      if (name === 'next') {
        const theirServer = new Net(other.program, 'serve', two.address, 0, two.by);
        const client = new Net(
          ownProgram,
          'ask',
          two.address,
          (await theirServer.reported('port')) as number,
          one.by,
        );
        const refused = (await client.reported('stream')) as { code: string; message: string };
        assert.is(refused.code, 'EPROTO');
        assert.match(
          refused.message,
          /the server uses version \d+ of this protocol, and this side uses version \d+/,
        );
      }
    } finally {
      await endAll();
      hosts.end();
    }
  });

  test.run();
}

/** The output of a build's `nd stat`. */
async function stat(program: (path: string) => string): Promise<string> {
  const child = spawn(process.execPath, [program('nd/cli/nd'), 'stat'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += String(chunk);
  });
  const [code] = await within(once(child, 'close'), 'nd stat did not end');
  assert.is(code, 0);
  return text;
}

// The build runs outside of the namespace, because it may need the registry.
const builds = (['older', 'next'] as const).filter(
  (name) => process.argv[2] === undefined || process.argv[2] === name,
);
if (!apart) for (const name of builds) otherBuild(name);
runApart(import.meta.url, () => {
  for (const name of builds) tests(otherBuild(name));
});
