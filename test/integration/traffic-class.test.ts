// The traffic class of connections, as found in received packets. The connecting side sets it, the REQ carries it, and both sides use it.
// Also the ECN field, which each process sets itself.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { needing } from '../helpers/needs.js';
import { readPcapng } from '../helpers/pcapng.js';
import { endPeers, Peer } from '../helpers/peer/peer.js';
import { firstIf } from '../helpers/tiers.js';

const DSCP_40 = 0xa0;
const ECT_0 = 2;
/** Opcodes of RC are below this value. */
const RC_OPCODES = 0x20;

/** The RC packets in a capture file, from the BTH on, with the traffic class of each. */
function rcPackets(file: string): { packet: string; trafficClass: number }[] {
  const found = [];
  for (const ip of readPcapng(file)) {
    const v4 = ip[0]! >> 4 === 4;
    const bth = (v4 ? 20 : 40) + 8;
    if (ip[bth]! >= RC_OPCODES) continue;
    const trafficClass = v4 ? ip[1]! : ((ip[0]! & 0xf) << 4) | (ip[1]! >> 4);
    found.push({ packet: Buffer.from(ip.subarray(bth)).toString('latin1'), trafficClass });
  }
  return found;
}

/**
 * Distinct traffic classes in a capture file. Only counts packets that the other process has also captured, because other packets to this
 * host's port do not belong to this connection.
 */
function classesIn(file: string, otherFile: string): number[] {
  const exchanged = new Set(rcPackets(otherFile).map(({ packet }) => packet));
  const found = rcPackets(file).filter(({ packet }) => exchanged.has(packet));
  return [...new Set(found.map(({ trafficClass }) => trafficClass))].sort((a, b) => a - b);
}

const test = suite<{ folder: string }>('traffic class');
test.before((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'nd-class-'));
});
test.after(({ folder }) => rmSync(folder, { recursive: true }));
test.after.each(() => endPeers());

for (const address of ['127.0.0.1', '::1'] as const) {
  for (const [trafficClass, ecn] of [
    [0, false],
    [DSCP_40, false],
    [DSCP_40, true],
  ] as const) {
    firstIf(trafficClass > 0 && ecn === (address === '::1'), needing(test, address))(
      `${address}: class ${trafficClass}, ${ecn ? 'the client marks' : 'no marks'}`,
      async ({ folder }) => {
        const capture = join(folder, '%p.pcapng');
        const common: KernelOptionsInput = { link: 'wire', capture };
        const [server, client] = await Promise.all([
          Peer.start({ kernel: common }),
          Peer.start({ kernel: { ...common, rc: { trafficClass }, ecn } }),
        ]);
        const port = await server.call('trafficListen', { as: 't', address, seed: 1 });
        await Promise.all([
          client.call('trafficConnect', { as: 't', address, port, seed: 1 }),
          server.call('trafficAccepted', { as: 't' }),
        ]);
        await Promise.all([server.call('trafficRun', { as: 't' }), client.call('trafficRun', { as: 't' })]);
        await Promise.all([server.leave('exit'), client.leave('exit')]);
        // Each file contains the process's sent and received packets.
        const expected = ecn ? [trafficClass, trafficClass | ECT_0] : [trafficClass];
        const [served, connected] = [server, client].map(({ pid }) => capture.replace('%p', String(pid)));
        assert.equal(classesIn(served!, connected!), expected);
        assert.equal(classesIn(connected!, served!), expected);
      },
    );
  }
}

test.run();
