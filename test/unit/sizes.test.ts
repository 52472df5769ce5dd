/** The rules of the house: no source has more than 500 lines, and no function more than 80. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folders = ['nd', 'winverbs', 'kernel-bridge', 'examples', 'bench'];

const MOST_LINES = 500;
const MOST_LINES_OF_FUNCTION = 80;

interface Source {
  readonly file: string;
  readonly text: string;
}

/** The sources whose names end in one of these. */
function sources(endings: RegExp): Source[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        join(folder, name),
      ),
    )
    .filter((file) => endings.test(file) && !file.includes('node_modules/'))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
}

/** The lines of a text; the last one counts without a newline at its end, too. */
function linesOf(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}

/** Says that a source is too long. */
function tooLong({ file, text }: Source): string[] {
  const lines = linesOf(text);
  return lines > MOST_LINES ? [`${file} has ${lines} lines`] : [];
}

/** The name of a function, or of what it is the value of. */
function nameOf(node: ts.SignatureDeclaration): string {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  const named = node.name ?? (ts.isVariableDeclaration(node.parent) ? node.parent.name : undefined);
  return named?.getText() ?? 'a function';
}

/** The functions of a TypeScript source that are too long, from their first line to their last, docstrings apart. */
function longFunctions({ file, text }: Source): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node) {
      const lines = linesOf(node.getText());
      if (lines > MOST_LINES_OF_FUNCTION) found.push(`${nameOf(node)} of ${file} has ${lines} lines`);
    }
    ts.forEachChild(node, look);
  };
  look(source);
  return found;
}

test('what is too long is found', () => {
  const lines = (count: number): string => 'x = 1;\n'.repeat(count);
  assert.equal(tooLong({ file: 'a.cc', text: lines(500) }), []);
  assert.equal(tooLong({ file: 'a.cc', text: lines(500).trimEnd() }), []);
  assert.equal(tooLong({ file: 'a.cc', text: lines(501) }), ['a.cc has 501 lines']);
  assert.equal(tooLong({ file: 'a.h', text: lines(501).trimEnd() }), ['a.h has 501 lines']);

  const text = (inside: number): string => `/** Its docstring,
 * which does not count. */
export function plain() {\n${lines(inside)}}
class Thing {
  constructor() {\n${lines(inside)}}
  get size() {\n${lines(inside)}}
  method() {\n${lines(inside)}}
}
const arrow = () => {\n${lines(inside)}};
call(() => {\n${lines(inside)}});
const table = { member() {\n${lines(inside)}} };
interface Many {\n${'  x: 1;\n'.repeat(inside)}}
`;
  assert.equal(longFunctions({ file: 'a.ts', text: text(78) }), []);
  assert.equal(
    longFunctions({ file: 'a.ts', text: text(79) }),
    ['plain', 'constructor', 'size', 'method', 'arrow', 'a function', 'member'].map(
      (name) => `${name} of a.ts has 81 lines`,
    ),
  );
});

test('no source has more than 500 lines', () => {
  const all = sources(/\.(c?ts|cc|h)$/);
  for (const folder of folders)
    assert.ok(
      all.some(({ file }) => file.startsWith(`${folder}/`)),
      folder,
    );
  for (const ending of ['.ts', '.cts', '.cc', '.h']) assert.ok(all.some(({ file }) => file.endsWith(ending)));
  assert.equal(all.flatMap(tooLong), []);
});

test('no function of a TypeScript source has more than 80 lines', () => {
  assert.equal(sources(/\.c?ts$/).flatMap(longFunctions), []);
});

test.run();
