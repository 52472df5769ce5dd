/**
 * The level that kernel code runs at. Verbs run at DISPATCH_LEVEL, where nothing may wait: what could wait, reading files
 * for instance, says so by {@link assertPassive}.
 */
import { DriverFault } from './irp.js';

/** Routines at DISPATCH_LEVEL that are running, one inside the other. */
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
