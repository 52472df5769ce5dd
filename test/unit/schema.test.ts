/** Definitions shared by TypeScript and C++ are generated from one description, and the generated files are committed. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { SLOTS } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { Status, statusText } from '../../kernel-bridge/ioctl/status.js';
import { root } from '../helpers/root.js';

const { generatedFiles, differing } = (await import(
  pathToFileURL(join(root, 'scripts/generate-schema.mjs')).href
)) as {
  generatedFiles(): Promise<Record<string, string>>;
  differing(files: Record<string, string>, folder?: string): string[];
};
const files = await generatedFiles();

test('the generated files match the schema', () => {
  assert.ok(Object.keys(files).length >= 4);
  assert.equal(differing(files), [], 'npm run schema writes them');
});

test('a generated file that was edited or is missing is detected', () => {
  const folder = mkdtempSync(join(tmpdir(), 'schema-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  assert.equal(differing(files, folder), []);
  const [edited, missing] = Object.keys(files) as [string, string];
  writeFileSync(join(folder, edited), `${files[edited]}\n`);
  rmSync(join(folder, missing));
  assert.equal(differing(files, folder), [edited, missing]);
  rmSync(folder, { recursive: true });
});

test('JavaScript memory is little-endian, as the layout of the rings requires', () => {
  assert.is(new Uint8Array(new Uint32Array([1]).buffer)[0], 1);
});

test('the text of TOO_MANY_ADDRESSES contains the number of slots', () => {
  assert.match(statusText(Status.TOO_MANY_ADDRESSES), `${SLOTS} processes of this user`);
});

test.run();
