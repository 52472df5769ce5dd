/**
 * The level at which kernel code runs. Verbs run at DISPATCH_LEVEL, where nothing may wait. Code that could wait, such
 * as reading files, is guarded by {@link assertPassive}.
 */
import { DriverFault } from './irp.js';

/** Nesting depth of routines at DISPATCH_LEVEL. */
let raised = 0;

/** Runs a routine at DISPATCH_LEVEL. */
export function atDispatchLevel<T>(routine: () => T): T {
  raised++;
  try {
    return routine();
  } finally {
    raised--;
  }
}

/** For code that may wait. @throws DriverFault at DISPATCH_LEVEL. */
export function assertPassive(what: string): void {
  if (raised > 0) throw new DriverFault(`${what} may wait, which is not allowed at DISPATCH_LEVEL`);
}
