/**
 * The level at which kernel code runs. At DISPATCH_LEVEL nothing may wait: verbs, the filter's requests, events of HCAs,
 * connection management, call-backs. Code that could wait, such as reading files, is guarded by {@link assertPassive};
 * others queue it as a work item.
 */

/** A driver broke a rule of the I/O manager. No caller's input can cause it. */
export class DriverFault extends Error {
  /** `DriverFault`. */
  override readonly name = 'DriverFault';
}

/** Nesting depth of routines at DISPATCH_LEVEL. */
let raised = 0;

/** Calls a routine at DISPATCH_LEVEL, with the argument if it has one. */
export function atDispatchLevel<R>(routine: () => R): R;
export function atDispatchLevel<A, R>(routine: (argument: A) => R, argument: A): R;
export function atDispatchLevel<A, R>(routine: (argument: A | undefined) => R, argument?: A): R {
  raised++;
  try {
    return routine(argument);
  } finally {
    raised--;
  }
}

/** Runs code that may be broken off without its `finally` blocks: afterwards the level is as before. */
export function atSameLevel<T>(code: () => T): T {
  const before = raised;
  try {
    return code();
  } finally {
    raised = before;
  }
}

/** Whether code that may wait can run now. */
export function isPassive(): boolean {
  return raised === 0;
}

/** For code that may wait. @throws DriverFault at DISPATCH_LEVEL. */
export function assertPassive(what: string): void {
  if (raised > 0) throw new DriverFault(`${what} may wait, which is not allowed at DISPATCH_LEVEL`);
}
