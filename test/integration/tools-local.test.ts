// adapterinfo, cat, mrlat, mrrate and conn as users run them.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ndCleanup, ndOpenAdapter, ndOpenV1Adapter, ndStartup } from '../../nd/index.js';
import { NdTool, runNd, startServer } from '../helpers/nd-tool.js';
import { needing } from '../helpers/needs.js';
import { firstIf, long } from '../helpers/tiers.js';

const folder = mkdtempSync(join(tmpdir(), 'nd-tools-'));
test.after(() => rmSync(folder, { recursive: true }));

test('adapterinfo: every value of Query by its name, flags by their constants; JSON; a log file', async () => {
  ndStartup();
  using adapter = ndOpenAdapter('127.0.0.1');
  const info = adapter.query();
  using adapter1 = ndOpenV1Adapter('127.0.0.1');
  const info1 = adapter1.query();
  ndCleanup();
  const log = join(folder, 'log');
  const [text, json] = await Promise.all([
    runNd('adapterinfo', '-l', log, '127.0.0.1'),
    runNd('adapterinfo', '--spi', 'v1', '--json', '127.0.0.1'),
  ]);
  assert.equal([text.code, text.stdout, text.stderr, json.code], [0, '', '', 0]);
  const lines = readFileSync(log, 'utf8').split('\n');
  const names = Object.keys(info).map((name) => name[0]!.toUpperCase() + name.slice(1));
  assert.equal(
    lines.filter((line) => /^\w/.test(line)).map((line) => line.split(':')[0]),
    names,
  );
  assert.is(lines[0], 'InfoVersion: 131072');
  assert.match(lines[3]!, /^AdapterId: 0x[0-9A-F]{8,16}$/);
  assert.is(BigInt(lines[3]!.split(' ')[1]!), info.adapterId);
  assert.ok(lines.includes(`MaxReceiveQueueDepth: ${info.maxReceiveQueueDepth}`));
  assert.ok(lines.includes('\t\tND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED'));
  // Each process measures its threshold.
  const { largeRequestThreshold, ...fixed } = JSON.parse(json.stdout);
  assert.ok(largeRequestThreshold >= 4096 && largeRequestThreshold <= 2 ** 20);
  const { largeRequestThreshold: _ours, ...fixedHere } = info1;
  assert.equal(fixed, fixedHere);
});

long(needing(test, '::1'), 'cat without a role checks the address list', async () => {
  const [good, json, bad] = await Promise.all([
    runNd('cat', '127.0.0.1'),
    runNd('cat', '--spi', 'v1', '--json', '::1'),
    runNd('cat', '203.0.113.9'),
  ]);
  assert.equal(
    [good.code, good.stdout],
    [0, 'Retrieving the full Addresslist\nValidation of full Addresslist passed\n'],
  );
  assert.ok((JSON.parse(json.stdout) as { addresses: string[] }).addresses.includes('127.0.0.1'));
  assert.equal([bad.code, bad.stdout], [1, '']);
  assert.match(bad.stderr, /^nd cat: The address 203\.0\.113\.9 is not an address of an adapter\./);
});

for (const [server, client] of [
  [
    ['--spi', 'v2', '-b'],
    ['--spi', 'v1', '-p'],
  ],
  [
    ['--spi', 'v1', '-p'],
    ['--spi', 'v2', '-b'],
  ],
] as const) {
  firstIf(server[1] === 'v2', test)(
    `cat, ${server.join(' ')} from ${client.join(' ')}: the file arrives unchanged`,
    async () => {
      const [input, output] = [join(folder, 'input'), join(folder, 'output')];
      const contents = randomBytes(5_000_011);
      const sha256 = createHash('sha256').update(contents).digest('hex');
      writeFileSync(input, contents);
      const there = await startServer('cat', ...server, '--json', '-f', output, '127.0.0.1');
      const here = await runNd('cat', '-c', ...client, '--json', '-f', input, '127.0.0.1');
      assert.is(here.code, 0, here.stderr);
      const ended = await there.ended;
      assert.is(ended.code, 0, ended.stderr);
      assert.ok(Buffer.compare(readFileSync(output), contents) === 0);
      for (const report of [here, ended].map(({ stdout }) => JSON.parse(stdout) as Record<string, unknown>)) {
        assert.equal([report.bytes, report.sha256], [contents.length, sha256]);
      }
    },
  );
}

long(needing(test, '::1'), 'cat from standard input to standard output, even if it is empty', async () => {
  for (const contents of [randomBytes(70_001), Buffer.alloc(0)]) {
    const there = await startServer('cat', '[::1]:50003');
    const here = new NdTool(['cat', '-c', '[::1]:50003'], contents);
    const [sent, received] = await Promise.all([here.ended, there.ended]);
    assert.equal([sent.code, received.code], [0, 0], sent.stderr + received.stderr);
    assert.ok(Buffer.compare(Buffer.from(received.stdout, 'latin1'), contents) === 0);
    assert.match(sent.stdout, new RegExp(`^Sent ${contents.length} bytes in `));
  }
});

test('mrlat: both sections with their columns, and totals that include the calls', async () => {
  const [text, json] = await Promise.all([
    runNd('mrlat', '--sizes', '1,65536', '--iterations', '20', '127.0.0.1'),
    runNd('mrlat', '--spi', 'v1', '--sizes', '4096', '--iterations', '20', '--json', '127.0.0.1'),
  ]);
  assert.is(text.code, 0, text.stderr);
  const heading = [
    '              Register (usec)   Deregister (usec)     CPU',
    '     Size      call     total      call     total',
  ].join('\n');
  const row = (size: number) => `${String(size).padStart(9)}( +\\d+\\.\\d\\d){5}`;
  const section = (name: string) =>
    ` ${name}:\n${heading.replace(/[()]/g, '\\$&')}\n${row(1)}\n${row(65_536)}\n`;
  assert.match(text.stdout, new RegExp(`\n\n${section('Event Driven')}\n${section('IOCP')}End of test`));
  const { sections } = JSON.parse(json.stdout) as { sections: Record<string, Record<string, number>[]> };
  assert.equal(Object.keys(sections), ['Event Driven', 'IOCP']);
  for (const [one] of Object.values(sections)) {
    assert.equal([one!.size, one!.iterations], [4096, 20]);
    assert.ok(one!.registerCall! > 0 && one!.registerTotal! >= one!.registerCall!);
    assert.ok(one!.deregisterCall! > 0 && one!.deregisterTotal! >= one!.deregisterCall!);
  }
});

test('mrrate: a row for each size, with one thread and with two', async () => {
  const [text, json] = await Promise.all([
    runNd('mrrate', '--sizes', '1,4096', '--iterations', '300', '127.0.0.1'),
    runNd('mrrate', '--spi', 'v1', '-t', '2', '--sizes', '64', '--iterations', '300', '--json', '127.0.0.1'),
  ]);
  assert.is(text.code, 0, text.stderr);
  assert.match(
    text.stdout,
    /Running test with 1 threads\n.*\n\n {24}Register {12}Deregister\n {5}Size {5}Iter {6}usec {8}CPU {5}usec {9}CPU\n {8}1 {7}300( +\d+\.\d\d){4}\n {5}4096 {7}300( +\d+\.\d\d){4}\nEnd of test/,
  );
  const { threads, rows } = JSON.parse(json.stdout) as {
    threads: number;
    rows: { size: number; iterations: number; register: { usec: number } }[];
  };
  assert.equal([threads, rows.length, rows[0]!.size, rows[0]!.iterations], [2, 1, 64, 300]);
  assert.ok(rows[0]!.register.usec > 0);
});

for (const spi of ['v1', 'v2']) {
  firstIf(spi === 'v2', test)(
    `conn, SPI ${spi}: connections, the time of each phase, and no failures`,
    async () => {
      const server = await startServer('conn', '--spi', spi, '--connections', '12', '-t', '3', '127.0.0.1');
      const client = await runNd(
        ...[
          'conn',
          '-c',
          '--spi',
          spi,
          '--connections',
          '12',
          '-t',
          '3',
          '--delay',
          '0',
          '--json',
          '127.0.0.1',
        ],
      );
      assert.is(client.code, 0, client.stderr);
      const report = JSON.parse(client.stdout) as Record<string, unknown>;
      assert.equal([report.connections, report.failures, report.timeouts], [12, 0, 0]);
      const times = report.microseconds as Record<string, number>;
      assert.equal(Object.keys(times), ['Connect', 'CompleteConnect', 'Disconnect']);
      assert.ok(Object.values(times).every((time) => time > 0));
      const { code, stdout } = await server.ended;
      assert.is(code, 0);
      assert.match(
        stdout,
        /^\d+\.\d\d connections per second\nPer connection times \(microsec\):\nAccept: \d+\.\d\d\nDisconnect: \d+\.\d\d\n0 connection failures\.\n$/,
      );
    },
  );
}

long(test, 'Ctrl-C ends tools that wait for a client or for their start', async () => {
  const waiting = await startServer('cat', '127.0.0.1');
  const accepting = await startServer('conn', '127.0.0.1');
  const begun = new NdTool(['mrlat', '127.0.0.1']);
  await begun.printed(/Event Driven/);
  for (const one of [waiting, accepting, begun]) one.process.kill('SIGINT');
  for (const { code, stderr } of await Promise.all([waiting.ended, accepting.ended, begun.ended])) {
    assert.is(code, 130);
    assert.match(stderr, /: interrupted$/m);
  }
});

for (const [who, signal, sentence] of [
  ['client', 'SIGINT', /^nd cat: interrupted$/m],
  ['server', 'SIGKILL', /^nd cat: The peer ended the connection before the test was finished\.$/m],
] as const) {
  firstIf(who === 'server', test)(
    `cat: a client that waits for input ends when the ${who} gets ${signal}`,
    async () => {
      const server = await startServer('cat', '127.0.0.1:50004');
      const client = new NdTool(['cat', '-c', '127.0.0.1:50004'], Buffer.from('a line\n'), true);
      await server.printed(/a line/);
      (who === 'client' ? client : server).process.kill(signal);
      const { code, stderr } = await client.ended;
      assert.is(code, who === 'client' ? 130 : 3);
      assert.match(stderr, sentence);
      await server.ended;
    },
  );
}

test('the help of nd names every tool', async () => {
  const { code, stdout } = await runNd('--help');
  assert.is(code, 0);
  const tools = ['adapterinfo', 'cat', 'ping', 'pingpong', 'rping', 'rpingpong', 'mrlat', 'mrrate', 'conn'];
  for (const tool of tools) assert.match(stdout, new RegExp(`^  ${tool} \\[options\\] <`, 'm'));
});

test.run();
