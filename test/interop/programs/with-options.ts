/** Options of programs that need some of their own, besides those of the matrix for all programs (captures). */
import type { KernelOptionsInput } from '../../../winverbs/index.js';

/** `own`, in addition to those of `ND_OPTIONS`. */
export function optionsWith(own: KernelOptionsInput): KernelOptionsInput {
  const common: KernelOptionsInput = JSON.parse(process.env.ND_OPTIONS ?? '{}');
  return { ...common, ...own };
}
