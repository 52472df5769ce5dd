// Another user of the host owns the names of this user's processes, and UDP 4791. Runs in a private network namespace, because this process
// cannot get them while others own them.
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DIALECT, SLOTS } from '../../kernel-bridge/hca/index.js';
import { portsOfLocalName, readProcesses } from '../../kernel-bridge/index.js';
import { connectChannel, createChannelServer } from '../../nd/net/index.js';
import { runApart } from '../helpers/apart.js';
import { runNd } from '../helpers/nd-tool.js';
import { rejection } from '../helpers/net-pair.js';
import { connectTo, endPeers, Peer, PeerError } from '../helpers/peer/peer.js';
import { askBySocket, Stranger, strangerProblem } from '../helpers/stranger.js';

const LOOPBACK = '127.0.0.1';
const SERVICES = ['0106', '0111'];
const [FIRST_PORT, PAST_PORTS, BLOCK] = [49_152, 65_536, 64];
const PORT = 7000;

const user = process.getuid?.();
const own = (what: string): string => `networkdirect/${user}/${DIALECT}/${what}`;
const range = (count: number, first = 0, step = 1): number[] =>
  Array.from({ length: count }, (_, n) => first + n * step);

/** All names of slots and of blocks of ports, and the names of one port. */
const names = [
  ...range(SLOTS).map((slot) => own(`slot/${slot}`)),
  ...SERVICES.flatMap((service) =>
    range((PAST_PORTS - FIRST_PORT) / BLOCK, FIRST_PORT, BLOCK).map((first) =>
      own(`ports/${service}/${first}`),
    ),
  ),
  own(`port/0106/${PORT}/*`),
  own(`port/0106/${PORT}/00000000000000000000ffff7f000001`),
];

const test = suite('another user');
const problem = strangerProblem();
const run = problem === undefined ? test : test.skip;
const title = (what: string): string => (problem === undefined ? what : `${what} (skipped: ${problem})`);

test.after.each(() => endPeers());

run(
  title(
    'holds all names: opening, listening and connecting work, and the first operation that needs the network reports who has it',
  ),
  async () => {
    const stranger = await Stranger.holding(names);
    const [server, client] = await Promise.all([Peer.start(), Peer.start()]);
    for (const port of [PORT, undefined]) {
      const listener = await server.listen('nd', LOOPBACK, port === undefined ? {} : { port });
      const [active, passive] = await connectTo(listener, client, { accepterReceives: 1 });
      await active.send('past the stranger');
      const { receives } = await passive.results(0, 1);
      assert.is(receives[0]!.text, 'past the stranger');
      const taken = await client
        .listen('nd', LOOPBACK, { port: listener.port })
        .catch((error: unknown) => error);
      assert.is(taken instanceof PeerError && taken.status, 'ADDRESS_ALREADY_EXISTS');
      assert.is(await active.disconnect(), 'SUCCESS');
      await listener.release();
    }
    assert.is(server.errors, '');
    await server.listen('wv', '0.0.0.0');
    await server.said(new RegExp(`process ${stranger.pid} \\(python3\\) of user 65534`));
    await stranger.end();
  },
);

run(title('releases the names: names claimed in the meantime stay claimed, and are found'), async () => {
  const stranger = await Stranger.holding(names);
  const server = await Peer.start();
  const listener = await server.listen('nd', LOOPBACK, { port: PORT });
  await stranger.end();
  const client = await Peer.start();
  const taken = await client.listen('nd', LOOPBACK, { port: PORT }).catch((error: unknown) => error);
  assert.is(taken instanceof PeerError && taken.status, 'ADDRESS_ALREADY_EXISTS');
  const [active] = await connectTo(listener, client, { accepterReceives: 1 });
  assert.is(await active.disconnect(), 'SUCCESS');
});

/** The frame that requests statistics, as `slots/frame.h` defines it: dialect and kind, and zeros. */
const OBSERVE = Uint8Array.of(DIALECT, 16, ...new Array<number>(46).fill(0));

run(title('requests statistics: it gets none, and this user gets all'), async () => {
  const peer = await Peer.start();
  await peer.listen('nd', LOOPBACK, {});
  const seen = await readProcesses({ timeoutMs: 20_000 });
  assert.is(seen.length, 1);
  const slot = own(`slot/${seen[0]!.slot}`);
  // The OS may report the end as a reset.
  for (const heard of askBySocket('other user', OBSERVE, [slot, slot]))
    assert.match(heard, /^(ended|ConnectionResetError|BrokenPipeError)$/);
  assert.match(askBySocket('own user', OBSERVE, [slot])[0]!, /^bytes:/);
  assert.equal(
    (await readProcesses({ timeoutMs: 20_000 })).map(({ problem }) => problem),
    [undefined],
  );
});

run(title('has a process: nd stat reports that it cannot be observed'), async () => {
  // The other user's process owns names of its own user's slots, like a process with an HCA.
  const stranger = await Stranger.holding([`networkdirect/65534/${DIALECT}/slot/0`]);
  assert.equal(await readProcesses({ timeoutMs: 20_000 }), []);
  assert.match((await runNd('stat')).stdout, 'No process of this user uses the software HCA.');
  const one = await runNd('stat', String(stranger.pid));
  // Root may send signals to any process, but statistics of other users are never requested.
  assert.is(one.code, 1);
  assert.match(one.stderr, `Process ${stranger.pid} belongs to another user`);
  await stranger.end();
});

run(
  title('holds the name of a listener: its owner listens on it, and clients find only the owner'),
  async () => {
    const stranger = await Stranger.holding([own('name/prices'), own('name/prices/9'), own('name/free/9')]);
    assert.equal(portsOfLocalName('prices'), []);
    await using server = createChannelServer((channel) => channel.onRequest(() => 'of this user'));
    await once(server.listen({ name: 'prices' }), 'listening');
    assert.equal(portsOfLocalName('prices'), [server.address()!.port]);
    const channel = await connectChannel({ name: 'prices' });
    assert.is(String(await channel.request('')), 'of this user');
    await channel.close();
    const [taken] = await once(createChannelServer().listen({ name: 'prices' }), 'error');
    assert.is(taken.code, 'EADDRINUSE');
    assert.is((await rejection(connectChannel({ name: 'free' }))).code, 'ECONNREFUSED');
    await stranger.end();
  },
);

runApart(import.meta.url, () => test.run());
