// Bad input from the network, tested through the whole stack: peers that do not reply, and malformed packets. Further cases are in the
// conformance suite (bad addresses, foreign objects, too much private data), nd-loopback, winverbs-loopback and fuzz.
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { LOOPBACK as ADDRESS } from '../../nd/cli/sides/connected-side.js';
import { WvSend } from '../../winverbs/index.js';
import { connectedPair, take } from '../helpers/loopback.js';
import { needing } from '../helpers/needs.js';
import { openToStrangers } from '../helpers/open-to-strangers.js';
import { readCapture } from '../helpers/pcap.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { endPeers, Peer, PeerError } from '../helpers/peer/peer.js';

const ROCE_PORT = 4791;

const test = suite('bad input');

test.after(() => endPeers());

needing(test, 'namespaces')('an address without a host ends Connect in a bounded time', async () => {
  const hosts = await TwoHosts.start();
  try {
    const [here] = hosts.hosts;
    const kernel = { cm: { responseTimeoutCode: 12, maxRetries: 3 } };
    const peer = await Peer.start({ kernel, by: here.by });
    const attempt = (to: string) =>
      peer.call('connect', { as: to, layer: 'nd', from: here.address, to, port: 1 }).then(
        () => 'SUCCESS',
        (error: unknown) => (error instanceof PeerError ? error.status : String(error)),
      );
    assert.is(await attempt('10.99.0.9'), 'TIMEOUT');
    assert.match((await attempt('192.0.2.1')) ?? '', /NETWORK_UNREACHABLE|HOST_UNREACHABLE|BAD_NETWORK_NAME/);
  } finally {
    hosts.end();
  }
});

test('random bytes and damaged packets on the UDP port are counted, and do not disturb connections', async () => {
  const { provider, a, b, release } = await connectedPair();
  openToStrangers(provider);
  const templates = readCapture('rc-all-ops.pcap').slice(0, 60);
  const sockets = Array.from({ length: 32 }, () => createSocket('udp4'));
  const dropped = (): number => {
    const { hca } = readCounters();
    return hca.rx_icrc_errors! + hca.wire_rx_bad_length!;
  };
  const before = dropped();
  for (let round = 0; round < templates.length; round += 1) {
    const sends = sockets.map((socket, n) => {
      let bytes = randomBytes(1 + ((round * 61 + n * 7) % 1400));
      if (n % 2 === 0) {
        // A valid packet for a busy queue pair, except for one bit of its ICRC.
        bytes = Buffer.from(templates[round]!.ip.subarray(28));
        bytes.writeUIntBE(n % 4 === 0 ? a.qp.qpn : b.qp.qpn, 5, 3);
        bytes[bytes.length - 1]! ^= 1 << (n % 8);
      }
      return new Promise((resolve) => socket.send(bytes, ROCE_PORT, ADDRESS, resolve));
    });
    a.memory.writeUInt32LE(round, 0);
    b.qp.postReceive(round, [{ region: b.region, offset: 0, length: 4000 }]);
    a.qp.send(round, [{ region: a.region, offset: 0, length: 4000 }], WvSend.SIGNALED);
    const [[received], [sent]] = await Promise.all([take(b.cq, 1), take(a.cq, 1), ...sends]);
    assert.equal([received!.status, sent!.status, received!.context], [0, 0, round]);
    assert.is(b.memory.readUInt32LE(0), round);
  }
  assert.ok(dropped() > before, 'some of it has come here');
  for (const socket of sockets) socket.close();
  release();
});

test.run();
