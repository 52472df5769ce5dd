/** A few commands of Redis and Valkey, for clients on any byte stream. */
import type { Duplex } from 'node:stream';
import { RequestError, RequestParser, STRING_BYTES } from './request-parser.js';

/** Limits on the memory that clients can make the service hold. */
export interface RespLimits {
  /** Maximum size of a request in bytes; default 16 MiB. */
  readonly requestBytes?: number | undefined;
  /** Maximum size of all keys and values in bytes; default 512 MiB. */
  readonly storeBytes?: number | undefined;
  /** Maximum size of all incomplete requests and unread replies in bytes; default 256 MiB. */
  readonly clientBytes?: number | undefined;
}

/** Approximate memory overhead of an entry, in bytes. */
const ENTRY_BYTES = STRING_BYTES;
/** Values longer than this are not copied into their reply. */
const COPY_BYTES = 16 * 1024;
const CRLF = Buffer.from('\r\n');
const OK = '+OK\r\n';
const NOT_AN_INTEGER = '-ERR value is not an integer or out of range\r\n';
const TWO_63 = 2n ** 63n;
const INFO = Buffer.from(
  '# Server\r\nserver_name:networkdirect-example\r\nredis_version:7.2.4\r\nredis_mode:standalone\r\nloading:0\r\n',
);

/** An encoded reply, or the bytes of a string; null: no string. */
type Reply = string | Buffer | null;

interface Client {
  readonly id: number;
  readonly stream: Duplex;
  readonly parser: RequestParser;
  /** The client's share of `clientBytes`. */
  heldBytes: number;
}

interface Command {
  /** Number of strings after the name. */
  readonly least: number;
  readonly most: number;
  run(strings: readonly Buffer[], client: number): Reply;
}

export class RespService {
  readonly #values = new Map<string, Buffer>();
  readonly #requestBytes: number;
  readonly #storeBytes: number;
  readonly #clientBytes: number;
  readonly #commands: ReadonlyMap<string, Command>;
  #bytes = 0;
  #lastId = 0;
  readonly #clients = new Set<Client>();
  #heldBytes = 0;

  constructor({ requestBytes = 2 ** 24, storeBytes = 2 ** 29, clientBytes = 2 ** 28 }: RespLimits = {}) {
    this.#requestBytes = requestBytes;
    this.#storeBytes = storeBytes;
    this.#clientBytes = clientBytes;
    this.#commands = new Map<string, Command>([
      ['PING', { least: 0, most: 1, run: ([text = '+PONG\r\n']) => text }],
      ['ECHO', { least: 1, most: 1, run: ([text]) => text! }],
      ['SET', { least: 2, most: 2, run: ([key, value]) => this.#set(keyOf(key!), value!) ?? OK }],
      ['GET', { least: 1, most: 1, run: ([key]) => this.#values.get(keyOf(key!)) ?? null }],
      ['DEL', { least: 1, most: Infinity, run: (keys) => `:${this.#delete(keys)}\r\n` }],
      ['INCR', { least: 1, most: 1, run: ([key]) => this.#increment(keyOf(key!)) }],
      ['BGSAVE', { least: 0, most: 1, run: () => '+Background saving started\r\n' }],
      ['QUIT', { least: 0, most: Infinity, run: () => OK }],
      // Client libraries send these first.
      ['HELLO', { least: 0, most: Infinity, run: ([version], client) => hello(version, client) }],
      ['CLIENT', { least: 1, most: Infinity, run: ([command], client) => aboutClient(command!, client) }],
      ['INFO', { least: 0, most: Infinity, run: () => INFO }],
      ['COMMAND', { least: 0, most: Infinity, run: () => '*0\r\n' }],
      [
        'SELECT',
        { least: 1, most: 1, run: ([n]) => (String(n) === '0' ? OK : '-ERR DB index is out of range\r\n') },
      ],
    ]);
  }

  /** Replies to the requests on a stream until it ends. While a client does not read its replies, its requests are not read. */
  serve(stream: Duplex): void {
    this.#lastId += 1;
    const parser = new RequestParser(this.#requestBytes);
    const client: Client = { id: this.#lastId, stream, parser, heldBytes: 0 };
    this.#clients.add(client);
    const proceed = (): void => {
      if (!this.#clients.has(client)) return;
      const full = !this.#replyAll(client);
      this.#charge(client, parser.heldBytes + stream.writableLength);
      if (!full || stream.writableEnded) return;
      stream.pause();
      stream.once('drain', () => {
        stream.resume();
        proceed();
      });
    };
    stream.on('data', (chunk: Buffer) => {
      if (stream.writableEnded) return;
      parser.push(chunk);
      proceed();
    });
    stream.once('close', () => this.#forget(client));
  }

  /**
   * Sets the memory that a client holds. While the total exceeds the limit, the client that holds the most memory is disconnected; if
   * several hold the same amount, this client is.
   */
  #charge(client: Client, bytes: number): void {
    this.#heldBytes += bytes - client.heldBytes;
    client.heldBytes = bytes;
    while (this.#heldBytes > this.#clientBytes) {
      let most = client;
      for (const one of this.#clients) if (one.heldBytes > most.heldBytes) most = one;
      this.#forget(most);
      most.stream.destroy();
    }
  }

  #forget(client: Client): void {
    this.#heldBytes -= client.heldBytes;
    client.heldBytes = 0;
    this.#clients.delete(client);
  }

  /** Replies to all requests that have arrived. Returns false if the stream became full first. */
  #replyAll({ id, stream, parser }: Client): boolean {
    stream.cork();
    try {
      for (;;) {
        const request = parser.next();
        if (request === undefined) return true;
        const room = send(stream, this.#run(request, id));
        if (nameOf(request) === 'QUIT') stream.end();
        if (stream.writableEnded || !room) return false;
      }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      stream.end(`-ERR Protocol error: ${error.message}\r\n`);
      return false;
    } finally {
      stream.uncork();
    }
  }

  #run(request: readonly Buffer[], client: number): Reply {
    const name = nameOf(request);
    const command = this.#commands.get(name);
    if (command === undefined) return '-ERR unknown command\r\n';
    const strings = request.slice(1);
    if (strings.length >= command.least && strings.length <= command.most)
      return command.run(strings, client);
    return `-ERR wrong number of arguments for '${name.toLowerCase()}' command\r\n`;
  }

  /** Stores a copy, because requests share memory. Returns the error, if any. */
  #set(key: string, value: Buffer): string | undefined {
    const before = this.#values.get(key);
    const more = value.length + (before === undefined ? key.length + ENTRY_BYTES : -before.length);
    if (this.#bytes + more > this.#storeBytes)
      return "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    const copy = Buffer.allocUnsafeSlow(value.length);
    value.copy(copy);
    this.#values.set(key, copy);
    this.#bytes += more;
    return undefined;
  }

  #delete(keys: readonly Buffer[]): number {
    let count = 0;
    for (const key of keys.map(keyOf)) {
      const value = this.#values.get(key);
      if (value === undefined) continue;
      this.#values.delete(key);
      this.#bytes -= key.length + value.length + ENTRY_BYTES;
      count += 1;
    }
    return count;
  }

  #increment(key: string): string {
    const text = this.#values.get(key)?.toString('latin1', 0, 21) ?? '0';
    if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) return NOT_AN_INTEGER;
    const next = BigInt(text) + 1n;
    if (next > TWO_63 || next <= -TWO_63) return NOT_AN_INTEGER;
    if (next === TWO_63) return '-ERR increment or decrement would overflow\r\n';
    return this.#set(key, Buffer.from(`${next}`)) ?? `:${next}\r\n`;
  }
}

const keyOf = (bytes: Buffer): string => bytes.toString('latin1');
const nameOf = ([name]: readonly Buffer[]): string => name!.toString('latin1', 0, 16).toUpperCase();
const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;

/** False: the stream's buffer is full. */
function send(stream: Duplex, reply: Reply): boolean {
  if (reply === null) return stream.write('$-1\r\n');
  if (typeof reply === 'string') return stream.write(reply);
  const head = Buffer.from(`$${reply.length}\r\n`);
  if (reply.length <= COPY_BYTES) return stream.write(Buffer.concat([head, reply, CRLF]));
  stream.write(head);
  stream.write(reply);
  return stream.write(CRLF);
}

function hello(version: Buffer | undefined, client: number): string {
  if (version !== undefined && String(version) !== '2') return '-NOPROTO unsupported protocol version\r\n';
  const about = ['server', 'valkey', 'version', '7.2.4', 'mode', 'standalone', 'role', 'master'].map(bulk);
  return `*14\r\n${about.join('')}${bulk('proto')}:2\r\n${bulk('id')}:${client}\r\n${bulk('modules')}*0\r\n`;
}

function aboutClient(command: Buffer, client: number): string {
  const name = String(command).toUpperCase();
  if (name === 'ID') return `:${client}\r\n`;
  return name === 'SETINFO' || name === 'SETNAME' ? OK : '-ERR unknown subcommand\r\n';
}
