import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

// The flag is set for a moment alone: with other flags V8 compiles the soft kernel's code anew instead of using its code cache.
setFlagsFromString('--expose-gc');
/** Runs a garbage collection. */
export const collect = runInNewContext('gc') as () => void;
// All threads share it: a Worker that took it back could do so while another one makes its context.
if (isMainThread) setFlagsFromString('--no-expose-gc');
