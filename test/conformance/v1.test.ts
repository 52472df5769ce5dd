/** Our own provider keeps every rule of ND SPI v1, in one process and in two. */
import { test } from 'uvu';
import { passesAll } from './passes-all.js';

test('SPI v1, both halves in one process', () => passesAll('v1'));

test('SPI v1, in two processes', () => passesAll('v1', '--processes', '2'));

test.run();
