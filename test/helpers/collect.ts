import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// The flag is set for a moment alone: with other flags V8 compiles the soft kernel's code anew instead of using its code cache.
setFlagsFromString('--expose-gc');
/** Runs a garbage collection. */
export const collect = runInNewContext('gc') as () => void;
setFlagsFromString('--no-expose-gc');
