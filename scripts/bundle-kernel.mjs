// Bundles the modules of the soft kernel's thread into one file, which its Worker loads in a fraction of the time.
//
//   node scripts/bundle-kernel.mjs [DIST]
//
// Reads the compiled modules from `dist`, starting at the kernel's entry, and writes one CommonJS module. If the bundle is missing or older
// than one of its modules, the thread loads the modules themselves (kernel-bridge/door/soft/kernel-thread.cts), so forgetting to build is
// harmless. The package has an equivalent module that shares code with others (pack-code.mjs).
import { writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The path of the bundle in `dist`. */
export const bundle = 'kernel-bridge/kernel/bundle.cjs';

/** Source of the module that replaces the entry of the kernel's thread. */
export const kernelSource = `
export { loadAddon as addon } from '../hca/index.js';
export { startKernel as start } from './start-kernel.js';
`;

/** Creates the text of the bundle. */
async function kernelScript(dist) {
  const place = dirname(join(dist, bundle));
  const { metafile, outputFiles } = await build({
    absWorkingDir: place,
    stdin: { contents: kernelSource, resolveDir: place, sourcefile: 'source' },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    // Names are kept for stack traces.
    minifyWhitespace: true,
    minifySyntax: true,
    packages: 'external',
    legalComments: 'none',
    logLevel: 'warning',
    // The bundle has the same depth in `dist` as modules that locate files.
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
