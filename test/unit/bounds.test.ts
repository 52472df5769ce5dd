/** docs/attack.md has the bound of everything that a peer can make a process keep: no frame type is left out, and the tests exist. */
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Frame, IN_RING, LARGE, mayBeLarge, Notice } from '../../nd/net/wire.js';
import { attacks } from '../attack/attacks.js';

const root = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/attack.md', root), 'utf8');

interface Row {
  readonly what: string;
  readonly by: string;
  readonly bound: string;
  readonly test: string;
}

/** The rows of the table below a heading. */
function rowsOf(heading: string): Row[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const lines = section.split('\n## ')[0]!.split('\n');
  const rows = lines.filter((line) => line.startsWith('| ') && !line.startsWith('| What |'));
  return rows.map((line) => {
    const cells = line.split('|').map((cell) => cell.trim());
    assert.is(cells.length, 6, line);
    const [, what, by, bound, name] = cells as [string, string, string, string, string, string];
    return { what, by, bound, test: name };
  });
}

const rows = rowsOf('Bounds');
const named = (word: string): boolean => rows.some(({ by }) => new RegExp(`\\b${word}\\b`).test(by));

test('each frame type has a row', () => {
  assert.ok(rows.length > 0);
  for (const name of Object.keys(Frame)) assert.ok(named(name), `${name} has no row`);
});

test('each flag has a row with each frame type that may have it, and each notice of rings has one', () => {
  const withFlag = (name: string, flag: string): boolean =>
    rows.some(({ by }) => by.includes(`${name} with ${flag}`));
  for (const [name, type] of Object.entries(Frame))
    if (mayBeLarge(type)) assert.ok(withFlag(name, 'LARGE'), `${name} with LARGE has no row`);
  assert.ok(withFlag('DATA', 'IN_RING'));
  for (const notice of Object.keys(Notice)) assert.ok(named(notice), `${notice} has no row`);
  // A new flag needs a row, too.
  assert.equal([LARGE, IN_RING], [1, 2]);
});

test('each row has a bound, and a test that exists', () => {
  const files = ['unit', 'integration', 'conformance', 'fuzz', 'native'].flatMap((folder) =>
    readdirSync(new URL(`test/${folder}/`, root), { recursive: true }).map(String),
  );
  const known = new Set([
    ...files.map((file) => file.replace(/^.*\//, '').replace(/(\.test)?\.\w+$/, '')),
    ...attacks.map(({ name }) => name),
  ]);
  for (const { what, bound, test: cell } of rows) {
    assert.ok(what.length > 0 && bound.length > 0, what);
    const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
    assert.ok(names.length > 0, `${what}: no test`);
    for (const name of names) assert.ok(known.has(name), `${what}: there is no test ${name}`);
  }
});

test.run();
