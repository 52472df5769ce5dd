/** Cases of several processes of this side on one address. Each has its own port, and they share UDP 4791. */
import assert from 'node:assert/strict';
import { FAMILIES, GUEST, HERE, type InteropCase } from './case.js';
import type { Program } from './process.js';
import { address, type Rig } from './rig.js';
import { clientEnded } from './rping-ends.js';

const PORTS = [7174, 7175, 7176, 7177] as const;
/** Starts a process of this side with its port. */
const server = (rig: Rig, family: 4 | 6, port: number): Program =>
  rig.countedRping('-s', '-P', '-a', address(HERE, family), '-p', String(port));
const client = (family: 4 | 6, port: number, flags: string): string =>
  `rping -c -a ${address(HERE, family)} -p ${port} -V ${flags}`;

async function servers(rig: Rig, family: 4 | 6, ports: readonly number[]): Promise<Program[]> {
  const all = ports.map((port) => server(rig, family, port));
  await Promise.all(all.map((one) => one.line(/^listening/)));
  return all;
}

/** Checks that a client in the guest that prints its pings has received and compared all of them. */
async function pinged(one: Program, count: number): Promise<void> {
  await one.line(new RegExp(`ping data: rdma-ping-${count - 1}:`));
  await clientEnded(one);
}

/** Ends the processes. Returns the number of packets and CM messages of others that they have forwarded. */
async function handedOn(all: readonly Program[]): Promise<number> {
  let sum = 0;
  for (const one of all) {
    one.stop('SIGTERM');
    const counters: Record<string, number> = JSON.parse((await one.ok()).at(-1) ?? '');
    sum += (counters.slot_tx_forwarded ?? 0) + (counters.mad_handed_over ?? 0);
  }
  return sum;
}

/** Waits for further output lines of a program, to show that it continues. */
const goesOn = async (program: Program, count: number): Promise<void> => {
  const before = program.lines.length;
  await program.until(() => program.lines.length >= before + count, `${count} more lines`);
};

function atOnce(family: 4 | 6): InteropCase {
  return {
    peer: 'rping -c',
    operation: '4 server processes, 4 clients at once, twice',
    role: 'server',
    family,
    quick: family === 4,
    run: async (rig) => {
      const all = await servers(rig, family, PORTS);
      for (let i = 0; i < 2; i += 1) {
        const clients = PORTS.map((port) => rig.guest(GUEST, client(family, port, '-C 20 -S 9000 -v')));
        await Promise.all(clients.map((one) => pinged(one, 20)));
      }
      const count = await handedOn(all);
      // All of the guest's MADs arrive at one of the four sockets, and most are for another process.
      assert.ok(count > 0, 'no process has handed on anything');
      rig.note(`${count} packets and messages were handed to another process`);
    },
  };
}

/** Ends clients that would continue forever. */
const endClients = (rig: Rig) => rig.inGuest(GUEST, 'busybox killall -q -KILL rping; true');

function oneDies(family: 4 | 6): InteropCase {
  return {
    peer: 'rping -c',
    operation: '1 of 3 server processes is killed',
    role: 'server',
    family,
    quick: family === 6,
    run: async (rig) => {
      const ports = PORTS.slice(0, 3);
      const all = await servers(rig, family, ports);
      const clients = ports.map((port) => rig.guest(GUEST, client(family, port, '-S 2000 -v')));
      await Promise.all(clients.map((one) => one.line(/ping data/)));
      const [killed, ...others] = all as [Program, ...Program[]];
      // The first one waits for a message that does not arrive, because rping sends nothing more.
      const happy = clients.slice(1);
      killed.stop('SIGKILL');
      await Promise.all(happy.map((one) => goesOn(one, 40)));
      // The listener no longer exists, and a process reports it.
      await rig.guest(GUEST, client(family, PORTS[0], '-C 1')).line(/REJECTED|rejected|connect error/i);
      await pinged(rig.guest(GUEST, client(family, PORTS[1], '-C 5 -S 9000 -v')), 5);
      // Another process claims the port.
      const heir = await servers(rig, family, [PORTS[0]]);
      await pinged(rig.guest(GUEST, client(family, PORTS[0], '-C 5 -S 9000 -v')), 5);
      await Promise.all(happy.map((one) => goesOn(one, 20)));
      await endClients(rig);
      rig.note(`${await handedOn([...others, ...heir])} packets and messages were handed to another process`);
    },
  };
}

function clients(family: 4 | 6): InteropCase {
  return {
    peer: 'rping -s',
    operation: '4 client processes, 4 servers at once',
    role: 'client',
    family,
    run: async (rig) => {
      const there = PORTS.map((port) =>
        rig.guest(GUEST, `rping -s -a ${address(GUEST, family)} -p ${port} -C 20 -S 20000`),
      );
      for (const port of PORTS) await rig.listening(GUEST, 'rdma', port);
      const here = PORTS.map((port) =>
        rig.ours(
          'rping',
          '-c',
          '-a',
          address(GUEST, family),
          '-p',
          String(port),
          '-C',
          '20',
          '-S',
          '20000',
          '-V',
        ),
      );
      for (const one of here) await one.ok();
      for (const one of there) await one.end();
    },
  };
}

export const processCases: readonly InteropCase[] = FAMILIES.flatMap((family) => [
  atOnce(family),
  oneDies(family),
  clients(family),
]);
