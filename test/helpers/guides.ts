/** The programs of the guides, from fenced blocks of their pages, with their expected output. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import { root } from './root.js';

/** Programs are compiled inside the package, so that they can import it by name. */
const dist = join(root, 'dist');
const guidesFolder = join(dist, 'test/guides');

/** A program of a page. */
export interface GuideProgram {
  readonly page: string;
  /** Its file name; blocks of one page with the same name are one program. */
  readonly file: string;
  /** A program to start first. The test waits for its first output. */
  readonly with?: string;
  /** The expected output; undefined for files that other programs import. */
  readonly output?: string;
  readonly source: string;
}

/**
 * Reads the blocks of a page that start with ```` ```ts name.ts ```` or ```` ```js name.js ````. A ```` ```text ```` block after
 * the last block of a name is its output.
 *
 * @throws Error for a block without a file name, because no test would run it.
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
      if (file === undefined) throw new Error(`${page}: a ${language} block must have a file name.`);
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

/** Reads all programs of the guides and of README. */
export function readPrograms(): GuideProgram[] {
  const guides = readdirSync(join(root, 'docs/guide'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/guide/${name}`);
  return ['README.md', ...guides].flatMap((page) => programsOf(page, readFileSync(join(root, page), 'utf8')));
}

/** Compiles the programs without type checks; helpers/checked-programs.ts checks types. */
export function writePrograms(programs: readonly GuideProgram[]): void {
  rmSync(guidesFolder, { recursive: true, force: true });
  mkdirSync(guidesFolder, { recursive: true });
  for (const program of programs) {
    const { code } = transformSync(program.source, {
      loader: 'ts',
      target: 'es2022',
      sourcefile: program.file,
    });
    writeFileSync(compiledFile(program), code);
  }
}

/** The path of a compiled program. */
export function compiledFile({ file }: { readonly file: string }): string {
  return join(guidesFolder, sourceName(file).replace(/\.ts$/, '.js'));
}

/** The file name for compiling a program. JavaScript with `import` is valid TypeScript. */
export function sourceName(file: string): string {
  return file.replace(/\.js$/, '.ts');
}
