// UDP port 4791 is opened by the first operation that needs it. The option `link: 'local'` does not permit such operations.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type KernelOptionsInput, readProcesses } from '../../kernel-bridge/index.js';
import { runApart } from '../helpers/apart.js';
import { runNd } from '../helpers/nd-tool.js';
import { needing } from '../helpers/needs.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { connectTo, endPeers, Peer, PeerError } from '../helpers/peer/peer.js';
import { TRAFFIC_REQUESTS } from '../helpers/peer/traffic.js';
import { portSharers } from '../helpers/port-sharers.js';
import { programFile } from '../helpers/programs.js';
import { firstIf } from '../helpers/tiers.js';
import type { NeedReport } from '../helpers/wire-need-program.js';

const LOOPBACK = '127.0.0.1';
const ROCE_PORT = 4791;
const OPEN = [ROCE_PORT, ROCE_PORT];
const program = programFile(new URL('../helpers/wire-need-program.js', import.meta.url));

const test = needing(suite<{ hosts: TwoHosts }>('the UDP port'), 'namespaces');

test.before(async (context) => {
  context.hosts = await TwoHosts.start();
});
let holder: ChildProcess | undefined;

test.after.each(async () => {
  await endPeers();
  if (!holder) return;
  holder.stdin!.end();
  await once(holder, 'close');
  holder = undefined;
});
test.after(({ hosts }) => hosts.end());

/** Options with which a connection attempt without a peer ends soon. */
const hasty: KernelOptionsInput = { cm: { responseTimeoutCode: 12, maxRetries: 0 } };

interface NeedRun extends NeedReport {
  readonly errors: string;
}

/** Runs the program on the first host. */
function run({ hosts: [a, b] }: TwoHosts, need: string, kernel: KernelOptionsInput = {}): NeedRun {
  const [file, ...args] = [...a.by, process.execPath, program, need, a.address, b.address];
  const { stdout, stderr } = spawnSync(file!, args, {
    encoding: 'utf8',
    env: { ...process.env, ND_OPTIONS: JSON.stringify({ ...hasty, ...kernel }) },
  });
  assert.match(stdout, /^\{/, stderr);
  return { ...(JSON.parse(stdout) as NeedReport), errors: stderr };
}

// ── Operations that open the port

test('a program on the loopback address does not open the port', ({ hosts }) => {
  const { before, after, status, errors } = run(hosts, 'loopback');
  assert.equal([before, after, status, errors], [[], [], 'SUCCESS', '']);
});

const needs = ['wildcard', 'wildcard6', 'interface', 'listen', 'datagram', 'group', 'foreign'];
for (const need of needs) {
  test(`${need}: opens the port, which was closed before`, ({ hosts }) => {
    const { before, after, status, errors } = run(hosts, need);
    assert.equal([before, after], [[], OPEN]);
    assert.is(status, need === 'foreign' ? 'TIMEOUT' : 'SUCCESS');
    assert.is(errors, '');
  });
}

for (const kernel of [{ link: 'wire' }, { icrc: 'exact' }] as const) {
  needing(test, 'raw sockets')(`${JSON.stringify(kernel)}: opens it at once`, ({ hosts }) => {
    const { before, status } = run(hosts, 'loopback', kernel);
    assert.equal([before, status], [OPEN, 'SUCCESS']);
  });
}

// ── link: 'local'

for (const need of needs) {
  test(`link: 'local', ${need}: NOT_SUPPORTED with the reason, and nothing is opened`, ({ hosts }) => {
    const { before, after, status, message } = run(hosts, need, { link: 'local' });
    assert.equal([before, after, status], [[], [], 'NOT_SUPPORTED']);
    assert.match(
      message,
      /^\w+: Not supported with the option link 'local', because this process then has no UDP socket/,
    );
  });
}

test("link: 'local': loopback works, and options that need the port are rejected by name", ({ hosts }) => {
  const { before, after, status } = run(hosts, 'loopback', { link: 'local' });
  assert.equal([before, after, status], [[], [], 'SUCCESS']);
  for (const [field, value] of [
    ['icrc', 'exact'],
    ['hca', 'rdma'],
    ['hca', 'mlx5_0'],
  ] as const) {
    const { status, stderr } = spawnSync(process.execPath, [program, 'loopback'], {
      encoding: 'utf8',
      env: { ...process.env, ND_OPTIONS: JSON.stringify({ link: 'local', [field]: value }) },
    });
    assert.is(status, 1);
    assert.match(
      stderr,
      new RegExp(`\`${field}\` must be .* with the option link: 'local',.*; got '${value}'\\.`),
    );
  }
});

// ── Processes with different options on one host

const kinds = ['auto', 'local', 'wire'] as const;
type Kind = (typeof kinds)[number];

async function peers(server: KernelOptionsInput, client: KernelOptionsInput): Promise<[Peer, Peer]> {
  return Promise.all([Peer.start({ kernel: server }), Peer.start({ kernel: client })]);
}

const refused = (a: Kind, b: Kind): boolean => a !== b && a !== 'auto' && b !== 'auto';

for (const server of kinds) {
  for (const client of kinds) {
    if (refused(server, client)) {
      test(`${client} connects to ${server}: refused, and both sides report why`, async () => {
        const [passive, active] = await peers({ link: server }, { link: client });
        const listener = await passive.listen('nd2', LOOPBACK);
        for (let tries = 0; tries < 2; tries++) {
          const error = await connectTo(listener, active).catch((thrown: unknown) => thrown);
          assert.is(error instanceof PeerError && error.status, 'CONNECTION_REFUSED', String(error));
        }
        await passive.said(
          new RegExp(`this process has the option link: '${server}' and the other has '${client}'`),
        );
        await active.said(
          new RegExp(`this process has the option link: '${client}' and the other has '${server}'`),
        );
        for (const { errors } of [passive, active])
          assert.is(errors.split('have no link in common').length, 2);
        assert.equal(portSharers(), [(server === 'wire' ? passive : active).pid]);
      });
      continue;
    }
    const wire = server === 'wire' || client === 'wire';
    test(`${client} connects to ${server}: ${wire ? 'over UDP' : 'without UDP sockets'}`, async () => {
      const [passive, active] = await peers({ link: server }, { link: client });
      const options = { seed: 1 };
      const port = await passive.call('trafficListen', { as: 't', address: LOOPBACK, ...options });
      await Promise.all([
        active.call('trafficConnect', { as: 't', address: LOOPBACK, port, ...options }),
        passive.call('trafficAccepted', { as: 't' }),
      ]);
      const sharers = [passive.pid, active.pid].sort((a, b) => a - b);
      assert.equal(portSharers(), wire ? sharers : []);
      await Promise.all([active.call('trafficRun', { as: 't' }), passive.call('trafficRun', { as: 't' })]);
      assert.equal(portSharers(), wire ? sharers : []);
      for (const peer of [passive, active]) {
        const { hca } = await peer.counters();
        assert.is(hca!.local_link_pairs_up, wire ? 0 : 1);
        if (wire)
          assert.ok(hca!.wire_tx_packets! > TRAFFIC_REQUESTS, `${hca!.wire_tx_packets} packets over UDP`);
        else assert.is(hca!.wire_tx_packets, 0);
        assert.is(peer.errors, '');
      }
    });
  }
}

test('an instance that captures and one without sockets use UDP', async () => {
  const [passive, active] = await peers({}, { faults: { drop: 0.02 }, rc: { ackTimeoutCode: 13 } });
  const listener = await passive.listen('nd2', LOOPBACK);
  const [link] = await connectTo(listener, active, { accepterReceives: 1 });
  assert.equal(
    portSharers(),
    [passive.pid, active.pid].sort((a, b) => a - b),
  );
  assert.is(await link.disconnect(), 'SUCCESS');
});

firstIf(true, test)('processes that need the port at the same time all get it', async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => Peer.start()));
  await Promise.all(all.map((peer) => peer.listen('nd2', LOOPBACK)));
  assert.equal(portSharers(), []);
  const workers = all.map((peer) => peer.call('startWorker', { worker: 'w' }));
  await Promise.all(workers);
  await Promise.all(
    all.flatMap((peer) => [peer.listen('wv', '0.0.0.0'), peer.listen('wv', '0.0.0.0', { worker: 'w' })]),
  );
  assert.equal(
    portSharers(),
    all.map(({ pid }) => pid).sort((a, b) => a - b),
  );
  for (const { errors } of all) assert.is(errors, '');
});

// ── Reports of the port's state

test('statistics, nd stat, nd top and the report show whether the port is open', async () => {
  const started = await Promise.all(
    kinds.map(async (link) => {
      const peer = await Peer.start({ kernel: { link } });
      await peer.listen('nd2', LOOPBACK);
      return peer;
    }),
  );
  const states = async (): Promise<unknown[]> => {
    const seen = await readProcesses();
    return started.map(({ pid }) => seen.find((one) => one.pid === pid)?.statistics?.wire);
  };
  assert.equal(await states(), ['unused', 'never', 'open']);
  const top = await runNd('top', '--count', '1');
  assert.match(top.stdout, new RegExp(`^ *${started[1]!.pid} .* never `, 'm'));
  const one = await runNd('stat', String(started[0]!.pid));
  assert.match(one.stdout, 'UDP port 4791: not open: not needed so far');
  const report = await runNd('verbs-info', '--report', '--json');
  assert.equal(JSON.parse(report.stdout).udpPort4791, ['IPv4', 'IPv6']);
  await started[0]!.listen('wv', '0.0.0.0');
  assert.equal(await states(), ['open', 'never', 'open']);
});

// ── Another program owns the port

const HOLDER = `
import socket, sys
held = []
for family, everywhere in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
    s = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((everywhere, ${ROCE_PORT}))
    held.append(s)
print('held', flush=True)
sys.stdin.read()
`;

needing(test, 'python3')(
  'held by another program: loopback continues silently, and the first operation that needs it reports who has it',
  async ({ hosts }) => {
    const [host] = hosts.hosts;
    const [file, ...args] = [...host.by, 'python3', '-c', HOLDER];
    holder = spawn(file!, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(holder.stdout!, 'data');
    const by = { by: host.by };
    const [server, client] = await Promise.all([Peer.start(by), Peer.start(by)]);
    const local = await server.listen('nd2', LOOPBACK);
    const [link, accepted] = await connectTo(local, client, { accepterReceives: 1 });
    await link.send('past the holder');
    assert.is((await accepted.results(0, 1)).receives[0]!.text, 'past the holder');
    assert.equal([server.errors, client.errors], ['', '']);
    // Processes of this user can also connect to each other there.
    const listener = await server.listen('nd2', host.address);
    await server.said(/UDP port 4791 \(RoCEv2\) on IPv4 is held by process \d+ \(python3\)/);
    const [second] = await connectTo(listener, client, { from: host.address });
    assert.is(await second.disconnect(), 'SUCCESS');
    const late = await Peer.start(by);
    const call = {
      as: 'far',
      layer: 'nd2',
      from: host.address,
      to: hosts.hosts[1].address,
      port: 7000,
    } as const;
    const failed = await late.call('connect', call).catch((error: unknown) => error);
    assert.is(failed instanceof PeerError && failed.status, 'HOST_UNREACHABLE', String(failed));
    await late.said(/UDP port 4791 \(RoCEv2\) on IPv4 is held by process \d+ \(python3\)/);
    assert.match(await statOn(host.by), new RegExp(`^ *${server.pid} .* held `, 'm'));
  },
);

/** The table of `nd stat` on a host. */
async function statOn(by: readonly string[]): Promise<string> {
  const nd = programFile(new URL('../../nd/cli/nd.js', import.meta.url));
  const [file, ...args] = [...by, process.execPath, nd, 'stat'];
  return spawnSync(file!, args, { encoding: 'utf8' }).stdout;
}

runApart(import.meta.url, () => test.run());
