// docs/internals/local-link.md lists each kind of entry on the local link, and the sizes at which the paths change.
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';

const root = new URL('../../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

const source = read('kernel-bridge/hca/engine/local/local_pair.h');
const [, table = ''] = read('docs/internals/local-link.md').split('\n## Paths of payload\n');
const section = table.split('\n## ')[0]!;

/** A constant of the source: a number, possibly shifted to the left. */
function constantOf(name: string): number {
  const [, value, shift = '0'] = new RegExp(`\\b${name} =\\s+(\\d+)u?(?: << (\\d+))?;`).exec(source)!;
  return Number(value) << Number(shift);
}

test('the table lists each kind of entry and no others', () => {
  const [, body = ''] = /enum class LocalKind : uint8_t \{([^}]*)\}/.exec(source)!;
  const kinds = [...body.matchAll(/\b(k[A-Z]\w*) =/g)].map(([, kind]) => kind!);
  assert.ok(kinds.length > 3);
  const listed = new Set([...section.matchAll(/`(k[A-Z]\w*)`/g)].map(([, kind]) => kind!));
  assert.equal([...listed].sort(), [...kinds].sort());
});

test('the sizes at which the paths change are those of the code', () => {
  const bytes = (value: number): string => value.toLocaleString('en-US');
  for (const what of [
    `from ${bytes(constantOf('kReferenceFrom'))} bytes`,
    `up to ${bytes(constantOf('kMtu'))} bytes`,
  ])
    assert.ok(section.includes(what), what);
});

test.run();
