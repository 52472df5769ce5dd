/** Our own provider follows the rules of both versions without direct access. See conformance-ways.ts. */
import { test } from 'uvu';
import { spiVersions } from '../../nd/conformance/index.js';
import { passesByWay } from '../helpers/conformance-ways.js';
import { long } from '../helpers/tiers.js';

for (const spi of spiVersions) {
  long(test, `SPI ${spi}, memory from allocate(), everything over the link`, () => passesByWay(spi, false));
}

test.run();
