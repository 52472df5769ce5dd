/**
 * Engines and connection managers that break one rule each, which the simulation must find: `npm run test:simulation:mutants -- [part of a
 * name]`. Each is built in a scratch folder, from copies of the C++ sources and the compiled JavaScript.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const ENGINE = 'kernel-bridge/hca';
const BUILT = 'test/native/build';
const ADDON = 'networkdirect_simulation.node';
const MINUTES = '1';
const SEED = '1';

interface Mutant {
  readonly name: string;
  /** The mutated file: C++ below `kernel-bridge/hca`, JavaScript below `dist`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** The scenario that must find it. */
  readonly scenario: string;
}

const mutants: readonly Mutant[] = [
  {
    name: 'duplicate requests are executed twice',
    file: 'engine/transport/responder.cc',
    from: '  if (distance < 0) {',
    to: '  if (distance < 0 && !(p.flags & wire::kFirst && p.flags & wire::kLast)) {',
    scenario: 'pair',
  },
  {
    name: 'a gap of one packet goes unnoticed',
    file: 'engine/transport/responder.cc',
    from: '  if (distance > 0) {',
    to: '  if (distance > 1) {',
    scenario: 'pair',
  },
  {
    name: 'a repeated atomic returns the current value',
    file: 'engine/transport/duplicate_requests.cc',
    from: 'rs.msn, r.result, true};',
    to: 'rs.msn, r.result + 1, true};',
    scenario: 'pair',
  },
  {
    name: 'a partially repeated READ is served from its start',
    file: 'engine/transport/duplicate_requests.cc',
    from: 'job = {false, false, p.bth.psn, reth.address, reth.rkey,',
    to: 'job = {false, false, p.bth.psn, r.address, reth.rkey,',
    scenario: 'pair',
  },
  {
    name: 'a response that is still queued is also repeated, and is sent without its end',
    file: 'engine/transport/extensions/lost_responses.cc',
    from: '    if (ahead <= 0) return;',
    to: '    if (ahead <= -9999999) return;',
    scenario: 'pair',
  },
  {
    name: 'only the first request is flushed',
    file: 'engine/transport/qp_lifecycle.cc',
    from: '    c_.write(*qp.sendCq, c);\n  }\n  rq.next',
    to: '    c_.write(*qp.sendCq, c);\n    break;\n  }\n  rq.head = rq.producer;\n  rq.next',
    scenario: 'partition',
  },
  {
    name: 'an old response acknowledges later requests',
    file: 'engine/transport/responder.cc',
    from: '  rs.ackPsn = wire::psnAdd(p.bth.psn, p.span - 1);',
    to: '  rs.ackPsn = wire::psnAdd(p.bth.psn, p.span);',
    scenario: 'pair',
  },
  {
    name: 'ECN marks cause no CNPs',
    file: 'engine/transport/congestion.cc',
    from: '  qp.set(kCnpPending);',
    to: '',
    scenario: 'incast',
  },
  {
    name: 'the ids of an ended connection stay reserved',
    file: 'kernel-bridge/kernel/cm/connection-states.js',
    from: 'expired: go("idle"),',
    to: 'expired: go("timewait"),',
    scenario: 'mads',
  },
  {
    name: 'the fast path accepts packets out of order',
    file: 'engine/transport/fast_path.cc',
    from: 'bth.psn != rs.expected || m.length > qp.mtu',
    to: 'm.length > qp.mtu',
    scenario: 'pair',
  },
  {
    name: 'losses at the end of a transfer are never detected',
    file: 'engine/transport/retransmission.cc',
    from: '  if (late == 0) return;',
    to: '  if (late != 0 || late == 0) return;',
    scenario: 'pair',
  },
  {
    name: 'fragments: packets dropped because of their length are not detected',
    file: 'engine/transport/extensions/fragments.cc',
    from: '  if (payload <= next || next == f.size) return;',
    to: '  if (payload != 0 || next == f.size) return;',
    scenario: 'hole',
  },
  {
    name: 'fragments: those of a response are not shortened',
    file: 'engine/transport/extensions/fragments.cc',
    from: 'narrow(qp, of.triedSize == f.size && c_.now > f.since,',
    to: 'narrow(qp, false,',
    scenario: 'hole',
  },
  {
    name: 'fragments: a missing one goes unnoticed if another has arrived twice',
    file: 'engine/transport/extensions/fragments.cc',
    from: 'a.missing -= !a.units[i];',
    to: 'a.missing -= a.missing != 0;',
    scenario: 'hole',
  },
  {
    name: 'fragments: a probe that arrives has no effect',
    file: 'engine/transport/extensions/fragments.cc',
    from: '      f.size = larger;',
    to: '',
    scenario: 'reroute',
  },
];

/** Runs a program in the project's folder; returns its output and whether it succeeded. */
function run(program: string, parameters: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(program, parameters, {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}

/** Whether the simulation finds the mutant. */
function tryMutant({ name, file, from, to, scenario }: Mutant, scratch: string): boolean {
  const path = join(scratch, file.endsWith('.cc') ? 'hca' : 'dist', file);
  const whole = readFileSync(path, 'utf8');
  if (whole.split(from).length !== 2) {
    console.log(`${name}: ${file} does not have this once: ${from}`);
    return false;
  }
  const addon = `${scratch}/build/${ADDON}`;
  writeFileSync(path, whole.replace(from, to));
  try {
    const build = ['-j2', '-C', 'test/native', 'simulation', `HCA=${scratch}/hca`, `BUILD=${scratch}/build`];
    const built = run('make', build);
    if (!built.ok) {
      console.log(`${name}: does not compile\n${built.output}`);
      return false;
    }
    return isFound(name, scenario, scratch, addon);
  } finally {
    writeFileSync(path, whole);
  }
}

function isFound(name: string, scenario: string, scratch: string, addon: string): boolean {
  const began = performance.now();
  const program = [
    `${scratch}/dist/test/simulation/main.js`,
    '--scenario',
    scenario,
    '--seed',
    SEED,
    '--minutes',
    MINUTES,
  ];
  const env = { NETWORKDIRECT_SIMULATION_ADDON: addon };
  const { ok, output } = run('node', [...program, '--first'], env);
  const found = output.split('\n').filter((line) => /^(FELL| {2})/.test(line));
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(ok ? `${name}: NOT FOUND in ${seconds} s` : `${name}: found and shrunk in ${seconds} s`);
  for (const line of found.slice(0, 6)) console.log(`    ${line}`);
  return !ok && found.length > 0;
}

const wanted = process.argv[2] ?? '';
const scratch = mkdtempSync(join(root, 'build/simulation-mutants-'));
try {
  // Object files are copied too, so that only changed sources are compiled.
  const copied = { recursive: true, preserveTimestamps: true };
  cpSync(join(root, ENGINE), join(scratch, 'hca'), copied);
  for (const part of ['hca', 'simulation', ADDON])
    cpSync(join(root, BUILT, part), join(scratch, 'build', part), copied);
  cpSync(join(root, 'dist'), join(scratch, 'dist'), copied);
  const chosen = mutants.filter(({ name }) => name.includes(wanted));
  const missed = chosen.filter((mutant) => !tryMutant(mutant, scratch));
  console.log(`${chosen.length - missed.length} of ${chosen.length} mutants were found.`);
  process.exitCode = missed.length === 0 && chosen.length > 0 ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
