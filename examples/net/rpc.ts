/**
 * RPC: functions of a server, called by clients. Arguments and results are JSON.
 *
 *     node dist/examples/net/rpc.js serve [port]
 *     node dist/examples/net/rpc.js call <host> <port> <function> <number>...
 */
import { connectChannel, createChannelServer } from 'networkdirect/net';
import { listen, portOf, run } from './start.js';

/** The functions that clients may call. */
const functions: Readonly<Record<string, (...numbers: number[]) => number>> = {
  sum: (...numbers) => numbers.reduce((sum, number) => sum + number, 0),
  largest: (...numbers) => Math.max(...numbers),
  divide: (dividend = 0, divisor = 0) => {
    if (divisor === 0) throw new RangeError('Division by zero.');
    return dividend / divisor;
  },
};

/** Executes a request. If it throws, the client gets an error with the same message. */
function answer(bytes: Uint8Array): string {
  const { name, numbers } = JSON.parse(String(bytes)) as { name: unknown; numbers: unknown };
  if (typeof name !== 'string' || !Object.hasOwn(functions, name))
    throw new TypeError(`Unknown function ${String(name)}; available: ${Object.keys(functions).join(', ')}.`);
  if (!Array.isArray(numbers) || !numbers.every((number) => Number.isFinite(number)))
    throw new TypeError('All arguments must be numbers.');
  return JSON.stringify(functions[name]!(...(numbers as number[])));
}

function serve(port = '0'): void {
  listen(
    createChannelServer((channel) => channel.onRequest(answer)),
    port,
  );
}

async function call(host: string, port: string, name: string, ...numbers: string[]): Promise<void> {
  await using channel = await connectChannel(portOf(port), host, { signal: AbortSignal.timeout(10_000) });
  const request = JSON.stringify({ name, numbers: numbers.map(Number) });
  // The client gives up after a second, which aborts the signal of the server's handler.
  const result = await channel.request(request, { signal: AbortSignal.timeout(1000) });
  console.log(JSON.parse(String(result)));
}

await run('rpc.js serve [port] | call <host> <port> <function> <number>...', { serve, call });
