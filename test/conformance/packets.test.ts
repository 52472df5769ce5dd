/** Our own provider obeys the rules of both versions without direct access: conformance-ways.ts. */
import { test } from 'uvu';
import { passesByWay } from '../helpers/conformance-ways.js';
import { long } from '../helpers/tiers.js';
import { spiVersions } from './index.js';

for (const spi of spiVersions) {
  long(test, `SPI ${spi}, memory of allocate(), all by the link`, () => passesByWay(spi, false));
}

test.run();
