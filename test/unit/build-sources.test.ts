/** `networkdirect build` compiles only the sources that the package was packed with. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const compiled = join(root, 'dist/nd/cli/build.js');

function write(file: string, content: string | Buffer): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

/** An archive of sources whose build writes `word` to the file `built`, and the names of the files in its folder. */
function archiveOf(folder: string, word: string): Buffer {
  const stage = join(folder, `stage-${word}`);
  const program = `
    import { readdirSync, writeFileSync } from 'node:fs';
    const beside = readdirSync(new URL('..', import.meta['url'])).filter((name) => name !== 'scripts');
    writeFileSync(${JSON.stringify(join(folder, 'built'))}, ['${word}', ...beside].join(' '));`;
  write(join(stage, 'scripts/build-native.mjs'), program);
  const { stdout } = spawnSync('tar', ['--sort=name', '--mtime=@0', '-C', stage, '-c', '.']);
  return brotliCompressSync(stdout);
}

interface Package {
  readonly folder: string;
  /** Installs the source package. */
  install(version: string, archive: Buffer): void;
  /** Makes npm download the source package. */
  offer(archive: Buffer): void;
  /** Runs `networkdirect build`. Returns what was compiled, and the output. */
  build(): { built: string; said: string; fetched: string };
}

/** A package of version 1.2.3 as npm installs it, with the digest of these sources. */
function packageOf(own: (folder: string) => Buffer): Package {
  const folder = mkdtempSync(join(tmpdir(), 'nd-build-'));
  const modules = join(folder, 'node_modules');
  const sourcesIntegrity = `sha512-${createHash('sha512').update(own(folder)).digest('base64')}`;
  write(join(folder, 'package.json'), JSON.stringify({ type: 'module', version: '1.2.3', sourcesIntegrity }));
  for (const name of ['build.js', 'command-line.js', 'interrupts.js', 'peer-lost.js']) {
    write(join(folder, 'dist/nd/cli', name), readFileSync(join(dirname(compiled), name)));
  }
  // Commands without RDMA also use these statuses for errors.
  const statuses = pathToFileURL(join(root, 'dist/nd/index.js'));
  write(join(folder, 'dist/nd/index.js'), `export * from ${JSON.stringify(statuses)};`);
  mkdirSync(modules);
  symlinkSync(join(root, 'node_modules/commander'), join(modules, 'commander'));
  const program = join(folder, 'run.js');
  write(
    program,
    `import { buildCommand } from './dist/nd/cli/build.js';
     import { handleInterrupts } from './dist/nd/cli/interrupts.js';
     import { fail } from './dist/nd/cli/peer-lost.js';
     handleInterrupts();
     buildCommand(fail).parse(['node', 'build']);`,
  );
  // The npm that npx runs. It records its requests and returns the offered package.
  write(
    join(folder, 'npm/npm-cli.js'),
    `import { spawn, spawnSync } from 'node:child_process';
     import { appendFileSync, existsSync } from 'node:fs';
     const [, , command, name, , target] = process.argv;
     appendFileSync(${JSON.stringify(join(folder, 'asked'))}, command + ' ' + name);
     if (existsSync(${JSON.stringify(join(folder, 'offer'))}))
       spawnSync('tar', ['-C', ${JSON.stringify(join(folder, 'offer'))}, '-c', '-z', '-f', target + '/networkdirect-source-1.2.3.tgz', 'package']);`,
  );
  const text = (name: string): string =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '';
  return {
    folder,
    install(version, archive) {
      const installed = join(modules, '@networkdirect/source');
      write(join(installed, 'package.json'), JSON.stringify({ name: '@networkdirect/source', version }));
      write(join(installed, 'native.tar.br'), archive);
    },
    offer: (archive) => write(join(folder, 'offer/package/native.tar.br'), archive),
    build() {
      const env = { ...process.env, npm_execpath: join(folder, 'npm/npx-cli.js') };
      const { stderr } = spawnSync(process.execPath, [program], { env, encoding: 'utf8' });
      return { built: text('built'), said: stderr, fetched: text('asked') };
    },
  };
}

const own = (folder: string): Buffer => archiveOf(folder, 'own');
const test = suite<{ made: Package }>('build-sources');
test.before.each((context) => {
  context.made = packageOf(own);
});
test.after.each(({ made }) => rmSync(made.folder, { recursive: true }));

test('the installed sources of this version are compiled', ({ made }) => {
  made.install('1.2.3', own(made.folder));
  assert.equal(made.build(), { built: 'own', said: '', fetched: '' });
});

test('installed sources of another version are not compiled: npm downloads those of this version', ({
  made,
}) => {
  made.install('1.2.4', archiveOf(made.folder, 'newer'));
  made.offer(own(made.folder));
  assert.equal(made.build(), { built: 'own', said: '', fetched: 'pack @networkdirect/source@1.2.3' });
});

test('a tarball left by an earlier run is not compiled', ({ made }) => {
  made.offer(archiveOf(made.folder, 'left'));
  const left = join(made.folder, 'build/fetched');
  mkdirSync(left, { recursive: true });
  spawnSync('tar', ['-C', join(made.folder, 'offer'), '-c', '-z', '-f', join(left, 'a.tgz'), 'package']);
  made.offer(own(made.folder));
  assert.equal(made.build(), { built: 'own', said: '', fetched: 'pack @networkdirect/source@1.2.3' });
});

test('files unpacked by an earlier run are not compiled', ({ made }) => {
  write(join(made.folder, 'build/source/left.cc'), 'int left;');
  made.install('1.2.3', own(made.folder));
  assert.equal(made.build(), { built: 'own', said: '', fetched: '' });
});

for (const [where, put] of [
  ['installed', (made: Package, archive: Buffer) => made.install('1.2.3', archive)],
  ['fetched', (made: Package, archive: Buffer) => made.offer(archive)],
] as const) {
  test(`${where} sources of this version with another digest are refused`, ({ made }) => {
    put(made, archiveOf(made.folder, 'forged'));
    const { built, said } = made.build();
    assert.is(built, '');
    assert.match(
      said,
      /native\.tar\.br of @networkdirect\/source@1\.2\.3 with the digest sha512-.*; got sha512-/,
    );
    assert.not.ok(existsSync(join(made.folder, 'build/fetched')), 'nothing of it is left');
  });
}

test('an empty registry is reported in one sentence', ({ made }) => {
  const { built, said } = made.build();
  assert.equal([built, said], ['', 'nd: npm did not download @networkdirect/source@1.2.3.\n']);
});

test('Ctrl-C ends the compiler and its child processes, and then the command', async ({ made }) => {
  const driver = `
    import { spawn } from 'node:child_process';
    const compiler = "console.log('compiling'); setInterval(() => {}, 1000);";
    spawn(process.execPath, ['-e', compiler], { stdio: 'inherit' });`;
  write(join(made.folder, 'scripts/build-native.mjs'), driver);
  const parameters = [join(made.folder, 'run.js'), 'build'];
  const build = spawn(process.execPath, parameters, { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(build, 'exit');
  await once(build.stdout, 'data');
  build.kill('SIGINT');
  // The output has ended, including that of the compiler.
  assert.is(await text(build.stderr), 'nd build: interrupted\n');
  assert.equal(await exited, [130, null]);
});

test.run();
