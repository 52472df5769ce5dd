// The benchmark as users run it, but as short as possible. It must measure everything. Speed is not checked.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { type CrowdFigures, crowdSample } from '../../bench/crowd/crowd.js';
import { plan } from '../../bench/plan.js';
import { root } from '../helpers/root.js';
import { firstIf, long } from '../helpers/tiers.js';

const program = fileURLToPath(new URL('../../bench/main.js', import.meta.url));

interface Line {
  row: string;
  who: string;
  value?: number;
  ratio?: number;
  missing?: string;
  failed?: string;
  samples: { link?: string }[];
}

function bench(...args: string[]) {
  return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
}

function lines(...args: string[]): Line[] {
  const { status, stdout, stderr } = bench('--json', '--rounds', '1', '--scale', '0.002', ...args);
  if (status !== 0) throw new Error(stderr);
  const [head, ...rest] = stdout.trim().split('\n');
  const { machine } = JSON.parse(head!) as { machine: { node: string } };
  assert.is(machine.node, process.version);
  return rest.map((line) => JSON.parse(line) as Line);
}

/** One row of each kind, without the peers. */
const KINDS =
  /^(ping-pong (local|wire) 8|write-poll .*|read local allocate 65536|rate .*|wake-up loop|wake-up block late|icrc|connect|workers (pairs|2)|crowd 1x1 .*|queue-pairs (engine|memory)|rest|open|net (connect|echo|onread|request 1 cold|request of 5000))$/;
// All figures of a crowd come from one measurement.
const kinds = new Set(plan(1, KINDS).map(({ name }) => name.replace(/^(crowd 1x1) .*/, '$1 .*')));
assert.ok(kinds.size >= 13);
const FIRST_TIER = /^ping-pong local/;

for (const kind of kinds) {
  firstIf(FIRST_TIER.test(kind), test)(`this library alone: ${kind} has a figure`, () => {
    const only = `^${kind}$`;
    const found = lines('--no-peers', '--only', only);
    const rows = plan(1, new RegExp(only)).map(({ name }) => name);
    assert.equal([...new Set(found.map(({ row }) => row))], rows);
    for (const { row, who, value, missing, samples } of found) {
      assert.match(who, /^networkdirect/);
      // C++ programs only measure parts of the engine.
      if (missing !== undefined && /^(icrc|queue-pairs engine)$/.test(row)) {
        assert.match(missing, /not installed/);
        continue;
      }
      if (row.startsWith('ping-pong wire')) assert.is(samples[0]!.link, 'UDP');
      assert.ok(value !== undefined && Number.isFinite(value), row);
      // An idle process may have used no measurable time.
      assert.ok(row === 'rest' || row === 'queue-pairs memory' ? value >= 0 : value > 0, `${row}: ${value}`);
    }
  });
}

long(test, 'npm run bench measures the package', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Readonly<Record<string, string>>;
  };
  const pack = scripts.prebench!.split(' && ').at(-1)!;
  const quick = "--json --no-peers --rounds 1 --scale 0.002 --only '^ping-pong local 8$'";
  execFileSync('sh', ['-c', pack], { cwd: root });
  const [head, ...rows] = execFileSync('sh', ['-c', `${scripts.bench} ${quick}`], {
    cwd: root,
    encoding: 'utf8',
  })
    .trim()
    .split('\n');
  const { machine } = JSON.parse(head!) as { machine: { library: string } };
  assert.is(machine.library, 'build/package/networkdirect/dist/nd/index.mjs');
  assert.ok(rows.length > 0);
  for (const row of rows) assert.ok((JSON.parse(row) as Line).value! > 0, row);
});

long(
  test,
  'a crowd, half of it over the network, with bulk data: every connection gets replies',
  async () => {
    for (const who of ['apart', 'together', 'net'] as const) {
      const job = { who, clients: 2, connections: 3, seconds: 0.2, load: 'mixed' } as const;
      const of = async (figure: keyof CrowdFigures) => (await crowdSample(job, figure, 1)).mean;
      assert.ok((await of('rate')) > 0, who);
      assert.ok((await of('slowest')) > 0, who);
      assert.ok((await of('wire')) > 0, who);
      assert.ok((await of('p50')) <= (await of('p99')) && (await of('memory')) > 1 << 20, who);
    }
  },
);

long(
  test,
  'with peers: each has a figure and a ratio, or the reason for its absence; the chart shows them',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'bench-'));
    const svg = join(folder, 'chart.svg');
    try {
      const found = lines('--only', '^ping-pong local (64|512)$', '--svg', svg);
      for (const { row, who, value, ratio, missing } of found) {
        if (missing !== undefined) assert.match(missing, /not installed|make cannot build/);
        else assert.ok(value! > 0 && (who === 'networkdirect' || ratio! > 0), `${row}, ${who}`);
      }
      const tcp = found.filter(({ who }) => who === 'node:net TCP');
      assert.is(tcp.filter(({ missing }) => missing === undefined).length, 2);
      assert.ok(existsSync(svg) && readFileSync(svg, 'utf8').includes('node:net TCP'));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

long(
  test,
  'requests are compared with sockets, zeromq and a MessagePort, or zeromq is reported as missing',
  () => {
    const found = lines('--only', '^net request of 4000$');
    assert.equal(
      found.map(({ who }) => who),
      ['networkdirect', 'node:net TCP', 'node:net UNIX', 'zeromq', 'MessagePort'],
    );
    for (const { who, value, ratio, missing } of found) {
      if (who === 'zeromq' && missing !== undefined) assert.match(missing, /not installed/);
      else assert.ok(value! > 0 && (who === 'networkdirect' || ratio! > 0), who);
    }
  },
);

test('invalid options are reported before anything is measured', () => {
  for (const [args, words] of [
    [['--only', 'no such row'], /No row matches/],
    [['--only', '('], /regular expression/],
    [['--rounds', '0'], /--rounds: .*>=1/],
    [['--scale', '-1'], /--scale/],
    [['--rond', '1'], /unknown option/],
    [['--only', '^icrc$', '--svg', '/no such folder/chart.svg'], /--svg must be .*no such folder/],
  ] as const) {
    const { status, stderr, stdout } = bench(...args);
    assert.is(status, 2, stderr);
    assert.match(stderr, words);
    assert.is(stdout, '');
  }
});

long(test, '--list names the rows', () => {
  const { stdout } = bench('--list', '--only', '^wake-up');
  assert.match(stdout, /^wake-up block .*\nwake-up block late .*\nwake-up loop .*\nwake-up loop late .*\n$/);
  const named = bench('--list', '--json', '--only', '^icrc$').stdout;
  assert.equal(Object.keys(JSON.parse(named)), ['name', 'title', 'contestants']);
  assert.is(JSON.parse(named).name, 'icrc');
  assert.is(bench('--help').status, 0);
});

test.run();
