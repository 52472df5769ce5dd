/** Command lines: the exit status and the sentences of every command and option with wrong values. */
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ND } from '../helpers/nd-tool.js';

/** A command line, its exit status, and what it prints on stderr before the usage. */
type Row = readonly [args: string, status: number, ...sentences: string[]];

function run(args: string): { status: number | null; stdout: string; sentences: string[] } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [ND, ...args.split(' ').filter(Boolean)], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  const before = stderr.split(/\n(?:\n|(?=Usage: ))/)[0]!;
  return { status, stdout, sentences: before.split('\n').filter(Boolean) };
}

const MEASURE = '-n 0 --nSge x -q 0 --pipeline 0 --sizes 0 --iterations 0 --volume x --warmup -1 --spi 3';
const NVME = '--host-name me --port 0 --nqn disk --reconnect x';

const rows: Readonly<Record<string, readonly Row[]>> = {
  '': [
    ['nope', 2, "error: unknown command 'nope'", '(Did you mean one of nvme, top?)'],
    ['--nope', 2, "error: unknown option '--nope'"],
    ['pign', 2, "error: unknown command 'pign'", '(Did you mean ping?)'],
  ],
  demo: [
    [
      'demo --address x --port 70000 --iterations 0 --rounds x --seed -1',
      2,
      "nd demo: --port must be 65535 or less; got '70000'",
      "nd demo: --iterations must be 1 or more; got '0'",
      "nd demo: --rounds must be a number; got 'x'",
      "nd demo: --seed must be 0 or more; got '-1'",
    ],
    ['demo --nope', 2, "error: unknown option '--nope'"],
  ],
  build: [['build --nope', 2, "error: unknown option '--nope'"]],
  'verbs-info': [
    ['verbs-info x', 2, "error: too many arguments for 'verbs-info'. Expected 0 arguments but got 1."],
  ],
  stat: [
    ['stat x', 2, "nd stat: the process id must be a number; got 'x'"],
    ['stat 0', 2, "nd stat: the process id must be 1 or more; got '0'"],
  ],
  top: [
    [
      'top -d 0 --delay 0 -n x --count x --sort size --port 0',
      2,
      "nd top: --delay must be 0.1 or more; got '0'",
      "nd top: --count must be a number; got 'x'",
      "nd top: --sort must be one of messages, bytes, retransmits, connections, pid; got 'size'",
    ],
    [
      'top --sort size',
      2,
      "nd top: --sort must be one of messages, bytes, retransmits, connections, pid; got 'size'",
    ],
  ],
  conformance: [
    [
      'conformance --spi 3 --address x --processes 0 --port 0 --step-timeout x --memory disk',
      2,
      "nd conformance: --spi must be v1 or v2; got '3'",
      "nd conformance: --address must be an IP address such as 192.0.2.1; got 'x'",
      "nd conformance: --processes must be 1 or 2; got '0'",
      "nd conformance: --memory must be any or allocate; got 'disk'",
      "nd conformance: --step-timeout must be a number of seconds; got 'x'",
    ],
    [
      'conformance --only nope',
      2,
      "nd conformance: --only must match a case of SPI v1, as --list prints them; got 'nope'",
    ],
    ['conformance --serve --peer x', 2, 'nd conformance: --serve and --peer are mutually exclusive'],
    [
      'conformance --token x',
      2,
      'nd conformance: --token requires --peer; the side with --serve generates and prints it',
    ],
    ['conformance --mutants nope', 2, "nd conformance: --mutants must have no value, or 'all'; got 'nope'"],
  ],
  nvme: [['nvme nope', 2, "error: unknown command 'nope'"]],
  'nvme discover': [
    ['nvme discover', 2, "error: missing required argument 'host'"],
    [
      'nvme discover 127.0.0.1 --port 0 --host-name me',
      2,
      "nd nvme discover: --port must be 1 or more; got '0'",
      "nd nvme discover: --host-name must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'me'",
    ],
  ],
  'nvme info': [
    [
      `nvme info 127.0.0.1 ${NVME}`,
      2,
      "nd nvme info: --port must be 1 or more; got '0'",
      "nd nvme info: --host-name must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'me'",
      "nd nvme info: --nqn must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'disk'",
      "nd nvme info: --reconnect must be a number; got 'x'",
    ],
  ],
  'nvme read': [
    [
      `nvme read 127.0.0.1 ${NVME} --namespace 0 --start -1 --length x`,
      2,
      "nd nvme read: --port must be 1 or more; got '0'",
      "nd nvme read: --host-name must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'me'",
      "nd nvme read: --nqn must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'disk'",
      "nd nvme read: --reconnect must be a number; got 'x'",
      "nd nvme read: --namespace must be 1 or more; got '0'",
      "nd nvme read: --start must be 0 or more; got '-1'",
      "nd nvme read: --length must be a number; got 'x'",
    ],
  ],
  'nvme write': [
    [
      `nvme write 127.0.0.1 ${NVME} --namespace x --start x`,
      2,
      "nd nvme write: --port must be 1 or more; got '0'",
      "nd nvme write: --host-name must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'me'",
      "nd nvme write: --nqn must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'disk'",
      "nd nvme write: --reconnect must be a number; got 'x'",
      "nd nvme write: --namespace must be a number; got 'x'",
      "nd nvme write: --start must be a number; got 'x'",
    ],
  ],
  'nvme serve': [
    [
      'nvme serve --port x --address 0.0.0.0 --nqn disk --size 0 --block-size 100 --hosts me',
      2,
      "nd nvme serve: --port must be a number; got 'x'",
      "nd nvme serve: --nqn must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'disk'",
      "nd nvme serve: --size must be 1 or more; got '0'",
      "nd nvme serve: --block-size must be 512, 1024, 2048 or 4096; got '100'",
      "nd nvme serve: --hosts must be an NVMe qualified name such as nqn.2026-11.io.example:disk; got 'me'",
    ],
  ],
  adapterinfo: [
    ['adapterinfo', 2, "error: missing required argument 'host'"],
    ['adapterinfo 127.0.0.1 --spi 3', 2, "nd adapterinfo: --spi must be v1 or v2; got '3'"],
    [
      'adapterinfo 300.1.1.1',
      2,
      "nd adapterinfo: the address must be an IP address such as 192.0.2.1 or 2001:db8::1, or a host name; got '300.1.1.1'",
    ],
  ],
  cat: [
    ['cat', 2, "error: missing required argument 'host[:port]'"],
    ['cat -c 127.0.0.1 --spi x', 2, "nd cat: --spi must be v1 or v2; got 'x'"],
  ],
  ping: [
    [
      `ping -c 127.0.0.1 ${MEASURE}`,
      2,
      "nd ping: --spi must be v1 or v2; got '3'",
      "nd ping: --sizes must be sizes from 1 to 4194304 bytes; got '0'",
      "nd ping: --iterations must be 1 or more; got '0'",
      "nd ping: --nSge must be a number; got 'x'",
      "nd ping: --pipeline must be 1 or more; got '0'",
      "nd ping: --volume must be a number; got 'x'",
      "nd ping: --warmup must be 0 or more; got '-1'",
    ],
    ['ping', 2, "error: missing required argument 'host[:port]'"],
  ],
  pingpong: [
    [
      `pingpong -c 127.0.0.1 ${MEASURE}`,
      2,
      "nd pingpong: --spi must be v1 or v2; got '3'",
      "nd pingpong: --sizes must be sizes from 1 to 4194304 bytes; got '0'",
      "nd pingpong: --iterations must be 1 or more; got '0'",
      "nd pingpong: --nSge must be a number; got 'x'",
      "nd pingpong: --pipeline must be 1 or more; got '0'",
      "nd pingpong: --volume must be a number; got 'x'",
      "nd pingpong: --warmup must be 0 or more; got '-1'",
    ],
  ],
  rping: [
    [
      `rping -c 127.0.0.1 ${MEASURE}`,
      2,
      "nd rping: --spi must be v1 or v2; got '3'",
      "nd rping: --sizes must be sizes from 1 to 4194304 bytes; got '0'",
      "nd rping: --iterations must be 1 or more; got '0'",
      "nd rping: --nSge must be a number; got 'x'",
      "nd rping: --pipeline must be 1 or more; got '0'",
      "nd rping: --volume must be a number; got 'x'",
      "nd rping: --warmup must be 0 or more; got '-1'",
    ],
  ],
  rpingpong: [
    [
      `rpingpong -c 127.0.0.1 ${MEASURE}`,
      2,
      "nd rpingpong: --spi must be v1 or v2; got '3'",
      "nd rpingpong: --sizes must be sizes from 1 to 4194304 bytes; got '0'",
      "nd rpingpong: --iterations must be 1 or more; got '0'",
      "nd rpingpong: --nSge must be a number; got 'x'",
      "nd rpingpong: --pipeline must be 1 or more; got '0'",
      "nd rpingpong: --volume must be a number; got 'x'",
      "nd rpingpong: --warmup must be 0 or more; got '-1'",
    ],
  ],
  mrlat: [
    [
      'mrlat 127.0.0.1 --sizes 0 --iterations 0 --spi 3',
      2,
      "nd mrlat: --spi must be v1 or v2; got '3'",
      "nd mrlat: --sizes must be sizes from 1 to 4194304 bytes; got '0'",
      "nd mrlat: --iterations must be 1 or more; got '0'",
    ],
  ],
  mrrate: [
    [
      'mrrate 127.0.0.1 --sizes x --iterations x -t 0 --threads 0 --spi 3',
      2,
      "nd mrrate: --spi must be v1 or v2; got '3'",
      "nd mrrate: --sizes must be sizes in bytes such as 1,64,4096; got 'x'",
      "nd mrrate: --iterations must be a number; got 'x'",
      "nd mrrate: --threads must be 1 or more; got '0'",
    ],
  ],
  conn: [
    [
      'conn -c 127.0.0.1 -t 0 --threads 0 --seconds 0 --delay x --connections 0 --spi 3',
      2,
      "nd conn: --spi must be v1 or v2; got '3'",
      "nd conn: --threads must be 1 or more; got '0'",
      "nd conn: --delay must be a number of seconds; got 'x'",
      "nd conn: --connections must be 1 or more; got '0'",
    ],
  ],
  completion: [
    ['completion', 2, "error: missing required argument 'shell'"],
    [
      'completion csh',
      2,
      "error: command-argument value 'csh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.",
    ],
  ],
};

for (const [command, table] of Object.entries(rows))
  test(`nd ${command}: wrong command lines end in these sentences`, () => {
    for (const [args, status, ...sentences] of table) {
      const got = run(args);
      assert.equal([got.status, ...got.sentences], [status, ...sentences], args);
      assert.is(got.stdout, '', args);
    }
  });

/** Options whose values this host decides. */
const hosts: ReadonlySet<string> = new Set(['--device']);

test('each command, and each option with a value, has rows', () => {
  const script = run('completion bash').stdout;
  const found = [...script.matchAll(/^ {4}'([a-z -]*)'\)\n[\s\S]*?valued='([^']*)'/gm)];
  assert.ok(found.length > 20);
  for (const [, command = '', options = ''] of found) {
    const lines = (rows[command] ?? []).map(([args]) => `${args} `);
    assert.ok(lines.length > 0, `nd ${command} has no row`);
    for (const option of options.split(' ').filter((one) => one !== '' && !hosts.has(one)))
      assert.ok(
        lines.some((line) => line.includes(` ${option} `)),
        `nd ${command} ${option} has no row`,
      );
  }
  const known = found.map(([, command]) => command);
  assert.equal(
    Object.keys(rows).filter((command) => !known.includes(command)),
    [],
  );
});

test.run();
