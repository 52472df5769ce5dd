/** The includes that each folder of the C++ sources may have. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const hca = fileURLToPath(new URL('../../../kernel-bridge/hca/', import.meta.url));
const engine = join(hca, 'engine');

/**
 * The includes that each folder may have besides its own and those of the OS. A folder is listed above those that may include it.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  schema: [],
  base: ['schema'],
  platform: ['schema', 'base'],
  progress: ['schema', 'base', 'platform'],
  slots: ['schema', 'base', 'platform'],
  local: ['schema', 'base', 'platform', 'progress', 'slots'],
  udp: ['schema', 'base', 'platform'],
  objects: ['schema', 'base', 'platform', 'progress', 'local'],
  transport: ['schema', 'base', 'platform', 'progress', 'local', 'objects'],
  engine: ['schema', 'base', 'platform', 'progress', 'local', 'objects', 'transport'],
  host: ['schema', 'base', 'platform', 'progress', 'slots', 'local', 'udp', 'engine'],
  process: ['schema', 'base', 'platform', 'progress', 'engine', 'host'],
};

interface Include {
  readonly file: string;
  readonly target: string;
}

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(h|cc)$/.test(name));
}

function includesOf(file: string, text: string): Include[] {
  return [...text.matchAll(/^#include "([^"]+)"/gm)].map(([, target]) => ({ file, target: target! }));
}

/** Descriptions of includes that break a rule. */
function violations(includes: readonly Include[]): string[] {
  return includes
    .filter(({ file, target }) => {
      const folder = file.split('/')[0]!;
      const other = target.split('/')[0]!;
      return !target.includes('/') || (other !== folder && !allowed[folder]!.includes(other));
    })
    .map(({ file, target }) => `${file} includes ${target}`);
}

test('every folder only has permitted includes', () => {
  const files = sources(engine);
  assert.equal([...new Set(files.map((file) => file.split('/')[0]!))].sort(), Object.keys(allowed).sort());
  const includes = files.flatMap((file) => includesOf(file, readFileSync(join(engine, file), 'utf8')));
  assert.ok(includes.length > files.length);
  assert.equal(violations(includes), []);
});

/**
 * Folders with code for one OS. The others use headers of an OS only through the headers of `platform/`, which the platform folders
 * implement. `<cerrno>` is permitted, because every C library has it and the headers of `platform/` return its values. No other folder
 * reads `errno` itself.
 */
const systemFolders = [
  'engine/platform/linux/',
  'engine/platform/windows/',
  'addon/linux/',
  'addon/windows/',
];
const SYSTEM = [
  /^\s*#\s*include <(sys|linux|net|netinet|arpa|asm)\/.*>/m,
  /^\s*#\s*include <((unistd|fcntl|poll|sched|pthread|signal|ifaddrs|dirent|dlfcn|time)\.h|csignal|ctime)>/m,
  /^\s*#\s*include <(windows|winsock2|ws2tcpip|mswsock|iphlpapi)\.h>/m,
  /^\s*#\s*include "platform\/(linux|windows)\/.*"/m,
  /^(?:[^"\n]|"[^"\n]*")*?\berrno\b(?<!\/\/.*)/m,
];
const exceptions: Readonly<Record<string, string>> = {
  'engine/base/carryless.h': 'the auxiliary vector with the features of an ARM CPU',
};

/** The first line of each kind of code that is only permitted in folders for one OS. */
function systemLines(file: string, text: string): string[] {
  if (systemFolders.some((folder) => file.startsWith(folder))) return [];
  return SYSTEM.flatMap((pattern) => pattern.exec(text)?.[0].trim() ?? []);
}

test('only the platform folders use the OS', () => {
  const all = ['engine/', 'addon/'].flatMap((part) => sources(join(hca, part)).map((file) => part + file));
  assert.ok(all.some((file) => systemFolders.some((folder) => file.startsWith(folder))));
  const found = all.filter((file) => systemLines(file, readFileSync(join(hca, file), 'utf8')).length !== 0);
  assert.equal(found, Object.keys(exceptions));
});

/** The addon for real HCAs only exists for Linux. It uses the engine's rings and tables, but not the engine. */
const verbsMay =
  /^(verbs\/|addon\/(convert|command_face|backing_store|waker)\.h$|schema\/|base\/|platform\/unique_fd\.h$|objects\/(cq|hca_commands|qp_states)\.h$)/;

test('the addon for real HCAs only has permitted includes', () => {
  const includes = sources(join(hca, 'verbs')).flatMap((file) =>
    includesOf(`verbs/${file}`, readFileSync(join(hca, 'verbs', file), 'utf8')),
  );
  assert.ok(includes.length > 20);
  assert.equal(
    includes.filter(({ target }) => !verbsMay.test(target)),
    [],
  );
});

test('OS-specific code is detected', () => {
  for (const line of [
    '#include <sys/uio.h>',
    '#include <netinet/in.h>',
    '#  include <poll.h>',
    '#include <csignal>',
    '#include <winsock2.h>',
    '#include "platform/linux/socket_options.h"',
    'if (n < 0) return errno',
    'out.Set("errno", errno',
  ]) {
    const text = `// 0 or an errno.\n#include <cerrno>\n#include <vector>\n#include "platform/os.h"\n${line}\n`;
    for (const file of ['engine/udp/udp_wire.cc', 'engine/platform/os.h', 'addon/door.cc'])
      assert.equal(systemLines(file, text), [line]);
    assert.equal(systemLines('engine/platform/linux/os.cc', text), []);
  }
  assert.equal(
    systemLines('engine/host/host.cc', 'int f();  // 0 or an errno\nout.Set("errno", error);\n'),
    [],
  );
});

test('permitted includes have no cycles', () => {
  const reaches = (from: string, to: string): boolean =>
    allowed[from]!.some((folder) => folder === to || reaches(folder, to));
  for (const folder of Object.keys(allowed))
    assert.not.ok(reaches(folder, folder), `${folder} reaches itself`);
});

test('violations of the rules are detected', () => {
  for (const [file, line] of [
    ['base/mad.h', '#include "platform/unique_fd.h"'],
    ['platform/local_names.cc', '#include "slots/slots.h"'],
    ['transport/qp.h', '#include "engine/engine.h"'],
    ['transport/core.h', '#include "host/host.h"'],
    ['transport/core.h', '#include "udp/udp_wire.h"'],
    ['udp/udp_wire.cc', '#include "local/local_pair.h"'],
    ['host/host.h', '#include "process/hca_context.h"'],
    ['host/host.h', '#include "host_parts.h"'],
  ] as const) {
    const includes = includesOf(file, `#pragma once\n${line}\n`);
    assert.equal(violations(includes), [`${file} includes ${includes[0]!.target}`]);
  }
});

/** File names that occur in more than one folder. Implementations for an OS have the same name as the header that they implement. */
function sharedNames(files: readonly string[]): string[] {
  const places = new Map<string, Set<string>>();
  for (const file of files) {
    const folder = dirname(file).replace(/\/(linux|windows)$/, '');
    const name = basename(file).replace(/\.(h|cc)$/, '');
    places.set(name, (places.get(name) ?? new Set()).add(folder));
  }
  return [...places].filter(([, folders]) => folders.size > 1).map(([name]) => name);
}

test('a file name only occurs in one folder', () => {
  assert.equal(sharedNames(sources(engine)), []);
  const pair = ['platform/event.h', 'platform/linux/event.cc', 'base/event.h'];
  assert.equal(sharedNames(pair), ['event']);
  assert.equal(sharedNames(pair.slice(0, 2)), []);
});

test.run();
