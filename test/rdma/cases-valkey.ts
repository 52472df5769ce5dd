/** Valkey over RDMA on a device of the guests: examples/valkey in one guest, and valkey-server or rdma-test in the other. */
import type { Program } from '../interop/process.js';
import { type Rig, VALKEY_SERVER } from '../interop/rig.js';
import {
  behaves,
  judged,
  refused,
  survives,
  VALKEY_PORT,
  type ValkeyEnds,
  valkeyBehaviours,
} from '../interop/valkey-ends.js';
import { type Device, example, HOST, OURS, onDevice, type RdmaCase, rxe, siw, THEIRS } from './case.js';
import { withSiw } from './cases-devices.js';

const ends = (rig: Rig, device: Device): ValkeyEnds => ({
  rig,
  guest: THEIRS,
  address: device.at(THEIRS),
  client: (...args) => example(rig, 'valkey', ...args),
});

/** Longer than all runs of rdma-test: a server that is ended looks to it like one that does not reply. */
const SERVER_SECONDS = 1800;
const serverOn = (rig: Rig, device: Device): Program =>
  rig.nodeInGuestFor(OURS, SERVER_SECONDS, onDevice, VALKEY_SERVER, device.at(OURS), String(VALKEY_PORT));

/** Options of rdma-test: fewer keys than usual, with which both directions still cross the end of a buffer. */
const KEYS = '-m 1100 -M 2200';

/** Runs pipelines of a client at an address against our server. */
async function pipelines(rig: Rig, server: Program, client: (...args: string[]) => Program, address: string) {
  await server.line(/^port/);
  for (const line of await client('pipelines', address, String(VALKEY_PORT)).ok()) rig.note(line);
}

export const valkeyCases: readonly RdmaCase[] = [
  {
    name: "rxe0: iovalkey between a device and this host's software HCA, both roles",
    quick: true,
    run: async (rig) => {
      const here = rig.valkeyServer(rxe.at(HOST), VALKEY_PORT);
      await pipelines(rig, here, (...args) => example(rig, 'valkey', ...args), rxe.at(HOST));
      await pipelines(rig, serverOn(rig, rxe), (...args) => rig.ours('valkey', ...args), rxe.at(OURS));
    },
  },
  ...valkeyBehaviours.map(
    (one): RdmaCase => ({
      name: `rxe0: valkey-server, ${one.operation}`,
      run: (rig) => behaves(ends(rig, rxe), one),
    }),
  ),
  { name: 'rxe0: valkey-server, killed and started again', run: (rig) => survives(ends(rig, rxe)) },
  {
    // An emulated guest takes 0.2 s and more to accept one, so eight do not fit into the second that rdma-test waits.
    name: 'rxe0: rdma-test of valkey, one thread, 10 times (idle machine)',
    run: async (rig) => {
      const server = serverOn(rig, rxe);
      // The first connection of a process takes twice as long, because V8 has compiled nothing.
      await pipelines(rig, server, (...args) => rig.ours('valkey', ...args), rxe.at(OURS));
      await judged(rig, THEIRS, rxe.at(OURS), server, { threads: 1, runs: 10, keys: KEYS });
    },
  },
  {
    // iWARP lacks Write with immediate data, which the protocol requires.
    name: 'siw0: valkey-server, refused by both clients (idle machine)',
    run: async (rig) => {
      await withSiw(rig);
      await refused(ends(rig, siw));
    },
  },
];
