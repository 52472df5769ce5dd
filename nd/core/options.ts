/** The doors that take objects of options: a misspelt name would otherwise be a default that nobody asked for. */
import { Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** The names of an options type, all of them. */
export type OptionNames<O> = Readonly<Record<keyof O, true>>;

/** INVALID_PARAMETER unless `options` is an object that has no other names than these. */
export function checkOptions<O extends object>(what: string, options: O, names: OptionNames<O>): void {
  const known = (): string => Object.keys(names).join(', ');
  if (typeof options !== 'object' || options === null) {
    throw refuse(Status.INVALID_PARAMETER, what, `The options are an object of ${known()}, not ${options}.`);
  }
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(names, name)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `The option '${name}' is not known; there are ${known()}.`,
      );
    }
  }
}
