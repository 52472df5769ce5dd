/**
 * One side of a connection, in a process whose `ND_OPTIONS` set its P_Key table: `pkey-peer server`, which reports its port, or `pkey-peer
 * client port index`. Each reports its result and, on request, its counters.
 */
import { openProvider, QpAttr, QpState, WvSend } from '../../winverbs/index.js';
import { ADDRESS, openListener, openSide, take } from './loopback.js';
import { outcomeName } from './outcome.js';

export interface PkeyReport {
  /** The results of the connection and of the message, as names of statuses (WV_WC_STATUS). */
  readonly connected: string;
  readonly message?: number;
  readonly pkeyIndex?: number;
}

export interface PkeyPort {
  readonly table: number[];
  /** The P_Key from IBAT. */
  readonly pkey: number;
  readonly badPkeys: number;
}

const [role, port, index] = process.argv.slice(2);
const provider = openProvider();
const side = openSide(provider);
const sgl = [{ region: side.region, offset: 0, length: 64 }];

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
    await outcomeName(
      (async () => {
        await listener.getRequest(side.ep);
        await side.ep.accept(side.qp, {});
      })(),
    ),
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
    await outcomeName(
      (async () => {
        await side.ep.connect(side.qp, peer, {});
        await side.ep.accept(null, {});
        side.qp.send('message', sgl, WvSend.SIGNALED);
      })(),
    ),
  );
}
