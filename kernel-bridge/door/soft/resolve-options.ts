import { isDeepStrictEqual } from 'node:util';
import { shown, shownJson } from '../../ioctl/shown.js';
import { Status, StatusError } from '../../ioctl/status.js';
import {
  type KernelOptions,
  type KernelOptionsInput,
  kernelOptionsSchema,
  type OptionsIssue,
} from '../../option-checks/option-schemas.js';
import { defaultOptions } from '../../schema/generated/options.js';

/** The environment variable with options for programs that pass none: JSON of {@link KernelOptionsInput}. */
export const optionsVariable = 'ND_OPTIONS';

/**
 * Checks options and fills in the defaults. Without options, `ND_OPTIONS` is used.
 *
 * @throws StatusError INVALID_PARAMETER with the field, its limit and the value.
 */
export function resolveKernelOptions(
  options: KernelOptionsInput | undefined,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): KernelOptions {
  if (options !== undefined) return parse(options, '`options`', '');
  const json = environment[optionsVariable];
  if (json === undefined || json.trim() === '') return structuredClone(defaultOptions);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `${optionsVariable} must be a JSON object such as {"keepAliveMs":1000}; got ${shown(json)} ` +
        `(${error instanceof Error ? error.message : String(error)}).`,
      { cause: error },
    );
  }
  return parse(value, optionsVariable, `${optionsVariable}: `);
}

/**
 * Options that every open decides for itself: the kernel was chosen before, and the timeout is that of the open. On Windows, `hca`
 * chooses NetworkDirect providers.
 */
const ofEachOpen: ReadonlySet<string> = new Set([
  'kernel',
  'startTimeoutMs',
  ...(process.platform === 'win32' ? ['hca'] : []),
]);

/**
 * Checks options for a kernel that has already started with others, which it cannot change. Options that are not given do not matter.
 *
 * @throws StatusError INVALID_PARAMETER with the first option that differs, as {@link resolveKernelOptions} otherwise.
 */
export function checkSameOptions(given: KernelOptionsInput, used: KernelOptions): void {
  const wanted = resolveKernelOptions(given);
  for (const name of Object.keys(given) as (keyof KernelOptions)[])
    if (!ofEachOpen.has(name)) checkSame([name], given[name], wanted[name], used[name]);
}

function checkSame(path: readonly string[], given: unknown, wanted: unknown, used: unknown): void {
  if (given === undefined) return;
  if (path.length === 1 && ['cm', 'rc', 'faults'].includes(path[0]!)) {
    for (const name of Object.keys(given as object))
      checkSame([...path, name], at(given, [name]), at(wanted, [name]), at(used, [name]));
    return;
  }
  if (isDeepStrictEqual(wanted, used)) return;
  throw new StatusError(
    Status.INVALID_PARAMETER,
    `\`${path.join('.')}\` must be ${shownJson(used)}, because this thread's kernel has started with it; got ${shownJson(given)}. ` +
      `Omit it, or pass it to the first open or in ${optionsVariable}.`,
  );
}

function parse(value: unknown, whole: string, prefix: string): KernelOptions {
  const result = kernelOptionsSchema.safeParse(value);
  if (result.success) return result.data;
  const texts = new Map<string, string>();
  for (const issue of result.error.issues) {
    const at = issue.path.join('.');
    if (!texts.has(at)) texts.set(at, `${at === '' ? '' : prefix}${describe(issue, value, whole)}.`);
  }
  // zod's error is not the cause, because it would print the same information again in many lines.
  throw new StatusError(Status.INVALID_PARAMETER, [...texts.values()].join(' '));
}

/** Describes a mistake. `whole` names the object with all options. */
function describe(issue: OptionsIssue, value: unknown, whole: string): string {
  const { path, code } = issue;
  const placeOf = (keys: readonly PropertyKey[]): string =>
    keys.length === 0 ? whole : `\`${keys.join('.')}\``;
  if (code === 'unrecognized_keys') {
    const known = Object.keys(at(defaultOptions, path) ?? {}).join(', ');
    return `${placeOf(path)} must contain only ${known}; got ${(issue.keys ?? []).map(shown).join(', ')}`;
  }
  if (code === 'invalid_key') {
    const reason = issue.issues?.[0]?.message ?? issue.message;
    return `${placeOf(path.slice(0, -1))} ${reason}; got ${shown(path.at(-1))}`;
  }
  return `${placeOf(path)} ${issue.message}; got ${shownJson(at(value, path))}`;
}

/** The value at a path in nested objects. */
function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (outer, key) =>
      typeof outer === 'object' && outer !== null ? (outer as Record<PropertyKey, unknown>)[key] : undefined,
    value,
  );
}
