/** Our own provider follows the rules of both versions with direct access. See conformance-ways.ts. */
import { test } from 'uvu';
import { spiVersions } from '../../nd/conformance/index.js';
import { passesByWay } from '../helpers/conformance-ways.js';
import { long } from '../helpers/tiers.js';

for (const spi of spiVersions) {
  long(test, `SPI ${spi}, memory from allocate(), with direct access`, () => passesByWay(spi, true));
}

test.run();
