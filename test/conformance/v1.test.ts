/** Our own provider keeps every rule of ND SPI v1, in one process and in two. */
import { test } from 'uvu';
import { passesAll } from './passes-all.js';

const here = { by: [] };

test('SPI v1, both halves in one process', () => passesAll('v1', here));

test('SPI v1, in two processes', () => passesAll('v1', here, '--processes', '2'));

test.run();
