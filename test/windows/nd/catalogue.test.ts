// The catalogue of providers: which entries are listed, their paths, and the environment variable that replaces it.
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

/** Sets the entries of the stand-in's catalogue and reads them with the library. */
function read(entries: Readonly<Record<string, string>>, environment: Record<string, string> = {}) {
  process.env.STANDIN_CATALOGUE = Object.entries(entries)
    .map((entry) => entry.join('='))
    .join(';');
  return readCatalogue(CATALOGUE, environment);
}

test('only NetworkDirect v2 providers are listed', () => {
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

test('several providers are listed in order, each DLL once', () => {
  const found = read({ one: PROVIDER, two: CATALOGUE, three: PROVIDER.toUpperCase() });
  assert.equal(
    found.map(({ protocol, library }) => [protocol, library]),
    [
      ['one', 'standin-nd2.dll'],
      ['two', 'standin-catalogue.dll'],
    ],
  );
});

test('an empty catalogue has no providers', () => {
  assert.equal(read({}), []);
});

test('variables in paths are expanded, and the environment does not change the system folder', () => {
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

test('a path that is not absolute is listed but not loaded', async () => {
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

test('the environment variable replaces the catalogue, and an empty value means none', () => {
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

test('an entry has the version of its file', () => {
  const found = read({}, { [providersVariable]: `${process.execPath};${PROVIDER};C:\\none.dll` });
  assert.equal(
    found.map(({ version }) => version),
    [`${process.versions.node}.0`, '', ''],
  );
});

test("Wine's own catalogue has no provider", () => {
  assert.equal(readCatalogue('ws2_32.dll', {}), []);
});

test('a provider is loaded from a path with non-ASCII letters', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nd-ä ß-'));
  const path = join(folder, 'nd2 ümlaut.dll');
  copyFileSync(PROVIDER, path);
  const [entry] = read({ 'A NIC': path });
  assert.is(entry?.path, path);
  assert.is(loadProvider(entry!).library, 'nd2 ümlaut.dll');
});

test.run();
