/**
 * The interrupt request level of running kernel code. At DISPATCH_LEVEL nothing may block: verbs, the filter's requests, events of
 * HCAs, connection management, callbacks. Code that could block, such as reading files, is guarded by {@link
 * assertPassive}; callers at DISPATCH_LEVEL queue it as a work item.
 */

/** A violation of the I/O manager's rules by a driver. No caller's input can cause it. */
export class DriverFault extends Error {
  /** `DriverFault`. */
  override readonly name = 'DriverFault';
}

/** Nesting depth of routines at DISPATCH_LEVEL. */
let raised = 0;

/** Calls a routine at DISPATCH_LEVEL, with the argument if there is one. */
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

/** Runs code that may be interrupted without its `finally` blocks, and restores the level afterwards. */
export function atSameLevel<T>(code: () => T): T {
  const before = raised;
  try {
    return code();
  } finally {
    raised = before;
  }
}

/** Whether code that may block can run now. */
export function isPassive(): boolean {
  return raised === 0;
}

/** Guards code that may block. @throws DriverFault at DISPATCH_LEVEL. */
export function assertPassive(what: string): void {
  if (raised > 0) throw new DriverFault(`${what} may block, which is not allowed at DISPATCH_LEVEL`);
}
