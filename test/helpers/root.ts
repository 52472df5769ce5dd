import { fileURLToPath } from 'node:url';

/** The folder of the sources. */
export const root = fileURLToPath(new URL('../../../', import.meta.url));
