// Puts the modules of the soft kernel's thread into one file, which its Worker loads in a fraction of the time.
//
//   node scripts/bundle-kernel.mjs [DIST]
//
// Reads the compiled modules from `dist`, from the kernel's entry on, and writes them to one script, a function of
// (exports, require, __dirname). Where the file is missing, or older than one of its modules, the thread loads the
// modules themselves (kernel-bridge/soft/kernel-thread.cts), so a forgotten build does no harm.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));
const entry = 'kernel-bridge/kernel/main.js';
const hca = 'kernel-bridge/hca/index.js';
const bundle = 'kernel-bridge/kernel/bundle.cjs';

/** A bundled module cannot find its own location, so it is defined here. */
const ownUrl = {
  name: 'own-url',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const url = `urlOf(${JSON.stringify(relative(dist, path))})`;
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url) };
    });
  },
};

/** The code of functions that load modules (paths in `dist`) when they are called, and the list of its inputs. */
async function bundled(functions) {
  const source = Object.entries(functions).map(
    ([name, paths]) =>
      `export const ${name} = () => [${paths.map((path) => `require(${JSON.stringify(`./${path}`)})`).join(', ')}];`,
  );
  const { metafile, outputFiles } = await build({
    absWorkingDir: dist,
    stdin: { contents: source.join('\n'), resolveDir: dist, sourcefile: 'functions' },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    // Names stay: stack traces need them. The text is ASCII, as the reader takes it.
    minifyWhitespace: true,
    minifySyntax: true,
    charset: 'ascii',
    packages: 'external',
    legalComments: 'none',
    logLevel: 'warning',
    logOverride: { 'empty-import-meta': 'error' },
    plugins: [ownUrl],
    metafile: true,
    write: false,
  });
  const { functions: _, ...inputs } = metafile.inputs;
  return { code: outputFiles[0].text, inputs };
}

const { inputs } = await bundled({ start: [entry] });
// Everything except the entry itself, which starts the kernel.
const parts = inputs[entry].imports.filter(({ external }) => !external).map(({ path }) => path);
const { code } = await bundled({ hca: [hca], parts, start: [entry] });

const body = `(function (exports, require, __dirname) {
'use strict';
const { join } = require('node:path');
const root = join(__dirname, ${JSON.stringify(relative(dirname(bundle), '.'))});
const urlOf = (path) => require('node:url').pathToFileURL(join(root, path)).href;
const made = {};
((module) => {
${code}})(made);
const { hca, parts, start } = made.exports;
exports.files = ${JSON.stringify(Object.keys(inputs))}.map((path) => join(root, path));
exports.addon = () => hca()[0].loadAddon();
exports.start = () => start();
exports.prepare = () => parts();
`;
// V8 identifies cached code only by the length of its source; this mark identifies the source.
const mark = `/* ${createHash('sha256').update(body).digest('hex')} */`;
writeFileSync(join(dist, bundle), `${mark}${body}exports.mark = ${JSON.stringify(mark)};\n})\n`);
console.log(`${Object.keys(inputs).length} modules in dist/${bundle}`);
await import('./cache-kernel.mjs'); // takes the same argument
