/** Our own provider follows every rule of ND SPI v2, in one process and in two. */
import { test } from 'uvu';
import { passesAll } from '../helpers/conformance-passes.js';
import { long } from '../helpers/tiers.js';

const here = { by: [] };

long(test, 'SPI v2, both halves in one process', () => passesAll('v2', here));

long(test, 'SPI v2, in two processes', () => passesAll('v2', here, '--processes', '2'));

// By default two processes on one host use shared memory.
const onTheWire = { by: [], kernel: { link: 'wire' } } as const;

test('SPI v2, in two processes, over the network', () => passesAll('v2', onTheWire, '--processes', '2'));

test.run();
