/** Options of the kernel and environment variables: the error of every option, and the texts of schemas. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveKernelOptions } from '../../kernel-bridge/door/soft/resolve-options.js';
import { cmOptionsSchema, kernelOptionsSchema, setPartitions } from '../../kernel-bridge/index.js';
import { complete, doorsOf, type ErrorRows, provoke } from '../helpers/error-rows.js';

const test = suite('errors of options');

const root = fileURLToPath(new URL('../../../', import.meta.url));

const options = (value: unknown): unknown => resolveKernelOptions(value as never, {});
const ND_OPTIONS = (json: string): unknown => resolveKernelOptions(undefined, { ND_OPTIONS: json });

/** The text that the JavaScript engine uses for invalid JSON. */
function jsonError(json: string): string {
  try {
    JSON.parse(json);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it is valid');
}

const rows: ErrorRows = {
  'CmOptions.responseTimeoutCode': [
    [
      () => options({ cm: { responseTimeoutCode: 32 } }),
      'INVALID_PARAMETER',
      '`cm.responseTimeoutCode` must be an integer from 0 to 31; got 32.',
    ],
  ],
  'CmOptions.maxRetries': [
    [
      () => options({ cm: { maxRetries: 16 } }),
      'INVALID_PARAMETER',
      '`cm.maxRetries` must be an integer from 0 to 15; got 16.',
    ],
  ],
  'CmOptions.timewaitMs': [
    [
      () => options({ cm: { timewaitMs: '1' } }),
      'INVALID_PARAMETER',
      "`cm.timewaitMs` must be an integer from 0 to 60000; got '1'.",
    ],
  ],
  'CmOptions.mraServiceTimeoutCode': [
    [
      () => options({ cm: { mraServiceTimeoutCode: -1 } }),
      'INVALID_PARAMETER',
      '`cm.mraServiceTimeoutCode` must be an integer from 0 to 31; got -1.',
    ],
  ],
  'RcOptions.ackTimeoutCode': [
    [
      () => options({ rc: { ackTimeoutCode: 0 } }),
      'INVALID_PARAMETER',
      '`rc.ackTimeoutCode` must be an integer from 1 to 31; got 0.',
    ],
  ],
  'RcOptions.minRnrTimerCode': [
    [
      () => options({ rc: { minRnrTimerCode: null } }),
      'INVALID_PARAMETER',
      '`rc.minRnrTimerCode` must be an integer from 0 to 31; got null.',
    ],
  ],
  'RcOptions.trafficClass': [
    [
      () => options({ rc: { trafficClass: 2 } }),
      'INVALID_PARAMETER',
      '`rc.trafficClass` must be a multiple of 4 from 0 to 252, a DSCP shifted left by two; got 2.',
    ],
    [
      () => options({ rc: { trafficClass: 257 } }),
      'INVALID_PARAMETER',
      '`rc.trafficClass` must be an integer from 0 to 252; got 257.',
    ],
  ],
  'FaultOptions.seed': [
    [
      () => options({ faults: { seed: 0.5 } }),
      'INVALID_PARAMETER',
      '`faults.seed` must be an integer from 0 to 9007199254740991; got 0.5.',
    ],
  ],
  'FaultOptions.drop': [
    [
      () => options({ faults: { drop: 2 } }),
      'INVALID_PARAMETER',
      '`faults.drop` must be a number from 0 to 1; got 2.',
    ],
  ],
  'FaultOptions.duplicate': [
    [
      () => options({ faults: { duplicate: -1 } }),
      'INVALID_PARAMETER',
      '`faults.duplicate` must be a number from 0 to 1; got -1.',
    ],
  ],
  'FaultOptions.reorder': [
    [
      () => options({ faults: { reorder: NaN } }),
      'INVALID_PARAMETER',
      '`faults.reorder` must be a number from 0 to 1; got NaN.',
    ],
  ],
  'FaultOptions.corrupt': [
    [
      () => options({ faults: { corrupt: true } }),
      'INVALID_PARAMETER',
      '`faults.corrupt` must be a number from 0 to 1; got true.',
    ],
  ],
  'FaultOptions.dropMads': [
    [
      () => options({ faults: { dropMads: 5 } }),
      'INVALID_PARAMETER',
      '`faults.dropMads` must be an object; got 5.',
    ],
    [
      () => options({ faults: { dropMads: { DREQ: 1 } } }),
      'INVALID_PARAMETER',
      "`faults.dropMads` must contain only numbers of CM attributes as keys, from 16 (REQ) to 26 (APR); got 'DREQ'.",
    ],
    [
      () => options({ faults: { dropMads: { 16: -1 } } }),
      'INVALID_PARAMETER',
      '`faults.dropMads.16` must be an integer from 0 to 4294967295; got -1.',
    ],
  ],
  'KernelOptions.cm': [
    [
      () => options({ cm: [] }),
      'INVALID_PARAMETER',
      '`cm` must be an object with responseTimeoutCode, maxRetries, timewaitMs, mraServiceTimeoutCode; got [].',
    ],
    [
      () => options({ cm: { retries: 3 } }),
      'INVALID_PARAMETER',
      "`cm` must contain only responseTimeoutCode, maxRetries, timewaitMs, mraServiceTimeoutCode; got 'retries'.",
    ],
  ],
  'KernelOptions.rc': [
    [
      () => options({ rc: 5 }),
      'INVALID_PARAMETER',
      '`rc` must be an object with ackTimeoutCode, minRnrTimerCode, trafficClass; got 5.',
    ],
  ],
  'KernelOptions.faults': [
    [
      () => options({ faults: 'all' }),
      'INVALID_PARAMETER',
      "`faults` must be an object with seed, drop, duplicate, reorder, corrupt, dropMads; got 'all'.",
    ],
  ],
  'KernelOptions.keepAliveMs': [
    [
      () => options({ keepAliveMs: 'soon' }),
      'INVALID_PARAMETER',
      "`keepAliveMs` must be an integer from 0 to 3600000; got 'soon'.",
    ],
  ],
  'KernelOptions.rnrTimeoutMs': [
    [
      () => options({ rnrTimeoutMs: 600_001 }),
      'INVALID_PARAMETER',
      '`rnrTimeoutMs` must be an integer from 0 to 600000; got 600001.',
    ],
  ],
  'KernelOptions.ecn': [
    [() => options({ ecn: 1 }), 'INVALID_PARAMETER', '`ecn` must be true or false; got 1.'],
  ],
  'KernelOptions.window': [
    [() => options({ window: 0 }), 'INVALID_PARAMETER', '`window` must be an integer from 1 to 4096; got 0.'],
  ],
  'KernelOptions.longWindowBytes': [
    [
      () => options({ longWindowBytes: 2 ** 31 }),
      'INVALID_PARAMETER',
      '`longWindowBytes` must be an integer from 0 to 1073741824; got 2147483648.',
    ],
  ],
  'KernelOptions.link': [
    [
      () => options({ link: 'udp' }),
      'INVALID_PARAMETER',
      "`link` must be 'auto', 'wire' or 'local'; got 'udp'.",
    ],
  ],
  'KernelOptions.icrc': [
    [() => options({ icrc: true }), 'INVALID_PARAMETER', "`icrc` must be 'solved' or 'exact'; got true."],
  ],
  'KernelOptions.direct': [
    [() => options({ direct: 'no' }), 'INVALID_PARAMETER', "`direct` must be true or false; got 'no'."],
  ],
  'KernelOptions.capture': [
    [() => options({ capture: 5 }), 'INVALID_PARAMETER', '`capture` must be a string; got 5.'],
    [
      () => options({ capture: 'a\0b' }),
      'INVALID_PARAMETER',
      "`capture` must be a path without NUL characters; got 'a\0b'.",
    ],
  ],
  'KernelOptions.statistics': [
    [
      () => options({ statistics: Symbol('x') }),
      'INVALID_PARAMETER',
      '`statistics` must be true or false; got Symbol(x).',
    ],
  ],
  'KernelOptions.receiveBufferBytes': [
    [
      () => options({ receiveBufferBytes: 7n }),
      'INVALID_PARAMETER',
      '`receiveBufferBytes` must be an integer from 65536 to 268435456; got 7n.',
    ],
  ],
  'KernelOptions.pkeys': [
    [
      () => options({ pkeys: [] }),
      'INVALID_PARAMETER',
      '`pkeys` must be 1 to 64 P_Keys, each from 1 to 65535 except 32768 and without duplicates, or such a list for each interface name; got [].',
    ],
    [
      () => options({ pkeys: { eth0: [32_768] } }),
      'INVALID_PARAMETER',
      '`pkeys.eth0` must be 1 to 64 P_Keys, each from 1 to 65535 except 32768 and without duplicates, or such a list for each interface name; got [32768].',
    ],
  ],
  'KernelOptions.hca': [
    [
      () => options({ hca: '*'.repeat(100) }),
      'INVALID_PARAMETER',
      "`hca` must be 'auto', 'soft', 'rdma' or the name of an RDMA device; got '********************************************************************************…'.",
    ],
    [
      () => options({ link: 'local', hca: 'rdma' }),
      'INVALID_PARAMETER',
      "`hca` must be 'auto' or 'soft' with the option link: 'local', which means the software HCA without UDP sockets; got 'rdma'.",
    ],
  ],
  'KernelOptions.kernel': [
    [
      () => options({ kernel: 'linux' }),
      'INVALID_PARAMETER',
      "`kernel` must be 'auto', 'driver' or 'soft'; got 'linux'.",
    ],
    [
      () => options({ kernel: 'driver' }),
      'INVALID_PARAMETER',
      "`kernel` must be 'auto' or 'soft', because WinVerbs drivers exist on Windows only; got 'driver'.",
    ],
  ],
  'KernelOptions.startTimeoutMs': [
    [
      () => options({ startTimeoutMs: 1 }),
      'INVALID_PARAMETER',
      '`startTimeoutMs` must be an integer from 100 to 600000; got 1.',
    ],
  ],
};

provoke(test, rows);

test('each option has rows', () => {
  complete(doorsOf('networkdirect/kernel-bridge', /^(?:Kernel|Cm|Rc|Fault)Options$/), rows, []);
});

provoke(test, {
  options: [
    [
      () => options(5),
      'INVALID_PARAMETER',
      '`options` must be an object with cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 5.',
    ],
    [
      () => options({ keepaliveMs: 5, cm: { retries: 3 } }),
      'INVALID_PARAMETER',
      "`cm` must contain only responseTimeoutCode, maxRetries, timewaitMs, mraServiceTimeoutCode; got 'retries'. `options` must contain only cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 'keepaliveMs'.",
    ],
    [
      () => options({ ecn: 3, window: 0 }),
      'INVALID_PARAMETER',
      '`ecn` must be true or false; got 3. `window` must be an integer from 1 to 4096; got 0.',
    ],
  ],
  ND_OPTIONS: [
    [
      () => ND_OPTIONS('{'),
      'INVALID_PARAMETER',
      `ND_OPTIONS must be a JSON object such as {"keepAliveMs":1000}; got '{' (${jsonError('{')}).`,
    ],
    [
      () => ND_OPTIONS('7'),
      'INVALID_PARAMETER',
      'ND_OPTIONS must be an object with cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 7.',
    ],
    [
      () => ND_OPTIONS('{"window":0,"nope":1}'),
      'INVALID_PARAMETER',
      "ND_OPTIONS: `window` must be an integer from 1 to 4096; got 0. ND_OPTIONS must contain only cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 'nope'.",
    ],
  ],
  setPartitions: [
    [
      () => setPartitions([32_768]),
      'INVALID_PARAMETER',
      'setPartitions: `pkeys` must be 1 to 64 P_Keys, each from 1 to 65535 except 32768 and without duplicates, or such a list for each interface name; got [32768].',
    ],
    [
      () => setPartitions({ eth0: 5 as never }),
      'INVALID_PARAMETER',
      'setPartitions: `pkeys` must be 1 to 64 P_Keys, each from 1 to 65535 except 32768 and without duplicates, or such a list for each interface name; got {"eth0":5}.',
    ],
  ],
});

test('the schemas have the same texts for those who call them', () => {
  const messages = (result: {
    success: boolean;
    error?: { issues: readonly { message: string }[] };
  }): string[] => (result.error?.issues ?? []).map(({ message }) => message);
  assert.equal(messages(kernelOptionsSchema.safeParse({ window: 0, cm: { maxRetries: 'x' } })), [
    'must be an integer from 0 to 15',
    'must be an integer from 1 to 4096',
  ]);
  assert.throws(() => cmOptionsSchema.parse(5), /must be an object with responseTimeoutCode, /);
});

/** The first line that a program prints on stderr with environment variables. */
function printed(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): { status: number | null; line: string } {
  const { status, stderr } = spawnSync(process.execPath, args, {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  return { status, line: stderr.split('\n')[0]! };
}

const ND = join(root, 'dist/nd/cli/nd.js');
/** Programs with an invalid value of each variable, and the line that they print. */
const variables: Readonly<Record<string, readonly [run: () => ReturnType<typeof printed>, line: RegExp]>> = {
  ND_OPTIONS: [
    () => printed({ ND_OPTIONS: '{"window":0}' }, ND, 'adapterinfo', '127.0.0.1'),
    /^nd adapterinfo: Startup: \S+ ND_OPTIONS: `window` must be an integer from 1 to 4096; got 0\. \[INVALID_PARAMETER\]$/,
  ],
  NETWORKDIRECT_HCA_ADDON: [
    () => printed({ NETWORKDIRECT_HCA_ADDON: '/nowhere.node' }, ND, 'adapterinfo', '127.0.0.1'),
    /^nd adapterinfo: The software HCA's native addon cannot be loaded \(Cannot find module '\/nowhere\.node'\)\. Install it .*: npx networkdirect build$/,
  ],
};

for (const [name, [run, line]] of Object.entries(variables))
  test(`${name}: an invalid value is reported in one line`, () => {
    const got = run();
    assert.is(got.status, 1);
    assert.match(got.line, line);
  });

test('each environment variable has a row', () => {
  const sources = ['nd', 'winverbs', 'kernel-bridge'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(?:ts|cc|h)$/.test(file))
      .map((file) => readFileSync(join(root, folder, file), 'utf8')),
  );
  const read = /process\.env\.([A-Z]\w+)|[vV](?:ariable|ARIABLE) = '([A-Z]\w+)'/g;
  const found = sources.flatMap((text) =>
    [...text.matchAll(read)].map(([, direct, named]) => direct ?? named!),
  );
  const page = readFileSync(join(root, 'docs/reference/options.md'), 'utf8');
  const documented = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name]) => name!);
  /** Any value of ND_DEBUG prints stack traces, any token is one, and libuv reads UV_THREADPOOL_SIZE. */
  const others = ['ND_DEBUG', 'ND_CONFORMANCE_TOKEN', 'UV_THREADPOOL_SIZE'];
  // The addon for real HCAs is loaded like the other addon, but only on hosts with RDMA devices.
  others.push('NETWORKDIRECT_VERBS_ADDON');
  // The variable is only read on Windows (test/windows/nd/vendor-choice).
  others.push('NETWORKDIRECT_ND_PROVIDERS');
  assert.ok(found.length > 2 && documented.length > 4);
  for (const name of [...found, ...documented]) assert.ok(name in variables || others.includes(name), name);
});

test.run();
