/** Public methods are documented. Those of the NetworkDirect SPI document their SPI name, every parameter and their results. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** A public method or exported function, with its docstring. */
interface Documented {
  readonly owner: string;
  readonly name: string;
  readonly doc: string;
  readonly parameters: readonly string[];
}

const filesOf = (folder: string): string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`);

/** The public methods of exported interfaces and classes, and exported functions, except `@internal` ones. */
function documented(fileName: string, text: string): Documented[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  const has = (node: ts.Node, kinds: readonly ts.SyntaxKind[]): boolean =>
    ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some(({ kind }) => kinds.includes(kind));
  const hidden = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword];
  const docOf = (node: ts.Node): string =>
    ts
      .getJSDocCommentsAndTags(node)
      .map((part) => part.getText())
      .join('\n');
  const found: Documented[] = [];
  const add = (owner: string, node: ts.SignatureDeclaration): void => {
    const doc = docOf(node);
    // Symbols (dispose) and #names are not part of the SPI.
    if (node.name === undefined || !ts.isIdentifier(node.name) || doc.includes('@internal')) return;
    const parameters = node.parameters.map((parameter) => parameter.name.getText());
    found.push({ owner, name: node.name.text, doc, parameters });
  };
  for (const node of file.statements) {
    if (!has(node, [ts.SyntaxKind.ExportKeyword]) || docOf(node).includes('@internal')) continue;
    if (ts.isFunctionDeclaration(node)) add('', node);
    if (ts.isInterfaceDeclaration(node)) {
      for (const member of node.members) if (ts.isMethodSignature(member)) add(node.name.text, member);
    }
    if (ts.isClassDeclaration(node)) {
      for (const member of node.members) {
        if (ts.isMethodDeclaration(member) && !has(member, hidden)) add(node.name?.text ?? '', member);
      }
    }
  }
  return found;
}

const read = (names: readonly string[]): Documented[] =>
  names.flatMap((name) => documented(name, readFileSync(join(root, name), 'utf8')));

const titleOf = ({ owner, name }: Documented): string => (owner === '' ? name : `${owner}.${name}`);

/** Methods of this package that the SPI does not have. */
const own = [
  ...['NdMwDescriptor.encode', 'NdMwDescriptor.decode', 'ndNotifyAddressListChange'],
  ...['Nd2RemoteMemory.of', 'Nd2RemoteMemory.encode', 'Nd2RemoteMemory.decode'],
  ...[
    'NdOverlappedFile.next',
    'NdOverlappedFile.close',
    'IND2CompletionQueue.shouldPoll',
    'IND2QueuePair.direct',
    'IND2QueuePair.view',
  ],
];

/** The missing parts in the documentation of a method of the SPI. */
function missing(method: Documented): string[] {
  const { owner, name, doc, parameters } = method;
  const spiName = name.charAt(0).toUpperCase() + name.slice(1);
  // Helper functions have their own names. Methods of both versions name one of the interfaces.
  const source = owner === '' ? spiName : new RegExp(`@see .*\\w+::${spiName}\\b`);
  const gaps = [];
  const named = typeof source === 'string' ? doc.includes(source) : source.test(doc);
  if (!own.includes(titleOf(method)) && !named) gaps.push('its SPI name');
  for (const parameter of parameters) {
    if (!new RegExp(`@param ${parameter} - \\S`).test(doc)) gaps.push(`@param ${parameter}`);
  }
  if (!/@throws|Ends in|fails\b/.test(doc)) gaps.push('how it can end');
  return gaps;
}

test('the checker detects missing parts', () => {
  const text = `export interface INDThing {
    /** Does it. @see INDThing::Right @throws X */ right(): void;
    /** Does it. @see INDThing::Wrong @throws X */ other(): void;
    /** Does it. @see INDThing::Bare @throws X */ bare(size: number): void;
    /** Does it. @see INDThing::Open */ open(): void;
    silent(): void;
  }
  export class Box { private hidden() {} protected inner() {}
    /** @internal */
    deep() {}
    shown() {} }`;
  const methods = documented('x.ts', text);
  assert.equal(methods.map(titleOf), [
    'INDThing.right',
    'INDThing.other',
    'INDThing.bare',
    'INDThing.open',
    'INDThing.silent',
    'Box.shown',
  ]);
  assert.equal(methods.slice(0, 4).map(missing), [[], ['its SPI name'], ['@param size'], ['how it can end']]);
  assert.is(methods[4]!.doc, '');
  assert.is(methods[5]!.doc, '');
});

test('every method of the SPI documents its SPI name, its parameters and its results', () => {
  const methods = read([...filesOf('nd/spi'), 'nd/framework.ts']);
  assert.ok(methods.length > 80, `only ${methods.length} methods were found`);
  const gaps = methods.flatMap((method) => {
    const found = missing(method);
    return found.length > 0 ? [`${titleOf(method)}: ${found.join(', ')}`] : [];
  });
  assert.equal(gaps, []);
});

/** Properties of exported interfaces without a docstring: `Interface.property`. */
function bareProperties(fileName: string, text: string): string[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  return file.statements.flatMap((node) => {
    const exported =
      ts.canHaveModifiers(node) && ts.getModifiers(node)?.[0]?.kind === ts.SyntaxKind.ExportKeyword;
    // The members of this interface are named after interfaces.
    if (!ts.isInterfaceDeclaration(node) || !exported || node.name.text === 'NdInterfaces') return [];
    return node.members
      .filter((member) => ts.isPropertySignature(member) && !/^\s*\/\*\*/.test(member.getFullText(file)))
      .map((member) => `${node.name.text}.${member.name?.getText(file)}`);
  });
}

test('every property of the interfaces of networkdirect and networkdirect/net has a docstring', () => {
  const sample = 'export interface A { /** Documented. */ a: 1; b: 2 } interface Own { c: 3 }';
  assert.equal(bareProperties('x.ts', sample), ['A.b']);
  // This is not part of the package's interface.
  const inside = ['nd/net/channel/outbox.ts', 'nd/net/channel/inbox.ts'];
  const net = ['nd/net', 'nd/net/stream', 'nd/net/channel', 'nd/net/memory'];
  const files = ['nd/spi', 'nd', ...net].flatMap(filesOf).filter((name) => !inside.includes(name));
  assert.equal(
    files.flatMap((name) => bareProperties(name, readFileSync(join(root, name), 'utf8'))),
    [],
  );
});

test('every public method of WinVerbs has a docstring', () => {
  // This is not part of the package's interface.
  const inside = ['winverbs/kernel-file.ts', 'winverbs/status.ts'];
  const methods = read(filesOf('winverbs').filter((name) => !inside.includes(name)));
  assert.ok(methods.length > 100, `only ${methods.length} methods were found`);
  assert.equal(methods.filter(({ doc }) => doc === '').map(titleOf), []);
});

/** Names of source files in backticks that do not match any file of the repository. */
function filesNotThere(text: string, files: readonly string[]): string[] {
  return [...text.matchAll(/`([\w./-]+\.(?:ts|mjs|cc|h|sh))`/g)]
    .map(([, name]) => name!)
    .filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)));
}

test('files named by the internals exist', () => {
  const known = ['nd/cli/command-line.ts', 'nd/net/connection/size-bounds.ts'];
  const text =
    'Of `command-line.ts`, `nd/cli/command-line.ts`, `../command-line.ts`, `bounds.ts` and `*-bounds.ts`.';
  assert.equal(filesNotThere(text, known), ['../command-line.ts', 'bounds.ts']);
  const folders = ['bench', 'docs', 'examples', 'kernel-bridge', 'nd', 'scripts', 'test', 'winverbs'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  const pages = readdirSync(join(root, 'docs/internals'));
  assert.ok(pages.length > 10, `only ${pages.length} pages were found`);
  const gaps = pages
    // This page names removed files.
    .filter((page) => page !== 'mechanisms.md')
    .flatMap((page) =>
      filesNotThere(readFileSync(join(root, 'docs/internals', page), 'utf8'), files).map(
        (name) => `${page}: ${name}`,
      ),
    );
  assert.equal(gaps, []);
});

test.run();
