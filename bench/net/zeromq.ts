/**
 * Broadcasts over zeromq with PUB and SUB, and requests with DEALER and ROUTER, because REQ and REP allow only one request in flight. They
 * use `ipc:`, its fastest transport between two processes. scripts/install-bench-peers.sh installs zeromq.
 */
import { npmPackage } from '../peers/npm-package.js';
import { type Answer, type Client, Waiting } from './client.js';

/** The used part of the package. */
interface Socket extends AsyncIterable<Buffer[]> {
  send(parts: Uint8Array | (Uint8Array | string)[]): Promise<void>;
  connect(address: string): void;
  bind(address: string): Promise<void>;
  subscribe(...prefixes: string[]): void;
}
type SocketClass = new (options: object) => Socket;

/** Disables the time and queue limits of sends. Otherwise a second, concurrent send is an error. */
const UNLIMITED = { sendTimeout: 0, sendHighWaterMark: 0, receiveHighWaterMark: 0 };

const zeromq = () =>
  npmPackage<Readonly<Record<'Dealer' | 'Router' | 'Publisher' | 'Subscriber', SocketClass>>>('zeromq');

export function zeromqClient(address: string): Client {
  const dealer = new (zeromq().Dealer)(UNLIMITED);
  const waiting = new Waiting();
  dealer.connect(address);
  void (async () => {
    for await (const [message] of dealer) waiting.answer(message!);
  })();
  return {
    request(bytes) {
      void dealer.send(bytes);
      return waiting.next();
    },
  };
}

/** Returns its address: a name without a file. */
export async function serveZeromq(answerTo: Answer): Promise<string> {
  const router = new (zeromq().Router)(UNLIMITED);
  const address = `ipc://@nd-bench-net-${process.pid}`;
  await router.bind(address);
  void (async () => {
    for await (const [from, message] of router) void router.send([from!, answerTo(message!)]);
  })();
  return address;
}

/** A publisher and its address. */
export async function publishZeromq(): Promise<{ address: string; send(bytes: Uint8Array): Promise<void> }> {
  const publisher = new (zeromq().Publisher)({ sendHighWaterMark: 0 });
  const address = `ipc://@nd-bench-pub-${process.pid}`;
  await publisher.bind(address);
  return { address, send: (bytes) => publisher.send(bytes) };
}

/** Calls the function for each message. */
export function subscribeZeromq(address: string, each: () => void): void {
  const subscriber = new (zeromq().Subscriber)({ receiveHighWaterMark: 0 });
  subscriber.connect(address);
  subscriber.subscribe();
  void (async () => {
    for await (const _ of subscriber) each();
  })();
}
