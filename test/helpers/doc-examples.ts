/** The examples of docstrings, as programs that can be compiled. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import type { GuideProgram } from './guides.js';
import { root } from './root.js';

/** An `@example` of a docstring. */
export interface DocExample {
  /** File and line of the declaration to which it belongs. */
  readonly at: string;
  /** The name of that declaration. */
  readonly name: string;
  readonly source: string;
  /** The module that contains the declaration. */
  readonly module: string;
  readonly version1: boolean;
}

/** Modules of the package by source folder; the first match applies. */
const modules = [
  ['nd/net/', 'networkdirect/net', 'nd/net/index.ts'],
  ['nd/', 'networkdirect', 'nd/index.ts'],
  ['winverbs/', 'networkdirect/winverbs', 'winverbs/index.ts'],
  ['kernel-bridge/kernel/', 'networkdirect/kernel', 'kernel-bridge/kernel/index.ts'],
  ['kernel-bridge/', 'networkdirect/kernel-bridge', 'kernel-bridge/index.ts'],
] as const;

/** Objects that an example may use without creating them, with their types. */
const common = { context: 'unknown', message: 'Buffer' };
const given: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'networkdirect/net': { channel: 'Channel', socket: 'Socket', server: 'Server' },
  networkdirect: {
    ...{
      adapter: 'IND2Adapter',
      queuePair: 'IND2QueuePair',
      connector: 'IND2Connector',
      listener: 'IND2Listener',
    },
    ...{ region: 'IND2MemoryRegion', window: 'IND2MemoryWindow', remote: 'Nd2RemoteMemory', sgl: 'Nd2Sge[]' },
    ...{ queue: 'IND2CompletionQueue', inbound: 'IND2CompletionQueue', outbound: 'IND2CompletionQueue' },
    file: 'NdOverlappedFile',
  },
  'networkdirect 1': {
    ...{ adapter: 'INDAdapter', endpoint: 'INDEndpoint', connector: 'INDConnector', listener: 'INDListen' },
    ...{ memory: 'NdMemoryHandle', queue: 'INDCompletionQueue' },
  },
  'networkdirect/winverbs': {
    ...{ provider: 'IWVProvider', device: 'IWVDevice', pd: 'IWVProtectionDomain', cq: 'IWVCompletionQueue' },
    ...{ qp: 'IWVConnectQueuePair', datagrams: 'IWVDatagramQueuePair', endpoint: 'IWVConnectEndpoint' },
    ...{
      region: 'WvMemoryRegion',
      remote: 'RemoteMemory',
      sgl: 'WvSge[]',
      guid: 'bigint',
      peerQpn: 'number',
    },
    MyVerbs: 'new () => UserVerbs',
  },
  'networkdirect/kernel-bridge': { guid: 'bigint', request: 'Overlapped<void>', poll: '() => void' },
  'networkdirect/kernel': {},
};

/** Names of Node.js that examples use without importing them. */
const ofNode: Readonly<Record<string, string>> = {
  pipeline: 'node:stream/promises',
  createReadStream: 'node:fs',
};

function examplesIn(file: string, text: string): DocExample[] {
  const module = modules.find(([folder]) => file.startsWith(folder))![1];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: DocExample[] = [];
  const visit = (node: ts.Node): void => {
    for (const doc of ts.getJSDocCommentsAndTags(node)) {
      if (!ts.isJSDoc(doc) || doc.parent !== node) continue;
      for (const tag of doc.tags ?? []) {
        if (tag.tagName.text !== 'example') continue;
        const body = (ts.getTextOfJSDocComment(tag.comment) ?? '').replace(/^```\w*$/gm, '').trim();
        const { line } = source.getLineAndCharacterOfPosition(tag.getStart());
        const name = ts.isVariableStatement(node)
          ? node.declarationList.declarations[0]!.name
          : (node as ts.NamedDeclaration).name;
        found.push({
          at: `${file}:${line + 1}`,
          name: name?.getText() ?? '',
          source: body,
          module,
          version1: /\/v1/.test(file),
        });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** All examples of the sources except those of the command, whose modules programs cannot import. */
export function readExamples(): DocExample[] {
  return ['nd', 'winverbs', 'kernel-bridge'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('cli/'))
      .flatMap((name) => examplesIn(`${folder}/${name}`, readFileSync(join(root, folder, name), 'utf8'))),
  );
}

/** The names that a module exports. */
const exported = new Map<string, ReadonlySet<string>>();
function exportsOf(module: string): ReadonlySet<string> {
  const known = exported.get(module);
  if (known) return known;
  const entry = join(root, modules.find(([, name]) => name === module)![2]);
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  const program = ts.createProgram([entry], options);
  const checker = program.getTypeChecker();
  const symbol = checker.getSymbolAtLocation(program.getSourceFile(entry)!)!;
  const names = new Set(checker.getExportsOfModule(symbol).map(({ name }) => name));
  exported.set(module, names);
  return names;
}

/** An example as a program. Names of its module are imported, and objects that it does not create are declared. */
export function programOf(example: DocExample, index: number): GuideProgram {
  const { module, source, version1, at } = example;
  const names = exportsOf(module);
  const variables = {
    ...common,
    ...given[version1 && module === 'networkdirect' ? 'networkdirect 1' : module],
  };
  const words = new Set(source.match(/[A-Za-z_$][\w$]*/g));
  // The example's own imports remain before the block in which it may redeclare names.
  const own = source.match(/^import .*$/gm) ?? [];
  const rest = source.replace(/^import .*$/gm, '');
  const used = Object.entries(variables).filter(([name]) => words.has(name));
  const wanted = [...names].filter(
    (name) => words.has(name) || used.some(([, type]) => type.match(/[A-Za-z]\w*/g)?.includes(name)),
  );
  const imported = wanted.filter((name) => !own.some((line) => new RegExp(`\\b${name}\\b`).test(line)));
  const lines = [
    `// ${at}`,
    ...own,
    ...(imported.length > 0 ? [`import { ${imported.join(', ')} } from '${module}';`] : []),
    ...Object.entries(ofNode).flatMap(([name, from]) =>
      words.has(name) ? [`import { ${name} } from '${from}';`] : [],
    ),
    ...used.map(([name, type]) => `declare const ${name}: ${type};`),
    ...(/^export /m.test(rest) ? [rest] : ['{', rest, '}']),
    'export {};',
  ];
  return { page: at, file: `example-${index}.ts`, source: `${lines.join('\n')}\n` };
}
