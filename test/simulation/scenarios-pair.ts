/** Two hosts and one cable: every kind of request, and every fault of packets, MADs, clocks and CPUs. */
import { faultRanges, faultsOf, hostOf, mixed, nsPerByte } from './parts.js';
import { scenario, whole } from './scenario.js';

const LONGEST_MS = 1_200_000;
const MTUS = [256, 512, 1024, 2048, 4096] as const;
/** Packet lengths for links with an MTU of 1500 and 9000, and the maximum. */
const PACKETS = [0, 1432, 8936, 16_384];

export const pair = scenario({
  name: 'pair',
  what: 'two hosts, requests of all kinds in both directions, all faults',
  share: 1,
  ranges: {
    connections: whole(1, 8),
    messages: whole(1, 3000),
    bytes: whole(1, 40_000),
    mtu: whole(4, 0),
    packets: whole(3, 0),
    delayUs: whole(1, 50_000),
    gigabits: whole(10, 1),
    ours: whole(1, 0),
    ...faultRanges,
  },
  run(world, plan) {
    const [mtu, packetBytes] = [MTUS[plan.mtu]!, PACKETS[plan.packets]!];
    world.settings = { ...world.settings, ours: plan.ours !== 0, mtu, packetBytes, ackTimeoutCode: 15 };
    const [a, b] = world.addHosts(2);
    world.link(a!.vertex, b!.vertex, {
      nsPerByte: nsPerByte(plan.gigabits),
      delayNs: plan.delayUs * 1000,
      capacity: 1 << 22,
      ...faultsOf(plan),
    });
    world.native.findRoutes();
    world.boot(a!, hostOf(world, plan));
    world.boot(b!, hostOf(world, plan));
    const mayFail = false;
    for (let i = 0; i < plan.connections; i++) {
      const [client, server] = world.below(2) ? [a!, b!] : [b!, a!];
      const forth = mixed(world, plan.messages, plan.bytes);
      const back = world.below(2) ? mixed(world, plan.messages, plan.bytes) : undefined;
      world.connect({ client, server, forth, back, mayFail });
    }
    world.finish(LONGEST_MS);
    return { connections: plan.connections };
  },
});
