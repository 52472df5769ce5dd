/** The conformance suite of ND SPI v2 over a vendor's provider, in one process and in two. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { passesAllBut } from '../../helpers/conformance-passes.js';
import { onlyProvider } from './vendor-host.js';

onlyProvider();
const vendor = { by: [], kernel: { hca: 'rdma' } } as const;

/** Asserts that the provider has recorded no violation in any process. */
async function watched(settings: string, run: () => Promise<void>): Promise<void> {
  const log = join(mkdtempSync(join(tmpdir(), 'nd-conformance-')), 'log');
  process.env.STANDIN_ND = settings;
  process.env.STANDIN_ND_LOG = log;
  await run();
  const seen = readFileSync(log, 'utf8').trim().split('\n');
  assert.equal(
    seen.map((line) => line.replace(/.*violation=/, '')),
    seen.map(() => ''),
  );
}

/** Cases that are skipped, because a provider flushes a queue pair when its connection ends. */
const lacks = ['disconnect.connecter-peer-keeps', 'disconnect.accepter-peer-keeps'];
const passes = (...args: string[]) => passesAllBut(lacks, 'v2', vendor, '--memory', 'allocate', ...args);

// `leaves`: the command ends its process without deregistering memory.
for (const settings of ['leaves=1', 'leaves=1,completion=1', 'leaves=1,completion=2,padding=1']) {
  test(`SPI v2, both halves in one process (${settings})`, () => watched(settings, passes));
}

test('SPI v2, in two processes', () => watched('leaves=1', () => passes('--processes', '2')));

test.run();
