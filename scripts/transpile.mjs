// Compiles each TypeScript module to a JavaScript module of `dist`, one by one and without checking types, in a
// fraction of the time of tsc. `npm run types` checks them and writes declarations.
//
//   node scripts/transpile.mjs
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
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
    // Bundles are older than the modules that have changed since, and no others.
    if (existsSync(path) && readFileSync(path).equals(contents)) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, contents);
  }
}

await Promise.all([
  transpile('.ts', { format: 'esm' }),
  transpile('.cts', { format: 'cjs', outExtension: { '.js': '.cjs' } }),
]);
