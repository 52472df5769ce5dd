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

/** Reports a source that is too long. */
function tooLong({ file, text }: Source): string[] {
  const lines = linesOf(text);
  return lines > MOST_LINES ? [`${file} has ${lines} lines`] : [];
}

/** The name of a function, or of the variable or member that it is assigned to. */
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

/** C++ with comments, literals and directives blanked, line for line: braces that are left are the language's. */
function bare(text: string): string {
  const blanked =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|R"(\w*)\([\s\S]*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*/gm;
  return text.replace(blanked, (found) => found.replace(/[^\n]/g, ' '));
}

/** What stands before a brace whose members are looked at: the brace of a namespace or a type. */
const opensScope = /^(inline\s+)?namespace\b|^extern$|\b(class|struct|union|enum)\b[^()=]*$/;

/** The functions of a C++ source that are too long, from the line where they begin to their last brace. */
function longNativeFunctions({ file, text }: Source): string[] {
  const found: string[] = [];
  let line = 1;
  let first = 1;
  let head = '';
  let depth = 0;
  for (const character of bare(text)) {
    if (character === '\n') line += 1;
    if (depth > 0) {
      if (character === '{') depth += 1;
      if (character === '}') depth -= 1;
      if (depth > 0 || character !== '}') continue;
      const lines = line - first + 1;
      const name = /([\w~:]+)( = \[.*\])?\s*\(/.exec(head)?.[1];
      if (lines > MOST_LINES_OF_FUNCTION && head.includes('('))
        found.push(`${name} of ${file} has ${lines} lines`);
      head = '';
    } else if (character === '{') {
      if (opensScope.test(head.replace(/\balignas\([^)]*\)/g, '').trim())) head = '';
      else depth = 1;
    } else if (/^[;}]$/.test(character) || /^(public|private|protected)$/.test(head)) {
      head = '';
    } else {
      if (head === '' && /\s/.test(character)) continue;
      if (head === '') first = line;
      head += character;
    }
  }
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

test('what is too long in C++ is found', () => {
  const text = (inside: number): string => {
    const lines = '  x = "{"; // {\n'.repeat(inside);
    return `#define OPEN {
namespace nd {
namespace {
constexpr int kTable[] = {\n${lines}${lines}};
}  // namespace
extern "C" {
int plain(int x) {\n${lines}}
}
/* A comment, which does not count. { */
template <typename T>
class Thing final : public Base<T> {
 public:
  Thing() : a_(1) {\n${lines}}
  ~Thing() { a_ = '{'; }
  struct alignas(64) Inner {
    bool operator()(int x) const {\n${lines}}
    uint32_t word{0};
  };
  enum class Kind {\n${'  kOne,\n'.repeat(inside)}};
};
Status Thing::method(const std::string& a,
                     int b) {\n${lines}}
static_assert(sizeof(Thing) == 8, "{");
const auto lambda = [](int x) {\n${lines}};
}  // namespace nd
`;
  };
  const found = (inside: number): string[] => longNativeFunctions({ file: 'a.cc', text: text(inside) });
  assert.equal(found(77), []);
  assert.equal(found(78), ['Thing::method of a.cc has 81 lines']);
  assert.equal(found(79), [
    'plain of a.cc has 81 lines',
    'Thing of a.cc has 81 lines',
    'operator of a.cc has 81 lines',
    'Thing::method of a.cc has 82 lines',
    'lambda of a.cc has 81 lines',
  ]);
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

test('no function of a C++ source has more than 80 lines', () => {
  const all = sources(/\.(cc|h)$/);
  assert.ok(all.length > 100);
  assert.equal(all.flatMap(longNativeFunctions), []);
});

test.run();
