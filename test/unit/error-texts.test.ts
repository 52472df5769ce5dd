/**
 * Texts of errors in the sources follow the form "`parameter` must be expected; got actual", and avoid wordings that are hard to read.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** A text with `${}` for each value in it, and its location. */
interface Text {
  readonly where: string;
  readonly text: string;
}

const isErrorType = (type: string): boolean => /Error$/.test(type);

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return node.head.text + node.templateSpans.map(({ literal }) => `\${}${literal.text}`).join('');
}

function walk(node: ts.Node, look: (node: ts.Node) => void): void {
  look(node);
  node.forEachChild((child) => walk(child, look));
}

/** Names of functions that return errors. */
function errorMakers(sources: readonly ts.SourceFile[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const source of sources)
    walk(source, (node) => {
      if (!ts.isFunctionLike(node) || node.type === undefined || !isErrorType(node.type.getText())) return;
      const named = ts.isVariableDeclaration(node.parent) ? node.parent.name : node.name;
      if (named !== undefined) names.add(named.getText());
    });
  return names;
}

/** Whether an error is created from this literal. */
function isOfError(literal: ts.Node, makers: ReadonlySet<string>): boolean {
  for (let node = literal.parent; node !== undefined; node = node.parent) {
    if (ts.isThrowStatement(node)) return true;
    if (ts.isNewExpression(node) && isErrorType(node.expression.getText())) return true;
    if (ts.isCallExpression(node) && makers.has(node.expression.getText().split('.').pop()!)) return true;
    if (ts.isFunctionLike(node)) return node.type !== undefined && isErrorType(node.type.getText());
  }
  return false;
}

function textsOfErrors(): Text[] {
  const files = ['nd', 'winverbs', 'kernel-bridge'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  const sources = files.map((file) =>
    ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.Latest, true),
  );
  const makers = errorMakers(sources);
  const texts: Text[] = [];
  for (const source of sources)
    walk(source, (node) => {
      const text = textOf(node);
      if (text === undefined || !/\S \S/.test(text) || !isOfError(node, makers)) return;
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      texts.push({ where: `${source.fileName}:${line + 1}`, text });
    });
  return texts;
}

const texts = textsOfErrors();

/** Texts that match `pattern` but not `unless`. */
function offending(pattern: RegExp, unless?: RegExp): string[] {
  return texts
    .filter(({ text }) => !isEnd.test(text) && pattern.test(text) && !(unless?.test(text) ?? false))
    .map(({ where, text }) => `${where}: ${text}`);
}

test('texts of errors are found', () => {
  assert.ok(texts.length > 500, String(texts.length));
});

/** Ends of a sentence whose start is another literal. */
const isEnd = /^'192\.0\.2\.1:4000' or |^Host /;

test('a text that reports the actual value also states the expected one', () => {
  assert.equal(offending(/[;,] got /, /\bmust\b/), []);
});

test('a text states what a parameter must be, not what it is or takes', () => {
  assert.equal(offending(/^`[^`]+` (?:is|takes|needs|has) /), []);
  assert.equal(offending(/\bis \$\{\}; (?:it|they) (?:is|are|takes?)\b|\bis an? [A-Z]\w+, not\b/), []);
});

test('the verb is negated, not the noun', () => {
  assert.equal(offending(/(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b)\w/), []);
});

test('things do not tell, ask or want, and the terms are those of the field', () => {
  const things =
    /\b(?:tells?|told|asks?|asked|wants?|wanted|knows?|in vain|nobody|sent again|the own|by the wire|patience)\b/i;
  assert.equal(offending(things), []);
});

test.run();
