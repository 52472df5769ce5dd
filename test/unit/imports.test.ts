/** The imports that each component may have. They are checked in the sources, including type imports. */
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { long } from '../helpers/tiers.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const ownPackage = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly name: string;
  readonly exports: Readonly<Record<string, { readonly types?: string }>>;
};

/** Components, which are the files with this prefix. The first matching entry is a file's component. */
const components = [
  'nd/spi/',
  'nd/net/base/',
  'nd/net/connection/',
  'nd/net/memory/',
  'nd/net/stream/',
  'nd/net/channel/',
  'nd/net/',
  'nd/vendor/',
  'nd/conformance/mutants/',
  'nd/conformance/',
  'nd/cli/sides/',
  'nd/cli/',
  'nd/',
  'winverbs/',
  'kernel-bridge/schema/generated/',
  'kernel-bridge/schema/',
  'kernel-bridge/ioctl/',
  'kernel-bridge/hca/',
  'kernel-bridge/kernel/io-manager/',
  'kernel-bridge/kernel/hca-driver/',
  'kernel-bridge/kernel/cm/',
  'kernel-bridge/kernel/filter/',
  'kernel-bridge/kernel/soft-hca/',
  'kernel-bridge/kernel/verbs-hca/',
  'kernel-bridge/kernel/drivers/',
  'kernel-bridge/kernel/index.ts',
  'kernel-bridge/kernel/',
  'kernel-bridge/uvp/',
  'kernel-bridge/door/soft/',
  'kernel-bridge/door/',
  'kernel-bridge/option-checks/',
  'kernel-bridge/windows/',
  'kernel-bridge/control/',
  'kernel-bridge/',
  'examples/block-device/driver.ts',
  'examples/',
] as const;
type Component = (typeof components)[number];

const ioctl = 'kernel-bridge/ioctl/';
// How errors show values.
const shown = 'kernel-bridge/ioctl/shown.ts';
const hca = 'kernel-bridge/hca/';
const schema = 'kernel-bridge/schema/generated/';
const numbers = 'kernel-bridge/schema/generated/numbers.ts';
const options = 'kernel-bridge/option-checks/option-schemas.ts';
const delivery = 'kernel-bridge/option-checks/options-delivery.ts';
const overlapped = 'kernel-bridge/door/overlapped.ts';
const deviceFile = 'kernel-bridge/door/device-file.ts';
const counters = 'kernel-bridge/control/counters.ts';
const userVerbs = 'kernel-bridge/door/user-verbs.ts';
const tokenTable = 'kernel-bridge/door/token-table.ts';

/** The imports that each component may have besides its own files and Node's own modules: folders, files and packages. */
const allowed: Readonly<Record<Component, readonly string[]>> = {
  // The interfaces are independent and only use shared types of the layer below.
  'nd/spi/': ['winverbs/index.ts', shown],
  // Streams and messages are a client of the SPI like any program. Their hello contains the version.
  'nd/net/base/': ['nd/index.ts', numbers, shown],
  'nd/net/connection/': ['nd/index.ts', numbers, shown, 'nd/net/base/'],
  // Exposed memory has a handle for each channel of a server.
  'nd/net/memory/': ['nd/index.ts', shown, 'nd/net/base/', 'nd/net/connection/', 'nd/net/channel/channel.ts'],
  'nd/net/stream/': ['nd/index.ts', shown, 'nd/net/base/', 'nd/net/connection/'],
  'nd/net/channel/': ['nd/index.ts', shown, 'nd/net/base/', 'nd/net/connection/', 'nd/net/memory/'],
  'nd/net/': ['nd/index.ts', shown, 'nd/net/'],
  'nd/': ['nd/spi/', 'nd/vendor/index.ts', 'winverbs/index.ts', shown],
  // The SPI over a vendor's provider uses the objects of v2 over its own layer below.
  'nd/vendor/': [
    'nd/spi/',
    'nd/core/',
    'nd/v2/',
    'nd/status.ts',
    'winverbs/index.ts',
    // The checks of memory, and which providers the options select: not public.
    'winverbs/memory-region.ts',
    'kernel-bridge/door/windows-kernel.ts',
    'kernel-bridge/windows/nd-provider/index.ts',
  ],
  'winverbs/': [
    // For the results of place().
    numbers,
    ioctl,
    deviceFile,
    // For the name of a device.
    counters,
    overlapped,
    options,
    userVerbs,
    'kernel-bridge/index.ts',
    'kernel-bridge/uvp/index.ts',
  ],
  // Statistics of objects are described next to the data that the HCA provides.
  'kernel-bridge/ioctl/': [schema],
  // The single description of definitions shared by TypeScript and C++. Other components import the files generated from it.
  'kernel-bridge/schema/generated/': ['zod'],
  'kernel-bridge/schema/': [ioctl],
  'kernel-bridge/hca/': [schema],
  'kernel-bridge/kernel/io-manager/': [ioctl, hca],
  'kernel-bridge/kernel/hca-driver/': [
    ioctl,
    hca,
    'kernel-bridge/kernel/io-manager/',
    'kernel-bridge/kernel/cm/service.ts',
  ],
  'kernel-bridge/kernel/cm/': [ioctl, hca, options],
  'kernel-bridge/kernel/filter/': [
    ioctl,
    hca,
    options,
    'kernel-bridge/kernel/io-manager/',
    'kernel-bridge/kernel/hca-driver/',
    'kernel-bridge/kernel/cm/service.ts',
  ],
  'kernel-bridge/kernel/soft-hca/': [
    ioctl,
    hca,
    options,
    'kernel-bridge/kernel/io-manager/',
    'kernel-bridge/kernel/hca-driver/',
    'kernel-bridge/kernel/cm/service.ts',
  ],
  'kernel-bridge/kernel/verbs-hca/': [
    ioctl,
    hca,
    schema,
    'kernel-bridge/kernel/hca-driver/',
    'kernel-bridge/kernel/cm/service.ts',
  ],
  // Drivers that programs load. They are clients of the verbs like the filter, with a provider in the kernel.
  'kernel-bridge/kernel/drivers/': [
    ioctl,
    hca,
    userVerbs,
    'kernel-bridge/uvp/index.ts',
    'kernel-bridge/kernel/io-manager/',
    'kernel-bridge/kernel/hca-driver/',
    'kernel-bridge/kernel/filter/',
  ],
  // Drivers import this module for types and constants.
  'kernel-bridge/kernel/index.ts': [ioctl, hca, schema, userVerbs, 'kernel-bridge/kernel/'],
  'kernel-bridge/kernel/': [ioctl, hca, schema, options, delivery, 'kernel-bridge/kernel/'],
  'kernel-bridge/uvp/': [
    ioctl,
    hca,
    schema,
    userVerbs,
    // A vendor's provider is called like the OS.
    'kernel-bridge/windows/win32.ts',
    'kernel-bridge/windows/library-loader.ts',
    'kernel-bridge/windows/steady-memory.ts',
    'kernel-bridge/windows/memory-pins.ts',
    tokenTable,
  ],
  'kernel-bridge/door/soft/': [ioctl, hca, deviceFile, overlapped, options, delivery, schema, 'zod'],
  'kernel-bridge/windows/': [ioctl, deviceFile, overlapped, tokenTable],
  // The interfaces of both doors, and the choice of the kernel on Windows.
  'kernel-bridge/door/': [
    ioctl,
    options,
    'kernel-bridge/door/soft/index.ts',
    'kernel-bridge/windows/index.ts',
  ],
  'kernel-bridge/option-checks/': [ioctl, schema, 'zod'],
  'kernel-bridge/control/': [
    ioctl,
    schema,
    deviceFile,
    overlapped,
    options,
    'kernel-bridge/door/soft/index.ts',
  ],
  // Only the public module matches this entry.
  'kernel-bridge/': [ioctl, options, 'kernel-bridge/door/', 'kernel-bridge/control/'],
  // The command of the package, which is a program like any other except for the suite that it runs.
  'nd/cli/': [
    'nd/index.ts',
    'nd/net/index.ts',
    'winverbs/index.ts',
    'kernel-bridge/index.ts',
    'nd/cli/sides/',
    'zod',
    'commander',
    'cli-table3',
    'nd/conformance/index.ts',
    'nd/conformance/mutants/index.ts',
  ],
  'examples/': [
    'nd/index.ts',
    'nd/net/index.ts',
    'winverbs/index.ts',
    'kernel-bridge/index.ts',
    'nd/cli/sides/',
  ],
  // This driver runs in the kernel's thread.
  'examples/block-device/driver.ts': ['kernel-bridge/kernel/index.ts', 'examples/block-device/protocol.ts'],
  // Connected sides shared by tools, benchmarks and tests. They use the library like any program.
  'nd/cli/sides/': ['nd/index.ts', 'winverbs/index.ts'],
  // The suite tests any provider, and only uses the interfaces and statuses of the SPI.
  'nd/conformance/': ['nd/index.ts', 'zod', 'cli-table3'],
  'nd/conformance/mutants/': ['nd/index.ts', 'nd/conformance/index.ts', 'cli-table3'],
};

/** Only the soft kernel's entry loads the addon. The rest of the kernel gets the HCA as a parameter and uses its types. */
const addonLoaders = /^kernel-bridge\/(hca\/|uvp\/index\.ts|door\/soft\/|kernel\/start-kernel\.ts)/;

function componentOf(file: string): Component {
  const component = components.find((prefix) => file.startsWith(prefix));
  if (component === undefined) throw new Error(`${file} is in no component`);
  return component;
}

function sources(folders = ['nd', 'winverbs', 'kernel-bridge', 'examples']): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.c?ts$/.test(name) && !name.endsWith('.test.ts'))
      .map((name) => join(folder, name)),
  );
}

/** The sources of the public modules, by their import names. */
const publicModules = new Map(
  Object.entries(ownPackage.exports).flatMap(([path, { types }]) =>
    types === undefined
      ? []
      : [[path.replace('.', ownPackage.name), relative('dist', types).replace(/d\.ts$/, 'ts')] as const],
  ),
);

/** The imports of a source, as written. */
function namesIn(file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'), true, true);
  return importedFiles.map(({ fileName }) => fileName);
}

/** A relative import as a path from the root. */
const pathOf = (file: string, name: string): string =>
  relative('.', normalize(join(dirname(file), name.replace(/\.js$/, '.ts'))));

/** The imports of a source: project files as paths from the root, packages by name. */
const importsOf = (file: string): string[] =>
  namesIn(file).map((name) =>
    name.startsWith('.') ? pathOf(file, name) : (publicModules.get(name) ?? name),
  );

/** Descriptions of imports that break a rule. */
function violations(file: string, imports: readonly string[]): string[] {
  const component = componentOf(file);
  return imports
    .filter((target) => {
      if (target.startsWith('node:')) return !builtinModules.includes(target.slice(5));
      if (components.some((prefix) => target.startsWith(prefix))) {
        if (target === 'kernel-bridge/hca/index.ts' && !addonLoaders.test(file)) return true;
        if (componentOf(target) === component) return false;
      }
      return !allowed[component].some((rule) =>
        rule.endsWith('/') ? target.startsWith(rule) : target === rule,
      );
    })
    .map((target) => `${file} imports ${target}`);
}

test('every component only has permitted imports', () => {
  const files = sources();
  for (const component of components)
    assert.ok(
      files.some((file) => componentOf(file) === component),
      `${component} has sources`,
    );
  const imports = files.map((file) => ({ file, targets: importsOf(file) }));
  assert.ok(imports.some(({ targets }) => targets.length > 5));
  assert.equal(
    imports.flatMap(({ file, targets }) => violations(file, targets)),
    [],
  );
});

test('violations of the rules are detected', () => {
  for (const [file, target] of [
    ['nd/v1/adapter.ts', 'kernel-bridge/ioctl/codes.ts'],
    ['nd/v1/adapter.ts', 'winverbs/device.ts'],
    ['nd/spi/v1.ts', 'nd/v1/adapter.ts'],
    ['nd/net/link.ts', 'nd/v2/adapter.ts'],
    ['nd/net/link.ts', 'winverbs/index.ts'],
    ['nd/v2/adapter.ts', 'nd/net/link.ts'],
    ['winverbs/device.ts', 'kernel-bridge/kernel/kernel.ts'],
    ['winverbs/device.ts', 'kernel-bridge/hca/index.ts'],
    ['winverbs/device.ts', 'kernel-bridge/uvp/queue-pair.ts'],
    ['winverbs/device.ts', 'nd/status.ts'],
    ['kernel-bridge/kernel/filter/call.ts', 'winverbs/interfaces.ts'],
    ['kernel-bridge/kernel/filter/call.ts', 'kernel-bridge/hca/index.ts'],
    ['kernel-bridge/kernel/filter/call.ts', 'kernel-bridge/kernel/cm/connection.ts'],
    ['kernel-bridge/kernel/hca-driver/hca-ports.ts', 'kernel-bridge/kernel/soft-hca/soft-hca-ports.ts'],
    ['kernel-bridge/kernel/cm/mad-layouts.ts', 'kernel-bridge/kernel/filter/call.ts'],
    ['kernel-bridge/uvp/queue-pair.ts', 'kernel-bridge/hca/index.ts'],
    ['kernel-bridge/door/soft/soft-kernel.ts', 'kernel-bridge/kernel/kernel.ts'],
    ['kernel-bridge/hca/soft-hca-binding.ts', 'kernel-bridge/ioctl/status.ts'],
    ['kernel-bridge/ioctl/codes.ts', 'zod'],
    ['kernel-bridge/windows/windows-door.ts', 'kernel-bridge/door/soft/soft-kernel.ts'],
    ['nd/cli/demo.ts', 'winverbs/device.ts'],
    ['nd/cli/sides/v1-side.ts', 'nd/v1/adapter.ts'],
    ['nd/cli/sides/v1-side.ts', 'nd/cli/demo-report.ts'],
    ['nd/v1/adapter.ts', 'nd/cli/sides/v1-side.ts'],
    ['nd/v1/adapter.ts', 'lodash'],
  ] as const) {
    assert.equal(violations(file, [target]), [`${file} imports ${target}`]);
  }
});

long(test, 'the library loads no package but its own when it is imported', () => {
  // Loading zod takes longer than starting the kernel, and only programs with options need it.
  const library = sources().filter((file) =>
    /^(nd\/(?!cli\/|conformance\/)|winverbs|kernel-bridge)/.test(file),
  );
  const loading = library.filter((file) => {
    const text = ts.transpile(readFileSync(join(root, file), 'utf8'), {
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
    });
    return ts
      .preProcessFile(text)
      .importedFiles.some(({ fileName }) => !fileName.startsWith('.') && !fileName.startsWith('node:'));
  });
  assert.equal(loading, []);
});

test('examples, benchmarks and the sides that they share import the library as programs do', () => {
  const programs = sources(['examples', 'bench', 'nd/cli/sides']);
  const modules = new Set(publicModules.values());
  assert.ok(modules.size >= 5);
  const relatively = programs.filter((file) =>
    namesIn(file).some((name) => name.startsWith('.') && modules.has(pathOf(file, name))),
  );
  assert.equal(relatively, []);
});

test('nd --version only loads the parser of command lines', () => {
  // Loading zod and the library would take several times as long as everything else.
  const loaded = new Set<string>();
  const load = (file: string): void => {
    const text = ts.transpile(readFileSync(join(root, file), 'utf8'), {
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
    });
    // Modules loaded later by `import()` do not count.
    for (const statement of ts.createSourceFile(file, text, ts.ScriptTarget.ES2022).statements) {
      const of =
        ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement) ? statement : undefined;
      if (of?.moduleSpecifier === undefined || !ts.isStringLiteral(of.moduleSpecifier)) continue;
      const name = of.moduleSpecifier.text;
      const path = name.startsWith('.') ? pathOf(file, name) : name;
      if (loaded.has(path) || path.startsWith('node:')) continue;
      loaded.add(path);
      if (name.startsWith('.')) load(path);
    }
  };
  load('nd/cli/nd.ts');
  assert.equal([...loaded].sort(), ['commander', 'nd/cli/command-line.ts', 'nd/cli/interrupts.ts']);
});

test('no source evades the type system', () => {
  const found = sources().filter((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return /\bas unknown as\b|@ts-(ignore|expect-error|nocheck)/.test(text);
  });
  assert.equal(found, []);
});

test.run();
