/** Halves for cases, in this process or behind a control connection. The protocol is JSON lines over TCP. */
import { once } from 'node:events';
import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { statusOfError } from './common-half.js';
import {
  type Half,
  type HalfMethod,
  halfArguments,
  type Party,
  type Spi,
  type SyncCall,
  spiVersions,
} from './half.js';
import { firstLine, refuse, sameToken } from './handshake.js';

/** Version of the protocol between the two processes. */
const PROTOCOL = 2;

/** TCP port of the control connection. */
export const CONTROL_PORT = 18_600;

/** Maximum length of a line in bytes: some ten thousand requests in one call. */
const LINE = 16 << 20;

/** Maximum number of simultaneous connections; a run uses one. */
const MOST_CONNECTIONS = 64;

/** The id of a reply to an invalid command. */
const NO_COMMAND = 0;

const methods = Object.keys(halfArguments) as HalfMethod[];

const hello = z.strictObject({
  id: z.int().min(0),
  method: z.literal('hello'),
  args: z.tuple([
    z.strictObject({
      protocol: z.literal(PROTOCOL, `must be ${PROTOCOL}: the same version on both sides`),
      token: z.string(),
      spi: z.enum(spiVersions),
      stepTimeoutMs: z.int().min(1).max(600_000),
    }),
  ]),
});

const command = z.strictObject({
  id: z.int().min(0),
  method: z.enum([...methods, 'inOneTurn']),
  args: z.array(z.unknown()),
});

const answer = z.strictObject({
  id: z.int().min(0),
  value: z.unknown().optional(),
  error: z.strictObject({ message: z.string(), status: z.number().optional() }).optional(),
});

/** The failure of a method of the other half, with the status of its provider, or without a status for a defect. */
export class HalfError extends Error {
  constructor(
    message: string,
    readonly status: number | undefined,
  ) {
    super(message);
    this.name = 'HalfError';
  }
}

function call(half: Half, method: HalfMethod, args: readonly unknown[]): unknown {
  return Reflect.apply(half[method], half, args);
}

function callAll(half: Half, calls: readonly (readonly [HalfMethod, ...unknown[]])[]): unknown[] {
  return calls.map(([method, ...args]) => {
    let value: unknown;
    try {
      value = call(half, method, args);
    } catch (error) {
      return { status: statusOfError(error) };
    }
    if (value instanceof Promise)
      throw new Error(`${method} is asynchronous and cannot be used in inOneTurn.`);
    return { value };
  });
}

/** Creates a party from a function that executes its calls. */
function party(
  perform: (method: HalfMethod | 'inOneTurn', args: readonly unknown[]) => Promise<unknown>,
): Party {
  const made: Record<string, unknown> = {
    inOneTurn: (calls: readonly SyncCall[]) => perform('inOneTurn', [calls]),
  };
  for (const method of methods) made[method] = (...args: unknown[]) => perform(method, args);
  return made as Party;
}

/** Returns a half of this process as a party. */
export function localParty(half: Half): Party {
  return party(async (method, args) =>
    method === 'inOneTurn'
      ? callAll(half, args[0] as readonly (readonly [HalfMethod, ...unknown[]])[])
      : await call(half, method, args),
  );
}

/** A half elsewhere, with the connection to it. */
export interface RemoteParty extends AsyncDisposable {
  readonly party: Party;
}

/** Address and options of a served half. */
export interface RemoteOptions {
  readonly host: string;
  /** TCP port. */
  readonly port: number;
  /** The token printed by the serving side. */
  readonly token: string;
  readonly spi: Spi;
  readonly stepTimeoutMs: number;
}

/**
 * Connects to a half that {@link serveHalf} offers.
 *
 * @throws Error if nothing listens there, the token is wrong, or the reply is not that of such a half
 */
export async function remoteParty({
  host,
  port,
  token,
  spi,
  stepTimeoutMs,
}: RemoteOptions): Promise<RemoteParty> {
  const socket = tcpConnect({ host, port, noDelay: true });
  await once(socket, 'connect');
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let lost: Error | undefined;
  const end = (error: Error): void => {
    lost ??= error;
    for (const { reject } of waiting.values()) reject(lost);
    waiting.clear();
  };
  socket.on('error', (error) => end(new Error(`The connection to the other half failed: ${error.message}.`)));
  socket.on('close', () => end(new Error('The other half closed the control connection.')));
  createInterface({ input: socket }).on('line', (line) => {
    const parsed = answer.safeParse(parseJson(line));
    if (!parsed.success) {
      end(new Error(`Malformed reply from the other half: ${line.slice(0, 100)}`));
      socket.destroy();
      return;
    }
    const { id, value, error } = parsed.data;
    if (id === NO_COMMAND) {
      end(new Error(`The other half refused the connection: ${error?.message}`));
      return;
    }
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new HalfError(error.message, error.status));
  });
  let last = NO_COMMAND;
  const request = async (line: Record<string, unknown>): Promise<unknown> => {
    if (lost !== undefined) throw lost;
    last += 1;
    const id = last;
    return await new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      socket.write(`${JSON.stringify({ id, ...line })}\n`);
    });
  };
  try {
    await request({ method: 'hello', args: [{ protocol: PROTOCOL, token, spi, stepTimeoutMs }] });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return {
    party: party((method, args) => request({ method, args: withoutTail(args) })),
    async [Symbol.asyncDispose]() {
      if (lost !== undefined) return;
      socket.end();
      await once(socket, 'close').catch(() => {});
    },
  };
}

/** Omits trailing undefined values, which JSON does not have. */
function withoutTail(args: readonly unknown[]): readonly unknown[] {
  const length = args.findLastIndex((arg) => arg !== undefined) + 1;
  return args.slice(0, length);
}

/** Options for serving halves. */
export interface ServeOptions {
  /** Address of the control connection; the server listens only there. */
  readonly host: string;
  /** TCP port; 0 selects a free one. */
  readonly port: number;
  /** The token that clients must send, from {@link makeToken}. */
  readonly token: string;
  /** Creates the half of a connection. */
  readonly half: (spi: Spi, stepTimeoutMs: number) => Half;
  /** Called when a connection fails. */
  readonly onError?: (error: unknown) => void;
  /** Time limit for the token in milliseconds; default: 5000. */
  readonly handshakeMs?: number;
}

/** Offers halves to {@link remoteParty}, one for each control connection, until the server is closed. */
export async function serveHalf(options: ServeOptions): Promise<{ server: Server; port: number }> {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', (error) => options.onError?.(error));
    serveConnection(socket, options).catch((error) => {
      options.onError?.(error);
      refuse(socket, answerLine(NO_COMMAND, { error: described(error) }));
    });
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen({ port: options.port, host: options.host });
  await once(server, 'listening');
  const bound = server.address();
  if (bound === null || typeof bound === 'string')
    throw new Error('The control server is not bound to a port.');
  return { server, port: bound.port };
}

function answerLine(id: number, reply: Omit<z.input<typeof answer>, 'id'>): string {
  return `${JSON.stringify({ id, ...reply })}\n`;
}

/** Returns the half that a client requests in its first line, which must contain the token. */
async function greet(socket: Socket, options: ServeOptions): Promise<Half> {
  const line = parseJson(await firstLine(socket, options.handshakeMs));
  const token = z.looseObject({ args: z.tuple([z.looseObject({ token: z.string() })]) }).safeParse(line);
  if (!token.success || !sameToken(token.data.args[0].token, options.token))
    throw new Error('The token is missing or wrong. Use the one printed by the side with --serve.');
  const { id, args } = hello.parse(line);
  const half = options.half(args[0].spi, args[0].stepTimeoutMs);
  socket.on('close', () => half.end());
  socket.write(answerLine(id, { value: null }));
  return half;
}

async function serveConnection(socket: Socket, options: ServeOptions): Promise<void> {
  const half = await greet(socket, options);
  let pending = 0;
  socket.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(10);
    pending = end === -1 ? pending + chunk.length : chunk.length - end;
    if (pending > LINE) socket.destroy(new Error(`A line must have at most ${LINE} bytes.`));
  });
  for await (const line of createInterface({ input: socket })) {
    const parsed = command.safeParse(parseJson(line));
    if (!parsed.success) throw new Error(`Invalid command: ${line.slice(0, 100)}`);
    const { id, method, args } = parsed.data;
    // Commands may wait for each other's effects, so no command waits for another to complete.
    perform(half, method, args).then(
      (value) => socket.write(answerLine(id, { value: value ?? null })),
      (error: unknown) => socket.write(answerLine(id, { error: described(error) })),
    );
  }
}

async function perform(
  half: Half,
  method: HalfMethod | 'inOneTurn',
  args: readonly unknown[],
): Promise<unknown> {
  if (method !== 'inOneTurn') return await call(half, method, halfArguments[method].parse(args));
  const calls = z.tuple([z.array(z.array(z.unknown()).min(1))]).parse(args)[0];
  return callAll(
    half,
    calls.map(([name, ...rest]) => {
      const known = z.enum(methods).parse(name);
      return [known, ...halfArguments[known].parse(rest)];
    }),
  );
}

function described(error: unknown): { message: string; status?: number } {
  if (error instanceof z.ZodError) return { message: z.prettifyError(error) };
  if (!(error instanceof Error)) return { message: String(error) };
  const { status } = error as { status?: unknown };
  return typeof status === 'number' ? { message: error.message, status } : { message: error.message };
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
