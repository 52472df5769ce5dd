/** How errors show the value that they reject. */

/** The longest text that an error repeats. */
const MOST = 80;

/** Describes the kind of a value, such as `a string` or `an array`. For data, which errors must not contain. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  const kind = typeof value === 'object' ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;
  const name = kind === 'Object' || kind === 'Array' ? kind.toLowerCase() : cut(kind);
  return `${/^[aeio]/i.test(name) ? 'an' : 'a'} ${name}`;
}

/** Shortens a text. */
const cut = (text: string): string => (text.length > MOST ? `${text.slice(0, MOST)}…` : text);

/** Shows a value, bounded in length: strings in quotes, bigints with their `n`, and the kind of objects and functions. */
export function shown(value: unknown): string {
  if (typeof value === 'object' || typeof value === 'function') return kindOf(value);
  const text = cut(typeof value === 'bigint' ? `${value}n` : String(value));
  return typeof value === 'string' ? `'${text}'` : text;
}

/** The same as {@link shown}, with non-negative integers in hexadecimal: for flags. */
export function shownFlags(value: unknown): string {
  const isNumber = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
  return isNumber ? `0x${value.toString(16)}` : shown(value);
}

/** The same as {@link shown}, with objects and arrays as JSON: for options, which contain no secrets. */
export function shownJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return shown(value);
  try {
    return cut(JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? `${one}n` : one)));
  } catch {
    return kindOf(value);
  }
}
