/** Options of programs that need their own, in addition to the matrix's options for all programs (captures). */
import type { KernelOptionsInput } from '../../../winverbs/index.js';

/** Returns `own` in addition to the options of `ND_OPTIONS`. */
export function optionsWith(own: KernelOptionsInput): KernelOptionsInput {
  const common: KernelOptionsInput = JSON.parse(process.env.ND_OPTIONS ?? '{}');
  return { ...common, ...own };
}
