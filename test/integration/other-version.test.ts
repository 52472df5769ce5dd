// Processes of this user with another version of the package, simulated by their names, probes and hello. They share neither slots nor
// ports nor UDP 4791 with this version, and messages name them. `npm run test:versions` uses real ones.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DIALECT } from '../../kernel-bridge/hca/index.js';
import { readProcesses } from '../../kernel-bridge/index.js';
import { runApart } from '../helpers/apart.js';
import { runNd } from '../helpers/nd-tool.js';
import { needing } from '../helpers/needs.js';
import { OtherVersion } from '../helpers/other-version.js';
import { connectTo, endPeers, Peer, PeerError } from '../helpers/peer/peer.js';
import { portSharers } from '../helpers/port-sharers.js';
import { firstIf, long } from '../helpers/tiers.js';

const LOOPBACK = '127.0.0.1';
const PORT = 7000;
const TIMEOUT_MS = 20_000;
/** Magic numbers of probes: of versions before the sixth dialect, and of the next version. */
const magics = { older: 0x4e44_5350, next: (0x4e44 << 16) | (DIALECT + 1) };

const user = process.getuid?.();
/** Prefixes of the names of a process: before the sixth dialect, and of the next one. */
const beginnings = {
  older: `networkdirect/${user}/`,
  next: `networkdirect/${user}/${DIALECT + 1}/`,
};
type Other = keyof typeof beginnings;

const test = needing(suite('another version'), 'namespaces');
let other: OtherVersion | undefined;

test.after.each(async () => {
  await endPeers();
  await other?.end();
  other = undefined;
});

async function start(which: Other, port: 'join' | 'alone', ...more: string[]): Promise<OtherVersion> {
  other = await OtherVersion.holding(
    ['slot/0', ...more].map((what) => beginnings[which] + what),
    port,
  );
  return other;
}

/** Starts a process that opens its HCA and, if possible, the port. */
async function opened(): Promise<Peer> {
  const peer = await Peer.start();
  await (await peer.listen('wv', '0.0.0.0')).release();
  return peer;
}

/** Two processes of this version connect and exchange messages. */
async function connects(server: Peer, client: Peer, port?: number): Promise<void> {
  const listener = await server.listen('nd2', LOOPBACK, port === undefined ? {} : { port });
  const [active, passive] = await connectTo(listener, client, { accepterReceives: 1 });
  await active.send('beside the other version');
  assert.is((await passive.results(0, 1)).receives[0]!.text, 'beside the other version');
  assert.is(await active.disconnect(), 'SUCCESS');
  await listener.release();
}

for (const which of ['older', 'next'] as const) {
  firstIf(which === 'older', test)(
    `${which}, started first: it keeps the port, the warning names it, and this version works`,
    async () => {
      const { pid } = await start(which, 'join');
      const [server, client] = await Promise.all([opened(), opened()]);
      await connects(server, client);
      assert.equal(portSharers(), [pid]);
      for (const peer of [server, client]) {
        await peer.said(
          new RegExp(`UDP port 4791 .* is held by process ${pid} \\(python3\\), which runs another version`),
        );
      }
    },
  );

  firstIf(which === 'next', test)(
    `${which}, joining later: the port is left to it before it has a queue pair`,
    async () => {
      const peers = [await opened(), await opened()];
      assert.equal(
        portSharers(),
        peers.map(({ pid }) => pid).sort((a, b) => a - b),
      );
      const { pid } = await start(which, 'join');
      await other!.probe(magics[which], 0, 'port');
      for (const peer of peers)
        await peer.said(new RegExp(`is held by process ${pid} \\(python3\\), which runs another version`));
      assert.equal(portSharers(), [pid]);
      await connects(peers[0]!, peers[1]!);
      // A process that starts now finds the port in use.
      const late = await opened();
      await late.said(new RegExp(`held by process ${pid} `));
      await connects(late, peers[0]!);
      assert.equal(portSharers(), [pid]);
    },
  );

  firstIf(which === 'older', test)(
    `${which} listens on a port: a connection to it is refused, and the warning names it`,
    async () => {
      const { pid } = await start(which, 'alone', `port/0106/${PORT}/*`);
      const [server, client] = await Promise.all([opened(), opened()]);
      const call = {
        as: 'refused',
        from: LOOPBACK,
        to: LOOPBACK,
        port: PORT,
        receives: 0,
        data: '',
      } as const;
      const refused = await client
        .call('connect', { ...call, layer: 'nd2' })
        .catch((error: unknown) => error);
      assert.is(refused instanceof PeerError && refused.status, 'CONNECTION_REFUSED');
      await client.said(
        new RegExp(
          `connection to port ${PORT} of this host was refused: process ${pid} listens there with another version`,
        ),
      );
      // The other version has its own port, and so has this version.
      await connects(server, client, PORT);
    },
  );

  firstIf(which === 'next', test)(
    `${which}: nd stat reports its process, and sends it no request`,
    async () => {
      const peer = await opened();
      const { pid } = await start(which, 'alone');
      const seen = await readProcesses({ timeoutMs: TIMEOUT_MS });
      assert.equal(
        seen.map(({ pid, problem }) => [pid, problem]),
        [
          [peer.pid, undefined],
          [pid, 'otherVersion'],
        ],
      );
      const { code, stdout } = await runNd('stat');
      assert.is(code, 0);
      assert.match(stdout, new RegExp(`${pid}\\b.*runs another version of networkdirect`));
    },
  );
}

test('probes have no effect if they do not come from the port, or if no other version is running', async () => {
  const peer = await opened();
  await start('older', 'alone');
  await other!.probe(magics.older, 0, 'beside');
  await other!.end();
  other = await OtherVersion.holding([], 'join');
  await other.probe(magics.older, 0, 'port');
  await other.end();
  other = undefined;
  await connects(peer, await opened());
  assert.ok(portSharers().includes(peer.pid));
  assert.is(peer.errors, '');
});

long(test, 'processes that start together all share the port', async () => {
  const peers = await Promise.all(Array.from({ length: 8 }, opened));
  assert.equal(
    portSharers(),
    peers.map(({ pid }) => pid).sort((a, b) => a - b),
  );
  assert.equal(new Set(peers.map(({ errors }) => errors)), new Set(['']));
  // A process that starts after the others have ended can use the port.
  await Promise.all(peers.map((peer) => peer.kill()));
  const next = await opened();
  assert.equal(portSharers(), [next.pid]);
});

runApart(import.meta.url, () => test.run());
