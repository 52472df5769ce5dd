// Copies the sources of the addons to build/source: the C++ files, the headers of Node-API and libuv, and the build script. Building from
// this folder only requires a C++17 compiler. The package contains it as an archive, and the prebuilt addons are built from the same files.
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const require = createRequire(import.meta.url);
const stage = 'build/source';
const headers = join(stage, 'headers');
rmSync(stage, { recursive: true, force: true });
mkdirSync(headers, { recursive: true });

const code = (file) => !/windows$/.test(file) && (!/\.[^/]*$/.test(file) || /\.(cc|h)$/.test(file));
for (const folder of ['engine', 'addon', 'verbs']) {
  const path = join('kernel-bridge/hca', folder);
  cpSync(path, join(stage, path), { recursive: true, filter: code });
}
mkdirSync(join(stage, 'scripts'));
cpSync('scripts/build-native.mjs', join(stage, 'scripts/build-native.mjs'));

const copy = (folder, files) => {
  for (const file of files) cpSync(join(folder, file), join(headers, file), { recursive: true });
};
copy(require('node-api-headers').include_dir, [
  'node_api.h',
  'node_api_types.h',
  'js_native_api.h',
  'js_native_api_types.h',
]);
copy(dirname(require.resolve('node-addon-api')), ['napi.h', 'napi-inl.h', 'napi-inl.deprecated.h']);
// Unlike libuv's headers, these files do not contain their license.
const licences = { 'node-api-headers': 'LICENSE', 'node-addon-api': 'LICENSE.md' };
for (const [name, file] of Object.entries(licences))
  cpSync(join(dirname(require.resolve(`${name}/package.json`)), file), join(headers, `LICENSE.${name}`));
const node = resolve(process.execPath, '../../include/node');
if (!existsSync(join(node, 'uv.h')))
  throw new Error(`The headers of this Node.js were not found in ${node}.`);
copy(node, ['uv.h', ...['errno', 'linux', 'threadpool', 'unix', 'version'].map((name) => `uv/${name}.h`)]);
