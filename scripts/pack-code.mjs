// Creates the JavaScript of the package: CommonJS, which both `import` and `require()` of every runner load, so a program has a single
// instance of it. Rollup joins the modules of `dist`: a file for each public module and program, with shared code in dist/chunks, and
// source maps that contain the sources. Each public module also has an ES module that exports the same names. It requires the CommonJS
// module, because Node.js scans an imported CommonJS module for its exports, which takes longer than running it.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { decode, encode } from '@jridgewell/sourcemap-codec';
import { rollup } from 'rollup';
import { bundle as kernel, kernelSource } from './bundle-kernel.mjs';

/** The package's own name, so that parts that import the library as programs do get the same modules as everything else. */
const isOwn = (id) => /^networkdirect(\/|$)/.test(id);

/** Loads modules of `dist` with the maps that esbuild has written, and the entry of the kernel's thread. */
const compiled = (dist) => ({
  name: 'compiled',
  resolveId(id) {
    if (isOwn(id)) return fileURLToPath(import.meta.resolve(id));
    return id === join(dist, kernel) ? id : undefined;
  },
  load: (id) =>
    id === join(dist, kernel)
      ? `${kernelSource}export const files = [];`
      : { code: readFileSync(id, 'utf8'), map: JSON.parse(readFileSync(`${id}.map`, 'utf8')) },
  // Modules locate files from their path in `dist`.
  resolveImportMeta(property, { chunkId, moduleId }) {
    const path = JSON.stringify(relative(dirname(chunkId), relative(dist, moduleId)));
    if (property === 'url')
      return `require('node:url').pathToFileURL(require('node:path').join(__dirname, ${path})).href`;
    throw new Error(`${moduleId} must only use import.meta.url; got import.meta.${property}.`);
  },
});

/**
 * V8 stores a source with even one character outside Latin-1 in two bytes per character. Box-drawing characters in comments are replaced;
 * in code, such characters are escaped, which has no effect on strings, templates and regular expressions.
 */
const latin = {
  name: 'latin',
  renderChunk: (code) => ({
    code: code
      .replaceAll('\u2500', '-')
      .replace(/[^\0-\xff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
    map: null,
  }),
};

/** Maps contain lines but not columns, which would be a fifth of the package. */
const byLine = {
  name: 'by-line',
  generateBundle(_, files) {
    for (const [path, file] of Object.entries(files)) {
      if (!path.endsWith('.map')) continue;
      const map = JSON.parse(file.source);
      const lines = decode(map.mappings).map((segments) => {
        let [source, line] = [];
        return segments.filter((one) => {
          if (one[1] === source && one[2] === line) return false;
          [, source, line] = one;
          return true;
        });
      });
      const mappings = encode(lines.map((segments) => segments.map((one) => one.slice(0, 4))));
      file.source = JSON.stringify({ ...map, names: [], mappings });
    }
  },
};

/**
 * Writes the JavaScript to a folder like `dist`.
 *
 * @param dist - the compiled modules
 * @param target - the folder
 * @param entries - public modules, paths in `dist`
 * @param programs - files that are run by name, paths in `dist`
 * @param left - paths in `dist` that the package omits; importing them fails
 */
export async function packCode(dist, target, entries, programs, left) {
  const { OUTSIDE_OF_BUNDLES } = await import(
    pathToFileURL(join(dist, 'kernel-bridge/hca/surroundings.js')).href
  );
  const outside = JSON.stringify(OUTSIDE_OF_BUNDLES);
  const input = [...entries, ...programs, kernel].map((path) => [path, join(dist, path)]);
  const bundle = await rollup({
    input: Object.fromEntries(input),
    external(id, importer) {
      if (!id.startsWith('.')) return !isAbsolute(id) && !isOwn(id);
      return left.includes(relative(dist, resolve(dirname(importer), id)));
    },
    plugins: [compiled(dist), latin],
    onwarn({ message }) {
      throw new Error(message);
    },
  });
  const { output } = await bundle.write({
    dir: target,
    format: 'cjs',
    generatedCode: { preset: 'es2015', symbols: false },
    hoistTransitiveImports: false,
    sourcemap: true,
    // The map refers to the sources as if the package contained them.
    sourcemapPathTransform: (source, map) =>
      relative(dirname(map), join(target, relative(dist, resolve(dirname(map), source)))),
    entryFileNames: '[name]',
    chunkFileNames: 'chunks/[name]-[hash].js',
    // A bundler has included this module in an ES module.
    intro: ({ fileName }) =>
      entries.includes(fileName) ? `if (typeof __dirname !== 'string') throw new Error(${outside});` : '',
    plugins: [byLine],
  });
  for (const { fileName, exports } of output)
    if (entries.includes(fileName))
      writeFileSync(
        join(target, fileName.replace(/js$/, 'mjs')),
        `import { createRequire } from 'node:module';
let required;
try {
  required = createRequire(import.meta.url)('./${basename(fileName)}');
} catch (cause) {
  // A bundler has moved this module away from the file, or has removed its URL.
  if (cause.code !== 'MODULE_NOT_FOUND' && cause.code !== 'ERR_INVALID_ARG_VALUE') throw cause;
  throw new Error(${outside}, { cause });
}
export const {
${exports.map((name) => `  ${name},\n`).join('')}} = required;
`,
      );
}
