/** Tests in a network namespace of their own, where nobody else has slots and ports, or sends anything. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Whether this process runs in such a namespace. */
export const apart = process.env.ND_TEST_APART !== undefined;

/** Runs the tests of a module there, in a process of its own; here, where no namespace is permitted. */
export function runApart(url: string, run: () => void): void {
  if (apart) {
    run();
    return;
  }
  const { status: permitted } = spawnSync('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up']);
  if (permitted !== 0) {
    console.log('no network namespace is permitted: what others do is not told from what happens here');
    run();
    return;
  }
  const command = 'ip link set lo up; exec "$@"';
  const node = [process.execPath, ...process.execArgv, fileURLToPath(url)];
  const { status } = spawnSync('unshare', ['-n', 'sh', '-c', command, 'sh', ...node], {
    stdio: 'inherit',
    env: { ...process.env, ND_TEST_APART: '1' },
  });
  process.exitCode = status ?? 1;
}
