// The tools that measure transfers, each as two processes: their output, with both SPI versions, polling and waiting.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdTool, runNd, startServer } from '../helpers/nd-tool.js';
import { firstIf, long } from '../helpers/tiers.js';

interface Report {
  tool: string;
  spi: string;
  mode: string;
  local: string;
  peer: string;
  nSge: number;
  rows: { size: number; iterations: number; latency: number; cpu: number; bytesPerSecond: number }[];
}

const QUICK = ['--warmup', '5', '--iterations', '40'];

/** Factor in the product of a tool's Latency and Bytes/Sec: counted transfers times latencies per iteration. */
const tools = [
  { name: 'ping', port: 54_324, factor: 1, args: [[], []] },
  { name: 'pingpong', port: 54_325, factor: 1, args: [[], []] },
  { name: 'rping', port: 54_326, factor: 1, args: [['-w'], ['-r']] },
  { name: 'rpingpong', port: 54_327, factor: 1, args: [[], []] },
];

/** SPI versions of server and client, how each waits, the entries of a list, and the address. */
const ways = [
  { server: ['--spi', 'v2', '-b'], client: ['--spi', 'v2', '-p', '-n', '3'], address: '127.0.0.1', nSge: 3 },
  { server: ['--spi', 'v1', '-p'], client: ['--spi', 'v1', '-b'], address: '[::1]', nSge: 1 },
];

for (const [nth, { name, port, args }] of tools.entries()) {
  ways.forEach((way, index) => {
    const [, spi, waiting] = way.client;
    firstIf(index === nth % ways.length, test)(
      `${name}, SPI ${spi}, ${waiting}: a row for each size, with consistent numbers`,
      async () => {
        const own = args[index]!;
        const server = await startServer(name, ...way.server, '-N', String(way.nSge), way.address);
        const client = await runNd(
          ...[name, '-c', ...way.client, ...own, ...QUICK, '--warmup', '0', '--sizes', '1,100,70000,4194304'],
          ...['--volume', '8400000', '--json', way.address],
        );
        assert.is(client.code, 0, client.stderr);
        const ended = await server.ended;
        assert.is(ended.code, 0, ended.stderr);
        assert.match(ended.stdout, new RegExp(`^Beginning test: nd ${name}\nEnd of test: nd ${name}\n$`));
        assert.match(ended.stderr, new RegExp(`^Listening on .*:${port}$`, 'm'));

        const report = JSON.parse(client.stdout) as Report;
        const host = way.address.replace(/[[\]]/g, '');
        assert.equal(
          [report.tool, report.spi, report.mode, report.local, report.peer, report.nSge],
          [
            `nd ${name}`,
            spi,
            waiting === '-b' ? 'blocking' : 'polling',
            host,
            `${way.address}:${port}`,
            way.nSge,
          ],
        );
        // 8400000 bytes are 2 transfers of 4 MiB. Smaller sizes are limited by their number.
        assert.equal(
          report.rows.map(({ size, iterations }) => [size, iterations]),
          [
            [1, 40],
            [100, 40],
            [70_000, 40],
            [4_194_304, 2],
          ],
        );
        for (const { size, latency, cpu, bytesPerSecond } of report.rows) {
          assert.ok(latency > 0 && cpu >= 0);
          // Either half round trips in both directions are counted or whole ones in one direction, so the product is always the size.
          const product = (bytesPerSecond * latency) / 1e6;
          assert.ok(Math.abs(product / size - 1) < 1e-6, `${product} of ${size}`);
        }
      },
    );
  });
}

test('the table has the usual columns and the banner around it', async () => {
  const server = await startServer('pingpong', '127.0.0.1:50001');
  const { code, stdout } = await runNd(
    ...['pingpong', '-C', '-P', '--warmup', '0', '--iterations', '20', '--sizes', '1,64', '127.0.0.1:50001'],
  );
  assert.is(code, 0);
  const lines = stdout.split('\n');
  assert.is(lines[0], 'Beginning test: nd pingpong');
  assert.match(lines[1]!, /^Using \d+ processors\. Sender Frequency is 1000000000$/);
  assert.equal(lines.slice(2, 4), ['', '      Size      Iter   Latency     CPU   Bytes/Sec']);
  for (const [line, size] of [
    [lines[4]!, 1],
    [lines[5]!, 64],
  ] as const) {
    assert.match(line, /^ {1,10}\d+ {7,8}\d+ +\d+\.\d\d +\d+\.\d\d +\d+$/);
    assert.equal([Number(line.slice(0, 10)), Number(line.slice(10, 20))], [size, 20]);
  }
  assert.equal(lines.slice(6), ['End of test: nd pingpong', '']);
  assert.is((await server.ended).code, 0);
});

test('versions of the SPI can be mixed, and warm-up transfers come before the table', async () => {
  const server = await startServer('ping', '--spi', 'v1', '127.0.0.1');
  const { code, stdout, stderr } = await runNd(
    ...[
      'ping',
      '-c',
      '--spi',
      'v2',
      '-q',
      '7',
      ...QUICK,
      '--iterations',
      '1000',
      '--sizes',
      '64',
      '--json',
      '127.0.0.1',
    ],
  );
  assert.is(code, 0, stderr);
  assert.is((JSON.parse(stdout) as Report).rows[0]!.iterations, 1000);
  assert.is((await server.ended).code, 0);
});

test('a client without a server reports how to start one', async () => {
  for (const spi of ['v1', 'v2']) {
    const { code, stdout, stderr } = await runNd('rping', '-c', '--spi', spi, '127.0.0.1');
    assert.equal([code, stdout], [1, 'Beginning test: nd rping\n']);
    assert.match(
      stderr,
      /^nd rping: No server responds at 127\.0\.0\.1, port 54326\. .*: nd rping -s 127\.0\.0\.1:54326\n$/,
    );
  }
});

long(test, 'invalid arguments: a sentence, the usage, and exit code 2', async () => {
  const wrong = [
    [['ping', '127.0.0.1'], /^nd ping: requires either -s \(server\) or -c \(client\)$/m],
    [['ping', '-s', '-c', '127.0.0.1'], /requires either -s/],
    [
      ['pingpong', '-s', '-b', '-p', '127.0.0.1'],
      /-b \(blocking\) and -p \(polling\) are mutually exclusive/,
    ],
    [['rping', '-c', '-r', '-w', '127.0.0.1'], /-r \(read\) and -w \(write\) are mutually exclusive/],
    [['ping', '-s', '-n', '0', '127.0.0.1'], /^nd ping: --nSge must be 1 or more; got '0'$/m],
    [['ping', '-c', '--sizes', '1,5000000', '127.0.0.1'], /--sizes must be sizes from 1 to 4194304/],
    [
      ['ping', '-c', '300.1.1.1'],
      /^nd ping: the address must be an IP address such as 192\.0\.2\.1 .*; got '300\.1\.1\.1'$/m,
    ],
    [['ping', '-c', '0.0.0.0'], /^nd ping: the address must be that of a single host; got '0\.0\.0\.0'$/m],
    [
      ['ping', '-c', '127.0.0.1:70000'],
      /^nd ping: the port of '127\.0\.0\.1:70000' must be an integer from 0 to 65535; got 70000\.$/m,
    ],
    [['ping', '-c'], /missing required argument/],
    [['ping', '-c', '127.0.0.1', '-q'], /argument missing/],
  ] as const;
  const check = async ([args, sentence]: (typeof wrong)[number]) => {
    const { code, stdout, stderr } = await runNd(...args);
    assert.equal([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, sentence);
    assert.match(stderr, /^Usage: nd \w+ \[options\] <host\[:port\]>$/m);
  };
  await Promise.all(wrong.map(check));
});

test('requests beyond the adapter’s limits are rejected with the limit', async () => {
  const many = await runNd('ping', '-s', '-n', '200', '127.0.0.1');
  assert.is(many.code, 1);
  assert.match(many.stderr, /^nd ping: --nSge must be at most \d+ for this adapter; got 200\.$/m);
  const other = await runNd('ping', '-s', '203.0.113.9');
  assert.is(other.code, 1);
  assert.match(other.stderr, /^nd ping: No adapter of this host has the address 203\.0\.113\.9\.$/m);
});

test('errors are JSON with --json; host names can be used as addresses; --version is that of the package', async () => {
  const missing = await runNd('rping', '-c', '--json', 'localhost');
  assert.is(missing.code, 1);
  const { tool, error } = JSON.parse(missing.stdout);
  assert.is(tool, 'nd rping');
  assert.match(error.message, /^No server responds at 127\.0\.0\.1, port 54326\./);
  const unknown = await runNd('rping', '-c', '--json', 'no.such.host.invalid');
  assert.is(unknown.code, 2);
  assert.match(
    JSON.parse(unknown.stdout).error.message,
    /Host name 'no\.such\.host\.invalid' cannot be resolved/,
  );
  const wrong = await runNd('rping', '--json', '127.0.0.1');
  assert.is(wrong.code, 2);
  assert.match(JSON.parse(wrong.stdout).error.message, /requires either -s/);
  const version = await runNd('--version');
  assert.equal([version.code, /^\d+\.\d+\.\d+\n$/.test(version.stdout)], [0, true]);
});

for (const [who, waiting] of [
  ['server', '-b'],
  ['client', '-p'],
  ['client', '-b'],
] as const) {
  firstIf(`${who} ${waiting}` !== 'client -b', test)(
    `Ctrl-C at the ${who}, ${waiting}: it ends with 130, and the other side ends too`,
    async () => {
      const server = await startServer('rpingpong', waiting, '127.0.0.1');
      const client = new NdTool(['rpingpong', '-c', waiting, '--warmup', '0', '--sizes', '1', '127.0.0.1']);
      await client.printed(/Latency/);
      (who === 'server' ? server : client).process.kill('SIGINT');
      const [first, second] = await Promise.all([server.ended, client.ended]);
      const [interrupted, other] = who === 'server' ? [first, second] : [second, first];
      assert.is(interrupted.code, 130);
      assert.match(interrupted.stderr, /^nd rpingpong: interrupted$/m);
      assert.is(other.code, 3);
      assert.match(
        other.stderr,
        /^nd rpingpong: The peer ended the connection before the test was finished\.$/m,
      );
    },
  );
}

test.run();
