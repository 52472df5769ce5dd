/** Permissions that the package needs from Node.js, whose options can forbid addons, threads and files. */

/** Node.js's permission model, undefined if it is disabled. Its type is newer than some versions of Node.js. */
const model = (): { has(scope: string): boolean } | undefined =>
  (process as { permission?: { has(scope: string): boolean } }).permission;

const CURE =
  "Node.js's permission model must allow what this package needs: --allow-addons, --allow-worker and --allow-fs-read=*";

/** The cure for a load error caused by Node.js's own options. Undefined: they are not the cause. */
export function adviceForOptions(code: unknown): string | undefined {
  if (code !== 'ERR_DLOPEN_DISABLED' && code !== 'ERR_ACCESS_DENIED') return undefined;
  if (model() !== undefined) return `${CURE}.`;
  return 'Start Node.js without --no-addons, also in NODE_OPTIONS.';
}

/** @throws Error `ERR_ACCESS_DENIED`: the soft kernel's thread may not be started */
export function checkThreadsAllowed(): void {
  if (model()?.has('worker') !== false) return;
  const error = new Error(`The soft kernel's thread may not be started. ${CURE}.`);
  throw Object.assign(error, { code: 'ERR_ACCESS_DENIED', permission: 'WorkerThreads' });
}
