/** Options of programs that need some of their own: what the matrix asks of all (captures) stays. */
import type { KernelOptionsInput } from '../../../winverbs/index.js';

/** `own`, and beside it what `ND_OPTIONS` says. */
export function optionsWith(own: KernelOptionsInput): KernelOptionsInput {
  const common: KernelOptionsInput = JSON.parse(process.env.ND_OPTIONS ?? '{}');
  return { ...common, ...own };
}
