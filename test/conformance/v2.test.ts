/** Our own provider keeps every rule of ND SPI v2, in one process and in two. */
import { test } from 'uvu';
import { passesAll } from './passes-all.js';

const here = { by: [] };

test('SPI v2, both halves in one process', () => passesAll('v2', here));

test('SPI v2, in two processes', () => passesAll('v2', here, '--processes', '2'));

test.run();
