import type { MadeCode } from '../../ioctl/layout.js';

/** Generated code of this folder's tables. Empty in the sources; scripts/make-layout-code.mjs writes it into `dist`. */
export const madeCode: MadeCode = {};
