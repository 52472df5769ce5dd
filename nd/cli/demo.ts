/**
 * The demo: a server and a client that use RDMA through NetworkDirect SPI v1. The client sends commands, which the server executes. Every
 * byte is compared at its destination.
 */
import {
  type INDConnector,
  NdError,
  NdMwDescriptor,
  NdOpFlag,
  type NdResult,
  type NdSge,
  openNetworkDirect,
  type SocketAddress,
  Status,
} from '../index.js';
import type { BandwidthRow, DisconnectRow, LatencyRow, Report } from './demo-report.js';
import { DEPTH, MESSAGE, next, RECEIVES, Side, WINDOW } from './demo-side.js';
import { fillPattern, firstDifference } from './pattern.js';
import { textOf } from './sides/connected-side.js';
import { newResult } from './sides/v1-side.js';

export interface ServerOptions {
  address: string;
  /** 0: any free port. */
  port: number;
}

export interface ClientOptions extends ServerOptions {
  /** Round trips per message size. */
  iterations: number;
  /** Number of windows of data per stream. */
  rounds: number;
  /** Seed of the test data. */
  seed: number;
}

/** Commands from the client to the server. */
type Command =
  /** Bind the window and reply with its descriptor. */
  | { readonly request: 'window' }
  /** Send back `count` messages. */
  | { readonly request: 'echo'; readonly bytes: number; readonly count: number; readonly seed: number }
  /** Compare the window with the pattern of `seed` and reply with the first difference. */
  | { readonly request: 'check'; readonly seed: number }
  /** Fill the window with the pattern of `seed`. */
  | { readonly request: 'fill'; readonly seed: number }
  /** Leave all Receives outstanding: the client is about to disconnect. */
  | { readonly request: 'end' };

const MESSAGE_SIZES = [8, 64, 1024, 4096, MESSAGE];
/** Round trips of each size before the measured ones, so that the JIT compiler has optimized the code. */
const WARM_UP = 2000;
const REQUEST_SIZES = [64 << 10, 1 << 20];
/** Outstanding requests in a stream. */
const IN_FLIGHT = 16;

/** Serves one client. */
export async function runServer(
  options: ServerOptions,
  onListening: (address: SocketAddress) => void,
): Promise<Report> {
  using nd = openNetworkDirect();
  using adapter = nd.openAdapter(options.address);
  using listen = adapter.listen({ port: options.port });
  onListening(listen.address);

  using side = new Side(adapter);
  await using connector = side.connector;
  await listen.getConnectionRequest(connector);
  const privateData = textOf(connector.getConnectionData().privateData);
  await connector.accept(side.endpoint, new TextEncoder().encode('welcome'));
  const peerGone = connector.notifyDisconnect();
  const addresses = addressesOf(connector);

  using window = adapter.createMemoryWindow();
  for (;;) {
    const command = (await side.receiveObject()) as Command;
    switch (command.request) {
      case 'window': {
        const { memory, offset, length } = side.windowMemory;
        const flags = NdOpFlag.ALLOW_READ | NdOpFlag.ALLOW_WRITE;
        // The descriptor may be sent before the Bind has completed, because both are in the same queue.
        const descriptor = side.endpoint.bind(newResult(), memory, window, offset, length, flags);
        descriptor.encode(side.sendBuffer);
        side.endpoint.send(newResult(), [side.sendPiece(NdMwDescriptor.size)]);
        side.finish(2);
        break;
      }
      case 'echo':
        echo(side, command.bytes, command.count, command.seed);
        break;
      case 'check': {
        const expected = new Uint8Array(WINDOW);
        fillPattern(expected, command.seed);
        side.sendObject({ differsAt: firstDifference(side.window, expected) });
        break;
      }
      case 'fill':
        fillPattern(side.window, command.seed);
        side.sendObject({ filled: command.seed });
        break;
      case 'end': {
        side.sendObject({ waiting: RECEIVES });
        await peerGone;
        // The peer's disconnect has flushed the remaining Receives.
        const receives = await reap('server', 'Receive', side.inbound, RECEIVES);
        return { ...addresses, privateData, latency: [], bandwidth: [], disconnect: [receives] };
      }
    }
  }
}

/** Connects to a server and runs all steps of the demo. */
export async function runClient(options: ClientOptions, onProgress: (text: string) => void): Promise<Report> {
  using nd = openNetworkDirect();
  using adapter = nd.openAdapter(localAddressFor(options.address, nd.queryAddressList()));
  using side = new Side(adapter);
  await using connector = side.connector;

  const server = { family: adapter.address.family, address: options.address, port: options.port };
  const hello = new TextEncoder().encode(`hello, seed ${options.seed}`);
  try {
    await connector.connect(side.endpoint, server, { privateData: hello });
  } catch (error) {
    throw missingServer(error, options);
  }
  const privateData = textOf(connector.getConnectionData().privateData);
  await connector.completeConnect();
  const addresses = addressesOf(connector);

  const latency: LatencyRow[] = [];
  for (const bytes of MESSAGE_SIZES) {
    onProgress(`ping-pong with ${bytes} bytes`);
    latency.push(pingPong(side, bytes, options));
  }

  request(side, { request: 'window' });
  const { slot, bytes } = await side.receiveMessage();
  const remote = NdMwDescriptor.decode(bytes);
  side.receiveInto(slot);
  const bandwidth: BandwidthRow[] = [];
  for (const operation of ['RDMA Write', 'RDMA Read'] as const) {
    for (const requestBytes of REQUEST_SIZES) {
      onProgress(`${operation} with ${requestBytes} bytes per request`);
      bandwidth.push(await stream(side, remote, operation, requestBytes, options));
    }
  }

  onProgress('disconnecting with requests outstanding');
  const disconnect = await disconnectBusy(side, connector, remote);
  onProgress('');
  return { ...addresses, privateData, latency, bandwidth, disconnect };
}

/** The server's half of {@link pingPong}: compares and returns each message. */
function echo(side: Side, bytes: number, count: number, seed: number): void {
  const expected = new Uint8Array(bytes);
  fillPattern(expected, seed);
  for (let i = 0; i < count; i += 1) {
    const message = side.poll();
    side.endpoint.send(newResult(), [side.slotPiece(message.slot, bytes)]);
    stamp(expected, i);
    expectEqual(message.bytes, expected, `message ${i} of ${bytes} bytes, at the server`);
    side.finish();
    side.receiveInto(message.slot);
  }
}

function pingPong(side: Side, bytes: number, { iterations, seed }: ClientOptions): LatencyRow {
  request(side, { request: 'echo', bytes, count: WARM_UP + iterations, seed });
  const out = side.sendBuffer.subarray(0, bytes);
  fillPattern(out, seed);
  const expected = out.slice();
  const halves = new Float64Array(iterations);
  const result = newResult();
  const sgl: NdSge[] = [side.sendPiece(bytes)];
  for (let i = 0; i < WARM_UP + iterations; i += 1) {
    stamp(out, i);
    const start = performance.now();
    side.endpoint.send(result, sgl);
    const message = side.poll();
    if (i >= WARM_UP) halves[i - WARM_UP] = ((performance.now() - start) * 1000) / 2;
    side.finish();
    stamp(expected, i);
    expectEqual(message.bytes, expected, `reply ${i} of ${bytes} bytes, at the client`);
    side.receiveInto(message.slot);
  }
  halves.sort();
  const at = (quantile: number): number => halves[Math.floor(quantile * (iterations - 1))]!;
  return { bytes, messages: iterations, median: at(0.5), p99: at(0.99) };
}

/** Writes or reads the whole window several times with different data. */
async function stream(
  side: Side,
  remote: NdMwDescriptor,
  operation: BandwidthRow['operation'],
  requestBytes: number,
  { rounds, seed }: ClientOptions,
): Promise<BandwidthRow> {
  const { endpoint, window } = side;
  const writing = operation === 'RDMA Write';
  const requests = WINDOW / requestBytes;
  const sges = Array.from({ length: requests }, (_, i) => [side.windowPiece(i * requestBytes, requestBytes)]);
  const results = Array.from({ length: IN_FLIGHT }, () => newResult());
  const expected = new Uint8Array(WINDOW);
  let seconds = 0;
  for (let round = 0; round < rounds; round += 1) {
    const roundSeed = seed + round + requestBytes;
    fillPattern(expected, roundSeed);
    if (writing) {
      window.set(expected);
    } else {
      window.fill(0);
      request(side, { request: 'fill', seed: roundSeed });
      await side.receiveObject();
    }
    const start = performance.now();
    for (let i = 0; i < requests; i += 1) {
      if (i >= IN_FLIGHT) side.finish();
      const result = results[i % IN_FLIGHT]!;
      if (writing) endpoint.write(result, sges[i]!, remote, i * requestBytes);
      else endpoint.read(result, sges[i]!, remote, i * requestBytes);
    }
    side.finish(Math.min(IN_FLIGHT, requests));
    seconds += (performance.now() - start) / 1000;
    if (writing) {
      // A Send is delivered after the Writes before it, so the server now sees their data.
      request(side, { request: 'check', seed: roundSeed });
      const { differsAt } = (await side.receiveObject()) as { differsAt: number };
      if (differsAt >= 0) throw mismatch(`${operation} in round ${round}, at the server`, differsAt);
    } else {
      expectEqual(window, expected, `${operation} in round ${round}, at the client`);
    }
  }
  return { operation, requestBytes, totalBytes: WINDOW * rounds, seconds };
}

/**
 * Disconnects with Receives, Reads and Sends outstanding. The Sends are queued behind Reads that take much longer than a disconnect, so
 * none of them can have been sent.
 */
async function disconnectBusy(
  side: Side,
  connector: INDConnector,
  remote: NdMwDescriptor,
): Promise<DisconnectRow[]> {
  request(side, { request: 'end' });
  await side.receiveObject();
  const sends = 8;
  const reads = DEPTH - sends;
  for (let i = 0; i < reads; i += 1) {
    side.endpoint.read(newResult('Read'), [side.windowPiece(0, WINDOW)], remote, 0);
  }
  for (let i = 0; i < sends; i += 1) {
    side.endpoint.send(newResult('Send'), [side.sendPiece(MESSAGE)], NdOpFlag.READ_FENCE);
  }
  const ended = connector.disconnect();
  const rows = [
    await reap('client', 'Receive', side.inbound, RECEIVES),
    await reap('client', 'Read, Send', side.outbound, reads + sends),
  ];
  await ended;
  return rows;
}

/** Collects the results of requests that were outstanding when the connection ended. Each must have one result, canceled or successful. */
async function reap(
  side: DisconnectRow['side'],
  requests: string,
  queue: Parameters<typeof next>[0],
  outstanding: number,
): Promise<DisconnectRow> {
  let succeeded = 0;
  let canceled = 0;
  while (succeeded + canceled < outstanding) {
    const result: NdResult = await next(queue);
    if (result.status === Status.CANCELED) canceled += 1;
    else if (result.status === Status.SUCCESS && result.context === 'Read') succeeded += 1;
    else throw new NdError(result.status, `An outstanding ${requests} was not canceled by the disconnect.`);
  }
  return { side, requests, outstanding, succeeded, canceled };
}

function request(side: Side, command: Command): void {
  side.sendObject(command);
}

/** Numbers a message so that no two are equal. */
function stamp(bytes: Uint8Array, number: number): void {
  bytes[0] = number;
  bytes[1] = number >> 8;
  bytes[2] = number >> 16;
}

function expectEqual(actual: Uint8Array, expected: Uint8Array, what: string): void {
  const differsAt = firstDifference(actual, expected);
  if (differsAt >= 0) throw mismatch(what, differsAt);
}

function mismatch(what: string, offset: number): Error {
  return new Error(`Wrong contents from byte ${offset}: ${what}.`);
}

function addressesOf(connector: INDConnector): { localAddress: string; peerAddress: string } {
  return {
    localAddress: format(connector.getLocalAddress()),
    peerAddress: format(connector.getPeerAddress()),
  };
}

/** Formats an address with its port. */
export function format({ family, address, port }: SocketAddress): string {
  return family === 6 ? `[${address}]:${port}` : `${address}:${port}`;
}

/** The local address to connect from: the server's address if it is on this host, otherwise the first of its family. */
function localAddressFor(server: string, own: readonly SocketAddress[]): SocketAddress {
  const family = server.includes(':') ? 6 : 4;
  const usable = own.filter((address) => address.family === family);
  const local = usable.find((address) => address.address === server) ?? usable[0];
  if (local === undefined) throw new Error(`No adapter of this host has an IPv${family} address.`);
  return local;
}

function missingServer(error: unknown, { address, port }: ClientOptions): unknown {
  if (!(error instanceof NdError)) return error;
  if (error.status !== Status.CONNECTION_REFUSED && error.status !== Status.TIMEOUT) return error;
  return new Error(
    `No demo server responds at ${address}, port ${port}. ` +
      `Start one there first: nd demo --server --address ${address} --port ${port}`,
    { cause: error },
  );
}
