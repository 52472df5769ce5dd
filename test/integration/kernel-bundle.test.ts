/** The soft kernel's thread starts from one file if there is a valid one, and otherwise from its modules. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { long } from '../helpers/tiers.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const addon = join(root, 'build/Release/networkdirect_hca.node');
const home = mkdtempSync(join(tmpdir(), 'kernel-bundle-'));
const dist = join(home, 'dist');
const kernel = join(dist, 'kernel-bridge/kernel');
const bundle = join(kernel, 'bundle.cjs');
const cache = join(kernel, 'bundle.cache');

const env = { ...process.env, NETWORKDIRECT_HCA_ADDON: addon };

/** The files that scripts/bundle-kernel.mjs makes, each as it was. */
const made = new Map<string, Buffer>();

/** Opens a provider, and reports the source of its kernel. */
function open(): { ended: number | null; said: string; from: string } {
  const script = `import { openProvider } from ${JSON.stringify(join(dist, 'winverbs/index.js'))};
    using provider = openProvider();
    provider.queryDeviceList();`;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', script.replace('using', 'const')], {
    env: { ...env, NODE_OPTIONS: '' },
    encoding: 'utf8',
    timeout: 60_000,
  });
  return {
    ended: child.status,
    said: child.stderr,
    from: child.stderr.includes('started from the bundle') ? 'bundle' : 'modules',
  };
}

/** Makes a bundle report that it starts. */
const report = `{
  const { start, ...others } = module.exports;
  const said = 'started from the bundle';
  module.exports = { ...others, start: () => require('node:fs').writeSync(2, said) && start() };
}`;

const test = suite('kernel bundle');

test.before(() => {
  for (const part of ['kernel-bridge', 'winverbs']) {
    cpSync(join(root, 'dist', part), join(dist, part), { recursive: true });
  }
  writeFileSync(join(home, 'package.json'), '{"type":"module"}');
  symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'));
  execFileSync(process.execPath, [join(root, 'scripts/bundle-kernel.mjs'), dist], { env, stdio: 'ignore' });
  for (const file of [bundle, cache]) made.set(file, readFileSync(file));
});
test.before.each(() => {
  for (const [file, bytes] of made) writeFileSync(file, bytes);
  appendFileSync(bundle, report);
});
test.after(() => rmSync(home, { recursive: true, force: true }));

test('a bundle that is newer than its modules is what starts', () => {
  const { ended, from, said } = open();
  assert.is(ended, 0, said);
  assert.is(from, 'bundle', said);
});

test('files of one age, as a package manager unpacks them, are a bundle and its modules', () => {
  const sources = /exports\.files = \["\.\.\//;
  assert.match(readFileSync(bundle, 'utf8'), sources);
  const age = new Date(1985, 9, 26);
  for (const name of ['kernel-bridge/kernel/thread.js', 'kernel-bridge/ioctl/structs.js'])
    utimesSync(join(dist, name), age, age);
  assert.is(open().from, 'bundle');
});

test('a module that was compiled later counts', () => {
  const later = new Date(Date.now() + 60_000);
  utimesSync(join(kernel, 'cm/wire.js'), later, later);
  const { ended, from, said } = open();
  assert.is(ended, 0, said);
  assert.is(from, 'modules');
  const now = new Date(0);
  utimesSync(join(kernel, 'cm/wire.js'), now, now);
});

test('without a bundle, or with a broken one, the modules start', () => {
  for (const content of [undefined, 'exports.files = 7;', 'no script', "throw new Error('broken')"]) {
    if (content === undefined) rmSync(bundle);
    else writeFileSync(bundle, content);
    const { ended, from, said } = open();
    assert.is(ended, 0, `${content}: ${said}`);
    assert.is(from, 'modules');
  }
});

long(test, 'kept code of another bundle, or none at all, is not used', () => {
  // Of the same length, which V8 itself would not notice.
  const source = readFileSync(bundle, 'utf8');
  const kept = readFileSync(cache);
  const mark = source.slice(0, source.indexOf('*/') + 2);
  assert.is(kept.toString('latin1', 0, mark.length), mark, 'it is of this bundle');
  for (const other of [
    Buffer.alloc(0),
    Buffer.from('*/'),
    Buffer.concat([Buffer.from(mark), Buffer.alloc(100, 7)]),
  ]) {
    writeFileSync(cache, other);
    const { ended, from, said } = open();
    assert.is(ended, 0, said);
    assert.is(from, 'bundle');
  }
  // A code cache with another mark: the present text must run.
  execFileSync(process.execPath, [join(root, 'scripts/cache-kernel.mjs'), dist], { env, stdio: 'ignore' });
  assert.is(open().from, 'bundle');
  const changed = readFileSync(bundle, 'utf8')
    .replace('started from the bundle', 'started from a new one!')
    .replace(mark, `/*${'0'.repeat(mark.length - 4)}*/`);
  writeFileSync(bundle, changed);
  const { ended, said } = open();
  assert.is(ended, 0, said);
  assert.match(said, 'started from a new one!');
});

test.run();
