/**
 * One side of a connection, in a process whose `ND_OPTIONS` give it a P_Key table of its own: `pkey-peer server`, which tells
 * its port, or `pkey-peer client port index`. Each tells how it went; asked for it, its counters.
 */
import { openProvider, QpAttr, QpState, StatusError, statusName, WvSend } from '../../winverbs/index.js';
import { ADDRESS, openListener, openSide, take } from './loopback.js';

export interface PkeyReport {
  /** How the connection ended, and how the message: names of statuses, WV_WC_STATUS. */
  readonly connected: string;
  readonly message?: number;
  readonly pkeyIndex?: number;
}

export interface PkeyPort {
  readonly table: number[];
  /** What IBAT says. */
  readonly pkey: number;
  readonly badPkeys: number;
}

const [role, port, index] = process.argv.slice(2);
const provider = openProvider();
const side = openSide(provider);
const sgl = [{ region: side.region, offset: 0, length: 64 }];

async function outcome(run: () => Promise<void>): Promise<string> {
  try {
    await run();
    return 'SUCCESS';
  } catch (error) {
    if (error instanceof StatusError) return statusName(error.status);
    throw error;
  }
}

async function done(connected: string): Promise<void> {
  if (connected !== 'SUCCESS') {
    process.send!({ connected } satisfies PkeyReport);
    return;
  }
  const [completion] = await take(side.cq, 1);
  process.send!({
    connected,
    message: completion!.status,
    pkeyIndex: side.qp.query().pkeyIndex,
  } satisfies PkeyReport);
}

process.on('message', () => {
  const { pkeyTableLength, badPkeyCounter: badPkeys } = side.device.queryPort(1);
  const table = Array.from({ length: pkeyTableLength }, (_, n) => side.device.queryPkey(1, n));
  const { pkey } = provider.translateAddress(ADDRESS);
  process.send!({ table, pkey, badPkeys } satisfies PkeyPort);
});

if (role === 'server') {
  const { listener, peer } = openListener(provider);
  side.qp.postReceive('message', sgl);
  process.send!(peer.port);
  await done(
    await outcome(async () => {
      await listener.getRequest(side.ep);
      await side.ep.accept(side.qp, {});
    }),
  );
} else {
  const peer = { family: 4, address: ADDRESS, port: Number(port) } as const;
  const pkeyIndex = Number(index);
  side.qp.modify(
    { qpState: QpState.INIT, pkeyIndex, portNumber: 1, accessFlags: 0 },
    QpAttr.STATE | QpAttr.PKEY_INDEX,
  );
  side.ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  side.ep.resolveRoute(peer);
  await done(
    await outcome(async () => {
      await side.ep.connect(side.qp, peer, {});
      await side.ep.accept(null, {});
      side.qp.send('message', sgl, WvSend.SIGNALED);
    }),
  );
}
