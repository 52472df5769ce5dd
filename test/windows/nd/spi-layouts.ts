// Compares the library's slots, IIDs and structures of the NetworkDirect SPI with what a C++ compiler for Windows makes of a header of it:
// of provider/nd2-spi.h, which was written by hand, and of Microsoft's ndspi.h in the folder that ND_MICROSOFT_HEADERS names, if it names
// one. Runs on Linux: the bytes of a compiled object contain everything, so nothing has to be executed.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import {
  ADAPTER_INFO_BYTES,
  decodeAdapterInfo,
  ResultWord,
  SgeWord,
} from '../../../kernel-bridge/windows/nd-provider/index.js';
import { guidText, interfaces } from '../../../kernel-bridge/windows/nd-provider/slots.js';

interface Header {
  readonly name: string;
  readonly folder: string;
  readonly includes: string;
  /** The expression of an interface's IID. */
  iid(name: string): string;
}

const own: Header = {
  name: 'nd2-spi.h',
  folder: fileURLToPath(new URL('../../../../test/windows/nd/provider', import.meta.url)),
  includes: '#include "nd2-spi.h"',
  iid: (name) => `nd2::IID_${name.slice('IND2'.length)}`,
};
const microsofts: Header | undefined =
  process.env.ND_MICROSOFT_HEADERS === undefined
    ? undefined
    : {
        name: "Microsoft's ndspi.h",
        folder: process.env.ND_MICROSOFT_HEADERS,
        // Microsoft's header uses annotations of another compiler, and includes a generated header.
        includes: [
          '#include <winsock2.h>',
          '#include <ws2def.h>',
          '#include <windows.h>',
          '#include <initguid.h>',
          ...['__in', '__out', '__inout', '__in_opt', '__out_opt', '__inout_opt', '__deref_out'].map(
            (annotation) => `#undef ${annotation}\n#define ${annotation}`,
          ),
          ...['__in_bcount', '__in_ecount', '__inout_bcount', '__out_bcount', '__out_ecount'].flatMap(
            (annotation) =>
              ['', '_opt', '_part', '_part_opt', '_full_opt'].map(
                (end) => `#define ${annotation}${end}(...)`,
              ),
          ),
          '#include "ndspi.h"',
        ].join('\n'),
        iid: (name) => `IID_${name}`,
      };

/** Distinct values for the fields of ND2_ADAPTER_INFO. */
const infoFields = Array.from({ length: 22 }, (_, i) => 0x101 + i);
const infoNames = [
  ...['infoVersion', 'vendorId', 'deviceId', 'adapterId', 'maxRegistrationSize', 'maxWindowSize'],
  ...['maxInitiatorSge', 'maxReceiveSge', 'maxReadSge', 'maxTransferLength', 'maxInlineDataSize'],
  ...['maxInboundReadLimit', 'maxOutboundReadLimit', 'maxReceiveQueueDepth', 'maxInitiatorQueueDepth'],
  ...['maxSharedReceiveQueueDepth', 'maxCompletionQueueDepth', 'inlineRequestThreshold'],
  ...['largeRequestThreshold', 'maxCallerData', 'maxCalleeData', 'adapterFlags'],
] as const;

const methods = Object.entries(interfaces)
  .filter(([name]) => name.startsWith('IND2'))
  .flatMap(([name, { slots }]) =>
    Object.entries(slots as Record<string, readonly [number]>).map(([method, [slot]]) => ({
      name,
      method,
      slot,
    })),
  );
const names = Object.keys(interfaces).filter((name) =>
  name.startsWith('IND2'),
) as (keyof typeof interfaces)[];

/** Compiles variables of the header's types. Returns their bytes in order, each padded to a multiple of 16. */
function compiled({ folder, includes, iid }: Header): Buffer {
  const probe = '__attribute__((section(".probe"), used, aligned(16)))';
  const source = [
    includes,
    `${probe} ND2_ADAPTER_INFO info{${infoFields.join(', ')}};`,
    `${probe} ND2_SGE sge{(void *)0x1122334455667788, 0x99aabbcc, 0xddeeff01};`,
    `${probe} ND2_RESULT outcome{(HRESULT)0xc0000120, 0x12345678, (void *)0x1122334455667788, (void *)0x99aabbccddeeff01, (ND2_REQUEST_TYPE)5};`,
    `${probe} unsigned long long sizes[]{sizeof(ND2_ADAPTER_INFO), sizeof(ND2_SGE), sizeof(ND2_RESULT), 0};`,
    ...names.map((name, i) => `${probe} GUID iid${i} = ${iid(name)};`),
    // A pointer to a virtual method is its offset in the vtable plus 1.
    ...methods.map(({ name, method }, i) => `${probe} auto method${i} = &${name}::${method};`),
  ].join('\n');
  const work = mkdtempSync(join(tmpdir(), 'nd-layouts-'));
  try {
    const object = join(work, 'probe.o');
    const bytes = join(work, 'probe.bin');
    writeFileSync(join(work, 'ndstatus.h'), '');
    const flags = [
      `-I${work}`,
      '-std=c++17',
      '-O2',
      '-fno-toplevel-reorder',
      '-fpermissive',
      '-w',
      `-I${folder}`,
    ];
    for (const [tool, ...args] of [
      ['g++', ...flags, '-c', '-o', object, '-x', 'c++', '-'],
      ['objcopy', '-O', 'binary', '-j', '.probe', object, bytes],
    ] as const) {
      const { status, stderr } = spawnSync(`x86_64-w64-mingw32-${tool}`, args, {
        input: source,
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(`${tool}: ${stderr}`);
    }
    return readFileSync(bytes);
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Yields the differences between a header and the library. */
function* differences(header: Header): Generator<string> {
  const bytes = compiled(header);
  let at = 0;
  const take = (length: number): Buffer => {
    const part = bytes.subarray(at, at + length);
    at += Math.ceil(length / 16) * 16;
    return part;
  };
  const words = (part: Buffer): Uint32Array => new Uint32Array(Uint8Array.from(part).buffer);

  const info: Record<string, unknown> = { ...decodeAdapterInfo(take(ADAPTER_INFO_BYTES)) };
  for (const [i, name] of infoNames.entries()) {
    if (Number(info[name]) !== infoFields[i]) yield `ND2_ADAPTER_INFO.${name} is ${info[name]}`;
  }
  if (Object.keys(info).length !== infoNames.length)
    yield `ND2_ADAPTER_INFO has ${Object.keys(info).length} fields`;
  const sge = words(take(16));
  if (sge[SgeWord.length] !== 0x99aabbcc || sge[SgeWord.token] !== 0xddeeff01 || sge[1] !== 0x11223344)
    yield `ND2_SGE is ${sge}`;
  const outcome = words(take(32));
  const expected = [0xc0000120, 0x12345678, 0x55667788, 0xddeeff01, 5];
  const { status, bytes: count, queuePair, request, type } = ResultWord;
  const got = [status, count, queuePair, request, type].map((word) => outcome[word]);
  if (!isDeepStrictEqual(got, expected)) yield `ND2_RESULT is ${outcome}`;
  const sizes = words(take(32));
  const own = [ADAPTER_INFO_BYTES, 4 * SgeWord.size, 4 * ResultWord.size];
  if (!isDeepStrictEqual([sizes[0], sizes[2], sizes[4]], own))
    yield `the sizes are ${sizes}, and ${own} here`;
  for (const name of names) {
    const iid = guidText(take(16));
    if (iid !== interfaces[name].iid) yield `the IID of ${name} is ${iid}`;
  }
  for (const { name, method, slot } of methods) {
    const there = (words(take(16))[0]! - 1) / 8;
    if (there !== slot) yield `${name}::${method} has slot ${there}, and ${slot} here`;
  }
  if (at !== bytes.length) yield `${bytes.length} bytes in place of ${at}`;
}

for (const header of [own, ...(microsofts === undefined ? [] : [microsofts])]) {
  const wrong = [...differences(header)];
  for (const one of wrong) console.log(`${header.name}: ${one}`);
  console.log(`${header.name}: ${methods.length} slots, ${names.length} IIDs and 3 structures compared`);
  if (wrong.length > 0) process.exitCode = 1;
}
