// Writes the public interface as one text, docs/api.d.ts: the exports of each entry of the package, and the declarations of these and of
// everything that they refer to, sorted by name, without comments and private members. A change of the interface changes this file; moving
// code does not.
//
//   node scripts/api-report.mjs [--check]
//
// Reads `dist`. With --check, nothing is written, and the exit code is 1 if the file differs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const output = join(root, 'docs/api.d.ts');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entries = Object.entries(exports).flatMap(([name, { types }]) =>
  types === undefined ? [] : [{ name: name.replace('.', 'networkdirect'), file: join(root, types) }],
);
const program = ts.createProgram({
  rootNames: entries.map(({ file }) => file),
  options: {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    skipLibCheck: true,
  },
});
const checker = program.getTypeChecker();
const printer = ts.createPrinter({ removeComments: true });

const isOurs = (node) => node.getSourceFile().fileName.startsWith(join(root, 'dist/'));
const target = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);

/** Whether a member is internal to the package. */
function isHidden(node) {
  if (!ts.isClassElement(node) && !ts.isTypeElement(node)) return false;
  const { name } = node;
  return (
    (name !== undefined && ts.isPrivateIdentifier(name)) ||
    (ts.canHaveModifiers(node) &&
      ts.getModifiers(node)?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)) ||
    ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal')
  );
}

const visible = (context) => (tree) => {
  const visit = (node) => (isHidden(node) ? undefined : ts.visitEachChild(node, visit, context));
  return ts.visitNode(tree, visit);
};

/** The statement of a module that contains a declaration; undefined for members, parameters and modules. */
function statementOf(declaration) {
  const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  return statement.parent !== undefined && ts.isSourceFile(statement.parent) ? statement : undefined;
}

/** Texts of statements and of all statements that they refer to. */
const texts = new Map();
function add(symbol) {
  for (const declaration of target(symbol).declarations ?? []) {
    const statement = statementOf(declaration);
    if (statement === undefined || !isOurs(statement)) continue;
    if (texts.has(statement)) continue;
    const { transformed } = ts.transform(statement, [visible]);
    const text = printer.printNode(ts.EmitHint.Unspecified, transformed[0], statement.getSourceFile());
    texts.set(statement, text.replace(/^export /, ''));
    addNamed(statement);
  }
}
function addNamed(node) {
  if (isHidden(node)) return;
  const symbol = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node) : undefined;
  if (symbol !== undefined) add(symbol);
  ts.forEachChild(node, addNamed);
}

const lists = entries.map(({ name, file }) => {
  const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
  for (const symbol of symbols) add(symbol);
  const names = symbols.map(({ name: exported }) => exported).sort();
  return `// ${name}\nexport {\n${names.map((one) => `  ${one},\n`).join('')}};\n`;
});
const report = [...lists, ...[...texts.values()].sort()].join('\n');

if (!process.argv.includes('--check')) writeFileSync(output, `${report}\n`);
else if (!existsSync(output) || readFileSync(output, 'utf8') !== `${report}\n`) {
  console.error('docs/api.d.ts differs from the sources. Run npm run api');
  process.exit(1);
}
