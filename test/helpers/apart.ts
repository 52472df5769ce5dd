/** Runs tests in a separate network namespace, where no other process has slots or ports or sends packets. */
import { spawnSync } from 'node:child_process';
import { lacking } from './needs.js';
import { inNewNetwork } from './network-namespace.js';
import { programFile } from './programs.js';

/** Whether this process runs in such a namespace. */
export const apart = process.env.ND_TEST_APART !== undefined;

/** Runs the tests of a module in a separate process there, or here if namespaces are not permitted. */
export function runApart(url: string, run: () => void): void {
  if (apart) {
    run();
    return;
  }
  const problem = lacking('namespaces');
  if (problem !== undefined) {
    console.log(`not in a namespace of its own: ${problem}`);
    run();
    return;
  }
  const [file, ...args] = inNewNetwork(
    process.execPath,
    ...process.execArgv,
    programFile(new URL(url)),
    ...process.argv.slice(2),
  );
  const { status } = spawnSync(file, args, {
    stdio: 'inherit',
    env: { ...process.env, ND_TEST_APART: '1' },
  });
  process.exitCode = status ?? 1;
}
