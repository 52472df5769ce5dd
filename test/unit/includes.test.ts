/** The rules of the engine: which room of the C++ sources may include what. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const hca = fileURLToPath(new URL('../../../kernel-bridge/hca/', import.meta.url));
const engine = join(hca, 'engine');

/**
 * The includes that each room may have besides its own and those of the OS. A room is listed below those that may
 * include it.
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
      const room = file.split('/')[0]!;
      const other = target.split('/')[0]!;
      return !target.includes('/') || (other !== room && !allowed[room]!.includes(other));
    })
    .map(({ file, target }) => `${file} includes ${target}`);
}

test('every folder includes only what it may', () => {
  const files = sources(engine);
  assert.equal([...new Set(files.map((file) => file.split('/')[0]!))].sort(), Object.keys(allowed).sort());
  const includes = files.flatMap((file) => includesOf(file, readFileSync(join(engine, file), 'utf8')));
  assert.ok(includes.length > files.length);
  assert.equal(violations(includes), []);
});

/**
 * Headers of one OS: the rooms use them through the headers of `platform/`, which these two implement. `<cerrno>` is allowed, because every
 * C library has it: its names are the results of those headers. No other room reads `errno` itself.
 */
const systemRooms = ['engine/platform/linux/', 'engine/platform/windows/', 'addon/linux/', 'addon/windows/'];
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

/** The first line of each kind that only the rooms of a system may have. */
function systemLines(file: string, text: string): string[] {
  if (systemRooms.some((room) => file.startsWith(room))) return [];
  return SYSTEM.flatMap((pattern) => pattern.exec(text)?.[0].trim() ?? []);
}

test('only the rooms of the platform use the OS', () => {
  const all = ['engine/', 'addon/'].flatMap((part) => sources(join(hca, part)).map((file) => part + file));
  assert.ok(all.some((file) => systemRooms.some((room) => file.startsWith(room))));
  const found = all.filter((file) => systemLines(file, readFileSync(join(hca, file), 'utf8')).length !== 0);
  assert.equal(found, Object.keys(exceptions));
});

/** The addon of real HCAs is Linux's alone, and stands on the engine's rings and tables without the engine. */
const verbsMay =
  /^(verbs\/|addon\/(convert|command_face|backing_store|waker)\.h$|schema\/|base\/|platform\/unique_fd\.h$|objects\/(cq|hca_commands|qp_states)\.h$)/;

test('the addon of real HCAs includes what it may, and nothing else', () => {
  const includes = sources(join(hca, 'verbs')).flatMap((file) =>
    includesOf(`verbs/${file}`, readFileSync(join(hca, 'verbs', file), 'utf8')),
  );
  assert.ok(includes.length > 20);
  assert.equal(
    includes.filter(({ target }) => !verbsMay.test(target)),
    [],
  );
});

test('OS-specific code is found', () => {
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

test('what is allowed goes one way', () => {
  const reaches = (from: string, to: string): boolean =>
    allowed[from]!.some((room) => room === to || reaches(room, to));
  for (const room of Object.keys(allowed)) assert.not.ok(reaches(room, room), `${room} reaches itself`);
});

test('violations of the rules are found', () => {
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

/** Names that stand in more than one room. The implementations of a system have the name of what they implement. */
function sharedNames(files: readonly string[]): string[] {
  const rooms = new Map<string, Set<string>>();
  for (const file of files) {
    const room = dirname(file).replace(/\/(linux|windows)$/, '');
    const name = basename(file).replace(/\.(h|cc)$/, '');
    rooms.set(name, (rooms.get(name) ?? new Set()).add(room));
  }
  return [...rooms].filter(([, folders]) => folders.size > 1).map(([name]) => name);
}

test('a name of a file is that of one room', () => {
  assert.equal(sharedNames(sources(engine)), []);
  const pair = ['platform/event.h', 'platform/linux/event.cc', 'base/event.h'];
  assert.equal(sharedNames(pair), ['event']);
  assert.equal(sharedNames(pair.slice(0, 2)), []);
});

test.run();
