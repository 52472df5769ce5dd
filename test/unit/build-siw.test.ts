/** Builds siw for the guests of test:rdma. If that fails, the script reports the reason in one sentence, which the skipped cases print. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const script = fileURLToPath(new URL('../../../test/interop/rig/build-siw.sh', import.meta.url));

/** Replacements for the commands that the script calls: a package of 6.1.9-1 whose build ends as the case specifies. */
const working = {
  'dpkg-deb': `case "$1 $3" in '-f Package') echo linux-image-6.1.0-9-amd64;; '-f Version') echo 6.1.9-1;;
    '-f Depends') echo 'linux-headers-6.1.0-9-common (= 6.1.9-1)';;
    *) mkdir -p usr/src/linux-headers-6.1.0-9-amd64 siw; : > usr/src/linux-headers-6.1.0-9-amd64/Makefile; : > usr/src/linux-source-6.1.tar.xz;; esac`,
  'apt-get': ': > "$3.deb"',
  tar: 'exit 0',
  gcc: 'exit 0',
  xz: 'exit 0',
  make: 'echo module > siw/siw.ko',
  strip: 'exit 0',
};

const it = suite<{ folder: string }>('build-siw');
it.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'build-siw-'));
});
it.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

function build(folder: string, broken: Partial<typeof working>) {
  const bin = join(folder, 'bin');
  const cache = join(folder, 'cache');
  spawnSync('mkdir', ['-p', bin, cache]);
  for (const [name, body] of Object.entries({ ...working, ...broken }))
    writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const { status, stdout, stderr } = spawnSync('bash', [script, 'kernel.deb', cache], {
    env,
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { status, stdout, stderr, left: readdirSync(cache) };
}

it('prints the path of the module, which it keeps', ({ folder }) => {
  const { status, stdout } = build(folder, {});
  assert.is(status, 0);
  assert.ok(existsSync(stdout.trim()));
  assert.is(build(folder, { make: 'exit 1' }).status, 0);
});

it('reports the compiler’s error, and leaves nothing behind', ({ folder }) => {
  const { status, stderr, left } = build(folder, {
    make: 'echo "siw_cm.c:7: error: no such field" >&2; exit 2',
  });
  assert.is(status, 1);
  assert.is(stderr, 'build-siw: siw does not build: siw_cm.c:7: error: no such field\n');
  assert.equal(left, []);
});

it('reports what cannot be downloaded', ({ folder }) => {
  const { status, stderr } = build(folder, { 'apt-get': 'echo "E: Unable to locate package" >&2; exit 100' });
  assert.is(status, 1);
  assert.is(
    stderr,
    'build-siw: cannot download linux-headers-6.1.0-9-amd64 6.1.9-1: E: Unable to locate package\n',
  );
});

it.run();
