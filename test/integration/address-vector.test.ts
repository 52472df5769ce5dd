// The address vector of a queue pair connected without RDMA CM: traffic class, flow label and hop limit, as reported by QP_QUERY and as
// found in received packets.
import { existsSync, mkdtempSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  gidOf,
  type IWVProvider,
  openProvider,
  QpAttr,
  QpState,
  Status,
  WvError,
  type WvQpAttributes,
  WvSend,
} from '../../winverbs/index.js';
import { openSide, take } from '../helpers/loopback.js';
import { needing } from '../helpers/needs.js';
import { readPcapng } from '../helpers/pcapng.js';

/** Opcodes of RC are below this value. */
const RC_OPCODES = 0x20;
const BTH_AT = { 4: 28, 6: 48 } as const;

/** The routing fields of a packet's IP header. */
type Route = Pick<WvQpAttributes, 'trafficClass' | 'flowLabel' | 'hopLimit'>;

const there: Route = { trafficClass: 0xb8, flowLabel: 0xabcde, hopLimit: 17 };
const back: Route = { trafficClass: 0x28, flowLabel: 0x12345, hopLimit: 3 };

const test = suite<{ folder: string; file: string; provider: IWVProvider }>('address vector');
test.before((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'nd-av-'));
  context.file = join(context.folder, 'packets.pcapng');
  context.provider = openProvider({ link: 'wire', capture: context.file });
});
test.after(({ folder, provider }) => {
  provider.release();
  // The HCA keeps the file open until it ends, and not every OS removes an open file. By the time that later exit listeners run, it has
  // ended.
  process.once('exit', () => rmSync(folder, { recursive: true }));
});

/** The routing fields of the RC packets of one IP version in a file; each packet appears twice, sent and received. */
function routesIn(file: string, version: 4 | 6): Route[] {
  return readPcapng(file)
    .filter((ip) => ip[0]! >> 4 === version && ip[BTH_AT[version]]! < RC_OPCODES)
    .map((ip) =>
      version === 4
        ? { trafficClass: ip[1]!, flowLabel: 0, hopLimit: ip[8]! }
        : {
            trafficClass: ((ip[0]! & 0xf) << 4) | (ip[1]! >> 4),
            flowLabel: ((ip[1]! & 0xf) << 16) | (ip[2]! << 8) | ip[3]!,
            hopLimit: ip[7]!,
          },
    );
}

/** Waits until the file has `count` RC packets. */
async function captured(folder: string, file: string, version: 4 | 6, count: number): Promise<Route[]> {
  const watcher = watch(folder);
  try {
    for (;;) {
      const changed = new Promise((resolve) => watcher.once('change', resolve));
      const found = existsSync(file) ? routesIn(file, version) : [];
      if (found.length >= count) return found;
      await changed;
    }
  } finally {
    watcher.close();
  }
}

const text = ({ trafficClass, flowLabel, hopLimit }: Route): string =>
  `${trafficClass.toString(16)} ${flowLabel.toString(16)} ${hopLimit}`;

for (const [version, address] of [
  [4, '127.0.0.1'],
  [6, '::1'],
] as const) {
  needing(test, address)(
    `IPv${version}: each side's packets carry its own address vector`,
    async ({ folder, file, provider }) => {
      const [a, b] = [openSide(provider), openSide(provider)];
      const gid = gidOf(address);
      for (const [one, other, route] of [
        [a, b, there],
        [b, a, back],
      ] as const) {
        one.qp.modify(
          {
            qpState: QpState.RTR,
            sourceGid: gid,
            destinationGid: gid,
            ...route,
            pathMtu: 1024,
            destinationQpn: other.qp.qpn,
            receivePsn: 0,
            rnrNakTimeout: 12,
          },
          QpAttr.STATE,
        );
        const ready = {
          qpState: QpState.RTS,
          sendPsn: 0,
          localAckTimeout: 17,
          retryCount: 7,
          rnrRetryCount: 6,
        };
        one.qp.modify(ready, QpAttr.STATE);
        assert.is(text(one.qp.query()), text(route));
      }
      const piece = (side: typeof a) => ({ region: side.region, offset: 0, length: 100 });
      b.qp.postReceive(1, [piece(b)]);
      a.qp.send(2, [piece(a)], WvSend.SIGNALED);
      await Promise.all([take(a.cq, 1), take(b.cq, 1)]);
      const found = (await captured(folder, file, version, 4)).map(text);
      const onWire = (route: Route): string => text(version === 4 ? { ...route, flowLabel: 0 } : route);
      assert.equal([...new Set(found)].sort(), [onWire(there), onWire(back)].sort());
      for (const side of [a, b]) side.release();
    },
  );
}

test('by default packets have class 0 and hop limit 64, as reported by the query', ({ provider }) => {
  const side = openSide(provider);
  const { qp } = side;
  const gid = gidOf('127.0.0.1');
  const path = { sourceGid: gid, destinationGid: gid, pathMtu: 1024, destinationQpn: 17, receivePsn: 0 };
  qp.modify({ qpState: QpState.RTR, ...path }, QpAttr.STATE);
  assert.is(text(qp.query()), text({ trafficClass: 0, flowLabel: 0, hopLimit: 64 }));
  side.release();
});

test('a value out of range is rejected, and the error names its field', ({ provider }) => {
  const side = openSide(provider);
  const { qp } = side;
  for (const [name, value, most] of [
    ['trafficClass', 256, 255],
    ['trafficClass', -1, 255],
    ['flowLabel', 0x10_0000, 0xf_ffff],
    ['flowLabel', 1.5, 0xf_ffff],
    ['hopLimit', 256, 255],
  ] as const) {
    try {
      qp.modify({ qpState: QpState.RTR, [name]: value }, QpAttr.STATE);
      assert.unreachable(`${name} ${value}`);
    } catch (error) {
      if (!(error instanceof WvError)) throw error;
      assert.is(error.status, Status.INVALID_PARAMETER);
      assert.match(error.message, `\`${name}\` must be an integer from 0 to ${most}; got ${value}`);
    }
    assert.is(qp.state, QpState.INIT);
  }
  side.release();
});

test.run();
