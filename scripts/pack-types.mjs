// The declarations of the package: those that its modules export, and what these need. They come from `dist` without comments and members
// that nobody outside can use.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';

/** Older libraries of the compiler have no `Symbol.dispose`. It has an effect as the first line of a file alone. */
const DISPOSABLE = '/// <reference lib="esnext.disposable" preserve="true" />';

const parse = (text) => ts.createSourceFile('types.d.ts', text, ts.ScriptTarget.Latest, true);

/** The text without the parts from `start` to `end`. */
function without(text, parts) {
  let left = text;
  for (const [start, end] of parts.sort((a, b) => b[0] - a[0])) left = left.slice(0, start) + left.slice(end);
  return left;
}

/** A class whose `#private` makes its type unlike all others. */
const hasPrivate = (node) =>
  ts.isClassDeclaration(node) &&
  node.members.some(({ name }) => name !== undefined && ts.isPrivateIdentifier(name));

/** Members that are marked as internal, and private ones that nothing depends on. */
function internalMembers(file) {
  const found = [];
  const look = (node) => {
    const member = ts.isClassElement(node) || ts.isTypeElement(node);
    const closed =
      (ts.isPropertyDeclaration(node) || ts.isMethodDeclaration(node)) &&
      node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword) &&
      hasPrivate(node.parent);
    if (closed || (member && ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal')))
      found.push([node.getFullStart(), node.getEnd()]);
    else ts.forEachChild(node, look);
  };
  look(file);
  return found;
}

/** Comments of what no module exports. */
function hiddenComments(file, text, exported) {
  const found = [];
  const comments = (node) => {
    for (const { pos, end } of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? [])
      found.push([pos, end + /^\s*/.exec(text.slice(end))[0].length]);
  };
  const all = (node) => {
    if (ts.isClassElement(node) || ts.isTypeElement(node) || ts.isStatement(node)) comments(node);
    ts.forEachChild(node, all);
  };
  for (const statement of file.statements) {
    const names = statement.name
      ? [statement.name.text]
      : (statement.declarationList?.declarations ?? []).map(({ name }) => name.text);
    if (names.length > 0 && !names.some((name) => exported.has(name))) all(statement);
  }
  return found;
}

/** Comments that no editor shows: of a constructor's parameters, which their properties have as well, and of pads. */
function unseenComments(file, text) {
  const found = [];
  const look = (node) => {
    const pad = ts.isPropertySignature(node) && node.type?.getText() === 'ReservedType';
    if (pad || (ts.isParameter(node) && ts.isConstructorDeclaration(node.parent)))
      for (const { pos, end } of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? [])
        found.push([pos, end + /^\s*/.exec(text.slice(end))[0].length]);
    ts.forEachChild(node, look);
  };
  look(file);
  return found;
}

/** Structures within structures by their own names: the compiler writes the whole table of each again. */
function namedStructures(text) {
  const file = parse(text);
  const isStructure = (node) =>
    node !== undefined && ts.isTypeReferenceNode(node) && node.typeName.getText() === 'Struct';
  const form = (node) =>
    node
      .getText()
      .replace(/\/\*\*[\s\S]*?\*\//g, '')
      .replace(/\s+/g, ' ');
  const names = new Map();
  const owners = new Set();
  for (const statement of file.statements)
    for (const { name, type } of statement.declarationList?.declarations ?? [])
      if (isStructure(type)) {
        owners.add(type);
        if (!names.has(form(type))) names.set(form(type), name.getText());
      }
  const found = [];
  const look = (node) => {
    const name = isStructure(node) && !owners.has(node) ? names.get(form(node)) : undefined;
    if (name === undefined) ts.forEachChild(node, look);
    else found.push([node.getStart(), node.getEnd(), `typeof ${name}`]);
  };
  look(file);
  let left = text;
  for (const [start, end, name] of found.reverse()) left = left.slice(0, start) + name + left.slice(end);
  return left;
}

/** Interfaces that other modules add to: rollup would keep the names of modules that are no more. */
function merged(texts) {
  const augmentation =
    /^declare module '(\.[^']+)\.js' \{\n {4}interface (\w+) \{\n([\s\S]*?)\n {4}\}\n\}\n/m;
  for (const [path, text] of texts) {
    const found = augmentation.exec(text);
    if (found === null) continue;
    const [block, target, name, members] = found;
    texts.set(path, text.replace(block, ''));
    const other = join(dirname(path), `${target}.d.ts`);
    const own = new RegExp(`interface ${name} \\{`);
    if (!own.test(texts.get(other) ?? '')) throw new Error(`${other} has no interface ${name}.`);
    const used = [...members.matchAll(/: (\w+);/g)].map(([, type]) => type);
    const from = `./${relative(dirname(other), path).replace(/\.d\.ts$/, '.js')}`;
    const line = `import type { ${used.join(', ')} } from '${from}';\n`;
    texts.set(other, line + texts.get(other).replace(own, `$&\n${members}`));
  }
}

/** Writes the declarations of the modules (paths in `dist`) to the folder, each beside its code, and returns their paths. */
export async function packTypes(dist, modules, folder) {
  const texts = new Map();
  const read = (path) => {
    if (texts.has(path)) return;
    const text = readFileSync(join(dist, path), 'utf8')
      .replace(/^\/\/# sourceMappingURL.*\n?/m, '')
      .replace(`${DISPOSABLE}\n`, '');
    texts.set(path, text);
    for (const [, name] of text.matchAll(/(?:from|import\(?)\s*['"](\.[^'"]+)\.js['"]/g))
      read(join(dirname(path), `${name}.d.ts`));
  };
  const declarations = modules.map((path) => path.replace(/js$/, 'd.ts'));
  for (const path of declarations) read(path);
  merged(texts);

  const copies = join(folder, 'types');
  if (existsSync(copies)) throw new Error(`${copies} is there already.`);
  for (const [path, text] of texts) {
    mkdirSync(dirname(join(copies, path)), { recursive: true });
    writeFileSync(join(copies, path), without(text, internalMembers(parse(text))));
  }
  const bundle = await rollup({
    input: Object.fromEntries(declarations.map((path) => [path.replace(/\.d\.ts$/, ''), join(copies, path)])),
    plugins: [dts()],
    external: /^node:/,
    onwarn: ({ code, message }) => {
      if (code !== 'UNUSED_EXTERNAL_IMPORT') throw new Error(message);
    },
  });
  const { output } = await bundle.generate({
    format: 'es',
    entryFileNames: '[name].d.ts',
    minifyInternalExports: false,
    chunkFileNames: ({ name }) => `types/${name.replace(/\.d$/, '')}.d.ts`,
  });
  rmSync(copies, { recursive: true });
  for (const { fileName, code, exports, isEntry } of output) {
    const file = parse(code);
    // The short names of a chunk are for others of the package; whether those export it is not looked at.
    const exported = new Set(isEntry ? exports : []);
    if (!isEntry)
      for (const statement of file.statements)
        if (ts.isExportDeclaration(statement))
          for (const { name, propertyName } of statement.exportClause?.elements ?? [])
            exported.add((propertyName ?? name).text);
    const unseen = [...hiddenComments(file, code, exported), ...unseenComments(file, code)];
    const text = namedStructures(without(code, unseen))
      .replace(/^( {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4))
      .replace(/\n\n+/g, '\n')
      // Comments without indentation and asterisks, which editors leave out as well.
      .replace(/\/\*\*[\s\S]*?\*\//g, (comment) =>
        comment.replace(/\n[\t ]*\*\/$/, '\n*/').replace(/\n[\t ]*\*(?!\/) ?/g, '\n'),
      );
    mkdirSync(dirname(join(folder, fileName)), { recursive: true });
    writeFileSync(
      join(folder, fileName),
      /Disposable\b|Symbol\.(?:asyncD|d)ispose\b/.test(text) ? `${DISPOSABLE}\n${text}` : text,
    );
  }
  return output.map(({ fileName }) => fileName);
}
