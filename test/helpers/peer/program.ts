/**
 * A process, or a Worker of one, that executes a test's commands: it establishes connections, posts requests, and exits in every possible
 * way. Commands arrive over the IPC channel or from the thread that started the Worker.
 */
import { parentPort, Worker } from 'node:worker_threads';
import { resolveKernelOptions } from '../../../kernel-bridge/door/soft/resolve-options.js';
import { loadAddon } from '../../../kernel-bridge/hca/index.js';
import { readCounters } from '../../../kernel-bridge/index.js';
import { faultOptionsSchema } from '../../../kernel-bridge/option-checks/option-schemas.js';
import { socketAddress } from '../../../nd/cli/sides/connected-side.js';
import { type Overlapped, Status, StatusError, statusName } from '../../../winverbs/index.js';
import { collect } from '../collect.js';
import { openToStrangers } from '../open-to-strangers.js';
import { outcomeName, thrownName } from '../outcome.js';
import { readTraces } from '../traces.js';
import { type Link, type LinkListener, LinkStack } from './link.js';
import type { Answer, Arguments, Command, Completions, Layer, Operation, Reply } from './protocol.js';
import { TrafficSide } from './traffic.js';

const addon = loadAddon();

const stacks: Record<Layer, LinkStack> = {
  nd: new LinkStack('nd'),
  nd2: new LinkStack('nd2'),
  wv: new LinkStack('wv'),
};
const links = new Map<string, Link>();
const listeners = new Map<string, LinkListener>();
const disconnects = new Map<string, Overlapped<void>>();
const workers = new Map<string, Worker>();
const traffics = new Map<string, Promise<TrafficSide>>();

function found<T>(map: Map<string, T>, name: string): T {
  const value = map.get(name);
  if (value === undefined) throw new Error(`This peer does not have '${name}'.`);
  return value;
}

/** Waits for completions of one queue, using notifications. */
async function take(link: Link, which: keyof Completions, count: number): Promise<Completions['sends']> {
  const taken = link.pollOne(which);
  while (taken.length < count) {
    await link.notify(which);
    taken.push(...link.pollOne(which));
  }
  return taken;
}

/** Waits without a turn of the event loop. */
function takeBlocking(link: Link, which: keyof Completions, count: number): Completions['sends'] {
  const taken = link.pollOne(which);
  while (taken.length < count) {
    link.notify(which).getResult({ wait: true });
    taken.push(...link.pollOne(which));
  }
  return taken;
}

/** Returns a function that counts the turns of the event loop until it is called. */
function turnCounter(): () => number {
  let turns = 0;
  const count = (): void => {
    turns += 1;
  };
  setImmediate(count);
  setTimeout(count, 0);
  return () => turns;
}

type Handlers = {
  [K in Operation]: (args: Arguments<K>) => Answer<K> | Promise<Answer<K>>;
};

const handlers: Handlers = {
  listen: ({ as, layer, address, port = 0, backlog = 0 }) => {
    const listener = stacks[layer].listen(address, port, backlog);
    listeners.set(as, listener);
    return listener.port;
  },
  unlisten: ({ listener }) => {
    found(listeners, listener).release();
    listeners.delete(listener);
  },
  openToStrangers: () => openToStrangers(),
  accept: ({ listener, as, receives = 0, data = '' }) =>
    found(listeners, listener).accept(receives, data, (link) => links.set(as, link)),
  connect: ({ as, layer, from, to, port, receives = 0, data = '' }) => {
    const link = stacks[layer].link(from);
    links.set(as, link);
    link.receive(receives);
    return link.connect(to, port, data);
  },
  receive: ({ link, count }) => found(links, link).receive(count),
  receiveNow: ({ link }) => {
    const of = found(links, link);
    const start = performance.now();
    of.receive(1);
    let taken = of.pollOne('receives');
    while (taken.length === 0) taken = of.pollOne('receives');
    return { text: taken[0]!.text ?? '', microseconds: (performance.now() - start) * 1000 };
  },
  send: ({ link, texts }) => found(links, link).send(texts),
  poll: ({ link }) => found(links, link).poll(),
  results: async ({ link, sends, receives }) => {
    const of = found(links, link);
    const [sent, received] = await Promise.all([take(of, 'sends', sends), take(of, 'receives', receives)]);
    return { sends: sent, receives: received };
  },
  notifyDisconnect: ({ link }) => outcomeName(found(links, link).notifyDisconnect()),
  disconnect: ({ link }) => {
    const of = found(links, link);
    disconnects.set(link, of.disconnect());
    return of.poll();
  },
  disconnected: ({ link }) => outcomeName(found(disconnects, link)),
  release: ({ link }) => {
    found(links, link).release();
    links.delete(link);
    disconnects.delete(link);
  },
  releaseAll: () => {
    for (const link of links.values()) link.release();
    for (const listener of listeners.values()) listener.release();
    for (const stack of Object.values(stacks)) stack.release();
    for (const map of [links, listeners, disconnects]) map.clear();
  },
  counters: async () => {
    // Rings exist while JavaScript can access them, so garbage must be collected before they are counted.
    for (let n = 0; n < 3; n += 1) {
      collect();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { ...readCounters() };
  },

  traces: () => readTraces(),

  blockingSession: ({ address, port, texts }) => {
    const turns = turnCounter();
    const stack = new LinkStack('nd');
    const link = stack.link(address);
    link.receive(texts.length);
    link.side.connect(socketAddress(address, port)).getResult({ wait: true });
    link.side.completeConnect().getResult({ wait: true });
    link.send(texts);
    takeBlocking(link, 'sends', texts.length);
    const replies = takeBlocking(link, 'receives', texts.length).map(({ text = '' }) => text);
    const disconnect = thrownName(() => link.disconnect().getResult({ wait: true }));
    link.release();
    stack.release();
    return { replies, disconnect, turns: turns() };
  },

  spinUntilDisconnected: ({ link }) => {
    const of = found(links, link);
    const turns = turnCounter();
    const ended = of.notifyDisconnect();
    tell({ id: -1 });
    while (!ended.completed);
    const status = ended.status === Status.PENDING ? 'PENDING' : statusName(ended.status);
    return { status, turns: turns(), completions: of.poll() };
  },

  serveMany: async ({ listener, count }) => {
    for (let n = 0; n < count; n += 1) {
      let link: Link | undefined;
      await found(listeners, listener).accept(1, `reply ${n}`, (made) => {
        link = made;
      });
      if (link === undefined) throw new Error('accept() did not create a link.');
      const ended = outcomeName(link.notifyDisconnect());
      const [message] = await take(link, 'receives', 1);
      if (message?.text !== `message ${n}`)
        throw new Error(`Connection ${n} received ${JSON.stringify(message)}.`);
      await ended;
      link.release();
    }
    return count;
  },
  connectMany: async ({ layer, address, port, count }) => {
    for (let n = 0; n < count; n += 1) {
      const link = stacks[layer].link(address);
      const reply = await link.connect(address, port, `request ${n}`);
      if (reply !== `reply ${n}`) throw new Error(`Connection ${n} received the reply '${reply}'.`);
      link.send([`message ${n}`]);
      const [sent] = await take(link, 'sends', 1);
      if (sent?.status !== 'SUCCESS') throw new Error(`Connection ${n} sent ${JSON.stringify(sent)}.`);
      const ended = await outcomeName(link.disconnect());
      if (ended !== 'SUCCESS') throw new Error(`Disconnect of connection ${n} ended with ${ended}.`);
      link.release();
    }
    return count;
  },

  trafficListen: ({ as, address, ...options }) =>
    new Promise((resolve, reject) => {
      const accepted = TrafficSide.accept(address, options, resolve);
      accepted.catch(reject);
      traffics.set(as, accepted);
    }),
  trafficAccepted: async ({ as }) => {
    await found(traffics, as);
  },
  trafficConnect: async ({ as, address, port, ...options }) => {
    const connected = TrafficSide.connect(address, port, options);
    traffics.set(as, connected);
    await connected;
  },
  trafficRun: async ({ as }) => (await found(traffics, as)).run(),
  trafficStream: async ({ as, rounds }) => (await found(traffics, as)).stream(rounds),
  trafficDisconnect: async ({ as }) => {
    const traffic = await found(traffics, as);
    const status = await outcomeName(traffic.side.connector.disconnect());
    traffic.release();
    traffics.delete(as);
    return status;
  },
  setFaults: ({ faults: wanted }) => {
    const hcaOptions = { ...resolveKernelOptions(undefined), faults: faultOptionsSchema.parse(wanted) };
    const hca = addon.openHca(hcaOptions, () => {});
    hca.configure(hcaOptions);
    hca.close();
  },

  startWorker: ({ worker }) =>
    new Promise((resolve, reject) => {
      const thread = new Worker(process.argv[1]!);
      workers.set(worker, thread);
      thread.on('error', reject);
      thread.on('message', (reply: Reply) => (reply.id === 0 ? resolve() : tell(reply)));
    }),
  terminateWorker: async ({ worker }) => {
    const code = await found(workers, worker).terminate();
    workers.delete(worker);
    return code;
  },

  leave: ({ how }) => {
    if (how === 'exit') process.exit(0);
    if (how === 'throw') {
      setImmediate(() => {
        throw new Error('thrown at the request of the test');
      });
      return;
    }
    // Without the channel, nothing keeps the process alive.
    process.disconnect();
  },
};

async function perform(op: Operation, args: unknown): Promise<unknown> {
  const handler = handlers[op] as (args: unknown) => unknown;
  return await handler(args);
}

function tell(reply: Reply): void {
  if (parentPort !== null) parentPort.postMessage(reply);
  else if (process.connected) process.send?.(reply);
}

function onCommand(command: Command): void {
  const { id, op, args, worker } = command;
  if (worker !== undefined) {
    const { worker: _, ...rest } = command;
    workers.get(worker)?.postMessage(rest);
    return;
  }
  // The command is started now, so that commands take effect in order.
  perform(op, args).then(
    (value) => tell({ id, value }),
    (error: unknown) => {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      const status = error instanceof StatusError ? { status: statusName(error.status) } : {};
      tell({ id, error: { message, ...status } });
    },
  );
}

if (parentPort !== null) {
  parentPort.on('message', onCommand);
} else {
  process.on('message', onCommand);
  let leaving = false;
  process.on('message', (command: Command) => {
    leaving ||= command.op === 'leave';
  });
  // If the test ends, its peers end as well.
  process.on('disconnect', () => {
    if (!leaving) process.exit(0);
  });
}
tell({ id: 0 });
