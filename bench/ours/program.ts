/**
 * One of the two processes of a measurement. `program.js server JOB` prints the port it listens on, `program.js client JOB PORT` prints the
 * sample, each as one line of JSON. The server exits with the client.
 */
import { openProvider } from 'networkdirect/winverbs';
import type { Sample } from '../samples.js';
import { farMemory, farQueuePair, farTransfer } from './far.js';
import { type Job, type JobOf, jobSchema } from './job.js';
import { libraryOptions, linkUsed } from './library.js';
import {
  acceptMany,
  connectMany,
  connectRate,
  rateConnections,
  residentBytes,
  residentConnections,
  restingCost,
  smallQueuePair,
} from './many.js';
import { measureNd, serveNd } from './nd-ping-pong.js';
import { oneSidedMemory, oneSidedQueuePair, transfer } from './one-sided.js';
import { answer, Player, play } from './ping-pong.js';
import { rateQueuePair, Sink, Source } from './rate.js';
import { type Connection, Side } from './side.js';
import { overBareCalls } from './verbs.js';
import { workersRate } from './workers.js';
import { answerWrites, playWrites, Writer } from './write-poll.js';

/** The two sides of a job. The server accepts one connection or several and ends with them. */
interface Sides {
  serve(side: Side, accept: Accept): Promise<void>;
  measure(side: Side, port: number): Promise<Sample>;
}
type WinVerbsJob = Exclude<Job, { kind: 'open' | 'workers' | 'nd-ping-pong' | 'verbs' }>;
type Accept = (queuePair: () => Connection['qp'], count?: number, inFlight?: number) => Promise<Connection[]>;

function sidesOf(job: WinVerbsJob): Sides {
  switch (job.kind) {
    case 'ping-pong':
      return pingPong(job);
    case 'write-poll':
      return writePoll(job);
    case 'write':
    case 'read':
    case 'add':
      return oneSided(job);
    case 'far':
      return far(job);
    case 'rate':
      return rate(job);
    case 'connect':
      return {
        serve: async (side, accept) => {
          await accept(() => smallQueuePair(side), rateConnections(job), job.inFlight);
        },
        measure: (side, port) => connectRate(side, port, job),
      };
    case 'resident':
      return {
        serve: async (side, accept) => {
          await accept(() => smallQueuePair(side), residentConnections(job));
        },
        measure: (side, port) => residentBytes(side, port, job),
      };
    case 'rest':
      return {
        serve: async (side, accept) => {
          await accept(() => smallQueuePair(side), job.queuePairs);
        },
        measure: async (side, port) => {
          await connectMany(side, port, job.queuePairs, () => smallQueuePair(side));
          return restingCost(job);
        },
      };
  }
}

function pingPong(job: JobOf<'ping-pong'>): Sides {
  return {
    serve: async (side, accept) => {
      const player = new Player(side, job);
      await accept(() => player.queuePair(), job.queuePairs);
      await answer(player, job);
    },
    measure: async (side, port) => {
      const player = new Player(side, job);
      await connectMany(side, port, job.queuePairs, () => player.queuePair());
      return play(player, job);
    },
  };
}

function writePoll(job: JobOf<'write-poll'>): Sides {
  return {
    serve: async (side, accept) => {
      const writer = new Writer(side, job);
      writer.connection = (await accept(() => writer.queuePair()))[0]!;
      answerWrites(writer);
    },
    measure: async (side, port) => {
      const writer = new Writer(side, job);
      writer.connection = await side.connect(port, writer.queuePair());
      return playWrites(writer, job);
    },
  };
}

function oneSided(job: JobOf<'write' | 'read' | 'add'>): Sides {
  return {
    serve: async (side, accept) => {
      oneSidedMemory(side, job);
      const [connection] = await accept(() => oneSidedQueuePair(side));
      const gone = connection!.endpoint.notifyDisconnect();
      if (job.target === 'polls') while (!gone.completed) side.cq.peek();
    },
    measure: async (side, port) => {
      const memory = oneSidedMemory(side, job);
      return transfer(side, memory, await side.connect(port, oneSidedQueuePair(side)), job);
    },
  };
}

function far(job: JobOf<'far'>): Sides {
  return {
    serve: async (side, accept) => {
      farMemory(side, job);
      await accept(() => farQueuePair(side, job));
    },
    measure: async (side, port) => {
      farMemory(side, job);
      return farTransfer(side, await side.connect(port, farQueuePair(side, job)), job);
    },
  };
}

function rate(job: JobOf<'rate'>): Sides {
  return {
    serve: async (side, accept) => {
      const sink = new Sink(side, job);
      const [connection] = await accept(() => {
        const qp = rateQueuePair(side, job);
        sink.prepare(qp);
        return qp;
      });
      sink.run(connection!);
    },
    measure: async (side, port) => {
      const source = new Source(side, job);
      const qp = rateQueuePair(side, job);
      source.prepare(qp);
      return source.run(await side.connect(port, qp), job);
    },
  };
}

function sideOf(job: Job, role: 'client' | 'server'): Side {
  if (job.kind !== 'far') return new Side(job);
  const [client, server] = job.addresses;
  return new Side(job, undefined, role === 'client' ? [client, server] : [server, client]);
}

function openingTime(job: Job): Sample {
  const start = performance.now();
  const provider = openProvider(libraryOptions(job));
  provider.openDevice(provider.translateAddress('127.0.0.1').deviceGuid);
  return { mean: performance.now() - start };
}

function print(what: object): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

async function serve(job: Job): Promise<void> {
  if (job.kind === 'open' || job.kind === 'workers' || job.kind === 'verbs')
    throw new Error(`The job ${job.kind} does not use a peer.`);
  if (job.kind === 'nd-ping-pong') return serveNd(job, (port) => print({ port }));
  const side = sideOf(job, 'server');
  const listener = side.host.listen(0, 1024);
  print({ port: listener.address.port });
  let connections: Connection[] = [];
  await sidesOf(job).serve(side, async (queuePair, count = 1, inFlight) => {
    connections = await acceptMany(side, listener, count, queuePair, inFlight);
    return connections;
  });
  await connections[0]?.endpoint.notifyDisconnect().then(undefined, () => {});
}

/** Jobs whose connections carry no messages. */
const MANY: ReadonlySet<Job['kind']> = new Set(['connect', 'resident', 'rest']);

async function measure(job: Job, port: number): Promise<Sample> {
  if (job.kind === 'open') return openingTime(job);
  if (job.kind === 'workers') return workersRate(job);
  if (job.kind === 'verbs') return overBareCalls(job);
  const sample =
    job.kind === 'nd-ping-pong'
      ? await measureNd(job, port)
      : await sidesOf(job).measure(sideOf(job, 'client'), port);
  return MANY.has(job.kind) ? sample : { ...sample, link: linkUsed(job) };
}

async function main([role, text, port]: string[]): Promise<void> {
  const job = jobSchema.parse(JSON.parse(text!));
  if (role === 'server') await serve(job);
  else print(await measure(job, Number(port)));
  // Exiting closes everything that is still open, as when a program is killed.
  process.exit(0);
}

await main(process.argv.slice(2));
