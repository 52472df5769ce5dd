/** Links of documents to files and headings of the repository, including links to its address on GitHub. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { root } from '../helpers/root.js';

const HOME = 'https://github.com/networkdirect-js/networkdirect/blob/main/';

/** Every Markdown file of the repository, by its path. */
function pages(): string[] {
  const inFolders = ['docs', 'test', '.github', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  return [...readdirSync(root), ...inFolders].filter(
    (name) => name.endsWith('.md') && !name.startsWith('docs/api/'),
  );
}

/** Removes the contents of fenced blocks and code spans. */
const prose = (text: string): string => text.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, 'x');

/** The anchor of a heading, as GitHub and TypeDoc create it. */
function anchorOf(heading: string): string {
  const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '');
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(text: string): Set<string> {
  const headings = text.replace(/^```.*?^```$/gms, '').matchAll(/^#{1,6} (.*)$/gm);
  return new Set([...headings].map(([, heading]) => anchorOf(heading!)));
}

/** Returns the broken links of a page. `read` returns a file's text, or undefined if the file does not exist. */
function broken(page: string, text: string, read: (path: string) => string | undefined): string[] {
  return [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
    if (/^[a-z]+:/.test(target) && !target.startsWith(HOME)) return [];
    const [path = '', anchor] = target.split('#');
    const file = path.startsWith(HOME)
      ? path.slice(HOME.length)
      : path === ''
        ? page
        : join(dirname(page), path);
    const found = file === page ? text : read(file);
    if (found === undefined) return [`${page}: ${target}`];
    return anchor !== undefined && !anchorsOf(found).has(anchor) ? [`${page}: ${target}`] : [];
  });
}

function read(path: string): string | undefined {
  const file = join(root, path);
  if (relative(root, file).startsWith('..') || !existsSync(file)) return undefined;
  return statSync(file).isDirectory() ? '' : readFileSync(file, 'utf8');
}

test('the checker detects broken links', () => {
  const files: Record<string, string> = { 'docs/b.md': '# A `b`, c\n```\n# d\n```\n' };
  const text =
    '# Own\n[1](b.md) [2](b.md#a-b-c) [3](#own) [4](https://example.com/x) `[5](x.md)`\n```\n[6](y.md)\n```\n' +
    `[7](c.md) [8](b.md#d) [9](#other) [10](${HOME}docs/c.md) [11](${HOME}docs/b.md)`;
  assert.equal(
    broken('docs/a.md', text, (path) => files[path]),
    ['docs/a.md: c.md', 'docs/a.md: b.md#d', 'docs/a.md: #other', `docs/a.md: ${HOME}docs/c.md`],
  );
});

test('all links of documents lead to existing files and headings', () => {
  const all = pages();
  assert.ok(all.length > 40, `only ${all.length} pages were found`);
  assert.equal(
    all.flatMap((page) => broken(page, readFileSync(join(root, page), 'utf8'), read)),
    [],
  );
});

test('the API site contains each page of docs once', () => {
  const { projectDocuments } = JSON.parse(readFileSync(join(root, 'typedoc.json'), 'utf8')) as {
    projectDocuments: string[];
  };
  const expected = all(['docs/guide', 'docs/reference', 'docs/internals', 'docs/measurements']);
  assert.equal([...projectDocuments].sort(), expected);
});

/** The Markdown files of folders, sorted. */
function all(folders: readonly string[]): string[] {
  const names = folders.flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
  );
  return names.filter((name) => name.endsWith('.md')).sort();
}

test.run();
