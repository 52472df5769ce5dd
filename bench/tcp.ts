/** `node:net` TCP doing the same work, for comparison. The first line from the client says which. */
import { once } from 'node:events';
import net from 'node:net';
import type { Job, Measurement } from './plan.js';
import { quantile } from './statistics.js';

const warmup = 200;

export async function serveTcp(address: string): Promise<{ port: number; close(): void }> {
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (first) => {
      const end = first.indexOf(10);
      const job = JSON.parse(first.toString('utf8', 0, end)) as Job;
      const rest = first.subarray(end + 1);
      socket.write('\n');
      if (job.kind === 'latency') echo(socket, rest);
      else sink(socket, rest, job.size * job.count);
    });
  });
  server.listen(0, address);
  await once(server, 'listening');
  return { port: (server.address() as net.AddressInfo).port, close: () => server.close() };
}

function echo(socket: net.Socket, rest: Buffer): void {
  if (rest.length > 0) socket.write(rest);
  socket.on('data', (chunk) => socket.write(chunk));
}

function sink(socket: net.Socket, rest: Buffer, total: number): void {
  let received = rest.length;
  socket.on('data', (chunk) => {
    received += chunk.length;
    if (received >= total) {
      received -= total;
      socket.write('.');
    }
  });
}

export async function measureTcp(address: string, port: number, job: Job): Promise<Measurement> {
  const socket = net.connect({ host: address, port, noDelay: true });
  await once(socket, 'connect');
  socket.write(`${JSON.stringify(job)}\n`);
  await once(socket, 'data');
  try {
    if (job.kind === 'latency') return { ...job, ...(await pingPong(socket, job)) };
    const seconds = await stream(socket, job);
    return job.kind === 'rate'
      ? { ...job, rate: job.count / seconds }
      : { ...job, bandwidth: (job.count * job.size) / seconds };
  } finally {
    socket.destroy();
  }
}

function pingPong(socket: net.Socket, job: Job): Promise<{ median: number; p99: number }> {
  const message = Buffer.alloc(job.size, 1);
  const samples = new Float64Array(job.count);
  return new Promise((resolve, reject) => {
    let done = -warmup;
    let pending = job.size;
    let start = performance.now();
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      pending -= chunk.length;
      if (pending > 0) return;
      const now = performance.now();
      if (done >= 0) samples[done] = ((now - start) * 1000) / 2;
      done += 1;
      if (done === job.count) {
        resolve({ median: quantile(samples, 0.5), p99: quantile(samples, 0.99) });
        return;
      }
      pending = job.size;
      start = performance.now();
      socket.write(message);
    });
    socket.write(message);
  });
}

async function stream(socket: net.Socket, job: Job): Promise<number> {
  const message = Buffer.alloc(job.size, 1);
  const finished = once(socket, 'data');
  const start = performance.now();
  for (let sent = 0; sent < job.count; ) {
    let room = true;
    while (room && sent < job.count) {
      room = socket.write(message);
      sent += 1;
    }
    if (!room) await once(socket, 'drain');
  }
  await finished;
  return (performance.now() - start) / 1000;
}
