/** The programs of the guides, from fenced blocks of their pages, each with its expected output. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Programs are compiled inside the package, so that it can be imported by name. */
const dist = join(root, 'dist');
const guidesFolder = join(dist, 'test/guides');

/** A program of a page. */
export interface GuideProgram {
  readonly page: string;
  /** Its file; blocks of one page with the same name are one program. */
  readonly file: string;
  /** A program to start first; its first line is awaited. */
  readonly with?: string;
  /** Its expected output; undefined for files that others import. */
  readonly output?: string;
  readonly source: string;
}

/**
 * The blocks of a page that begin with ```` ```ts name.ts ```` or ```` ```js name.js ````. A ```` ```text ```` block
 * behind the last one of a name is its output.
 *
 * @throws Error for a block without a name, because it would not be run.
 */
export function programsOf(page: string, text: string): GuideProgram[] {
  const programs = new Map<string, { file: string; with?: string; output?: string; source: string }>();
  let latest: string | undefined;
  for (const [, info = '', body = ''] of text.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)) {
    const [language, file, ...more] = info.trim().split(/\s+/);
    if (language === 'text' && latest !== undefined) {
      programs.get(latest)!.output = body;
      latest = undefined;
    } else if (language === 'ts' || language === 'js') {
      if (file === undefined) throw new Error(`${page}: a block of ${language} has no file name.`);
      const other = more.find((word) => word.startsWith('with='))?.slice('with='.length);
      const before = programs.get(file);
      programs.set(file, {
        file,
        source: (before?.source ?? '') + body,
        ...(other === undefined ? {} : { with: other }),
      });
      latest = file;
    }
  }
  return [...programs.values()].map((program) => ({ page, ...program }));
}

/** All programs: of the guides, and of README. */
export function readPrograms(): GuideProgram[] {
  const guides = readdirSync(join(root, 'docs/guide'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/guide/${name}`);
  return ['README.md', ...guides].flatMap((page) => programsOf(page, readFileSync(join(root, page), 'utf8')));
}

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
 * Compiles the programs as strictly as this package itself, and returns the errors. They are compiled as if they were in
 * the folder of the sources that `folder` is compiled from, so that their imports find sources.
 *
 * @param folder - where their code goes, in `dist`
 */
export function compilePrograms(programs: readonly GuideProgram[], folder = guidesFolder): string[] {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const place = join(root, relative(dist, folder));
  const sources = new Map<string, string>();
  const pages = new Map<string, string>();
  for (const { page, file, source } of programs) {
    if (pages.has(file)) return [`${file} is in ${pages.get(file)} and in ${page}.`];
    pages.set(file, page);
    sources.set(join(place, sourceName(file)), source);
  }
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options: ours } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  const options = { ...ours, paths: ownSources(), declaration: false, rootDir: root, outDir: dist };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, directoryExists } = host;
  host.fileExists = (name) => sources.has(name) || fileExists(name);
  host.readFile = (name) => sources.get(name) ?? readFile(name);
  host.directoryExists = (name) => name === place || directoryExists!(name);
  const program = ts.createProgram({ rootNames: [...sources.keys()], options, host });
  // Only the programs are checked and written: the package's own files are compiled already.
  const own = program.getSourceFiles().filter(({ fileName }) => sources.has(fileName));
  const problems = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()];
  for (const file of own) {
    problems.push(...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file));
    program.emit(file);
  }
  return problems.map(({ file, start, messageText }) => {
    const position = file && start !== undefined ? ts.getLineAndCharacterOfPosition(file, start) : undefined;
    const at = file ? `${file.fileName.slice(place.length + 1)}:${(position?.line ?? 0) + 1}` : 'compiler';
    return `${at}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}

/** The compiled file of a program. */
export function compiledFile({ file }: { readonly file: string }): string {
  return join(guidesFolder, sourceName(file).replace(/\.ts$/, '.js'));
}

/** JavaScript with `import` is TypeScript, too. */
function sourceName(file: string): string {
  return file.replace(/\.js$/, '.ts');
}
