// Options of Node.js that forbid what the package needs. The error names the option to omit or to add.
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const index = new URL('../../nd/index.js', import.meta.url).href;
const program = `
  const { openNetworkDirect2 } = await import('${index}');
  try { openNetworkDirect2(); console.log('opened'); process.exit(0); } catch (error) { console.log(error.message); }`;
const permission = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission';

/** Output of a process with these options. */
function outputOf(...options: string[]): string {
  const args = ['--no-warnings', ...options, '--input-type=module', '-e', program];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.is(status, 0, stderr);
  return stdout;
}

const CURE = /must allow what this package needs: --allow-addons, --allow-worker and --allow-fs-read=\*\.\n$/;

test('--no-addons must be omitted', () => {
  const text = outputOf('--no-addons');
  assert.match(
    text,
    /^The software HCA's native addon cannot be loaded \(.*\)\. Start Node\.js without --no-addons/,
  );
  assert.not.match(text, /compiler|permission/);
});

test('the permission model has to allow addons and threads; with both it opens', () => {
  const files = [permission, '--allow-fs-read=*'];
  const addon = outputOf(...files, '--allow-worker');
  assert.match(addon, CURE);
  assert.not.match(addon, /compiler/);
  const thread = outputOf(...files, '--allow-addons');
  assert.match(thread, /^The soft kernel's thread may not be started\. /);
  assert.match(thread, CURE);
  assert.is(outputOf(...files, '--allow-addons', '--allow-worker'), 'opened\n');
});

test.run();
