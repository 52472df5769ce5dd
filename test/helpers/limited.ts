import { spawnSync } from 'node:child_process';

/** Runs a module's source after shell commands that limit the process, such as `ulimit -f 64`. */
export function runLimited(limits: string, source: string, flags: readonly string[] = []) {
  const command = `${limits}; exec "$0" "$@"`;
  const node = [process.execPath, ...flags, '--input-type=module', '--eval', source];
  return spawnSync('bash', ['-c', command, ...node], { encoding: 'utf8', timeout: 60_000 });
}
