// Tables of refused calls, for tests of error texts: each row is a call with the code and the whole text of its error.
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import * as assert from 'uvu/assert';

/** A call, the code (or the class) of its error, and the text. */
export type ErrorRow = readonly [call: () => unknown, code: string, text: string];

/** Rows by the call or option that they test: `Channel.send`, `ChannelOptions.slots`, `connect`, `new NdMwDescriptor`. */
export type ErrorRows = Readonly<Record<string, readonly ErrorRow[]>>;

/** An object whose methods accept anything, as for programs in JavaScript. */
export type Untyped = Readonly<Record<string, (...values: readonly unknown[]) => unknown>>;

export const untyped = (object: unknown): Untyped => object as Untyped;

/** Patterns that must not occur in an error's text: messages of V8 or zod, and values without quotes or names. */
const LEAKED =
  /Cannot (?:read|convert|mix|destructure)|is not a function|Invalid input|Too (?:big|small)|\[object |Received |expected \w+, received|got (?:\.|,|$)/;

/** Maximum length of a text in characters. */
const MOST = 420;

/** Returns how a text violates the rule for errors: `parameter` must be expected; got actual. Cure. */
function mistakeIn(code: string, text: string): string | undefined {
  if (LEAKED.test(text)) return 'it contains a message of V8 or of a library';
  if (text.length > MOST) return `it has more than ${MOST} characters`;
  const isArgument =
    /^(?:INVALID_PARAMETER|ERR_INVALID_ARG|ERR_OUT_OF_RANGE|ERR_SOCKET|TypeError|RangeError)/;
  if (isArgument.test(code) && !/\bmust\b/.test(text)) return 'it does not state the expected value';
  if (/[;,] got /.test(text) && !/\bmust\b/.test(text))
    return 'it states the actual value, but not the expected one';
  // The texts of Node.js's AbortErrors end without a period.
  if (!/[.)]$/.test(text) && code !== 'ABORT_ERR') return 'it is not a sentence';
  return undefined;
}

async function refusalOf(call: () => unknown): Promise<{ code: string; text: string }> {
  try {
    await call();
  } catch (error) {
    const { code, name, message } = error as Error & { code?: string | number };
    return { code: typeof code === 'string' ? code : name, text: message };
  }
  return { code: 'none', text: 'the call was accepted' };
}

/** Registers a test for each entry of a table. */
export function provoke(test: (name: string, run: () => Promise<void>) => void, rows: ErrorRows): void {
  for (const [what, table] of Object.entries(rows))
    test(`${what}: wrong arguments and states are refused with these texts`, async () => {
      const method = what.replace(/^new |^.*\./g, '');
      for (const [call, code, text] of table) {
        const got = await refusalOf(call);
        assert.equal(got, { code, text }, `${what}: ${call}`);
        assert.is(mistakeIn(code, text), undefined, text);
        assert.ok(String(call).includes(method), `${what} must be provoked by ${call}`);
      }
    });
}

/** The declarations of docs/api.d.ts, and the names that each module exports. */
function declarations() {
  const text = readFileSync(new URL('../../../docs/api.d.ts', import.meta.url), 'utf8');
  const source = ts.createSourceFile('api.d.ts', text, ts.ScriptTarget.Latest, true);
  const named = new Map<string, ts.Statement[]>();
  for (const statement of source.statements) {
    const name = (statement as { name?: ts.Identifier }).name?.text;
    if (name !== undefined) named.set(name, [...(named.get(name) ?? []), statement]);
  }
  const exported = (module: string): readonly string[] => {
    const [, block = ''] = text.split(`// ${module}\nexport {`);
    return [...block.split('};')[0]!.matchAll(/\w+/g)].map(([name]) => name);
  };
  return { named, exported };
}

const OPTIONS = /(?:Options|OptionsInput|Parameters|Param|Start|Create)$/;

/** Methods, settable properties and public constructors of a class or interface; all properties of options. */
function* membersOf(name: string, statement: ts.Statement, classes: ReadonlySet<string>): Generator<string> {
  if (ts.isFunctionDeclaration(statement)) yield name;
  if (ts.isInterfaceDeclaration(statement))
    for (const member of statement.members) {
      const key = member.name?.getText() ?? '';
      if (ts.isMethodSignature(member) && !key.startsWith('[')) yield `${name}.${key}`;
      if (ts.isPropertySignature(member) && OPTIONS.test(name)) yield `${name}.${key}`;
    }
  if (!ts.isClassDeclaration(statement)) return;
  const described = statement.heritageClauses?.some(
    ({ token, types }) =>
      token === ts.SyntaxKind.ImplementsKeyword &&
      types.some(({ expression }) => classes.has(expression.getText())),
  );
  // The rows of an interface cover the methods of its class.
  if (described === true) return;
  for (const member of statement.members) {
    const key = (member.name?.getText() ?? '').replace(/^#/, '');
    const hidden = ts.canHaveModifiers(member)
      ? ts.getModifiers(member)?.some(({ kind }) => kind === ts.SyntaxKind.ProtectedKeyword) === true
      : false;
    if (hidden || key.startsWith('[')) continue;
    if (ts.isMethodDeclaration(member) || ts.isSetAccessorDeclaration(member)) yield `${name}.${key}`;
    if (ts.isConstructorDeclaration(member) && member.parameters.length > 0) yield `new ${name}`;
  }
}

/** The calls and options of a module for programs, as in docs/api.d.ts. */
export function doorsOf(module: string, only: RegExp = /./): ReadonlySet<string> {
  const { named, exported } = declarations();
  const names = exported(module).filter((name) => only.test(name));
  const interfaces = new Set(names.filter((name) => /^I(?:WV|ND)/.test(name)));
  const doors = names.flatMap((name) =>
    (named.get(name) ?? []).flatMap((statement) => [...membersOf(name, statement, interfaces)]),
  );
  return new Set(doors);
}

/**
 * Asserts that the rows cover all doors. `cannotFail` lists the others by pattern, with the reason.
 */
export function complete(
  doors: ReadonlySet<string>,
  rows: ErrorRows,
  cannotFail: readonly (readonly [names: RegExp, reason: string])[],
): void {
  const excepted = (door: string): boolean => cannotFail.some(([names]) => names.test(door));
  const missing = [...doors].filter((door) => (rows[door] ?? []).length === 0 && !excepted(door));
  assert.equal(missing, [], 'what no row provokes');
  const unknown = Object.keys(rows).filter((what) => !doors.has(what));
  assert.equal(unknown, [], 'rows of what does not exist');
  for (const [names, reason] of cannotFail) {
    const used = [...doors].filter((door) => names.test(door));
    assert.ok(used.length > 0, `nothing is ${names}: ${reason}`);
    assert.equal(
      used.filter((door) => rows[door] !== undefined),
      [],
      `${names} has rows`,
    );
  }
}
