// Puts the modules of the soft kernel's thread into one file, which its Worker loads in a fraction of the time.
//
//   node scripts/bundle-kernel.mjs [DIST]
//
// Reads the compiled modules from `dist`, from the kernel's entry on, and writes them to one CommonJS file, each as a
// function that is called when it is first imported. Where the file is missing, or older than one of its modules, the
// thread loads the modules themselves (kernel-bridge/soft/kernel-thread.cts): so a forgotten build does no harm.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));
const entry = 'kernel-bridge/kernel/main.js';
const bundle = 'kernel-bridge/kernel/bundle.cjs';

const compilerOptions = {
  module: ts.ModuleKind.CommonJS,
  target: ts.ScriptTarget.ES2022,
  removeComments: true,
};

/** Path in `dist` → code that defines the exports. */
const modules = new Map();

function add(path) {
  if (modules.has(path)) return;
  modules.set(path, '');
  const { outputText } = ts.transpileModule(readFileSync(join(dist, path), 'utf8'), { compilerOptions });
  const code = outputText
    // Modules may have a `require` of their own.
    .replace(/\brequire\("([^"]+)"\)/g, (_, target) => {
      if (!target.startsWith('.')) return `external(${JSON.stringify(target)})`;
      const inner = relative(dist, resolve(dist, dirname(path), target));
      add(inner);
      return `load(${JSON.stringify(inner)})`;
    })
    .replaceAll('import.meta.url', `urlOf(${JSON.stringify(path)})`)
    .replace(/^\/\/# sourceMappingURL=.*$/m, '');
  if (/\bimport\.meta\b|\bimport\(/.test(code)) throw new Error(`${path} has what a bundle cannot have`);
  modules.set(path, code);
}

add(entry);
const table = [...modules].map(([path, code]) => `${JSON.stringify(path)}: (exports) => {\n${code}},\n`);
const depth = bundle.split('/').length - 1;
const body = `(function (exports, external, __dirname) {
'use strict';
const { join } = external('node:path');
const root = join(__dirname, ${JSON.stringify('../'.repeat(depth))});
const urlOf = (path) => external('node:url').pathToFileURL(join(root, path)).href;
const loaded = new Map();
const load = (path) => {
  let exports = loaded.get(path);
  if (exports === undefined) {
    exports = {};
    loaded.set(path, exports);
    table[path](exports);
  }
  return exports;
};
const table = {
${table.join('')}};
exports.files = Object.keys(table).map((path) => join(root, path));
exports.addon = () => load('kernel-bridge/hca/index.js').addon;
exports.start = () => load(${JSON.stringify(entry)});
exports.prepare = () => {
  for (const path of Object.keys(table)) if (path !== ${JSON.stringify(entry)}) load(path);
};
`;
// V8 knows kept code by the length of its source: the mark says of which source it was made.
const mark = `/* ${createHash('sha256').update(body).digest('hex')} */`;
writeFileSync(join(dist, bundle), `${mark}${body}exports.mark = ${JSON.stringify(mark)};\n})\n`);
console.log(`${modules.size} modules in dist/${bundle}`);
await import('./cache-kernel.mjs'); // takes the same argument
