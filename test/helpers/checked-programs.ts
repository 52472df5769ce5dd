/** Type-checks the programs of the guides and examples with the TypeScript compiler, which takes seconds. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { type GuideProgram, sourceName } from './guides.js';
import { root } from './root.js';

/** The sources of the package's entries by their import names: `dist` has declarations only after `npm run types`. */
function ownSources(): Record<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { readonly types: string }>;
  };
  const sources: Record<string, string[]> = {};
  for (const [name, entry] of Object.entries(exports)) {
    if (typeof entry === 'string') continue;
    const source = entry.types.replace(/^\.\/dist\//, '').replace(/\.d\.ts$/, '.ts');
    sources[name.replace('.', 'networkdirect')] = [join(root, source)];
  }
  return sources;
}

/**
 * Checks the programs with the same strictness as this package, as if they were files of one folder next to the tests. Returns the errors.
 */
export function checkPrograms(programs: readonly GuideProgram[]): string[] {
  const place = join(root, 'test/guides');
  const sources = new Map<string, string>();
  const pages = new Map<string, string>();
  for (const { page, file, source } of programs) {
    if (pages.has(file)) return [`${file} is in ${pages.get(file)} and in ${page}.`];
    pages.set(file, page);
    sources.set(join(place, sourceName(file)), source);
  }
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options: ours } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  const options = { ...ours, paths: ownSources(), declaration: false, incremental: false, noEmit: true };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, directoryExists } = host;
  host.fileExists = (name) => sources.has(name) || fileExists(name);
  host.readFile = (name) => sources.get(name) ?? readFile(name);
  host.directoryExists = (name) => name === place || directoryExists!(name);
  const program = ts.createProgram({ rootNames: [...sources.keys()], options, host });
  // Checks only the programs, because `npm run types` checks the package's own files.
  const own = program.getSourceFiles().filter(({ fileName }) => sources.has(fileName));
  const problems = [
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...own.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]),
  ];
  return problems.map(({ file, start, messageText }) => {
    const position = file && start !== undefined ? ts.getLineAndCharacterOfPosition(file, start) : undefined;
    const at = file ? `${file.fileName.slice(place.length + 1)}:${(position?.line ?? 0) + 1}` : 'compiler';
    return `${at}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}
