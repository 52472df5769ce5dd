// The catalogue of providers: which entries count, their paths, and what the environment names in its place.
import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  loadProvider,
  providersVariable,
  readCatalogue,
} from '../../../kernel-bridge/windows/nd-provider/index.js';
import { Status } from '../../../winverbs/index.js';
import { statusOf } from '../standin.js';
import { CATALOGUE, PROVIDER } from './nd2-standin.js';

/** What the stand-in's catalogue has, and what the library reads of it. */
function read(entries: Readonly<Record<string, string>>, environment: Record<string, string> = {}) {
  process.env.STANDIN_CATALOGUE = Object.entries(entries)
    .map((entry) => entry.join('='))
    .join(';');
  return readCatalogue(CATALOGUE, environment);
}

test('the providers of NetworkDirect v2, and no other entries', () => {
  const found = read({
    datagrams: PROVIDER,
    visible: PROVIDER,
    ordinary: PROVIDER,
    'version 1': PROVIDER,
    'A NIC': PROVIDER,
    stream: PROVIDER,
    tcp: PROVIDER,
    several: PROVIDER,
  });
  assert.equal(
    found.map(({ protocol, path, library, id, refused }) => ({ protocol, path, library, id, refused })),
    [
      {
        protocol: 'A NIC',
        path: PROVIDER,
        library: 'standin-nd2.dll',
        id: '5744414E-0001-0002-0304-050607080904',
        refused: undefined,
      },
    ],
  );
});

test('several providers, in order, each DLL once', () => {
  const found = read({ one: PROVIDER, two: CATALOGUE, three: PROVIDER.toUpperCase() });
  assert.equal(
    found.map(({ protocol, library }) => [protocol, library]),
    [
      ['one', 'standin-nd2.dll'],
      ['two', 'standin-catalogue.dll'],
    ],
  );
});

test('an empty catalogue', () => {
  assert.equal(read({}), []);
});

test("paths with the system's variables, which the environment does not change, and with others", () => {
  process.env.ND_TEST_FOLDER = 'C:\\windows';
  process.env.SystemRoot = 'C:\\elsewhere';
  const found = read({
    one: '%SystemRoot%\\system32\\standin-nd2.dll',
    two: '%ND_TEST_FOLDER%\\system32\\standin-catalogue.dll',
  });
  assert.equal(
    found.map(({ path, refused }) => [path.toLowerCase(), refused]),
    [
      [PROVIDER.toLowerCase(), undefined],
      [CATALOGUE.toLowerCase(), undefined],
    ],
  );
});

test('a path that is not absolute is listed, and not loaded', async () => {
  const paths = [
    'standin-nd2.dll',
    '.\\standin-nd2.dll',
    '\\windows\\standin-nd2.dll',
    'C:standin-nd2.dll',
    '%NOTHING%\\a.dll',
  ];
  const found = read(Object.fromEntries(paths.map((path, i) => [`p${i}`, path])));
  assert.is(found.length > 0, true);
  for (const entry of found) {
    assert.match(entry.refused ?? '', /`path` of a provider must be absolute.*got '/);
    assert.is(await statusOf(() => loadProvider(entry)), Status.NOT_SUPPORTED, entry.path);
  }
});

test('the environment names providers in place of the catalogue; empty: none', () => {
  const catalogue = { 'A NIC': CATALOGUE };
  const named = read(catalogue, { [providersVariable]: ` ${PROVIDER} ;C:\\none.dll;` });
  assert.equal(
    named.map(({ path, protocol }) => [path, protocol]),
    [
      [PROVIDER, ''],
      ['C:\\none.dll', ''],
    ],
  );
  assert.equal(read(catalogue, { [providersVariable]: '' }), []);
});

test("Wine's own catalogue has no provider", () => {
  assert.equal(readCatalogue('ws2_32.dll', {}), []);
});

test('a provider of the catalogue is loaded from its path, with other letters in it, too', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nd-ä ß-'));
  const path = join(folder, 'nd2 ümlaut.dll');
  copyFileSync(PROVIDER, path);
  const [entry] = read({ 'A NIC': path });
  assert.is(entry?.path, path);
  assert.is(loadProvider(entry!).library, 'nd2 ümlaut.dll');
});

test.run();
