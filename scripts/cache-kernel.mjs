// Writes V8's code cache of the soft kernel's bundle, so that its thread need not compile it each time.
//
//   node scripts/cache-kernel.mjs [DIST]
//
// Runs when the bundle is made, and when the package is installed, because a code cache fits one version of Node only
// and is ignored by others. Does nothing if there is no bundle or no addon.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));
const bundle = join(dist, 'kernel-bridge/kernel/bundle.cjs');
const cache = bundle.replace(/cjs$/, 'cache');

rmSync(cache, { force: true });
if (existsSync(bundle)) {
  const source = readFileSync(bundle, 'utf8');
  const script = new Script(source, { filename: bundle });
  const exports = {};
  script.runInThisContext()(exports, createRequire(bundle), dirname(bundle));
  try {
    // Code that has run is cached, too.
    exports.prepare();
    const made = script.createCachedData();
    writeFileSync(cache, Buffer.concat([Buffer.from(source.slice(0, exports.mark.length)), made]));
    console.log(`${made.length} bytes kept of the kernel's code`);
  } catch (error) {
    console.log(`Nothing kept of the kernel's code: ${error.message.split('\n')[0]}`);
  }
}
