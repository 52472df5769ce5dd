/**
 * docs/internals/bounds.md lists every frame, message, packet and IOCTL, with the limit of the resources that a peer can make a process
 * keep, and with tests that exist.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import * as codes from '../../kernel-bridge/ioctl/codes.js';
import { TIMEWAIT_LIMIT } from '../../kernel-bridge/kernel/cm/connection-table.js';
import { ListenerLimits } from '../../kernel-bridge/kernel/cm/listener-table.js';
import { counterNames } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { SIDR_ANSWER_LIMIT } from '../../kernel-bridge/kernel/cm/sidr-manager.js';
import { MOST_DRIVERS } from '../../kernel-bridge/kernel/drivers/driver-host.js';
import { GROUPS_MOST } from '../../kernel-bridge/kernel/filter/datagram-endpoint.js';
import { MOST_FILES } from '../../kernel-bridge/kernel/io-manager/io-manager.js';
import { Frame, forms, IN_RING, Kind, LARGE, MORE, Notice } from '../../nd/net/connection/frames.js';
import { attacks } from '../attack/attacks.js';

const root = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/internals/bounds.md', root), 'utf8');

interface Row {
  readonly what: string;
  readonly by: string;
  readonly bound: string;
  readonly test: string;
}

/** The rows of the table below a heading. */
function rowsOf(heading: string): Row[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const lines = section.split('\n## ')[0]!.split('\n');
  const rows = lines.filter((line) => line.startsWith('| ') && !line.startsWith('| What |'));
  return rows.map((line) => {
    const cells = line.split('|').map((cell) => cell.trim());
    assert.is(cells.length, 6, line);
    const [, what, by, bound, name] = cells as [string, string, string, string, string, string];
    return { what, by, bound, test: name };
  });
}

const rows = rowsOf('Bounds');
const named = (word: string): boolean => rows.some(({ by }) => new RegExp(`\\b${word}\\b`).test(by));

test('each frame type has a row', () => {
  assert.ok(rows.length > 0);
  for (const name of Object.keys(Frame)) assert.ok(named(name), `${name} has no row`);
});

test('each flag has a row with each frame type that may have it, and so has each notice of rings', () => {
  const withFlag = (name: string, flag: string): boolean =>
    rows.some(({ by }) => by.includes(`${name} with ${flag}`));
  for (const [name, type] of Object.entries(Frame))
    for (const [flag, value] of Object.entries({ LARGE, MORE }))
      if (((forms[Kind.CHANNEL].get(type)?.flags ?? 0) & value) !== 0)
        assert.ok(withFlag(name, flag), `${name} with ${flag} has no row`);
  assert.ok(withFlag('DATA', 'IN_RING'));
  for (const notice of Object.keys(Notice)) assert.ok(named(notice), `${notice} has no row`);
  // A new flag also needs a row.
  assert.equal([LARGE, IN_RING, MORE], [1, 2, 4]);
});

test('each row has a limit, and a test that exists', () => {
  const files = ['unit', 'integration', 'conformance', 'fuzz', 'native'].flatMap((folder) =>
    readdirSync(new URL(`test/${folder}/`, root), { recursive: true }).map(String),
  );
  const known = new Set([
    ...files.map((file) => file.replace(/^.*\//, '').replace(/(\.test)?\.\w+$/, '')),
    ...attacks.map(({ name }) => name),
  ]);
  for (const { what, bound, test: cell } of rows) {
    assert.ok(what.length > 0 && bound.length > 0, what);
    const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
    assert.ok(names.length > 0, `${what}: no test`);
    for (const name of names) assert.ok(known.has(name), `${what}: the test ${name} does not exist`);
  }
});

/** The names in rows of this kind. */
function namesOf(kind: RegExp): Set<string> {
  const of = rows.filter(({ what }) => kind.test(what));
  return new Set(of.flatMap(({ what }) => [...what.matchAll(/`(\w+)`/g)].map(([, name]) => name!)));
}

function complete(kind: RegExp, names: readonly string[]): void {
  assert.ok(names.length > 0);
  assert.equal([...namesOf(kind)].sort(), [...new Set(names)].sort());
}

/** The enumerators of a C++ enumeration. */
function enumerators(file: string, name: string): string[] {
  const source = readFileSync(new URL(file, root), 'utf8');
  const [, body = ''] = new RegExp(`enum (?:class )?${name} : \\w+ \\{([^}]*)\\}`).exec(source) ?? [];
  return [...body.replace(/\/\/.*$/gm, '').matchAll(/\bk\w+/g)].map(([found]) => found);
}

test('each message of connection management has a row', () => {
  complete(/^MAD /, Object.keys(counterNames('received')));
});

test('each frame of the local sockets has a row', () => {
  complete(/^frame\b/, enumerators('kernel-bridge/hca/engine/slots/frame.h', 'FrameKind'));
});

test('each kind of packet has a row', () => {
  /** Opcodes by their names in the rows. */
  const kinds: Readonly<Record<string, string>> = {
    ...{ kOpSendOnly: 'Send', kOpWriteOnly: 'Write', kOpReadRequest: 'Read', kOpReadFirst: 'ReadResponse' },
    ...{ kOpReadMiddle: 'ReadResponse', kOpReadLast: 'ReadResponse', kOpReadOnly: 'ReadResponse' },
    ...{ kOpAcknowledge: 'Acknowledge', kOpAtomicAcknowledge: 'AtomicAcknowledge', kOpCompareSwap: 'Atomic' },
    ...{ kOpFetchAdd: 'Atomic', kUcOpcodes: 'Send', kOpUdSendOnly: 'Datagram' },
    ...{ kOpUdSendOnlyImmediate: 'Datagram', kOpCnp: 'CongestionNotification', kOpFragment: 'Fragment' },
  };
  const opcodes = enumerators('kernel-bridge/hca/engine/base/packet_headers.h', 'Opcode');
  const missing = opcodes.filter((name) => kinds[name] === undefined);
  assert.equal(missing, [], 'opcodes without a kind');
  const named = namesOf(/^packet /);
  named.delete('longWindowBytes');
  assert.equal([...named].sort(), [...new Set(opcodes.map((name) => kinds[name]!))].sort());
});

test('each IOCTL has a row, and those that stay pending are among the outstanding ones', () => {
  const tables = [
    ...[codes.ioctlTable, codes.hcaFileTable, codes.ibatTable, codes.countersTable],
    ...[codes.faultsTable, codes.driversTable, codes.settingsTable],
  ].flat();
  complete(
    /^IOCTL/,
    tables.map(({ name }) => name),
  );
  const outstanding = namesOf(/^IOCTLs that are outstanding/);
  for (const { name, pends } of tables) if (pends) assert.ok(outstanding.has(name), name);
});

test('numbers in the table match the code', () => {
  const bounds = (what: RegExp): string => {
    const row = rows.find((one) => what.test(one.what));
    assert.ok(row, String(what));
    return row!.bound;
  };
  for (const [what, ...numbers] of [
    [/^MAD `REQ`: a request/, ListenerLimits.perListener, ListenerLimits.total],
    [/^MAD `SIDR_REQ`: a lookup/, ListenerLimits.perListener, ListenerLimits.total],
    [/^MAD `SIDR_REQ`: a stored/, SIDR_ANSWER_LIMIT],
    [/^MAD `DREQ`/, TIMEWAIT_LIMIT],
    [/^MAD `REJ`/, TIMEWAIT_LIMIT],
    [/^IOCTL `EP_REJECT`/, TIMEWAIT_LIMIT],
    [/^IOCTL `QP_ATTACH`/, GROUPS_MOST],
    [/^IOCTL `LOAD`/, MOST_DRIVERS],
    [/^open files/, MOST_FILES],
  ] as const)
    for (const number of numbers)
      assert.match(bounds(what), new RegExp(`\\b${number.toLocaleString('en')}\\b`), String(what));
});

test.run();
