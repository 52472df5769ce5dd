/** The results of calls and requests: a status, or an error that has one. Other errors are rethrown. */
import * as assert from 'uvu/assert';
import { Status, StatusError, statusName } from '../../kernel-bridge/ioctl/status.js';
import { WvError } from '../../winverbs/status.js';

function statusIn(error: unknown): number {
  if (error instanceof StatusError) return error.status;
  throw error;
}

/** The status with which a request is rejected; SUCCESS if it is not. */
export async function outcome(request: PromiseLike<unknown>): Promise<number> {
  return Promise.resolve(request).then(() => Status.SUCCESS, statusIn);
}

/** The name of the status of {@link outcome}. */
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

/** The name of the status of {@link thrownStatus}. */
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
  throw new Error('The call must be rejected.');
}

/** The name and message of the error that a call throws. */
export function refusalText(call: () => unknown): string {
  const { code, message } = refusal(call);
  return `${code}: ${message}`;
}

/** Asserts that a call throws an error with this status and a matching message. Returns the error. */
export function throwsStatus(call: () => unknown, status: number, text = /./): StatusError {
  const error = refusal(call);
  assert.is(error.status, status, error.message);
  assert.match(error.message, text);
  return error;
}

/** Asserts that a request fails with a status and a matching message. */
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

/** Asserts that a WinVerbs call throws an error with this status and a matching message. */
export function throwsWv(call: () => unknown, status: number, text?: RegExp): void {
  assert.instance(throwsStatus(call, status, text), WvError);
}
