/** Warnings of the soft kernel, also in programs that end before the event loop's next turn. */
import { spawnSync } from 'node:child_process';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { runLimited } from '../helpers/limited.js';
import { needing } from '../helpers/needs.js';
import { firstIf, long } from '../helpers/tiers.js';

const winverbs = new URL('../../winverbs/index.js', import.meta.url).href;

/** A program that opens a provider with this capture file. */
const program = (then: string, capture: string): string => `
    import { openProvider } from ${JSON.stringify(winverbs)};
    process.on('warning', ({ name }) => process._rawDebug('heard', name));
    const provider = openProvider({ capture: ${JSON.stringify(capture)} });
    openProvider();
    ${then}`;

/** Returns its standard error. By default, the file cannot be written. */
function run(then: string, capture = '/no/such/folder/capture.pcapng', flags: string[] = []): string {
  const { status, stderr } = spawnSync(
    process.execPath,
    [...flags, '--input-type=module', '--eval', program(then, capture)],
    { encoding: 'utf8' },
  );
  assert.is(status, 0, stderr);
  return stderr;
}

for (const then of ['process.exit(0);', '', 'await new Promise(setImmediate);']) {
  firstIf(then.includes('exit'), test)(
    `a capture that cannot be written is reported once: ${then || 'the program ends'}`,
    () => {
      const told = run(then);
      assert.is(told.match(/'\/no\/such\/folder\/capture\.pcapng' cannot be written/g)?.length, 1, told);
      assert.is(told.match(/heard NetworkDirectWarning/g)?.length, 1, told);
    },
  );
}

long(test, '--no-warnings suppresses it', () => {
  assert.not.match(run('process.exit(0);', undefined, ['--no-warnings']), 'cannot be written');
});

const loopback = new URL('../helpers/loopback.js', import.meta.url).href;

/** Returns the standard error of a program that captures to this file and sends 1 MiB, under these limits. */
function record(capture: string, limits: string): string {
  const source = `
    import { WvSend } from ${JSON.stringify(winverbs)};
    import { connectedPair, remoteOf, take } from ${JSON.stringify(loopback)};
    process.env.ND_OPTIONS = ${JSON.stringify(JSON.stringify({ capture }))};
    const { a, b, release } = await connectedPair();
    const warned = new Promise((resolve) => process.once('warning', resolve));
    for (let n = 0; n < 128; n++) {
      a.qp.write(1, [{ region: a.region, offset: 0, length: 8192 }], WvSend.SIGNALED, remoteOf(b.region), 0);
      await take(a.cq, 1);
    }
    const alive = setInterval(() => {}, 1000);
    const { name } = await warned;
    clearInterval(alive);
    process._rawDebug('heard', name);
    release();`;
  const { status, stderr } = runLimited(limits, source);
  assert.is(status, 0, stderr);
  return stderr;
}

needing(test, 'limits')(
  'a capture that fails later is reported in the thread that requested it, and the traffic continues',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'nd-capture-'));
    const file = join(folder, 'capture.pcapng');
    const told = record(file, 'ulimit -f 256');
    assert.is(
      told.match(/The capture has ended: the file '.*' can no longer be written \(EFBIG\)\./g)?.length,
      1,
      told,
    );
    assert.match(told, /heard NetworkDirectWarning/);
    assert.ok(statSync(file).size > 0);
    rmSync(folder, { recursive: true });
  },
);

long(needing(test, 'limits'), 'a capture that cannot start is reported at once', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nd-capture-'));
  const file = join(folder, 'capture.pcapng');
  const { status, stderr } = runLimited('ulimit -f 0', program('', file));
  assert.is(status, 0, stderr);
  assert.is(stderr.match(/capture\.pcapng' cannot be written; nothing is recorded/g)?.length, 1, stderr);
  rmSync(folder, { recursive: true });
});

test('a capture does not overwrite existing files, and does not follow links', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nd-capture-'));
  const at = (name: string): string => join(folder, name);
  writeFileSync(at('kept'), 'kept');
  symlinkSync('kept', at('x.pcapng'));
  writeFileSync(at('x-2.pcapng'), 'of another run');
  symlinkSync('made', at('x-3.pcapng'));
  assert.is(run('', at('x.pcapng')), '');
  assert.equal(
    ['kept', 'x-2.pcapng'].map((name) => readFileSync(at(name), 'utf8')),
    ['kept', 'of another run'],
  );
  assert.equal(readdirSync(folder).sort(), ['kept', 'x-2.pcapng', 'x-3.pcapng', 'x-4.pcapng', 'x.pcapng']);
  const { size, mode } = statSync(at('x-4.pcapng'));
  assert.ok(size > 0);
  assert.is(mode & 0o777, 0o600);
  rmSync(folder, { recursive: true });
});

test.run();
