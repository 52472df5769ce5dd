// The packages that provide each part on Windows, and the errors if they are missing.
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const moduleAt = (path: string): string => new URL(`../../${path}`, import.meta.url).href;

/** Output of an expression in a process that acts as on Windows, where `require` only finds `modules` of the two. */
function onWindows(arch: string, found: readonly string[], expression: string): string {
  const program = `
    import { Module } from 'node:module';
    Object.defineProperties(process, { platform: { value: 'win32' }, arch: { value: '${arch}' } });
    const load = Module._load;
    Module._load = (request, ...more) => {
      if (${JSON.stringify(found)}.includes(request)) return request;
      if (!/^(koffi|@networkdirect)/.test(request)) return load(request, ...more);
      throw Object.assign(new Error(request + ' is hidden'), { code: 'MODULE_NOT_FOUND' });
    };
    const { loadKoffi } = await import('${moduleAt('kernel-bridge/windows/win32.js')}');
    const { loadAddon } = await import('${moduleAt('kernel-bridge/hca/index.js')}');
    try { console.log(${expression}); } catch (error) { console.log(error.message); }`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  assert.is(status, 0, stderr);
  return stdout;
}

test('koffi is loaded from the package for Windows if it is installed, otherwise directly', () => {
  const brought = '@networkdirect/win32-x64/koffi.cjs';
  assert.is(onWindows('x64', [brought, 'koffi'], 'loadKoffi()'), `${brought}\n`);
  for (const arch of ['x64', 'arm64']) assert.is(onWindows(arch, ['koffi'], 'loadKoffi()'), 'koffi\n');
});

test('a missing koffi is reported with the package that depends on it, or that none does', () => {
  assert.match(
    onWindows('x64', [], 'loadKoffi()'),
    /require the package koffi\. It is a dependency of .* @networkdirect\/win32-x64, .*\. Run npm install koffi\.\n$/,
  );
  assert.match(
    onWindows('arm64', [], 'loadKoffi()'),
    /require the package koffi\. No package of networkdirect for arm64 depends on it\. Run npm install koffi\.\n$/,
  );
});

test('the software HCA on Windows for arm64: the error states which Node.js to install', () => {
  assert.match(
    onWindows('arm64', [], 'loadAddon()'),
    /native addon cannot be loaded \(.*\)\. It exists for x64 only: install Node\.js for x64, .*\n$/,
  );
});

test.run();
