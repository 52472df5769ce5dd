/** The rules of the engine: which room of the C++ sources may include what. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const engine = fileURLToPath(new URL('../../../kernel-bridge/hca/engine/', import.meta.url));

/**
 * The includes that each room may have besides itself and the system's headers. A room is listed below those that may
 * include it.
 */
const allowed: Readonly<Record<string, readonly string[]>> = {
  base: [],
  platform: ['base'],
  slots: ['base', 'platform'],
  local: ['base', 'platform', 'slots'],
  udp: ['base', 'platform'],
  objects: ['base', 'platform', 'local'],
  transport: ['base', 'platform', 'local', 'objects'],
  engine: ['base', 'platform', 'objects', 'transport'],
  host: ['base', 'platform', 'slots', 'local', 'udp', 'engine'],
  process: ['base', 'platform', 'engine', 'host'],
};
const MOST_FILES = 25;

interface Include {
  readonly file: string;
  readonly target: string;
}

function sources(): string[] {
  return readdirSync(engine, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(h|cc)$/.test(name));
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

test('every room includes what it may, and nothing else', () => {
  const files = sources();
  assert.equal([...new Set(files.map((file) => file.split('/')[0]!))].sort(), Object.keys(allowed).sort());
  const includes = files.flatMap((file) => includesOf(file, readFileSync(join(engine, file), 'utf8')));
  assert.ok(includes.length > files.length);
  assert.equal(violations(includes), []);
});

/** Headers of one system only. Rooms below `slots` are the same on all systems and use `platform/`. */
const SYSTEM_HEADER =
  /^#include <(sys|linux|net|netinet|arpa)\/|^#include <(unistd|fcntl|poll|sched|pthread|signal|ifaddrs|dirent)\.h>/m;
const portable = ['base/', 'objects/', 'transport/', 'engine/'];

test('the transport knows no system', () => {
  const found = sources()
    .filter((file) => portable.some((room) => file.startsWith(room)))
    .filter((file) => SYSTEM_HEADER.test(readFileSync(join(engine, file), 'utf8')));
  // The only one: the auxiliary vector with the abilities of an ARM processor.
  assert.equal(found, ['base/carryless.h']);
  assert.ok(SYSTEM_HEADER.test('#pragma once\n#include <sys/uio.h>\n'));
});

test('what is allowed goes one way', () => {
  const reaches = (from: string, to: string): boolean =>
    allowed[from]!.some((room) => room === to || reaches(room, to));
  for (const room of Object.keys(allowed)) assert.not.ok(reaches(room, room), `${room} reaches itself`);
});

test('what the rules are against is found', () => {
  for (const [file, line] of [
    ['base/mad.h', '#include "platform/unique_fd.h"'],
    ['platform/local_names.cc', '#include "slots/slots.h"'],
    ['transport/qp.h', '#include "engine/engine.h"'],
    ['transport/core.h', '#include "host/host.h"'],
    ['transport/core.h', '#include "udp/udp_wire.h"'],
    ['udp/udp_wire.cc', '#include "local/local_pair.h"'],
    ['host/host.h', '#include "process/process.h"'],
    ['host/host.h', '#include "parts.h"'],
  ] as const) {
    const includes = includesOf(file, `#pragma once\n${line}\n`);
    assert.equal(violations(includes), [`${file} includes ${includes[0]!.target}`]);
  }
});

test('a room has no more files than a person can look over', () => {
  const folders = sources().map((file) => dirname(file));
  for (const folder of new Set(folders)) {
    const { length } = folders.filter((other) => other === folder);
    assert.ok(length <= MOST_FILES, `${folder} has ${length} files`);
  }
});

test.run();
