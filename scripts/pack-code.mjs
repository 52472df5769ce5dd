// The JavaScript of the package: each module once.
//
//   dist/**/index.js, dist/nd/cli/*.js   the public modules and the programs, with what they share in dist/chunks
//   dist/kernel-bridge/kernel/bundle.cjs   the soft kernel's thread
//   dist/shared.cjs                        the modules of both
//   dist/zod.cjs                           the parts of zod that are used; loaded with the first options
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, transform } from 'esbuild';
import { kernelModules, kernelScript, ownUrl } from './bundle-kernel.mjs';

/** Names of functions and classes stay: stack traces and inspected objects need them. Node.js shows the line of an uncaught error. */
const small = { minify: true, keepNames: true, legalComments: 'none', target: 'node20', lineLimit: 240 };

/** A key of shared.cjs, in whatever uses it. */
const KEY = /(?<=["'`])s\d+(?=["'`])/g;

/**
 * What shared modules export: for each module its names with their keys in shared.cjs, and the keys with `[module, name]`. A name that a
 * module takes from another has the key that it has there.
 */
async function sharedKeys(dist, shared) {
  const [modules, keys, known] = [new Map(), new Map(), new Map()];
  for (const path of shared) {
    const names = new Map();
    for (const [name, value] of Object.entries(await import(pathToFileURL(join(dist, path)).href))) {
      const same = known
        .get(name)
        ?.find((one) => one.value === value && /^(object|function)$/.test(typeof value));
      const key = same?.key ?? `s${keys.size}`;
      if (same === undefined) {
        keys.set(key, [path, name]);
        known.set(name, [...(known.get(name) ?? []), { key, value }]);
      }
      names.set(name, key);
    }
    modules.set(join(dist, path), names);
  }
  return { modules, keys };
}

/** Imports of shared modules become properties of `#shared`, a file of the package (`imports` in its package.json). */
function fromShared(dist, { modules }, root) {
  return {
    name: 'from-shared',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^shared-root$/ }, () => ({ path: 'shared-root', namespace: 'shared-root' }));
      onLoad({ filter: /.*/, namespace: 'shared-root' }, () => ({ contents: root, resolveDir: dist }));
      onResolve({ filter: /^#?(shared|zod)$/ }, ({ path }) => ({
        path: `#${path.replace('#', '')}`,
        external: true,
      }));
      onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir }) => {
        const file = join(resolveDir, path);
        return modules.has(file) ? { path: file, namespace: 'shared' } : undefined;
      });
      onLoad({ filter: /.*/, namespace: 'shared' }, ({ path }) => {
        const list = Array.from(
          modules.get(path),
          ([name, key]) => `export const ${name} = /* @__PURE__ */ shared('${key}');`,
        );
        return { contents: [`import { shared } from 'shared-root';`, ...list].join('\n'), resolveDir: dist };
      });
    },
  };
}

/** What `urlOf` of {@link ownUrl} is in a module of the folder `dist`. Chunks are one folder below. */
const urlModule = {
  name: 'url-module',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^own-root$/ }, () => ({ path: 'own-root', namespace: 'own-root' }));
    onLoad({ filter: /.*/, namespace: 'own-root' }, () => ({
      contents:
        'const root = new URL("../", import.meta.url); export const urlOf = (path) => new URL(path, root).href;',
    }));
  },
};

/** As {@link ownUrl}, for modules that are split: all take `urlOf` from one chunk. */
function splitUrl(dist) {
  return {
    name: 'split-url',
    setup({ onLoad }) {
      onLoad({ filter: /\.js$/, namespace: 'file' }, ({ path }) => {
        // Options are checked when the first are given, and zod is required then: that of the package.
        const source = readFileSync(path, 'utf8').replace('requireModule("zod")', 'requireModule("#zod")');
        if (!path.startsWith(`${dist}/`) || !source.includes('import.meta.url')) return undefined;
        const first = /^(#!.*\n)?/.exec(source)[0];
        const url = `urlOf(${JSON.stringify(relative(dist, path))})`;
        const rest = source.slice(first.length).replaceAll('import.meta.url', url);
        return { contents: `${first}import { urlOf } from 'own-root';\n${rest}` };
      });
    },
  };
}

/** zod's JSON Schemas, which nobody here makes, and every schema has the means for. */
const withoutJsonSchemas = {
  name: 'without-json-schemas',
  setup({ onLoad }) {
    onLoad({ filter: /\/zod\/v4\/core\/(to-json-schema|json-schema-processors)\.js$/ }, async ({ path }) => {
      const names = Object.keys(await import(pathToFileURL(path).href));
      return { contents: names.map((name) => `export const ${name} = () => undefined;`).join('\n') };
    });
  },
};

/** The table of all emojis is a regular expression of JavaScript by now. */
const nativeEmojis = {
  name: 'native-emojis',
  setup({ onLoad }) {
    onLoad({ filter: /\/emoji-regex\/index\.js$/ }, () => ({
      contents: "module.exports = () => new RegExp('\\\\p{RGI_Emoji}', 'gv');",
    }));
  },
};

/** Script and style of the page of `nd top --web` are texts, which a bundler leaves as they are. */
function smallPage(dist) {
  return {
    name: 'small-page',
    setup({ onLoad }) {
      onLoad({ filter: /\/stat\/page-(script|style)\.js$/ }, async ({ path }) => {
        if (!path.startsWith(`${dist}/`)) return undefined;
        const [[name, text]] = Object.entries(await import(pathToFileURL(path).href));
        const { code } = await transform(text, { loader: name === 'style' ? 'css' : 'js', minify: true });
        return { contents: `export const ${name} = ${JSON.stringify(code)};` };
      });
    },
  };
}

/** The names that a text uses. */
const namesIn = (text, pattern) => [...new Set([...text.matchAll(pattern)].map(([name]) => name))];

/**
 * Writes the JavaScript to a folder like `dist`.
 *
 * @param dist - the compiled modules
 * @param target - the folder
 * @param entries - public modules and programs, paths in `dist`
 * @param external - packages that are not bundled
 * @param left - paths in `dist` that the package does not have; importing them fails
 */
export async function packCode(dist, target, entries, external, left) {
  const split = (options) =>
    build({
      absWorkingDir: dist,
      entryPoints: entries,
      outdir: target,
      outbase: dist,
      chunkNames: 'chunks/[name]-[hash]',
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      charset: 'utf8',
      // cli-table3 does without colors.
      external: [...external, 'zod', '@colors/colors'],
      // For packages that are CommonJS.
      banner: {
        js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
      },
      logLevel: 'warning',
      metafile: true,
      ...small,
      ...options,
    });
  const leaveOut = {
    name: 'leave-out',
    setup({ onResolve }) {
      onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir }) =>
        left.includes(relative(dist, join(resolveDir, path))) ? { path, external: true } : undefined,
      );
    },
  };
  const urls = [urlModule, nativeEmojis, smallPage(dist), splitUrl(dist)];
  const kernel = await kernelModules(dist);
  const { metafile } = await split({ plugins: [leaveOut, ...urls], write: false });
  const shared = Object.keys(metafile.inputs).filter((path) => path in kernel && path.endsWith('.js'));
  const keysOf = await sharedKeys(dist, shared);

  // Node.js takes longer to find the names of a CommonJS module for an import than to run it.
  const required = "const all = require('#shared'); export const shared = (name) => all[name];";
  const imported = `import { createRequire } from 'node:module';\n${required.replace('require(', 'createRequire(import.meta.url)(')}`;
  const main = await split({ plugins: [leaveOut, fromShared(dist, keysOf, imported), ...urls] });
  const script = await kernelScript(dist, [], {
    ...small,
    plugins: [fromShared(dist, keysOf, required)],
  });
  writeFileSync(join(target, 'kernel-bridge/kernel/bundle.cjs'), script);

  const texts = Object.keys(main.metafile.outputs).map((path) => readFileSync(join(dist, path), 'utf8'));
  // A string may go on in the next line.
  const used = namesIn([script, ...texts].join('\n').replaceAll('\\\n', ''), KEY)
    .filter((key) => keysOf.keys.has(key))
    .sort();
  const imports = used.map((key) => {
    const [path, name] = keysOf.keys.get(key);
    return `import { ${name} as ${key} } from './${path}';`;
  });
  const cjs = {
    absWorkingDir: dist,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    charset: 'utf8',
    ...small,
  };
  await build({
    ...cjs,
    // Without exports of its own, whose names the output would have three times.
    stdin: { contents: `${imports.join('\n')}\nmodule.exports = { ${used.join(', ')} };`, resolveDir: dist },
    outfile: join(target, 'shared.cjs'),
    banner: {
      js: "const urlOf=(path)=>require('node:url').pathToFileURL(require('node:path').join(__dirname,path)).href;",
    },
    external,
    logOverride: { 'empty-import-meta': 'error', 'commonjs-variable-in-esm': 'silent' },
    plugins: [ownUrl(dist)],
  });
  // By the compiled modules, whose names are those of the sources.
  const inputs = [...shared, ...Object.keys(metafile.inputs)].filter(
    (path) => path.endsWith('.js') && !path.startsWith('..'),
  );
  const checks = inputs
    .map((path) => readFileSync(join(dist, path), 'utf8'))
    .filter((text) => text.includes('"zod"'));
  const parts = namesIn(checks.join('\n'), /(?<=\bz\.)\w+/g);
  await build({
    ...cjs,
    // Options' code in shared.cjs takes it whole, so what is used is listed here.
    stdin: { contents: `export { ${parts.join(', ')} } from 'zod';`, resolveDir: dist },
    outfile: join(target, 'zod.cjs'),
    keepNames: false,
    plugins: [withoutJsonSchemas],
  });
}
