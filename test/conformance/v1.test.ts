/** Our own provider follows every rule of ND SPI v1, in one process and in two. */
import { test } from 'uvu';
import { passesAll } from '../helpers/conformance-passes.js';
import { long } from '../helpers/tiers.js';

const here = { by: [] };

test('SPI v1, both halves in one process', () => passesAll('v1', here));

long(test, 'SPI v1, in two processes', () => passesAll('v1', here, '--processes', '2'));

// By default two processes on one host use shared memory.
const onTheWire = { by: [], kernel: { link: 'wire' } } as const;

long(test, 'SPI v1, in two processes, over the network', () =>
  passesAll('v1', onTheWire, '--processes', '2'),
);

test.run();
