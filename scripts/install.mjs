// What npm runs when the package is installed: builds the software HCA's addon. On Windows there is no software HCA yet, and the door to the
// WinVerbs driver takes no addon, so nothing is built and no compiler is needed.
import { spawnSync } from 'node:child_process';

if (process.platform !== 'win32') {
  const { status } = spawnSync('node-gyp configure build --jobs max', { shell: true, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
  await import('./cache-kernel.mjs');
}
