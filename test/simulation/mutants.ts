/**
 * Engines with one rule broken each, which the simulation must find: `npm run test:simulation:mutants -- [part of a name]`. Each is built
 * in a scratch folder, from a copy of the sources.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const ENGINE = 'kernel-bridge/hca';
const MINUTES = '1';
const SEED = '1';

interface Mutant {
  readonly name: string;
  /** Below `kernel-bridge/hca`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Which scenario finds it. */
  readonly scenario: string;
}

const mutants: readonly Mutant[] = [
  {
    name: 'duplicate requests are executed again',
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
    name: 'a repeated atomic answers with the present value',
    file: 'engine/transport/responder.cc',
    from: 'rs.msn, r.result, true};',
    to: 'rs.msn, r.result + 1, true};',
    scenario: 'pair',
  },
  {
    name: 'a READ that is repeated in part is answered from its beginning',
    file: 'engine/transport/responder.cc',
    from: 'job = {false, false, p.bth.psn, reth.address, reth.rkey,',
    to: 'job = {false, false, p.bth.psn, r.address, reth.rkey,',
    scenario: 'pair',
  },
  {
    name: 'only the first request is flushed',
    file: 'engine/transport/lifecycle.cc',
    from: '    c_.write(*qp.sendCq, c);\n  }\n  rq.next',
    to: '    c_.write(*qp.sendCq, c);\n    break;\n  }\n  rq.head = rq.producer;\n  rq.next',
    scenario: 'partition',
  },
  {
    name: 'an old answer counts for what was sent later',
    file: 'engine/transport/responder.cc',
    from: '  rs.ackPsn = wire::psnAdd(p.bth.psn, p.span - 1);',
    to: '  rs.ackPsn = wire::psnAdd(p.bth.psn, p.span);',
    scenario: 'pair',
  },
  {
    name: 'marks are not answered',
    file: 'engine/transport/congestion.cc',
    from: '  qp.set(kCnpPending);',
    to: '',
    scenario: 'incast',
  },
  {
    name: 'losses at the end are never noticed',
    file: 'engine/transport/retransmission.cc',
    from: '  if (late == 0) return;',
    to: '  if (late != 0 || late == 0) return;',
    scenario: 'pair',
  },
];

/** Runs a program in the project's folder; its output, and whether it ended well. */
function run(program: string, parameters: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(program, parameters, {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  return { ok: status === 0, output: `${stdout}${stderr}` };
}

/** Whether the simulation finds it, in words. */
function tryMutant({ name, file, from, to, scenario }: Mutant, scratch: string): boolean {
  const path = join(scratch, 'hca', file);
  const whole = readFileSync(path, 'utf8');
  if (whole.split(from).length !== 2) {
    console.log(`${name}: ${file} does not have this once: ${from}`);
    return false;
  }
  writeFileSync(path, whole.replace(from, to));
  const build = ['-j2', '-C', 'test/native', 'simulation', `HCA=${scratch}/hca`, `BUILD=${scratch}/build`];
  const built = run('make', build);
  writeFileSync(path, whole);
  if (!built.ok) {
    console.log(`${name}: does not compile\n${built.output}`);
    return false;
  }
  const began = performance.now();
  const program = [
    'dist/test/simulation/main.js',
    '--scenario',
    scenario,
    '--seed',
    SEED,
    '--minutes',
    MINUTES,
  ];
  const env = { NETWORKDIRECT_SIMULATION_ADDON: `${scratch}/build/networkdirect_simulation.node` };
  const { ok, output } = run('node', [...program, '--first'], env);
  const found = output.split('\n').filter((line) => /^(FELL| {2})/.test(line));
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  console.log(ok ? `${name}: NOT FOUND in ${seconds} s` : `${name}: found and shrunk in ${seconds} s`);
  for (const line of found.slice(0, 6)) console.log(`    ${line}`);
  return !ok && found.length > 0;
}

const wanted = process.argv[2] ?? '';
const scratch = mkdtempSync(join(tmpdir(), 'simulation-mutants-'));
try {
  cpSync(join(root, ENGINE), join(scratch, 'hca'), { recursive: true });
  const chosen = mutants.filter(({ name }) => name.includes(wanted));
  const missed = chosen.filter((mutant) => !tryMutant(mutant, scratch));
  console.log(`${chosen.length - missed.length} of ${chosen.length} mutants were found.`);
  process.exitCode = missed.length === 0 && chosen.length > 0 ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
