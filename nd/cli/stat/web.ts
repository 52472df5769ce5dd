/**
 * The page of `nd top --web`. Its server listens on 127.0.0.1. Any program on this host, including those of other users, can connect to it,
 * and so can any page in a browser. The server therefore only serves requests with its random path and its own host name.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { hostname } from 'node:os';
import { page } from './page.js';
import type { Seen } from './sample.js';

const HOST = '127.0.0.1';
const TOKEN_BYTES = 18;
/** Samples that a page receives when it is opened. */
const HISTORY = 300;
const MOST_PAGES = 16;
/** Maximum connections that have sent the right path. */
const MOST_CONNECTIONS = 64;
/** Maximum connections that have not sent the path yet. Every program on the host can open such connections. */
const MOST_UNIDENTIFIED = 256;
/** Maximum queue pairs and endpoints shown per process. */
const MOST_LISTED = 200;
/** Maximum unread bytes of a page, above which it is disconnected. */
const MOST_UNREAD = 4 << 20;

/** Options and data source of the view. */
export interface ViewOptions {
  /** 0: a free port. */
  readonly port: number;
  readonly delayMs: number;
  /** Called only while a page is open, and never concurrently. */
  sample(): Promise<Seen[]>;
}

/** A view that is being served. */
export interface View {
  readonly url: string;
  close(): Promise<void>;
}

/** A sample in the form that the page receives. */
type Frame = { readonly at: number; readonly rows: readonly object[] };

function frameOf(rows: readonly Seen[], lists: boolean): Frame {
  return {
    at: Date.now(),
    rows: rows.map(({ statistics, pairs, ...row }) => ({
      ...row,
      ...(lists && {
        uptime: statistics?.uptime ?? 0,
        node: statistics?.node ?? '',
        pairs: [...pairs]
          .sort((a, b) => b.sentRate + b.receivedRate - a.sentRate - a.receivedRate)
          .slice(0, MOST_LISTED),
        endpoints: statistics?.connections.slice(0, MOST_LISTED) ?? [],
      }),
    })),
  };
}

/** Compares two strings in constant time. */
function same(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

const headers = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
} as const;

/** The open pages and their samples. */
class Pages {
  readonly #open = new Set<ServerResponse>();
  #history: Frame[] = [];
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  constructor(private readonly view: ViewOptions) {}

  get full(): boolean {
    return this.#open.size >= MOST_PAGES;
  }

  add(response: ServerResponse): void {
    response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream; charset=utf-8' });
    this.#send(response, 'history', this.#history);
    this.#open.add(response);
    response.once('close', () => {
      this.#open.delete(response);
      if (this.#open.size === 0) this.stop();
    });
    this.#timer ??= setInterval(() => void this.#sample(), this.view.delayMs);
    void this.#sample();
  }

  /** Called when no page is open, so that processes are no longer sampled. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    this.stop();
    for (const response of this.#open) response.destroy();
  }

  async #sample(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      const rows = await this.view.sample();
      this.#history = [...this.#history, frameOf(rows, false)].slice(-HISTORY);
      const frame = frameOf(rows, true);
      for (const response of this.#open) this.#send(response, 'view', frame);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      for (const response of this.#open) this.#send(response, 'problem', { message });
    } finally {
      this.#looking = false;
    }
  }

  #send(response: ServerResponse, event: string, data: unknown): void {
    if (response.writableLength > MOST_UNREAD) response.destroy();
    else response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}

/**
 * The connections of the server. If there are too many unidentified ones, the oldest is closed, so that they cannot block others: a browser
 * sends the right path immediately and is then kept.
 */
class Connections {
  /** In order of arrival. */
  readonly #unidentified = new Set<Socket>();
  readonly #admitted = new Set<Socket>();

  add(socket: Socket): void {
    this.#unidentified.add(socket);
    socket.once('close', () => {
      this.#unidentified.delete(socket);
      this.#admitted.delete(socket);
    });
    const [oldest] = this.#unidentified;
    if (this.#unidentified.size > MOST_UNIDENTIFIED) oldest?.destroy();
  }

  /** Marks a connection that has sent the right path. Returns false if there are too many of these. */
  admit(socket: Socket): boolean {
    if (!this.#admitted.has(socket) && this.#admitted.size >= MOST_CONNECTIONS) return false;
    this.#unidentified.delete(socket);
    this.#admitted.add(socket);
    return true;
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...headers, 'Content-Type': 'text/plain; charset=utf-8' }).end(`${text}\n`);
}

function sendPage(request: IncomingMessage, response: ServerResponse, delayMs: number): void {
  const nonce = randomBytes(TOKEN_BYTES).toString('base64');
  response.writeHead(200, {
    ...headers,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  });
  response.end(request.method === 'HEAD' ? undefined : page({ nonce, host: hostname(), delayMs }));
}

/** Serves the page until it is closed. @throws the error of the OS if the port is not available */
export async function serveView(view: ViewOptions): Promise<View> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const pages = new Pages(view);
  const connections = new Connections();
  const server = createServer({ requestTimeout: 10_000, maxHeaderSize: 16_384 }, (request, response) => {
    const { port } = server.address() as AddressInfo;
    const own = [`${HOST}:${port}`, `localhost:${port}`];
    const { host = '', origin } = request.headers;
    // A different host name that resolves to this address belongs to an attacking page (DNS rebinding).
    if (!own.includes(host))
      return refuse(response, 421, 'This server can only be used with its own host name.');
    if (origin !== undefined && !own.some((one) => origin === `http://${one}`))
      return refuse(response, 403, 'Cross-origin requests are not permitted.');
    const [, given = '', rest] = /^\/([^/?]*)\/([^?]*)$/.exec(request.url ?? '') ?? [];
    if (!same(given, token) || (rest !== '' && rest !== 'events'))
      return refuse(response, 404, 'Not found. `nd top --web` has printed the URL.');
    if (!connections.admit(request.socket)) {
      response.setHeader('Connection', 'close');
      return refuse(response, 503, `Too many connections (${MOST_CONNECTIONS}). Close one.`);
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      return refuse(response, 405, 'The view is read-only.');
    }
    if (rest === '') return sendPage(request, response, view.delayMs);
    if (request.method === 'HEAD') return refuse(response, 200, '');
    if (pages.full) return refuse(response, 503, `Too many pages (${MOST_PAGES}). Close one.`);
    return pages.add(response);
  });
  server.on('connection', (socket: Socket) => connections.add(socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(view.port, HOST, () => resolve());
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${HOST}:${port}/${token}/`,
    close: () =>
      new Promise((resolve) => {
        pages.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
