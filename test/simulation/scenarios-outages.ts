/** Outages and recoveries of links, hosts and parts of the network, and connections with lost, old or duplicate MADs. */
import type { SimulatedHost } from './host.js';
import { faultRanges, faultsOf, hostOf, mixed, nsPerByte } from './parts.js';
import { persist } from './persistence.js';
import { scenario, whole } from './scenario.js';
import { leavesAndSpines } from './scenarios-crowds.js';
import type { World } from './world.js';

const LONGEST_MS = 3_600_000;
const CABLE = { nsPerByte: nsPerByte(10), delayNs: 5000, capacity: 1 << 22 };

/** Two switches with a cable between them, and hosts at each. */
function dumbbell(world: World, left: number, right: number) {
  const [a, b] = [world.native.addSwitch(), world.native.addSwitch()];
  const cable = world.link(a, b, CABLE);
  const side = (count: number, middle: number) =>
    world.addHosts(count).map((host) => {
      world.link(host.vertex, middle, CABLE);
      return host;
    });
  const made = { cable, left: side(left, a), right: side(right, b) };
  world.native.findRoutes();
  return made;
}

export const flap = scenario({
  name: 'flap',
  what: 'a cable with repeated short outages: no connection is lost',
  share: 1,
  ranges: {
    flows: whole(1, 16),
    messages: whole(10, 1000),
    bytes: whole(1, 20_000),
    flaps: whole(1, 100),
    goneMs: whole(1, 300),
  },
  run(world, { flows, messages, bytes, flaps, goneMs }) {
    world.settings = { ...world.settings, ackTimeoutCode: 15 };
    const { cable, left, right } = dumbbell(world, 4, 4);
    for (const host of [...left, ...right]) world.boot(host);
    let ahead = flaps;
    const gone = (): void => {
      if (ahead-- <= 0) return;
      world.setLink(cable, { up: false });
      world.after(1 + world.below(goneMs), () => {
        world.setLink(cable, { up: true });
        world.after(100 + world.below(200), gone);
      });
    };
    world.after(world.below(20), gone);
    for (let i = 0; i < flows; i++) {
      const forth = mixed(world, messages, bytes, { thinkNs: 2_000_000 });
      world.connect({
        client: left[i % 4]!,
        server: right[world.below(4)]!,
        forth,
        mayFail: false,
      });
    }
    world.finish(LONGEST_MS);
    return { flaps };
  },
});

export const partition = scenario({
  name: 'partition',
  what: 'a network that is partitioned for a long time: both sides detect lost connections and establish them again',
  share: 1,
  ranges: {
    flows: whole(1, 16),
    messages: whole(1, 1000),
    bytes: whole(1, 20_000),
    partitions: whole(1, 5),
    seconds: whole(1, 60),
    ...faultRanges,
  },
  run(world, plan) {
    world.settings = { ...world.settings, ackTimeoutCode: 15 };
    const { cable, left, right } = dumbbell(world, 4, 4);
    world.setLink(cable, faultsOf(plan));
    for (const host of [...left, ...right]) world.boot(host, hostOf(world, plan));
    for (let i = 0; i < plan.partitions; i++) {
      const begin = world.below(60_000);
      world.after(begin, () => world.setLink(cable, { up: false }));
      world.after(begin + 1000 * plan.seconds, () => world.setLink(cable, { up: true }));
    }
    for (let i = 0; i < plan.flows; i++) {
      const traffic = { thinkNs: 60_000_000 };
      const forth = mixed(world, plan.messages, plan.bytes, traffic);
      const back = world.below(2) ? mixed(world, plan.messages, plan.bytes, traffic) : undefined;
      persist(world, {
        client: left[i % 4]!,
        server: right[world.below(4)]!,
        forth,
        back,
      });
    }
    world.finish(LONGEST_MS);
    return { connections: world.flows.length };
  },
});

/** Crashes a host and restarts it later with the same address. */
function crashAndComeBack(world: World, host: SimulatedHost, offMs: number, boot: () => void): void {
  if (!host.isOn) return;
  world.crash(host);
  world.after(offMs, boot);
}

export const crash = scenario({
  name: 'crash',
  what: 'hosts that crash and restart with the same address, while old packets and MADs still arrive',
  share: 1,
  ranges: {
    hosts: whole(2, 16),
    flows: whole(1, 32),
    messages: whole(1, 1000),
    bytes: whole(1, 8000),
    crashes: whole(1, 30),
    offMs: whole(1, 30_000),
    ...faultRanges,
  },
  run(world, plan) {
    world.settings = { ...world.settings, ackTimeoutCode: 15 };
    const hosts = leavesAndSpines(world, plan.hosts, 4, 2, 1 << 22);
    for (let link = 0; link < world.links; link++) world.setLink(link, faultsOf(plan));
    const options = hosts.map(() => hostOf(world, plan));
    const boot = (host: SimulatedHost) => world.boot(host, options[host.number]!);
    for (const host of hosts) boot(host);
    for (let i = 0; i < plan.crashes; i++) {
      const host = hosts[world.below(plan.hosts)]!;
      world.after(world.below(60_000), () =>
        crashAndComeBack(world, host, 1 + world.below(plan.offMs), () => boot(host)),
      );
    }
    for (let i = 0; i < plan.flows; i++) {
      const client = hosts[world.below(plan.hosts)]!;
      const server = hosts[(client.number + 1 + world.below(plan.hosts - 1)) % plan.hosts]!;
      const forth = mixed(world, plan.messages, plan.bytes, { thinkNs: 60_000_000 });
      persist(world, { client, server, forth });
    }
    world.run(90_000);
    world.finish(LONGEST_MS);
    return { connections: world.flows.length };
  },
});

export const mads = scenario({
  name: 'mads',
  what: 'many short connections with lost, duplicate, reordered and ancient MADs, and inaccurate clocks',
  share: 1,
  ranges: {
    ...faultRanges,
    hosts: whole(2, 8),
    flows: whole(1, 300),
    messages: whole(1, 10),
    skewPpm: whole(0, 100_000, 0.2),
  },
  run(world, plan) {
    const hosts = leavesAndSpines(world, plan.hosts, 4, 2, 1 << 22);
    for (let link = 0; link < world.links; link++) world.setLink(link, faultsOf(plan));
    // Few ids and short waits, so that old messages reach new connections.
    const cm = { responseTimeoutCode: 14 + world.below(6), timewaitMs: world.below(1000) };
    for (const host of hosts) world.boot(host, hostOf(world, plan, { cqEntries: 1 << 14 }), cm);
    for (let i = 0; i < plan.flows; i++) {
      const client = hosts[world.below(plan.hosts)]!;
      const server = hosts[(client.number + 1 + world.below(plan.hosts - 1)) % plan.hosts]!;
      const forth = mixed(world, plan.messages, 1000, { depth: 4, receives: 8 });
      world.after(world.below(60_000), () => persist(world, { client, server, forth }));
    }
    world.run(60_000);
    world.finish(LONGEST_MS);
    return { connections: world.flows.length };
  },
});
