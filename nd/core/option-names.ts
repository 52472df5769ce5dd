/** Checks of option names, because a misspelt name would otherwise silently mean the default. */
import { Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** All names of an options type. */
export type OptionNames<O> = Readonly<Record<keyof O, true>>;

/** INVALID_PARAMETER unless `options` is an object without other names than these. */
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
