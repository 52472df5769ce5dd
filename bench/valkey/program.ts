/** The two sides of a measurement: `program.js server JOB` prints its port, `program.js client JOB PORT` prints the sample. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { connectValkey } from '../../examples/valkey/connect.js';
import { RespService } from '../../examples/valkey/resp-service.js';
import { ValkeyServer } from '../../examples/valkey/valkey-server.js';
import { perSecond, type Sample, timedAsync } from '../samples.js';
import { type ValkeyJob, valkeyJobSchema } from './job.js';

const [role, text = '', port = ''] = process.argv.slice(2);
const job = valkeyJobSchema.parse(JSON.parse(text));
/** Selects the software HCA even if the machine has an RDMA NIC, which is not part of the comparison. */
const kernel = { hca: 'soft' } as const;

if (role === 'server') console.log(JSON.stringify({ port: await serve(job) }));
else {
  console.log(JSON.stringify(await measure(job, Number(port))));
  process.exit();
}

async function serve({ over, host }: ValkeyJob): Promise<number> {
  if (over === 'RDMA') return new ValkeyServer({ host, port: 0, kernel }).port;
  const service = new RespService();
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {});
    service.serve(socket);
  });
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function measure({ over, host, size, inFlight, seconds }: ValkeyJob, at: number): Promise<Sample> {
  const stream: Duplex =
    over === 'RDMA' ? connectValkey({ host, port: at, kernel }) : connect({ host, port: at, noDelay: true });
  await once(stream, 'connect');
  const value = 'x'.repeat(size);
  const request = Buffer.from(`*2\r\n$4\r\nECHO\r\n$${size}\r\n${value}\r\n`);
  const replyBytes = `$${size}\r\n${value}\r\n`.length;
  let missing = 0;
  let answered = () => {};
  stream.on('data', (chunk: Buffer) => {
    missing -= chunk.length;
    if (missing === 0) answered();
  });
  const requests = () =>
    new Promise<void>((resolve) => {
      answered = resolve;
      missing = inFlight * replyBytes;
      for (let n = 0; n < inFlight; n += 1) stream.write(request);
    });
  return perSecond(await timedAsync(seconds, requests), inFlight);
}
