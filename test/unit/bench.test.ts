// The benchmark's evaluation of samples: figures, ratios, targets, table, JSON and chart.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { chart } from '../../bench/chart.js';
import { mapJobSchema } from '../../bench/map/job.js';
import { netJobSchema } from '../../bench/net/job.js';
import { jobSchema } from '../../bench/ours/job.js';
import { parse as parseLibfabric } from '../../bench/peers/libfabric.js';
import { parse as parseUcx } from '../../bench/peers/ucx.js';
import { plan, type Row, US } from '../../bench/plan.js';
import { absences, jsonLines, markdown, numberText, table } from '../../bench/report.js';
import { outcomeOf, type RowOutcome } from '../../bench/run.js';
import { bytesText, each, figureOf, Parts, perSecond, quantile, timed } from '../../bench/samples.js';

const everything = plan(1, /(?:)/);

test('rows have unique names and start with this library; targets name contestants', () => {
  assert.is(new Set(everything.map(({ name }) => name)).size, everything.length);
  for (const { name, contestants, targets } of everything) {
    assert.is(contestants[0].label, US, name);
    const labels = contestants.map(({ label }) => label);
    assert.is(new Set(labels).size, labels.length, name);
    for (const label of targets.flatMap(({ against, of }) => [against, of]).filter((l) => l !== undefined))
      assert.ok(labels.includes(label), name);
  }
});

test('jobs are valid for the programs at any scale', () => {
  for (const scale of [0.001, 1, 10]) {
    for (const { name, contestants } of plan(scale, /(?:)/)) {
      for (const contestant of contestants) {
        if (contestant.by === 'networkdirect') jobSchema.parse(contestant.job);
        if (contestant.by === 'net') netJobSchema.parse(contestant.job);
        if (contestant.by === 'map') mapJobSchema.parse(contestant.job);
        if ('count' in contestant.job) assert.ok(contestant.job.count >= 1, name);
      }
    }
  }
});

test('requests have a warm-up of 20,000 at any scale from 0.1, and these are measured in a separate row', () => {
  const warmUps = (scale: number) =>
    plan(scale, /^net request (1|1000)( cold| processor)?( busy)?$/).map(({ contestants: [ours] }) =>
      ours.by === 'net' ? [ours.job.figure, ours.job.warmUp] : [],
    );
  for (const scale of [0.1, 1, 10]) {
    const found = warmUps(scale);
    assert.is(found.length, 12);
    assert.is(found.filter(([figure]) => figure === 'cold').length, 4);
    assert.ok(found.every(([, warmUp]) => warmUp === 20_000));
  }
  assert.ok(warmUps(0.001).every(([, warmUp]) => warmUp === 200));
});

test('a pattern selects rows by name', () => {
  assert.equal(
    plan(1, /^rate/).map(({ name }) => name),
    ['rate local 64'],
  );
  assert.equal(plan(1, /no such row/), []);
});

test('quantiles, medians of rounds, and rates', () => {
  assert.is(quantile([3, 1, 2], 0.5), 2);
  assert.ok(Number.isNaN(quantile([], 0.5)));
  assert.equal(figureOf([4, 1, 2]), { value: 2, least: 1, most: 4 });
  assert.equal(figureOf([4, 1, 2, 3]), { value: 2.5, least: 1, most: 4 });
  const parts = new Parts();
  assert.throws(() => parts.sample, /Nothing was measured/);
  for (const value of [10, 20, 60]) parts.add(value);
  assert.equal(parts.sample, { mean: 30, median: 20 });
  assert.equal(each({ mean: 2, median: 4 }, 4), { mean: 0.5, median: 1 });
  assert.equal(perSecond({ mean: 2, median: 4 }, 8), { mean: 4e6, median: 2e6 });
});

test('work is timed at least once, and its warm-up is not counted', () => {
  let done = 0;
  const sample = timed(1e-9, () => {
    done += 1;
  });
  assert.ok(done >= 1 && sample.median !== undefined && sample.mean >= 0);
});

test('numbers and sizes are readable', () => {
  assert.equal([0, 0.0123, 1.234, 12.34, 1234].map(numberText), ['0', '0.0123', '1.23', '12.3', '1234']);
  assert.equal([8, 4096, 1 << 20, 1000].map(bytesText), ['8', '4 KiB', '1 MiB', '1000']);
});

test('fi_pingpong’s columns are parsed', () => {
  const text = [
    'bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec',
    '8       100k    =100k    1.5m        0.84s      1.91       4.19       0.24',
  ].join('\n');
  assert.equal(parseLibfabric(text, { metric: 'latency' }), { mean: 4.19 });
  assert.equal(parseLibfabric(text, { metric: 'bandwidth' }), { mean: 1.91e6 });
  assert.throws(() => parseLibfabric('no provider', { metric: 'latency' }), /no provider/);
});

test('ucx_perftest’s columns are parsed', () => {
  const text = [
    'iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr',
    '100000,0.180,1.397,1.398,5.46,5.47,715751,715752',
  ].join('\n');
  assert.equal(parseUcx(text, { metric: 'latency' }), { mean: 1.398, median: 0.18 });
  assert.equal(parseUcx(text, { metric: 'bandwidth' }), { mean: 5.47 * 1_048_576 });
  assert.equal(parseUcx(text, { metric: 'rate' }), { mean: 715_752 });
  assert.throws(() => parseUcx('refused', { metric: 'rate' }), /refused/);
});

const latencyRow: Row = {
  ...everything.find(({ name }) => name === 'ping-pong local 8')!,
  contestants: [
    { label: US, by: 'networkdirect', job: { kind: 'open' } },
    { label: 'both', by: 'node', job: { kind: 'worker' } },
    { label: 'mean <only>', by: 'node', job: { kind: 'worker' } },
    { label: 'absent', by: 'node', job: { kind: 'worker' } },
    { label: 'broken', by: 'node', job: { kind: 'worker' } },
  ],
  targets: [
    { against: 'both', factor: 0.5 },
    { against: 'mean <only>', factor: 0.5 },
    { against: 'absent', factor: 1 },
    { factor: 1.5, stretch: true },
  ],
};

const outcome: RowOutcome = outcomeOf(latencyRow, [
  {
    label: US,
    samples: [
      { mean: 4, median: 1 },
      { mean: 12, median: 3 },
      { mean: 8, median: 2 },
    ],
  },
  {
    label: 'both',
    samples: [
      { mean: 1, median: 4 },
      { mean: 1, median: 4 },
      { mean: 1, median: 4 },
    ],
  },
  { label: 'mean <only>', samples: [{ mean: 10 }, { mean: 10 }, { mean: 10 }] },
  { label: 'absent', samples: [], missing: 'not installed' },
  { label: 'broken', samples: [], failed: 'exit code 1' },
]);

test('ratios use medians if both report them and otherwise means; targets are compared with them', () => {
  const [ours, both, meanOnly, absent] = outcome.outcomes;
  assert.equal(ours!.figure, { value: 2, least: 1, most: 3 });
  assert.is(ours!.ratio, undefined);
  assert.is(both!.ratio!.value, 0.5);
  assert.equal(meanOnly!.ratio, { value: 0.8, least: 0.4, most: 1.2 });
  assert.is(absent!.figure, undefined);
  assert.equal(
    outcome.targets.map(({ value, met }) => [value, met]),
    [
      [0.5, true],
      [0.8, false],
      [undefined, undefined],
      [2, false],
    ],
  );
});

test('if more is better, targets are minimums', () => {
  const row: Row = {
    ...everything.find(({ name }) => name === 'rate local 64')!,
    targets: [{ factor: 5 }, { factor: 20 }],
  };
  const { targets } = outcomeOf(row, [{ label: US, samples: [{ mean: 6e6 }] }]);
  assert.equal(
    targets.map(({ value, met }) => [value, met]),
    [
      [6, true],
      [6, false],
    ],
  );
});

test('a target may apply to another of our figures and is shown next to it', () => {
  const row: Row = {
    ...everything.find(({ name }) => name === 'connect')!,
    targets: [{ factor: 3000 }, { of: `${US}, compiled`, factor: 3000 }],
  };
  const made = outcomeOf(row, [
    { label: US, samples: [{ mean: 2000 }] },
    { label: `${US}, compiled`, samples: [{ mean: 4000 }] },
  ]);
  assert.equal(
    made.targets.map(({ value, met }) => [value, met]),
    [
      [2000, false],
      [4000, true],
    ],
  );
  const text = table([made]);
  assert.match(text, /networkdirect +2000 .*≥ 3000 \/s +MISSED\n/);
  assert.match(text, /compiled +4000 .*≥ 3000 \/s +met/);
  assert.match(markdown([made]), /compiled \| 4000 .*≥ 3000 \/s \| met \|/);
});

test('the table shows missing contestants, failures, and missed targets', () => {
  const text = table([outcome]);
  assert.match(text, /both .*4\.00 µs .*0\.500 × .*≤ 0\.500 × .*met/);
  assert.match(text, /mean <only> .*10\.0 µs \(mean\) .*0\.800 × .*MISSED/);
  assert.match(text, /absent .*missing .*≤ 1\.00 × .*\?/);
  assert.match(text, /broken .*failed/);
  assert.match(text, /stretch\) .*not yet/);
  assert.equal(absences([outcome, outcome]), [
    'missing: absent: not installed',
    'failed: ping-pong local 8, broken: exit code 1',
  ]);
});

test('a local row shows if its messages went over UDP, a wire row does not', () => {
  const one = (name: string) =>
    table([
      outcomeOf({ ...latencyRow, name, targets: [] }, [{ label: US, samples: [{ mean: 1, link: 'UDP' }] }]),
    ]);
  assert.match(one('ping-pong local 8'), /networkdirect \(over UDP\)/);
  assert.not.match(one('ping-pong wire 8'), /over UDP/);
});

test('the table for documents has the same cells', () => {
  const lines = markdown([outcome]).split('\n');
  assert.is(lines.length, 8);
  assert.ok(lines.every((line) => line.split(' | ').length === 6));
  assert.match(lines[4]!, /^\| both \| 4\.00 µs \| {2}\| 0\.500 × \| ≤ 0\.500 × \| met \|$/);
});

test('JSON lines have a line for each contestant', () => {
  const lines = jsonLines(outcome).map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.is(lines.length, 5);
  assert.is(lines[0]!.value, 2);
  assert.is(lines[1]!.ratio, 0.5);
  assert.is(lines[3]!.missing, 'not installed');
  assert.is(lines[4]!.failed, 'exit code 1');
});

test('the chart has a line for each contestant with two sizes, and its text is escaped', () => {
  const larger: RowOutcome = { ...outcome, row: { ...latencyRow, chart: { of: 'latency', size: 64 } } };
  const svg = chart([outcome, larger]);
  assert.is(svg.match(/<polyline /g)?.length, 3);
  assert.ok(svg.includes('mean &lt;only&gt;') && !svg.includes('<only>'));
  assert.not.match(svg, /NaN|Infinity|undefined/);
  assert.match(svg, /not measured/, 'the panel of bandwidth is empty');
});

test.run();
