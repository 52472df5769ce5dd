// Interfaces without a link layer: a point-to-point link of TUN interfaces between two simulated hosts, its MTU, and silently dropped
// packets.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { needing } from '../helpers/needs.js';
import { firstIf, long } from '../helpers/tiers.js';
import { ENDS, type LineProgram, TUNNEL, Tunnel } from '../helpers/tunnel.js';

const test = needing(suite<{ tunnel: Tunnel }>('tunnels'), 'namespaces', 'TUN');
const LARGE_BYTES = 65_536;
const LARGE = `write ${LARGE_BYTES}`;

/**
 * Checks the packets of the last LARGE transfer: those of the Write, with this payload, and the Read's requests, each for 32 such packets.
 */
async function packetsHad(client: LineProgram, payload: number): Promise<void> {
  const packets = Math.ceil(LARGE_BYTES / payload);
  assert.is(await client.ask('packets'), `${packets + Math.ceil(packets / 32)}`);
}

test.before(async (context) => {
  context.tunnel = await Tunnel.start(9000);
});
test.after.each(async ({ tunnel }) => {
  await tunnel.endPrograms();
  tunnel.setMtu(9000);
  await tunnel.dropAbove(0);
});
test.after(({ tunnel }) => tunnel.end());

for (const family of ['v4', 'v6'] as const) {
  firstIf(family === 'v6', test)(
    `${family}: point-to-point addresses connect, with their own device`,
    async ({ tunnel }) => {
      const client = await tunnel.pair(family);
      assert.is(await client.ask('connect'), '4096');
      assert.is(await client.ask(LARGE), 'SUCCESS');
      await packetsHad(client, family === 'v4' ? 8936 : 8912);
      // Without a MAC address, the bits "universal" and "group" of the EUI-64 are clear.
      assert.is(Number(BigInt(`0x${await client.ask('device')}`) >> 56n) & 3, 0);
    },
  );
}

long(test, 'the MTU of the tunnel is that of its paths', async ({ tunnel }) => {
  tunnel.setMtu(1420); // as with WireGuard
  const client = await tunnel.pair('v4');
  assert.is(await client.ask('connect'), '1024');
  assert.is(await client.ask(LARGE), 'SUCCESS');
  await packetsHad(client, 1352);
});

test('a decreasing MTU: the connection continues with fragments, and a new one uses smaller packets', async ({
  tunnel,
}) => {
  const client = await tunnel.pair('v4');
  assert.is(await client.ask('connect'), '4096');
  assert.is(await client.ask(LARGE), 'SUCCESS');
  tunnel.setMtu(1420);
  assert.is(await client.ask('write 1024'), 'SUCCESS');
  assert.is(await client.ask(LARGE), 'SUCCESS');
  assert.is(await client.ask('connect'), '1024');
  assert.is(await client.ask(LARGE), 'SUCCESS');
});

long(
  test,
  'large packets that are dropped: the connection continues with fragments; with the MTU set on the route, none are needed',
  async ({ tunnel }) => {
    const client = await tunnel.pair('v4');
    await tunnel.dropAbove(1500);
    assert.is(await client.ask('connect'), '4096');
    assert.is(await client.ask('write 1024'), 'SUCCESS');
    assert.is(await client.ask(LARGE), 'SUCCESS');
    const [, b] = tunnel.hosts;
    const route = (verb: string, ...mtu: string[]) =>
      tunnel.two.run(b, ['ip', 'route', verb, `${ENDS[0].v4}/32`, 'dev', TUNNEL, 'metric', '5', ...mtu]);
    tunnel.two.run(b, ['ip', 'route', 'delete', `${ENDS[0].v4}/32`, 'dev', TUNNEL]);
    route('add', 'mtu', '1500');
    assert.is(await client.ask('connect'), '1024');
    assert.is(await client.ask(LARGE), 'SUCCESS');
    await packetsHad(client, 1432);
  },
);

test.run();
