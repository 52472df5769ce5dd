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

const thread = 'kernel-bridge/kernel/thread.js';
const hca = 'kernel-bridge/hca/index.js';
const bundle = 'kernel-bridge/kernel/bundle.cjs';

/** A bundled module cannot find its own location: `urlOf`, which the script around it defines, tells it. */
export const ownUrl = (dist) => ({
  name: 'own-url',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/, namespace: 'file' }, ({ path }) => {
      const url = `urlOf(${JSON.stringify(relative(dist, path))})`;
      return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url) };
    });
  },
});

/** What the script gives to the kernel's thread. Its modules share one scope, which is less code than one each, and starts sooner. */
const source = `
import { loadAddon } from './${hca}';
import { startKernel } from './${thread}';
exports.addon = loadAddon;
exports.start = startKernel;
`;

/** The code of the kernel's thread, and the list of its inputs. */
async function bundled(dist, options = {}) {
  const { metafile, outputFiles } = await build({
    absWorkingDir: dist,
    stdin: { contents: source, resolveDir: dist, sourcefile: 'source' },
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
    logOverride: { 'empty-import-meta': 'error', 'commonjs-variable-in-esm': 'silent' },
    ...options,
    plugins: [...(options.plugins ?? []), ownUrl(dist)],
    metafile: true,
    write: false,
  });
  const { source: _, ...inputs } = metafile.inputs;
  return { code: outputFiles[0].text, inputs };
}

/** The modules of the kernel's thread. */
export async function kernelModules(dist) {
  const { inputs } = await bundled(dist);
  return inputs;
}

/** The script. `options` are further ones of esbuild; `files` are modules that could be newer than the script. */
export async function kernelScript(dist, files, options) {
  const { code } = await bundled(dist, options);
  const body = `(function (exports, require, __dirname) {
'use strict';
const root = require('node:path').join(__dirname, ${JSON.stringify(relative(dirname(bundle), '.'))});
const join = (path) => require('node:path').join(root, path);
const urlOf = (path) => require('node:url').pathToFileURL(join(path)).href;
exports.files = ${JSON.stringify(files)}.map(join);
(() => {
${code}})();
`;
  // V8 identifies cached code only by the length of its source; this mark identifies the source.
  const mark = `/* ${createHash('sha256').update(body).digest('hex')} */`;
  return `${mark}${body}exports.mark = ${JSON.stringify(mark)};\n})\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));
  const inputs = await kernelModules(dist);
  writeFileSync(join(dist, bundle), await kernelScript(dist, Object.keys(inputs)));
  console.log(`${Object.keys(inputs).length} modules in dist/${bundle}`);
  await import('./cache-kernel.mjs'); // takes the same argument
}
