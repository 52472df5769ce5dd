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
  if (options !== undefined) return parse(options, 'Option');
  const json = environment[optionsVariable];
  if (json === undefined || json.trim() === '') return structuredClone(defaultOptions);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `${optionsVariable} must be JSON (${error instanceof Error ? error.message : String(error)}); ` +
        `use an object such as {"keepAliveMs":1000}.`,
      { cause: error },
    );
  }
  return parse(value, `${optionsVariable}: option`);
}

function parse(value: unknown, prefix: string): KernelOptions {
  const result = kernelOptionsSchema.safeParse(value);
  if (result.success) return result.data;
  const text = result.error.issues.map((issue) => `${prefix} ${describe(issue, value)}`).join('; ');
  // Without zod's error as the cause, which would print the same again in many lines.
  throw new StatusError(Status.INVALID_PARAMETER, `${text}.`);
}

function describe(issue: OptionsIssue, value: unknown): string {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    const names = (issue.keys ?? []).map((key) => `'${[...path, key].join('.')}'`).join(', ');
    const known = Object.keys(at(defaultOptions, path) ?? {}).join(', ');
    return `${names} is not known; ${path.length === 0 ? 'valid options are' : `'${path.join('.')}' has`} ${known}`;
  }
  const field = path.length === 0 ? 'object' : `'${path.join('.')}'`;
  const reason = issue.code === 'invalid_key' ? (issue.issues?.[0]?.message ?? issue.message) : issue.message;
  return `${field} cannot be ${shown(at(value, path))}: ${reason}`;
}

/** The value at a path in nested objects. */
function at(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (outer, key) =>
      typeof outer === 'object' && outer !== null ? (outer as Record<PropertyKey, unknown>)[key] : undefined,
    value,
  );
}

function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}
