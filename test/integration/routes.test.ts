// The host's routes determine where paths start, as for sockets: static, policy and default routes, for IPv4 and IPv6, and when they
// change.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { needing } from '../helpers/needs.js';
import { inNewNetwork } from '../helpers/network-namespace.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { connectTo, endPeers, Peer } from '../helpers/peer/peer.js';

const test = needing(suite('routes'), 'namespaces');

test('a path starts at the address that the OS routes select', () => {
  const program = fileURLToPath(new URL('../helpers/routes-program.js', import.meta.url));
  const [file, ...args] = inNewNetwork(process.execPath, '--enable-source-maps', program);
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', timeout: 60_000 });
  assert.is(status, 0, stderr);
  assert.equal(JSON.parse(stdout), {
    'no default route': 'NETWORK_UNREACHABLE',
    'no default route, IPv6': 'NETWORK_UNREACHABLE',
    'no default route, from an address': 'NETWORK_UNREACHABLE',
    'on the link': '10.99.0.1',
    broadcast: 'NETWORK_UNREACHABLE',
    static: '10.98.0.1',
    'static, IPv6': 'fd98::1',
    'static with a source': '10.98.0.7',
    wider: '10.99.0.1',
    blackhole: 'NETWORK_UNREACHABLE',
    'rule by destination': '10.98.0.1',
    'rule by source': 'NETWORK_UNREACHABLE',
    default: '10.99.0.1',
    'default, IPv6': 'fd99::1',
    'default changed': '10.98.0.1',
    'rule added': '10.99.0.1',
  });
});

test('a connection over a static route survives a change of the route', async () => {
  const hosts = await TwoHosts.start();
  try {
    const [a, b] = hosts.hosts;
    // An address behind b, which is only reachable over a route. The new route uses another gateway, a second address of b.
    hosts.run(b, ['ip', 'address', 'add', '192.168.50.1/32', 'dev', 'lo']);
    hosts.run(b, ['ip', 'address', 'add', '10.99.0.12/24', 'dev', b.interface]);
    hosts.run(a, ['ip', 'route', 'add', '192.168.50.0/24', 'via', b.address]);
    const [server, client] = await Promise.all([Peer.start({ by: b.by }), Peer.start({ by: a.by })]);
    const listener = await server.listen('nd2', '192.168.50.1');
    const [active, passive] = await connectTo(listener, client, { from: a.address, accepterReceives: 2 });
    await active.send('one');
    assert.equal((await passive.results(0, 1)).receives[0]?.text, 'one');
    hosts.run(a, ['ip', 'route', 'change', '192.168.50.0/24', 'via', '10.99.0.12']);
    await active.send('two');
    assert.equal((await passive.results(0, 1)).receives[0]?.text, 'two');
    await active.disconnect();
  } finally {
    await endPeers();
    hosts.end();
  }
});

test.run();
