/** `networkdirect/net` between processes, between hosts over a lossy link, and with peers that are killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { suite, test } from 'uvu';
import * as assert from 'uvu/assert';
import { createServer } from '../../nd/net/index.js';
import { needing } from '../helpers/needs.js';
import { endAll as endServers, listening } from '../helpers/net-pair.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { programFile } from '../helpers/programs.js';
import { firstIf, long } from '../helpers/tiers.js';

const program = programFile(new URL('../helpers/net-program.js', import.meta.url));
const children = new Set<ChildProcess>();

type Message = Record<string, unknown>;

interface Running {
  readonly child: ChildProcess;
  /** Waits for the next message with this property. */
  received(name: string): Promise<unknown>;
}

function start(args: readonly string[], by: readonly string[] = [], options = {}): Running {
  const [command, ...rest] = [...by, process.execPath, program, ...args];
  const child = spawn(command!, rest, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ND_OPTIONS: JSON.stringify(options) },
  });
  children.add(child);
  const messages: Message[] = [];
  child.on('message', (message) => messages.push(message as Message));
  return {
    child,
    received: async (name) => {
      for (;;) {
        const found = messages.find((message) => name in message);
        if (found !== undefined) return found[name];
        await Promise.race([
          once(child, 'message'),
          // 'exit' may be emitted before the last messages.
          once(child, 'close').then(([code, signal]) => {
            throw new Error(`The process ended with ${signal ?? code} before it reported ${name}.`);
          }),
        ]);
      }
    },
  };
}

/** The names must be free again for the next test. */
async function endAll(): Promise<void> {
  const running = [...children].filter(
    ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
  );
  const exits = running.map((child) => once(child, 'exit'));
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(exits);
  children.clear();
}

async function answered(
  serving: readonly string[] = [],
  asking: readonly string[] = [],
  address = '127.0.0.1',
  options = {},
): Promise<[Running, Running]> {
  const server = start(['serve', address], serving, options);
  const client = start(['ask', address, String(await server.received('port'))], asking, options);
  assert.is(await client.received('answered'), 40);
  return [server, client];
}

test.after.each(endAll);
test.after.each(endServers);

test('two processes: requests of all lengths, and a clean end on both sides', async () => {
  const [server, client] = await answered();
  client.child.send('close');
  assert.is(await client.received('ended'), 'clean');
  assert.is(await server.received('ended'), 'clean');
});

test('a busy program gets all data before it is notified of the ends of the connections', async () => {
  const BYTES = 14 * 100;
  const received: number[] = [];
  const errors: unknown[] = [];
  let closed = 0;
  const server = createServer((socket) => {
    const at = received.push(0) - 1;
    socket.on('data', ({ length }) => {
      received[at]! += length;
    });
    socket.on('error', (error) => errors.push(error));
    socket.on('close', () => closed++);
  });
  const client = start(['leave', '127.0.0.1', String(await listening(server)), '60']);
  await client.received('connected');
  await new Promise((resolve) => client.child.send('go', resolve));
  // All of them write and disconnect while this thread is busy, so that one poll cannot return all results.
  const until = performance.now() + 1200;
  while (performance.now() < until);
  while (closed < 60) await setTimeout(5);
  assert.equal(errors, []);
  assert.equal(received, Array(60).fill(BYTES));
});

test('a killed server fails the pending operations of its clients', async () => {
  const [server, client] = await answered();
  client.child.send('ask');
  await client.received('asked');
  server.child.kill('SIGKILL');
  assert.is(await client.received('ended'), 'ECONNRESET');
});

long(test, 'a client that is killed ends its channel at the server, which serves the next', async () => {
  const [server, client] = await answered();
  client.child.kill('SIGKILL');
  assert.match(String(await server.received('ended')), /its process ended/);
  const next = start(['ask', '127.0.0.1', String(await server.received('port'))]);
  assert.is(await next.received('answered'), 40);
});

test.run();

const apart = needing(suite<{ hosts: TwoHosts }>('two hosts'), 'namespaces');

apart.before(async (context) => {
  context.hosts = await TwoHosts.start();
});
apart.after.each(endAll);
apart.after(({ hosts }) => hosts.end());

for (const [name, faults] of [
  ['two hosts', {}],
  [
    'a link that loses, duplicates and reorders packets',
    { seed: 7, drop: 0.02, duplicate: 0.02, reorder: 0.02 },
  ],
] as const) {
  firstIf(name !== 'two hosts', apart)(
    `${name}: every answer is right, and both sides end cleanly`,
    async ({ hosts }) => {
      const [a, b] = hosts.hosts;
      const [server, client] = await answered(a.by, b.by, a.address, { faults });
      client.child.send('close');
      assert.is(await client.received('ended'), 'clean');
      assert.is(await server.received('ended'), 'clean');
    },
  );
}

apart.run();
