// Bundles programs that many tests start, each into one file: loading hundreds of modules is most of the work of a short process.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const programs = [
  'nd/cli/nd',
  ...['file-copy', 'many-clients', 'rpc', 'table'].map((name) => `examples/net/${name}`),
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

/**
 * Bundles those of `dist` into a folder that ends with this process. The environment names it to tests (test/helpers/programs.ts).
 */
export async function bundlePrograms(dist) {
  if (!existsSync(join(dist, `${programs[0]}.js`))) return; // tests of the runner itself
  const { build } = await import('esbuild');
  const folder = mkdtempSync(join(tmpdir(), 'nd-bundles-'));
  chmodSync(folder, 0o755); // some tests start them as other users
  await build({
    entryPoints: programs.map((name) => join(dist, `${name}.js`)),
    outbase: dist,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'linked',
    external: ['koffi'],
    // Packages in CommonJS ask for Node.js's own modules.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    plugins: [{ name: 'places', setup: keepPlaces }],
  });
  process.env.ND_TEST_BUNDLES = folder;
  process.on('exit', () => rmSync(folder, { recursive: true }));
}

/** Modules find other files from where they are in `dist`. */
function keepPlaces({ onLoad }) {
  onLoad({ filter: /\/dist\/.*\.js$/ }, ({ path }) => ({
    contents: readFileSync(path, 'utf8').replaceAll(
      'import.meta.url',
      JSON.stringify(pathToFileURL(path).href),
    ),
  }));
}
