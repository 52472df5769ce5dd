// The rates, the texts and the page of nd stat and nd top, tested without processes.
import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Script } from 'node:vm';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KernelStatistics, ObservedKernel, QueuePairStatistics } from '../../kernel-bridge/index.js';
import { bytes, short } from '../../nd/cli/stat/number-text.js';
import { page } from '../../nd/cli/stat/page.js';
import { script } from '../../nd/cli/stat/page-script.js';
import { Sampler, type Seen } from '../../nd/cli/stat/sample.js';
import { formatKernel, formatProcesses } from '../../nd/cli/stat/stat.js';
import { formatTop, sorted, wrapped } from '../../nd/cli/stat/top.js';
import { serveView, type View } from '../../nd/cli/stat/web.js';
import { Heard } from '../helpers/heard.js';

const pair: QueuePairStatistics = {
  ...{
    qpn: 0x20005,
    type: 'RC',
    state: 'RTS',
    local: '192.0.2.1',
    remote: '192.0.2.2',
    remoteQpn: 7,
    mtu: 4096,
  },
  ...{
    link: 'wire',
    sendEntries: 64,
    sendWaiting: 3,
    sent: 100,
    receiveEntries: 32,
    receiveWaiting: 30,
    received: 50,
  },
  ...{
    sharedReceives: false,
    window: 128,
    inFlight: 5,
    retries: 1,
    rnrRetries: 0,
    rnrWaiting: false,
    roundTripNs: 21_000,
  },
};

function kernel(change: Partial<KernelStatistics> = {}, pid = 0): ObservedKernel {
  const statistics: KernelStatistics = {
    ...{
      form: 1,
      pid,
      node: '22.0.0',
      uptime: 9,
      at: 1000,
      devices: [],
      wire: 'open',
      sharedReceived: 0,
      queuePairs: [pair],
    },
    connections: [
      { type: 'connect', state: 'connected', local: '192.0.2.1:1', remote: '192.0.2.2:2', qpn: pair.qpn },
    ],
    memory: [{ kind: 'region', length: 4096, access: ['LOCAL_WRITE'], live: true, allocated: false }],
    omitted: { queuePairs: 0, connections: 0, memory: 0 },
    counters: { objects: { qp: 1, mr: 1 }, hca: { sent_bytes: 1000, rcvd_rnr_err: 2 } },
    ...change,
  };
  return { pid, slot: 2, statistics };
}

test('rates are differences over time; a wrapping counter, a new queue pair and a successor process do not cause jumps', () => {
  const sampler = new Sampler();
  const [first] = sampler.take([kernel({ queuePairs: [{ ...pair, sent: 2 ** 32 - 10 }] })]);
  assert.is(first!.rates, undefined);
  const counters = { objects: { qp: 2 }, hca: { sent_bytes: 5000, rcvd_rnr_err: 2, send_rnr_err: 6 } };
  const fresh = { ...pair, qpn: 9, sent: 4, received: 8 };
  const [second] = sampler.take([
    kernel({
      at: 3000,
      counters,
      queuePairs: [{ ...pair, sent: 10, received: 50 }, fresh],
      sharedReceived: 20,
    }),
  ]);
  const { messagesOut, messagesIn, bytesOut, rnr, retransmits } = second!.rates!;
  assert.equal([messagesOut, messagesIn, bytesOut, rnr, retransmits], [12, 14, 2000, 3, 0]);
  assert.equal(
    second!.pairs.map(({ sentRate }) => sentRate),
    [10, 2],
  );
  const [successor] = sampler.take([kernel({ at: 500 })]);
  assert.is(successor!.rates, undefined);
});

test('a process without statistics has a row with the reason', () => {
  const rows = new Sampler().take([{ pid: 0, slot: 4, problem: 'silent' }, kernel()]);
  assert.match(formatProcesses(rows), /^ *0 +4 +\(does not respond: it is stopped/m);
  assert.match(formatTop(rows, 'messages').text, 'does not respond');
  assert.match(formatKernel(rows[0]!, false), 'does not respond');
  assert.match(
    formatKernel(rows[1]!, false),
    /0x020005 +RC +RTS +192\.0\.2\.1 .* 3\/64 +30\/32 .* 5\/128 +1 +21 µs/,
  );
});

test('rows are sorted by the column, and by process id among equals', () => {
  const rate = (messagesOut: number) =>
    ({ messagesOut, messagesIn: 0, bytesOut: 0 }) as unknown as Seen['rates'];
  const rows = [
    { pid: 3, slot: 0, rates: rate(1) },
    { pid: 1, slot: 1, rates: rate(5) },
    { pid: 2, slot: 2, rates: rate(1) },
    { pid: 9, slot: 3 },
  ] as unknown as Seen[];
  assert.equal(
    sorted(rows, 'messages').map(({ pid }) => pid),
    [1, 2, 3, 9],
  );
  assert.equal(
    sorted(rows, 'pid').map(({ pid }) => pid),
    [1, 2, 3, 9],
  );
});

test('nd top shows whole columns at every width, including the program', () => {
  const sampler = new Sampler();
  const many = (at: number, sent: number) => [
    kernel({ at, queuePairs: [{ ...pair, sent, inFlight: 117 }] }, 4_100_000),
    { pid: 17, slot: 4, problem: 'otherVersion' } as const,
  ];
  sampler.take(many(1000, 0));
  const rows = sampler.take(many(2000, 123_456));
  const all = formatTop(rows, 'messages');
  assert.is(all.hidden, 0);
  const heads = all.text
    .split('\n')[0]!
    .split(/ {2,}/)
    .filter((head) => head !== '');
  const cells = new Set(all.text.split(/\n| {2,}/));
  let before = -1;
  for (let width = 20; width <= 200; width += 1) {
    const { text, hidden } = formatTop(rows, 'messages', width);
    const lines = text.split('\n');
    assert.ok(
      lines.every((line) => line.length <= width),
      `${width}: ${text}`,
    );
    const shown = lines[0]!.split(/ {2,}/).filter((head) => head !== '');
    assert.is(shown.length + hidden, heads.length);
    assert.ok(shown.length >= before, `${width} has fewer columns than ${width - 1}`);
    assert.equal(shown[0], 'PID');
    assert.equal(shown.at(-1), 'PROGRAM');
    // Every cell except the program occurs in the full table.
    for (const line of lines.slice(1)) {
      for (const cell of line.split(/ {2,}/))
        assert.ok(cell === '' || cells.has(cell) || cell.endsWith('…'), cell);
    }
    before = shown.length;
  }
  const heads80 = formatTop(rows, 'messages', 80).text.split('\n')[0]!;
  for (const head of ['PID', 'CONN', 'MSG/S OUT', 'MSG/S IN', 'B/S OUT', 'B/S IN', 'PROGRAM'])
    assert.match(heads80, head);
  assert.equal(wrapped('one two three', 8), ['one two', 'three']);
});

test('numbers are abbreviated', () => {
  assert.equal([0, 0.25, 9, 999, 999.7, 1000, 31_400, 1.25e9].map(short), [
    '0',
    '0.3',
    '9',
    '999',
    '1.00 k',
    '1.00 k',
    '31.4 k',
    '1.25 G',
  ]);
  assert.equal([0, 1023, 1024, 1536, 5 << 20].map(bytes), ['0 B', '1023 B', '1 KiB', '1.5 KiB', '5 MiB']);
});

// ── The page ────────────────────────────────────────────────────────────────────────────────────────────────

const views: View[] = [];
test.after.each(async () => {
  for (const view of views.splice(0)) await view.close();
});

async function serve(
  look = async (): Promise<Seen[]> => new Sampler().take([kernel()]),
  delayMs = 20,
): Promise<URL> {
  const view = await serveView({ port: 0, delayMs, sample: look });
  views.push(view);
  return new URL(view.url);
}

/** A request with headers that `fetch` does not permit. */
async function ask(
  url: URL,
  options: { method?: string; path?: string; headers?: Record<string, string> } = {},
) {
  const sent: ClientRequest = request({
    host: '127.0.0.1',
    port: url.port,
    path: url.pathname,
    agent: false,
    ...options,
  }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  return { status: response.statusCode, headers: response.headers, text };
}

test('the page is one document that loads nothing and permits no other scripts', async () => {
  const url = await serve();
  const { status, headers, text } = await ask(url);
  assert.equal([status, headers['content-type']], [200, 'text/html; charset=utf-8']);
  const nonce = /script-src 'nonce-([^']+)'/.exec(String(headers['content-security-policy']))![1]!;
  assert.match(
    String(headers['content-security-policy']),
    /^default-src 'none';.*connect-src 'self';.*frame-ancestors 'none'$/,
  );
  assert.is(text.split(`nonce="${nonce}"`).length - 1, 2);
  assert.equal(
    [headers['cache-control'], headers['x-frame-options'], headers['referrer-policy']],
    ['no-store', 'DENY', 'no-referrer'],
  );
  for (const [, link] of text.matchAll(/(?:src|href|action)\s*=\s*"([^"]*)"/g))
    assert.match(link!, /^data:image\/svg\+xml,/);
  assert.not.match(text.replaceAll('http://www.w3.org/2000/svg', ''), /https?:\/\//);
  // Names of programs are untrusted.
  assert.not.match(script, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b/);
  new Script(script);
  assert.match(
    page({ nonce: 'n', host: '<img src=x onerror=alert(1)>&"', delayMs: 1 }),
    '&#60;img src=x onerror=alert(1)&#62;&#38;&#34;',
  );
});

test('requests with another path or host name get no data', async () => {
  const url = await serve();
  const own = `127.0.0.1:${url.port}`;
  const wrongToken = url.pathname.replace(/.(?=\/$)/, (letter) => (letter === 'A' ? 'B' : 'A'));
  const hostile: [Parameters<typeof ask>[1], number][] = [
    [{ path: '/' }, 404],
    [{ path: '/events' }, 404],
    [{ path: wrongToken }, 404],
    [{ path: `${wrongToken}events` }, 404],
    [{ path: url.pathname.slice(0, -1) }, 404],
    [{ path: `${url.pathname}../../etc/passwd` }, 404],
    [{ path: `${url.pathname}%2e%2e` }, 404],
    [{ path: `http://${own}${url.pathname}` }, 404],
    [{ path: `/${'A'.repeat(8000)}/` }, 404],
    [{ headers: { host: 'attacker.example' } }, 421],
    [{ headers: { host: `attacker.example:${url.port}` } }, 421],
    [{ headers: { host: `127.0.0.1.attacker.example:${url.port}` } }, 421],
    [{ headers: { host: '127.0.0.1' } }, 421],
    [{ headers: { origin: 'http://attacker.example' } }, 403],
    [{ headers: { origin: 'null' } }, 403],
    [{ method: 'POST' }, 405],
    [{ method: 'OPTIONS' }, 405],
    [{ method: 'DELETE' }, 405],
  ];
  for (const [options, expected] of hostile) {
    const { status, text } = await ask(url, options);
    assert.is(status, expected, JSON.stringify(options));
    assert.not.match(text, 'nd top ·');
    assert.not.match(text, url.pathname);
  }
  assert.is(
    (await ask(url, { headers: { host: `localhost:${url.port}`, origin: `http://${own}` } })).status,
    200,
  );
  const head = await ask(url, { method: 'HEAD' });
  assert.equal([head.status, head.text], [200, '']);
});

test('malformed requests only end their own connection', async () => {
  const url = await serve();
  for (const bytes of [
    '\0\0\0',
    'GET / HTTP/1.1\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
  ]) {
    const socket = connect(Number(url.port), '127.0.0.1');
    let answer = '';
    socket.on('data', (part) => (answer += String(part)));
    socket.on('error', () => {});
    socket.write(bytes);
    await once(socket, 'close');
    assert.match(answer, /^HTTP\/1\.1 4\d\d /);
  }
  assert.is((await ask(url)).status, 200);
});

async function openPage(url: URL): Promise<{ heard: Heard; close(): void }> {
  const sent = request({
    host: '127.0.0.1',
    port: url.port,
    path: `${url.pathname}events`,
    agent: false,
  }).end();
  sent.on('error', () => {});
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { heard: new Heard(response), close: () => sent.destroy() };
}

test('processes are only sampled while a page is open', async () => {
  let looks = 0;
  let seen: (() => void) | undefined;
  const url = await serve(async () => {
    looks += 1;
    seen?.();
    return new Sampler().take([kernel()]);
  });
  assert.is(looks, 0);
  const first = await openPage(url);
  await first.heard.until(/event: view\ndata: .*"endpoints"/);
  assert.ok(first.heard.text.startsWith('event: history\ndata: []\n\n'));
  const second = await openPage(url);
  await second.heard.until(/^event: history\ndata: \[\{"at":/);
  first.close();
  second.close();
  await Promise.all([first.heard.end(), second.heard.end()]);
  // The server is notified of these ends a little later. After that nothing may arrive, so the test can only wait for some time.
  for (let last = ''; last !== 'quiet'; ) {
    const more = new Promise<string>((resolve) => {
      seen = () => resolve('asked');
    });
    last = await Promise.race([more, sleep(200, 'quiet')]);
  }
});

test('a failed sample is reported, and the next one is taken', async () => {
  let looks = 0;
  const url = await serve(async () => {
    looks += 1;
    if (looks === 1) throw new Error('no processes');
    return [];
  });
  const { heard, close } = await openPage(url);
  await heard.until('event: view');
  assert.match(heard.text, 'event: problem\ndata: {"message":"no processes"}');
  close();
});

test('idle connections beyond the limit do not block others', async () => {
  const url = await serve();
  const opened = await openPage(url);
  const idle = Array.from({ length: 600 }, (_, n) => {
    const socket = connect(Number(url.port), '127.0.0.1');
    socket.on('error', () => {});
    // Half of the connections begin a request.
    if (n % 2 === 0) socket.write('GET / HTTP/1.1\r\n');
    return socket;
  });
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  assert.is((await ask(url)).status, 200);
  const page = await openPage(url);
  await page.heard.until('event: view');
  // Connections that have sent the right path stay open.
  opened.heard.text = '';
  await opened.heard.until('event: view');
  for (const socket of idle) socket.destroy();
  page.close();
  opened.close();
});

test('connections with the right path are also limited', async () => {
  const url = await serve();
  const agent = new Agent({ keepAlive: true, maxSockets: 65 });
  // The client reads none of the responses, so each connection stays open.
  const responses = await Promise.all(
    Array.from({ length: 65 }, async () => {
      const sent = request({ host: '127.0.0.1', port: url.port, path: url.pathname, agent }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return response;
    }),
  );
  const refused = responses.filter(({ statusCode }) => statusCode === 503);
  assert.equal([refused.length, refused[0]?.headers.connection], [1, 'close']);
  for (const response of responses) response.resume();
  agent.destroy();
});

test('the number of served pages is limited', async () => {
  const url = await serve();
  const pages = await Promise.all(Array.from({ length: 16 }, () => openPage(url)));
  assert.is((await ask(url, { path: `${url.pathname}events` })).status, 503);
  for (const { close } of pages) close();
});

test.run();
