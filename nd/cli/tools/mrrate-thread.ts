/**
 * A thread of `nd mrrate`. It registers and deregisters a buffer many times, as requested by the orders that it
 * receives.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { ndCleanup, ndStartup, type Overlapped, type SocketAddress } from '../../index.js';
import { memoryFor } from '../sides/connected-side.js';
import { openRegistrar, type Registration } from './registrar.js';

/** The data of a new thread. */
export interface ThreadData {
  readonly spi: 'v1' | 'v2';
  readonly address: SocketAddress;
}

/** Orders for a thread, which replies to each with the text of an error, or null. */
export type ThreadOrder =
  | { readonly step: 'prepare'; readonly size: number; readonly count: number }
  | { readonly step: 'register' | 'deregister' | 'end' };

/** Maximum requests in flight. */
const IN_FLIGHT = 128;

/** Starts all requests, a limited number at a time, and waits for them. */
async function all(requests: Iterable<Overlapped<unknown>>): Promise<void> {
  let flight: Overlapped<unknown>[] = [];
  for (const request of requests) {
    flight.push(request);
    if (flight.length < IN_FLIGHT) continue;
    for (const one of flight) await one;
    flight = [];
  }
  for (const one of flight) await one;
}

function* each(registrations: readonly Registration[], step: 'register' | 'deregister') {
  for (const one of registrations) yield one[step]();
}

const { spi, address } = workerData as ThreadData;
const port = parentPort!;
ndStartup();
const registrar = openRegistrar(spi, address);
let registrations: Registration[] = [];

async function execute(order: ThreadOrder): Promise<void> {
  switch (order.step) {
    case 'prepare': {
      const buffer = memoryFor(order.size);
      registrations = Array.from({ length: order.count }, () => registrar.registration(buffer));
      break;
    }
    case 'register':
      await all(each(registrations, 'register'));
      break;
    case 'deregister':
      await all(each(registrations, 'deregister'));
      for (const one of registrations) one[Symbol.dispose]();
      break;
    case 'end':
      registrar[Symbol.dispose]();
      ndCleanup();
  }
}

port.on('message', (order: ThreadOrder) => {
  execute(order).then(
    () => port.postMessage(null),
    (error: unknown) => port.postMessage(error instanceof Error ? error.message : String(error)),
  );
});
