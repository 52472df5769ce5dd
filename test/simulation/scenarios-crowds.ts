/** Many hosts at the same time: senders to one receiver, all to all, and large transfers together with small ones. */
import { bytesOf, demand, jain, mixed, nsPerByte, star } from './parts.js';
import { scenario, whole } from './scenario.js';
import type { World } from './world.js';

const LONGEST_MS = 600_000;
/** Minimum congestion window, in packets (congestion.h). */
const SMALLEST_WINDOW = 4;
/** Bounds of every run (docs/internals/simulation.md): Jain's index, and the queue as a multiple of its allowance. */
const FAIR = 0.9;
const MOST_QUEUE = 2;
/**
 * Duration of the warm-up and of the measurement. It exceeds a timeout and allows several messages of each sender. Windows converge within
 * dozens of round trips, whose duration grows with the number of senders, because that determines the queue length.
 */
const CONTENTION_MS = 1500;
const CONTENTION_MS_PER_SENDER = 3;
const MTU = 1024;
const LARGE_MTU = 4096;
const HEADER_BYTES = 100;

/** The queue length that a threshold allows: up to the threshold, plus the minimum windows of all flows. */
const allowance = (mark: number, flows: number, packetBytes: number): number =>
  mark + flows * SMALLEST_WINDOW * packetBytes;

/** Runs hosts that send continuously through the queue of one marking port. Returns figures of the second half. */
function contend(
  world: World,
  senders: number,
  settings: { mark: number; bytes: number; milliseconds: number },
) {
  world.settings = { ...world.settings, mtu: MTU, ackTimeoutCode: 17 };
  const allowed = allowance(settings.mark, senders, MTU + HEADER_BYTES);
  const edge = { nsPerByte: nsPerByte(10), delayNs: 2000, capacity: 1 << 26 };
  const queue = { ...edge, nsPerByte: nsPerByte(1), capacity: 4 * allowed, mark: settings.mark };
  const { hosts, portTo } = star(world, senders + 1, edge, queue);
  const [receiver, ...others] = hosts;
  for (const host of hosts) world.boot(host, { ecn: true, cqEntries: host === receiver ? 1 << 15 : 64 });
  const flows = others.map((client) =>
    world.connect({
      client,
      server: receiver!,
      forth: {
        write: 1,
        minBytes: settings.bytes,
        maxBytes: settings.bytes,
        depth: 8,
        receives: 1,
        messages: 0,
      },
      mayFail: false,
    }),
  );
  world.run(settings.milliseconds);
  world.native.resetFigures();
  world.run(settings.milliseconds);
  const shares = bytesOf(world, flows);
  const port = world.native.portFigures(portTo(receiver!));
  for (const flow of flows) flow.stop();
  world.finish(LONGEST_MS);
  return { shares, port, allowed };
}

export const incast = scenario({
  name: 'incast',
  what: 'up to 1,000 senders into one receiver: fairness, and the length of its queue',
  share: 1,
  ranges: {
    senders: { ...whole(2, 1000), full: true },
    markKb: whole(400, 100),
    bytes: whole(4096, 16_384),
    ours: whole(1, 0),
  },
  run(world, { senders, markKb, bytes, ours }) {
    world.settings = { ...world.settings, ours: ours !== 0 };
    const milliseconds = Math.max(CONTENTION_MS, senders * CONTENTION_MS_PER_SENDER);
    const { shares, port, allowed } = contend(world, senders, { mark: markKb * 1000, bytes, milliseconds });
    const index = jain(shares);
    demand(index >= FAIR, `Jain's index of ${senders} senders is ${index.toFixed(3)}, below ${FAIR}`);
    demand(
      port.most <= MOST_QUEUE * allowed,
      `the queue is ${port.most} bytes long, more than ${MOST_QUEUE} times what its threshold allows, ${allowed}`,
    );
    return { unfairness: 1 - index, queue: port.most / allowed };
  },
});

export const mice = scenario({
  name: 'mice',
  what: 'large transfers and small requests through one port: small requests are not starved',
  share: 1,
  ranges: {
    elephants: whole(1, 16),
    mice: whole(1, 64),
    markKb: whole(400, 50),
    bytes: whole(16_384, 262_144),
    ours: whole(1, 0),
  },
  run(world, { elephants, mice: small, markKb, bytes, ours }) {
    world.settings = { ...world.settings, ours: ours !== 0, mtu: LARGE_MTU, ackTimeoutCode: 17 };
    const mark = markKb * 1000;
    const edge = { nsPerByte: nsPerByte(10), delayNs: 5000, capacity: 1 << 26 };
    const { hosts, portTo } = star(world, elephants + small + 1, edge, { ...edge, mark, capacity: 1 << 23 });
    const [receiver, ...others] = hosts;
    for (const host of hosts) world.boot(host, { ecn: true, cqEntries: host === receiver ? 1 << 13 : 256 });
    const usual = { mayFail: false, server: receiver! };
    const flows = others.map((client, i) => {
      const large = { write: 1, minBytes: bytes, maxBytes: bytes, depth: 8, receives: 8, messages: 0 };
      const little = {
        send: 1,
        minBytes: 64,
        maxBytes: 1024,
        depth: 1,
        receives: 4,
        messages: 0,
        thinkNs: 500_000,
      };
      return world.connect({ ...usual, client, forth: i < elephants ? large : little });
    });
    const milliseconds = 200;
    world.run(milliseconds);
    world.native.resetFigures();
    world.run(milliseconds);
    const shares = bytesOf(world, flows);
    const port = world.native.portFigures(portTo(receiver!));
    for (const flow of flows) flow.stop();
    world.finish(LONGEST_MS);
    const index = jain(shares.slice(0, elephants));
    const least = Math.min(...shares.slice(elephants));
    demand(
      index >= FAIR,
      `Jain's index of ${elephants} large transfers is ${index.toFixed(3)}, below ${FAIR}`,
    );
    demand(least > 0, 'a connection with small requests has completed none');
    const allowed = allowance(mark, elephants + small, LARGE_MTU + HEADER_BYTES);
    demand(
      port.most <= MOST_QUEUE * allowed,
      `the queue is ${port.most} bytes long, more than ${MOST_QUEUE} times what its threshold allows, ${allowed}`,
    );
    return { unfairness: 1 - index, queue: port.most / allowed };
  },
});

export const everybody = scenario({
  name: 'everybody',
  what: 'up to 64 hosts behind leaves and spines, each connected to each',
  share: 1,
  ranges: {
    hosts: whole(2, 64),
    messages: whole(1, 40),
    bytes: whole(1, 2000),
    capacityKb: whole(4000, 100),
  },
  run(world, { hosts: count, messages, bytes, capacityKb }) {
    const hosts = leavesAndSpines(world, count, 8, 4, capacityKb * 1000);
    for (const host of hosts) world.boot(host, { ecn: true, cqEntries: 1 << 13 });
    for (const client of hosts) {
      for (const server of hosts) {
        if (client === server) continue;
        const forth = mixed(world, messages, bytes, { depth: 4, receives: 8 });
        world.connect({ client, server, forth, mayFail: false });
      }
    }
    world.finish(LONGEST_MS);
    return { flows: count * (count - 1) };
  },
});

export const crowd = scenario({
  name: 'crowd',
  what: 'up to 2,000 hosts, with a few connections each',
  share: 1,
  ranges: {
    hosts: { ...whole(2, 2000), full: true },
    flows: whole(1, 4),
    messages: whole(1, 40),
    bytes: whole(1, 2000),
  },
  run(world, { hosts: count, flows, messages, bytes }) {
    const hosts = leavesAndSpines(world, count, 40, 8, 1 << 22);
    for (const host of hosts) world.boot(host, { cqEntries: 1 << 10 });
    for (const client of hosts) {
      for (let i = 0; i < flows; i++) {
        const server = hosts[world.below(count)]!;
        if (server === client) continue;
        const forth = mixed(world, messages, bytes, { depth: 4, receives: 8 });
        world.after(world.below(1000), () => world.connect({ client, server, forth, mayFail: false }));
      }
    }
    world.run(1000);
    world.finish(LONGEST_MS);
    return { hosts: count };
  },
});

/** Leaf switches with a number of hosts each, and spines between them. */
export function leavesAndSpines(
  world: World,
  count: number,
  each: number,
  spineCount: number,
  capacity: number,
) {
  const spines = Array.from({ length: spineCount }, () => world.native.addSwitch());
  const hosts = world.addHosts(count);
  const queue = { nsPerByte: nsPerByte(10), delayNs: 1000, capacity, mark: capacity / 10 };
  for (let i = 0; i < count; i += each) {
    const leaf = world.native.addSwitch();
    for (const spine of spines) world.link(leaf, spine, { ...queue, nsPerByte: nsPerByte(40) });
    for (const host of hosts.slice(i, i + each)) {
      const link = world.link(host.vertex, leaf, queue);
      world.native.setPort(2 * link, { capacity: 1 << 26, mark: 0 });
    }
  }
  world.native.findRoutes();
  return hosts;
}
