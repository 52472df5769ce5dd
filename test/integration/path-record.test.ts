/** `IWVEndpoint.modify` accepts a whole path record: each member has an effect on the wire or on the queue pairs of both sides. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openProvider, Status, type WvPathRecord, WvSend } from '../../winverbs/index.js';
import { acknowledged, rcPackets, valuesOf } from '../helpers/captured.js';
import { openSide, take } from '../helpers/loopback.js';
import { needing } from '../helpers/needs.js';
import { throwsWv } from '../helpers/outcome.js';

const folder = mkdtempSync(join(tmpdir(), 'nd-path-'));
const capture = join(folder, 'path.pcapng');
process.env.ND_OPTIONS = JSON.stringify({ link: 'wire', capture, pkeys: [0xffff, 0x8001] });

const test = suite('path records');
test.after(() => rmSync(folder, { recursive: true }));

const message = 20_001;

/** Connects on a path and sends a message. Returns the packets and both queue pairs' attributes. */
async function connectBy(address: string, change: Partial<WvPathRecord>) {
  const provider = openProvider();
  const [a, b] = [openSide(provider, {}, message, address), openSide(provider, {}, message, address)];
  const family = address.includes(':') ? 6 : 4;
  const listener = provider.createConnectEndpoint();
  listener.bindAddress({ family, address, port: 0 });
  listener.listen(1);
  const before = rcPackets(capture).length;
  const { localAddress: peer } = listener.query();
  const { record } = provider.resolvePath(peer, { ...peer, port: 0 });
  a.ep.bindAddress({ family, address, port: 0 });
  a.ep.modify({ ...record, ...change });
  const accepted = listener.getRequest(b.ep).then(() => b.ep.accept(b.qp, {}));
  await a.ep.connect(a.qp, peer, {});
  await Promise.all([a.ep.accept(null, {}), accepted]);
  b.qp.postReceive('got', [{ region: b.region, offset: 0, length: message }]);
  a.qp.send('sent', [{ region: a.region, offset: 0, length: message }], WvSend.SIGNALED);
  await Promise.all([take(a.cq, 1), take(b.cq, 1)]);
  const result = {
    record,
    packets: await acknowledged(capture, before),
    attributes: [a.qp.query(), b.qp.query()],
    devices: [a.ep.query().device, b.ep.query().device],
  };
  for (const side of [a, b]) side.release();
  listener.release();
  provider.release();
  return result;
}

for (const address of ['127.0.0.1', '::1'] as const) {
  needing(test, address)(`${address}: the path of IBAT, changed in nothing, is the usual one`, async () => {
    const { record, packets, attributes } = await connectBy(address, {});
    assert.equal([record.pkey, record.mtu, record.packetLifeTime, record.hopLimit], [0xffff, 4096, 16, 64]);
    assert.equal(valuesOf(packets, 'pkey'), [0xffff]);
    assert.equal(
      attributes.map(({ pathMtu }) => pathMtu),
      [4096, 4096],
    );
    assert.is(Math.max(...valuesOf(packets, 'bytes')), 9152, 'both ends are of this package');
    assert.equal(valuesOf(packets, 'trafficClass'), [0]);
    assert.equal(valuesOf(packets, 'hopLimit'), [64]);
    assert.equal(
      attributes.map(({ localAckTimeout }) => localAckTimeout),
      [17, 17],
    );
  });

  needing(test, address)(
    `${address}: partition, class and hop limit are on the wire, in both directions`,
    async () => {
      const { packets, devices } = await connectBy(address, {
        pkey: 0x8001,
        trafficClass: 0x48,
        hopLimit: 9,
        flowLabel: 0x1_2345,
      });
      assert.equal(valuesOf(packets, 'pkey'), [0x8001]);
      assert.equal(valuesOf(packets, 'trafficClass'), [0x48]);
      assert.equal(valuesOf(packets, 'hopLimit'), [9]);
      assert.equal(valuesOf(packets, 'flowLabel'), [address === '::1' ? 0x1_2345 : 0]);
      assert.equal(
        devices.map(({ pkey }) => pkey),
        [0x8001, 0x8001],
        'the endpoints report the connection’s partition',
      );
    },
  );

  needing(test, address)(`${address}: MTU and packet life time are those of both queue pairs`, async () => {
    const { packets, attributes } = await connectBy(address, { mtu: 1024, packetLifeTime: 13 });
    assert.equal(
      attributes.map(({ pathMtu, localAckTimeout }) => [pathMtu, localAckTimeout]),
      [
        [1024, 14],
        [1024, 14],
      ],
    );
    assert.is(Math.max(...valuesOf(packets, 'bytes')), 1024);
  });
}

test('an invalid path is rejected, and the error names the member', () => {
  const provider = openProvider();
  const endpoint = provider.createConnectEndpoint();
  const { record } = provider.resolvePath('127.0.0.1', '127.0.0.1');
  throwsWv(() => endpoint.modify(record), Status.INVALID_DEVICE_STATE);
  endpoint.bindAddress({ family: 4, address: '127.0.0.1', port: 0 });
  const wrong: [Partial<WvPathRecord>, number, RegExp][] = [
    [{ flowLabel: 0x10_0000 }, Status.INVALID_PARAMETER, /flowLabel/],
    [{ trafficClass: 256 }, Status.INVALID_PARAMETER, /trafficClass/],
    [{ trafficClass: 3 }, Status.INVALID_PARAMETER, /trafficClass/],
    [{ hopLimit: -1 }, Status.INVALID_PARAMETER, /hopLimit/],
    [{ pkey: 0x1_0000 }, Status.INVALID_PARAMETER, /`pkey`/],
    [{ pkey: 0x8002 }, Status.INVALID_PARAMETER, /./],
    [{ mtu: 1500 }, Status.INVALID_PARAMETER, /`mtu`/],
    [{ packetLifeTime: 64 }, Status.INVALID_PARAMETER, /packetLifeTime/],
    [{ destinationGid: '239.1.2.3' }, Status.INVALID_ADDRESS, /./],
    [{ sourceGid: '192.0.2.77' }, Status.INVALID_ADDRESS, /./],
    [{ sourceGid: new Uint8Array(3) }, Status.INVALID_PARAMETER, /GID/],
  ];
  for (const [change, status, text] of wrong) {
    throwsWv(() => endpoint.modify({ ...record, ...change }), status, text);
  }
  throwsWv(() => endpoint.modify(undefined as unknown as WvPathRecord), Status.INVALID_PARAMETER);
  endpoint.modify({ sourceGid: record.sourceGid, destinationGid: record.destinationGid });
  endpoint.release();
  provider.release();
});

test.run();
