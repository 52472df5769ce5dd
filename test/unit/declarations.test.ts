/** The package's declarations, as `npm run types` has written them, compiled as another program would: with other options, and checked. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { root } from '../helpers/guides.js';
import { long } from '../helpers/tiers.js';

const test = suite('declarations');
const folder = join(root, 'dist/test/declarations');

/** One value of each entry, and disposing. */
const PROGRAM = `
import { openNetworkDirect, openNetworkDirect2 } from 'networkdirect';
import { openProvider } from 'networkdirect/winverbs';
import { openDeviceFile } from 'networkdirect/kernel-bridge';

export async function run(): Promise<string[]> {
  using v1 = openNetworkDirect();
  using v2 = openNetworkDirect2();
  using winverbs = openProvider();
  using adapter = v1.openAdapter('127.0.0.1');
  await using connector = adapter.createConnector();
  return [v2, winverbs, connector, openDeviceFile].map((value) => typeof value);
}
`;

/** The compiler's errors for the program and our declarations. */
function problems(options: ts.CompilerOptions): string[] {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'program.mts');
  writeFileSync(file, PROGRAM);
  const program = ts.createProgram({
    rootNames: [file],
    options: { strict: true, noEmit: true, skipLibCheck: false, target: ts.ScriptTarget.ES2022, ...options },
  });
  const ours = program.getSourceFiles().filter(({ fileName }) => !fileName.includes('/node_modules/'));
  assert.ok(
    ours.some(({ fileName }) => fileName.endsWith('dist/nd/index.d.ts')),
    'dist has no declarations: npm run types writes them',
  );
  const found = ours.flatMap((source) => [
    ...program.getSyntacticDiagnostics(source),
    ...program.getSemanticDiagnostics(source),
  ]);
  return [...program.getOptionsDiagnostics(), ...found].map(
    ({ file: where, messageText }) =>
      `${where?.fileName.slice(root.length) ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
  );
}

const node: ts.CompilerOptions = {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
};
const bundler: ts.CompilerOptions = {
  module: ts.ModuleKind.Preserve,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
};

long(test, 'compile without the types of Node, as the compiler is set up unless told', () => {
  assert.equal(problems({ ...node, types: [] }), []);
});

long(test, 'compile where a bundler resolves, as strictly as the compiler can', () => {
  const strict = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, isolatedModules: true };
  assert.equal(problems({ ...bundler, ...strict, types: ['node'] }), []);
});

long(test, 'are those of docs/api.d.ts', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/api-report.mjs'), '--check'], {
    encoding: 'utf8',
  });
  assert.is(stderr, '');
  assert.is(status, 0);
});

test.run();
