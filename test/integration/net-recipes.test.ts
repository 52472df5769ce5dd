/** The programs of examples/recipes, each as a user runs it, with the output shown in docs/guide/recipes.md. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { needing } from '../helpers/needs.js';
import { firstIf } from '../helpers/tiers.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = join(root, 'examples/recipes');
const MOST_LINES = 80;
const guide = readFileSync(join(root, 'docs/guide/recipes.md'), 'utf8');

for (const file of readdirSync(sources).filter((name) => name.endsWith('.ts'))) {
  const name = basename(file, '.ts');
  const runs = name === 'python-reads' ? needing(test, 'python3', 'direct access') : test;
  firstIf(name === 'rpc-threads', runs)(`recipe ${name}`, () => {
    const source = readFileSync(join(sources, file), 'utf8');
    assert.ok(source.trimEnd().split('\n').length <= MOST_LINES, 'too long');
    const shown = guide.split(`node dist/examples/recipes/${name}.js\n`)[1]?.split('```')[0];
    assert.ok(shown, 'docs/guide/recipes.md must show its output');
    const run = spawnSync(process.execPath, [join(root, `dist/examples/recipes/${name}.js`)], {
      encoding: 'utf8',
      timeout: 100_000,
    });
    assert.equal([run.status, run.stdout, run.stderr], [0, shown, '']);
  });
}

test.run();
