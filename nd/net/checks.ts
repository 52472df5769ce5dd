/** Refusals of what a program gives, with the codes that Node.js has for them. */

/** What a value is, for a sentence. */
export function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value;
}

/** The error of a value of another type than is taken. */
export function wrongType(sentence: string): TypeError & { code: string } {
  return Object.assign(new TypeError(sentence), { code: 'ERR_INVALID_ARG_TYPE' });
}

/** The error of a value that is too small or too large. */
export function outOfRange(sentence: string): RangeError & { code: string } {
  return Object.assign(new RangeError(sentence), { code: 'ERR_OUT_OF_RANGE' });
}
