// Compiles each TypeScript module to a JavaScript module in `dist`, individually and without type checks, in a fraction of the time of tsc.
// `npm run types` checks types and writes declarations.
//
//   node scripts/transpile.mjs
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const { include, compilerOptions } = JSON.parse(readFileSync('tsconfig.json', 'utf8'));
const sources = include.flatMap((root) =>
  readdirSync(root, { recursive: true })
    .filter((file) => /\.c?ts$/.test(file))
    .map((file) => join(root, file)),
);

async function transpile(extension, options) {
  const { outputFiles } = await build({
    entryPoints: sources.filter((file) => file.endsWith(extension)),
    outdir: compilerOptions.outDir,
    outbase: '.',
    platform: 'node',
    target: compilerOptions.target.toLowerCase(),
    sourcemap: true,
    logLevel: 'warning',
    write: false,
    ...options,
  });
  for (const { path, contents } of outputFiles) {
    // Files that have not changed keep their time, so that only bundles of changed modules are outdated.
    if (existsSync(path) && readFileSync(path).equals(contents)) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, contents);
  }
}

await Promise.all([
  transpile('.ts', { format: 'esm' }),
  transpile('.cts', { format: 'cjs', outExtension: { '.js': '.cjs' } }),
]);

// Deletes compiled modules whose source is gone, because a deleted test would still run. Files without a map do not come from here.
const modules = new Set(sources.map((file) => file.replace(/ts$/, 'js')));
for (const map of readdirSync(compilerOptions.outDir, { recursive: true })) {
  const module = map.replace(/\.map$/, '');
  if (!/\.c?js\.map$/.test(map) || modules.has(module)) continue;
  for (const file of [map, module, module.replace(/js$/, 'd.ts')])
    rmSync(join(compilerOptions.outDir, file), { force: true });
}
