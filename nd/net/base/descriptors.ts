/** Errors whose reason is that this process, or the host, has no file descriptor left. */
import { closeSync, openSync } from 'node:fs';
import { constants, devNull } from 'node:os';
import { NetError, textOf } from './errors.js';

/** A listener, a connection to another process, and the soft kernel's thread each take fewer. */
const FOR_CONNECTION = 8;
/** The soft kernel and the HCA take so many when they start, some of them for a moment only. */
const FOR_START = 24;

/**
 * By the code of an error: how many descriptors were wanted at most when it came. Without descriptors the layers below report what they
 * lack: a socket, an answer, a name.
 */
const wanted: Readonly<Record<string, number>> = {
  ECONNREFUSED: FOR_CONNECTION,
  ECONNABORTED: FOR_CONNECTION,
  ECONNRESET: FOR_CONNECTION,
  ENOBUFS: FOR_CONNECTION,
  ENOTFOUND: FOR_CONNECTION,
  EAI_AGAIN: FOR_CONNECTION,
  ERR_SYSTEM_ERROR: FOR_CONNECTION,
  EIO: FOR_START,
  none: FOR_START,
};

const limits = new Map([
  [
    constants.errno.EMFILE,
    { code: 'EMFILE', whose: 'This process', limit: 'its limit (RLIMIT_NOFILE, `ulimit -n`)' },
  ],
  [constants.errno.ENFILE, { code: 'ENFILE', whose: 'This host', limit: 'fs.file-max' }],
]);

/** The limit that keeps this process from opening so many more descriptors; undefined: none does. */
function limitBelow(count: number) {
  const opened: number[] = [];
  try {
    while (opened.length < count) opened.push(openSync(devNull, 'r'));
    return undefined;
  } catch (error) {
    return limits.get(-((error as NodeJS.ErrnoException).errno ?? 0));
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/** The error of a call that has failed: EMFILE or ENFILE with a cure if there are too few descriptors for it, otherwise the error itself. */
export function explained(error: unknown, what: Parameters<typeof textOf>[0]): unknown {
  const { code } = error as { readonly code?: unknown };
  const count = wanted[typeof code === 'string' ? code : 'none'];
  const found = count === undefined ? undefined : limitBelow(count);
  if (found === undefined) return error;
  const sentence = `${found.whose} has fewer than ${count} file descriptors left; close some, or raise ${found.limit}.`;
  const call = typeof what === 'string' ? undefined : what;
  return new NetError(found.code, `${textOf(what)}: ${sentence}`, { cause: error }, call);
}
