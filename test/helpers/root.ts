import { fileURLToPath } from 'node:url';

/** The root folder of the sources. */
export const root = fileURLToPath(new URL('../../../', import.meta.url));
