/** All cases on the devices of Linux guests, in order. */
import { type RdmaCase, rxe, siw } from './case.js';
import { deviceCases, withSiw } from './cases-devices.js';
import { lossCases } from './cases-loss.js';
import { iwarpCases, roceCases } from './cases-peers.js';
import { suiteCases } from './cases-suites.js';
import { valkeyCases } from './cases-valkey.js';

export const cases: readonly RdmaCase[] = [
  ...roceCases(rxe, async () => {}),
  ...deviceCases,
  ...lossCases,
  ...iwarpCases(siw, withSiw),
  ...valkeyCases,
  ...suiteCases,
];
