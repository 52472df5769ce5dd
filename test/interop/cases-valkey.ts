/** Cases of Valkey over RDMA: examples/valkey against valkey-server, and against upstream's test client, rdma-test. */
import { FAMILIES, GUEST, HERE, type InteropCase } from './case.js';
import { address, type Rig } from './rig.js';
import {
  behaves,
  crashes,
  judged,
  survives,
  VALKEY_PORT,
  type ValkeyEnds,
  valkeyBehaviours,
} from './valkey-ends.js';

const ends = (rig: Rig, family: 4 | 6): ValkeyEnds => ({
  rig,
  guest: GUEST,
  address: address(GUEST, family),
  client: (...args) => rig.ours('valkey', ...args),
});

const client = (operation: string, family: 4 | 6, run: (ends: ValkeyEnds) => Promise<void>): InteropCase => ({
  peer: 'valkey-server',
  operation,
  role: 'client',
  family,
  run: (rig) => run(ends(rig, family)),
});

const server = (family: 4 | 6, runs: number): InteropCase => ({
  peer: 'rdma-test of valkey',
  operation: `8 threads, ${runs} times (idle machine)`,
  role: 'server',
  family,
  run: (rig) => {
    const own = address(HERE, family);
    return judged(rig, GUEST, own, rig.valkeyServer(own, VALKEY_PORT), { threads: 8, runs });
  },
});

export const valkeyCases: readonly InteropCase[] = [
  ...valkeyBehaviours.map((one) => client(one.operation, 4, (both) => behaves(both, one))),
  client(valkeyBehaviours[0]!.operation, 6, (both) => behaves(both, valkeyBehaviours[0]!)),
  ...FAMILIES.map((family) => client('the server is killed and started again', family, survives)),
  client('known to crash: a client leaves before its replies have come', 4, crashes),
  server(4, 10),
  server(6, 1),
];
