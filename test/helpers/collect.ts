import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

// The flag is only set for a moment: with other flags, V8 compiles the soft kernel's code again instead of using its code cache.
setFlagsFromString('--expose-gc');
/** Runs a garbage collection. */
export const collect = runInNewContext('gc') as () => void;
// All threads share the flag. A Worker could reset it while another one creates its context.
if (isMainThread) setFlagsFromString('--no-expose-gc');
