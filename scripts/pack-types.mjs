// Creates the declarations of the package: the exports of its modules and the types that they need, without members marked as internal.
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';

/** Older libraries of the compiler lack `Symbol.dispose`. The reference only takes effect as the first line of a file. */
const DISPOSABLE = '/// <reference lib="esnext.disposable" preserve="true" />';

/** The text of a declaration file without members marked as internal. */
function withoutInternal(text) {
  const found = [];
  const look = (node) => {
    const isMember = ts.isClassElement(node) || ts.isTypeElement(node);
    if (isMember && ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal'))
      found.unshift([node.getFullStart(), node.getEnd()]);
    else ts.forEachChild(node, look);
  };
  look(ts.createSourceFile('types.d.ts', text, ts.ScriptTarget.Latest, true));
  return found.reduce((left, [start, end]) => left.slice(0, start) + left.slice(end), text);
}

/** Writes the declarations of the modules (paths in `dist`) to the folder, each next to its code. */
export async function packTypes(dist, modules, folder) {
  const input = modules.map((path) => [path.replace(/\.js$/, ''), join(dist, path.replace(/js$/, 'd.ts'))]);
  const bundle = await rollup({
    input: Object.fromEntries(input),
    plugins: [{ name: 'without-internal', transform: withoutInternal }, dts()],
    external: /^node:/,
    onwarn({ code, message }) {
      if (code !== 'UNUSED_EXTERNAL_IMPORT') throw new Error(message);
    },
  });
  await bundle.write({
    dir: folder,
    format: 'es',
    banner: DISPOSABLE,
    // A module that adds members to an interface of another one refers to it by name.
    minifyInternalExports: false,
    entryFileNames: '[name].d.ts',
    chunkFileNames: ({ name }) => `types/${name.replace(/\.d$/, '')}.d.ts`,
  });
  // For `import`: the package is CommonJS, and its ES modules export the same.
  for (const path of modules)
    writeFileSync(join(folder, path.replace(/js$/, 'd.mts')), `export * from './${basename(path)}';\n`);
}
