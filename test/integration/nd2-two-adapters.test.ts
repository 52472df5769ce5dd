// A host with two adapters, and addresses that are added and removed, in a network namespace that the test creates.
import { spawnSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SideV2 } from '../../nd/cli/sides/v2-side.js';
import {
  type IND2Adapter,
  type IND2Provider,
  ndCleanup,
  ndNotifyAddressListChange,
  ndQueryAddressList,
  ndResolveAddress,
  ndStartup,
  openNetworkDirect2,
  Status,
} from '../../nd/index.js';
import { runApart } from '../helpers/apart.js';
import { endsIn } from '../helpers/nd-fixture.js';
import { needing } from '../helpers/needs.js';
import { outcome } from '../helpers/outcome.js';

const [FIRST, SECOND] = ['10.98.1.1', '10.98.2.1'];

function ip(...args: string[]): void {
  const { status, stderr } = spawnSync('ip', args);
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${String(stderr).trim()}`);
}

const test = needing(
  suite<{ nd: IND2Provider; first: IND2Adapter; second: IND2Adapter }>('two adapters'),
  'namespaces',
);

test.before((context) => {
  for (const [i, address] of [FIRST, SECOND].entries()) {
    ip('link', 'add', `nd${i}`, 'type', 'veth', 'peer', 'name', `far${i}`);
    ip('address', 'add', `${address}/24`, 'dev', `nd${i}`);
    ip('link', 'set', `far${i}`, 'up');
    ip('link', 'set', `nd${i}`, 'up');
  }
  // It takes some time until links are up and their addresses are listed.
  const up = 'for i in $(seq 500); do ip -o link show dev "$0" | grep -q "state UP" && exit 0; done; exit 1';
  for (const name of ['nd0', 'nd1']) {
    assert.is(spawnSync('sh', ['-c', up, name]).status, 0, `${name} does not come up`);
  }
  const nd = openNetworkDirect2();
  context.nd = nd;
  context.first = nd.openAdapter(nd.resolveAddress(FIRST!));
  context.second = nd.openAdapter(nd.resolveAddress(SECOND!));
});
test.after(({ nd, first, second }) => {
  for (const object of [first, second, nd]) object.release();
});

test('each interface is an adapter, with its addresses', ({ nd, first, second }) => {
  assert.is.not(nd.resolveAddress(FIRST!), nd.resolveAddress(SECOND!));
  const addresses = (adapter: IND2Adapter) =>
    adapter
      .queryAddressList()
      .filter(({ family }) => family === 4)
      .map(({ address }) => address);
  assert.equal([addresses(first), addresses(second)], [[FIRST], [SECOND]]);
  const connector = first.createConnector();
  endsIn(() => connector.bind(SECOND!), Status.INVALID_ADDRESS, 'an address of another adapter');
  connector.release();
});

test('the route to a peer starts at the address of the right interface', () => {
  ndStartup();
  try {
    assert.is(ndResolveAddress('10.98.1.77').address, FIRST);
    assert.is(ndResolveAddress('10.98.2.77').address, SECOND);
    assert.is(ndResolveAddress(SECOND!).address, SECOND);
    endsIn(() => ndResolveAddress('203.0.113.9'), Status.NETWORK_UNREACHABLE);
  } finally {
    ndCleanup();
  }
});

test('a wildcard listener accepts requests to its own adapter, and not to the other one', async ({
  first,
  second,
}) => {
  const listener = first.createListener();
  listener.bind('0.0.0.0:4711');
  listener.listen();
  const client = new SideV2(second);
  client.connector.bind(SECOND!);
  assert.is(
    await outcome(client.connector.connect(client.queuePair, `${SECOND}:4711`)),
    Status.CONNECTION_REFUSED,
    'the second adapter has no listener',
  );
  const own = new SideV2(first);
  const server = new SideV2(first);
  const requested = listener.getConnectionRequest(server.connector);
  own.connector.bind(FIRST!);
  const connected = own.connector.connect(own.queuePair, `${FIRST}:4711`);
  await requested;
  const accepted = server.connector.accept(server.queuePair);
  await connected;
  await own.connector.completeConnect();
  await accepted;
  assert.is(server.connector.getLocalAddress().address, FIRST);
  await own.connector.disconnect();
  for (const side of [client, own, server]) side.release();
  listener.release();
});

test('a wait for another address list ends when addresses are added or removed', async () => {
  ndStartup();
  try {
    const has = () => ndQueryAddressList().some(({ address }) => address === '10.98.1.2');
    assert.is(has(), false);
    const comes = ndNotifyAddressListChange();
    ip('address', 'add', '10.98.1.2/24', 'dev', 'nd0');
    await comes;
    assert.is(has(), true);
    const goes = ndNotifyAddressListChange();
    ip('address', 'delete', '10.98.1.2/24', 'dev', 'nd0');
    await goes;
    assert.is(has(), false);
  } finally {
    ndCleanup();
  }
});

runApart(import.meta.url, () => test.run());
