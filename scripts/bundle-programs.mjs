// Bundles test files and the programs that many of them start, because short-lived processes spend most of their time loading hundreds of
// modules.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

const programs = [
  'nd/cli/nd',
  ...['file-copy', 'many-clients', 'rpc'].map((name) => `examples/net/${name}`),
  'test/helpers/peer/program',
  ...[
    'blocked-program',
    'busy-program',
    'crowd-program',
    'datagram-program',
    'flood-program',
    'half-open-program',
    'kill-victim',
    'net-alive-program',
    'net-program',
    'observed-program',
    'pkey-peer',
    'rest-program',
    'srq-sender',
    'tunnel-program',
    'ud-program',
    'unplug-program',
    'verbs-model-program',
  ].map((name) => `test/helpers/${name}`),
];

/** Packages that are not bundled. */
const unbundled = /^(esbuild|typescript)$/;

/**
 * Bundles these programs of `dist` and the test files into a folder that is removed when this process exits. An environment variable passes
 * the folder to tests (test/helpers/programs.ts). Returns a function that finds the bundle of a test file.
 */
export async function bundlePrograms(dist, files) {
  if (!existsSync(join(dist, `${programs[0]}.js`))) return (file) => file; // tests of the runner itself
  const { build } = await import('esbuild');
  const folder = mkdtempSync(join(tmpdir(), 'nd-bundles-'));
  chmodSync(folder, 0o755); // some tests start them as other users
  const bundle = (entryPoints, splitting) =>
    build({
      entryPoints,
      splitting,
      outbase: dist,
      outdir: folder,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      sourcemap: 'linked',
      keepNames: true,
      external: ['koffi'],
      // CommonJS packages require Node.js's built-in modules.
      banner: {
        js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
      },
      plugins: [{ name: 'places', setup: keepPlaces }],
    });
  const modules = programs.map((name) => join(dist, `${name}.js`));
  // Each program is one file; test files share chunks.
  await Promise.all([bundle(modules, false), bundle(files, true)]);
  process.env.ND_TEST_BUNDLES = folder;
  process.on('exit', () => rmSync(folder, { recursive: true }));
  return (file) => join(folder, relative(dist, file).replace(/js$/, 'mjs'));
}

/** Makes modules locate other files from their path in `dist`, and unbundled packages from here. */
function keepPlaces({ onLoad, onResolve }) {
  onResolve({ filter: unbundled }, ({ path }) => ({ path: import.meta.resolve(path), external: true }));
  onLoad({ filter: /\/dist\/.*\.js$/ }, ({ path }) => ({
    contents: readFileSync(path, 'utf8').replaceAll(
      'import.meta.url',
      JSON.stringify(pathToFileURL(path).href),
    ),
  }));
}
