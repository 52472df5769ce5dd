// Compares the layouts of a provider's structures with those of uvp/uvp-types.h according to the C compilers for 32-bit and 64-bit Windows.
// Runs on Linux: the numbers are read from the compilers' assembly, so that no program must run.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Fields, Struct } from '../../kernel-bridge/ioctl/layout.js';
import { type PointerBytes, placedFields } from '../../kernel-bridge/uvp/vendor/c-layout.js';
import { uvpLayouts } from '../../kernel-bridge/uvp/vendor/uvp-layouts.js';

const header = fileURLToPath(new URL('../../../test/windows/uvp/uvp-types.h', import.meta.url));
const compilers: Readonly<Record<PointerBytes, string>> = {
  4: 'i686-w64-mingw32-gcc',
  8: 'x86_64-w64-mingw32-gcc',
};

interface Expected {
  readonly what: string;
  readonly expression: string;
  readonly value: number;
}

function expected(structure: Struct<Fields>): Expected[] {
  const { name, size } = structure;
  return [
    { what: `sizeof ${name}`, expression: `sizeof(${name})`, value: size },
    ...placedFields(structure).flatMap(({ path, offset, size: bytes }) => [
      { what: `${name}.${path}`, expression: `offsetof(${name}, ${path})`, value: offset },
      { what: `sizeof ${name}.${path}`, expression: `sizeof(((${name} *)0)->${path})`, value: bytes },
    ]),
  ];
}

/** Returns the values of constant expressions from the compiler's data section. */
function compiled(compiler: string, expressions: readonly string[]): number[] {
  // No value is 0, because the assembly may abbreviate zeros.
  const values = expressions.map((expression) => `1 + (unsigned)${expression}`).join(',\n  ');
  const source = `#include <stddef.h>\n#include "${header}"\nconst unsigned values[] = {\n  ${values}};\n`;
  const { status, stdout, stderr } = spawnSync(compiler, ['-std=c11', '-S', '-o', '-', '-x', 'c', '-'], {
    input: source,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${compiler}: ${stderr}`);
  return [...stdout.matchAll(/^\s*\.long\s+(\d+)/gm)].map(([, value]) => Number(value) - 1);
}

let wrong = 0;
for (const pointerBytes of [4, 8] as const) {
  const all = Object.values(uvpLayouts(pointerBytes)).flatMap((structure) =>
    expected(structure as unknown as Struct<Fields>),
  );
  const values = compiled(
    compilers[pointerBytes],
    all.map(({ expression }) => expression),
  );
  if (values.length !== all.length)
    throw new Error(`The compiler must emit ${all.length} values; got ${values.length}.`);
  for (const [i, { what, value }] of all.entries()) {
    if (values[i] === value) continue;
    wrong++;
    console.log(`${8 * pointerBytes} bits: ${what} is ${values[i]} in C, ${value} here`);
  }
  console.log(
    `${8 * pointerBytes} bits: ${all.length} offsets and sizes compared with ${compilers[pointerBytes]}`,
  );
}
process.exitCode = wrong === 0 ? 0 : 1;
