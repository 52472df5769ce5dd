// Puts the modules of the soft kernel's thread into one file, which its Worker loads in a fraction of the time.
//
//   node scripts/bundle-kernel.mjs [DIST]
//
// Reads the compiled modules from `dist`, from the kernel's entry on, and writes them to one CommonJS module. Where the file is missing, or
// older than one of its modules, the thread loads the modules themselves (kernel-bridge/door/soft/kernel-thread.cts), so a
// forgotten build does no harm. The package has the same module, which shares code with others (pack-code.mjs).
import { writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The file, in `dist`. */
export const bundle = 'kernel-bridge/kernel/bundle.cjs';

/** What it gives to the kernel's thread, as a module in its place. */
export const kernelSource = `
export { loadAddon as addon } from '../hca/index.js';
export { startKernel as start } from './start-kernel.js';
`;

/** The module's text. */
async function kernelScript(dist) {
  const place = dirname(join(dist, bundle));
  const { metafile, outputFiles } = await build({
    absWorkingDir: place,
    stdin: { contents: kernelSource, resolveDir: place, sourcefile: 'source' },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    // Names stay: stack traces need them.
    minifyWhitespace: true,
    minifySyntax: true,
    packages: 'external',
    legalComments: 'none',
    logLevel: 'warning',
    // Modules that look for files are as deep in `dist` as the bundle.
    define: { 'import.meta.url': 'bundleUrl' },
    banner: { js: "'use strict'; const bundleUrl = require('node:url').pathToFileURL(__filename).href;" },
    metafile: true,
    write: false,
  });
  const { source: _, ...inputs } = metafile.inputs;
  const files = Object.keys(inputs).map((path) => relative(place, resolve(place, path)));
  return { files, text: `${outputFiles[0].text}module.exports.files = ${JSON.stringify(files)};\n` };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dist = resolve(process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url)));
  const { files, text } = await kernelScript(dist);
  writeFileSync(join(dist, bundle), text);
  console.log(`${files.length} modules in dist/${bundle}`);
}
