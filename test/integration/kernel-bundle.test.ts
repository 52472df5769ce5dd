/** The soft kernel's thread starts from a single file if a valid one exists, and otherwise from its modules. */
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

const root = fileURLToPath(new URL('../../../', import.meta.url));
const addon = join(root, 'build/Release/networkdirect_hca.node');
const home = mkdtempSync(join(tmpdir(), 'kernel-bundle-'));
const dist = join(home, 'dist');
const kernel = join(dist, 'kernel-bridge/kernel');
const bundle = join(kernel, 'bundle.cjs');

const env = { ...process.env, NETWORKDIRECT_HCA_ADDON: addon };

/** The bundle as created by scripts/bundle-kernel.mjs. */
let made: Buffer;

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

/** Makes a bundle report its start. */
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
  made = readFileSync(bundle);
});
test.before.each(() => {
  writeFileSync(bundle, made);
  appendFileSync(bundle, report);
});
test.after(() => rmSync(home, { recursive: true, force: true }));

test('a bundle newer than its modules is started', () => {
  const { ended, from, said } = open();
  assert.is(ended, 0, said);
  assert.is(from, 'bundle', said);
});

test('if all files have the same age, as unpacked by a package manager, the bundle is started', () => {
  const sources = /exports\.files = \["\.\.\//;
  assert.match(readFileSync(bundle, 'utf8'), sources);
  const age = new Date(1985, 9, 26);
  for (const name of ['kernel-bridge/kernel/start-kernel.js', 'kernel-bridge/ioctl/structs.js'])
    utimesSync(join(dist, name), age, age);
  assert.is(open().from, 'bundle');
});

test('if a module was compiled later, the modules are started', () => {
  const later = new Date(Date.now() + 60_000);
  utimesSync(join(kernel, 'cm/mad-layouts.js'), later, later);
  const { ended, from, said } = open();
  assert.is(ended, 0, said);
  assert.is(from, 'modules');
  const now = new Date(0);
  utimesSync(join(kernel, 'cm/mad-layouts.js'), now, now);
});

test('without a bundle, or with an invalid one, the modules are started', () => {
  for (const content of [undefined, 'exports.files = 7;', 'no script', "throw new Error('broken')"]) {
    if (content === undefined) rmSync(bundle);
    else writeFileSync(bundle, content);
    const { ended, from, said } = open();
    assert.is(ended, 0, `${content}: ${said}`);
    assert.is(from, 'modules');
  }
});

test.run();
