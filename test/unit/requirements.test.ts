/** The table of requirements. Every file and every test that it names must exist. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { cases } from '../../nd/conformance/index.js';
import { root } from '../helpers/root.js';

const page = readFileSync(join(root, 'test/requirements.md'), 'utf8');
const sections = new Map(
  page
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), rowsOf(section)]),
);
const rows = [...sections.values()].flat();

function rowsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|(---| requirement | feature )/.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

/** A test of either tier, with or without requirements on the machine; its name is the second group. */
const testCall =
  /(?:(?:\btest|\bnamespaced|\bneeding\([^()]*\)|\bfirstIf\([^;]*?\))\(|\blong\((?:\w+|needing\([^()]*\)),)\s*(['"`])(.*?)\1,/gs;

/** The source of a test file. */
function testsOf(file: string): string {
  return readFileSync(join(root, 'test', `${file}.test.ts`), 'utf8');
}

test('no requirement is missing', () => {
  assert.equal(
    [...sections].map(([title, { length }]) => `${title}: ${length}`),
    [
      'IRP-based verbs (RFC and thread, 2005): 17',
      'Slides on the future of OpenIB for Windows: 19',
      'WinVerbs implementation (RFC, 2008): 14',
      'NetworkDirect over WinVerbs (thread, 2009): 12',
      'Features taken out: 89',
    ],
  );
});

test('each row names a test that exists, by its file and a part of its name, or a case of the conformance suite', () => {
  const missing = rows.filter(([, , shown = '']) => {
    const [, rule] = /^`nd conformance`: ([\w.-]+)$/.exec(shown) ?? [];
    if (rule) return !cases.some(({ name }) => name === rule);
    const [, file, name] = /^`([\w/-]+)`: (.+)$/.exec(shown) ?? [];
    if (!file || !name || !existsSync(join(root, 'test', `${file}.test.ts`))) return true;
    const titles = [...testsOf(file).matchAll(testCall)].map(([, , title]) => title!);
    return !titles.some((title) => title.includes(name));
  });
  assert.equal(missing, []);
});

test('each row names files that exist', () => {
  const files = rows.flatMap(([, where = '']) =>
    [...where.matchAll(/`([\w/-]+(?:\/|\.ts|\.cc))`/g)].map(([, file]) => file!),
  );
  assert.ok(files.length >= rows.length - 2);
  const folders = ['', 'kernel-bridge', 'kernel-bridge/kernel/hca-driver'];
  const missing = files.filter((file) => !folders.some((folder) => existsSync(join(root, folder, file))));
  assert.equal(missing, []);
});

test.run();
