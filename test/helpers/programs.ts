/** Files of tests and of the programs that they start. scripts/run-tests.mjs bundles each, which halves its startup time. */
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = fileURLToPath(new URL('../..', import.meta.url));

/** The file of a program or test: its bundle if the runner has created one, otherwise its module. */
export function programFile(module: URL): string {
  const file = fileURLToPath(module);
  const bundles = process.env.ND_TEST_BUNDLES;
  if (bundles === undefined) return file;
  const bundle = join(bundles, relative(dist, file).replace(/js$/, 'mjs'));
  return existsSync(bundle) ? bundle : file;
}
