/** Requests between two threads of one process. Each message is copied, as with the other transports. */
import { once } from 'node:events';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { type Client, Waiting } from './client.js';

/** `program` is started as a thread whose `workerData` is the port for {@link servePort}. */
export async function portClient(program: URL, argv: readonly string[]): Promise<Client> {
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(program, { argv: [...argv], workerData: port2, transferList: [port2] });
  worker.on('error', (error) => {
    throw error;
  });
  // The thread has loaded its program.
  await once(port1, 'message');
  const waiting = new Waiting();
  port1.on('message', (bytes: Uint8Array) => waiting.answer(bytes));
  return {
    request(bytes) {
      port1.postMessage(bytes);
      return waiting.next();
    },
  };
}

export function servePort(port: MessagePort): void {
  port.on('message', (bytes: Uint8Array) => port.postMessage(bytes));
  port.postMessage('ready');
}
