/** How calls and requests end: in a status, or in an error that has one. Errors of other kinds are thrown on. */
import * as assert from 'uvu/assert';
import { Status, StatusError, statusName } from '../../kernel-bridge/ioctl/status.js';
import { WvError } from '../../winverbs/status.js';

function statusIn(error: unknown): number {
  if (error instanceof StatusError) return error.status;
  throw error;
}

/** The status that a request is rejected with; SUCCESS if it is not. */
export async function outcome(request: PromiseLike<unknown>): Promise<number> {
  return Promise.resolve(request).then(() => Status.SUCCESS, statusIn);
}

/** Its name. */
export async function outcomeName(request: PromiseLike<unknown>): Promise<string> {
  return statusName(await outcome(request));
}

/** The status that a call throws; SUCCESS if it does not throw. */
export function thrownStatus(call: () => unknown): number {
  try {
    call();
    return Status.SUCCESS;
  } catch (error) {
    return statusIn(error);
  }
}

/** Its name. */
export function thrownName(call: () => unknown): string {
  return statusName(thrownStatus(call));
}

/** The error that a call throws. */
export function refusal(call: () => unknown): StatusError {
  try {
    call();
  } catch (error) {
    assert.instance(error, StatusError, `threw ${String(error)}`);
    return error as StatusError;
  }
  throw new Error('it should have been refused');
}

/** Its name and message. */
export function refusalText(call: () => unknown): string {
  const { code, message } = refusal(call);
  return `${code}: ${message}`;
}

/** Asserts that a call throws an error of this status, with such a message; returns it. */
export function throwsStatus(call: () => unknown, status: number, text = /./): StatusError {
  const error = refusal(call);
  assert.is(error.status, status, error.message);
  assert.match(error.message, text);
  return error;
}

/** Asserts that a request ends in a status, with a message that fits. */
export async function rejectsWith(
  request: PromiseLike<unknown>,
  status: number,
  text: RegExp,
): Promise<void> {
  const error = await Promise.resolve(request).then(
    () => undefined,
    (reason: Error & { status?: number }) => reason,
  );
  assert.is(error?.status, status, `${error}`);
  assert.match(error?.message ?? '', text);
}

/** Asserts that a call of WinVerbs throws an error of this status, with such a message. */
export function throwsWv(call: () => unknown, status: number, text?: RegExp): void {
  assert.instance(throwsStatus(call, status, text), WvError);
}
