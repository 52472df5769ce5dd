/** All cases of the interop matrix: role × operation × address family × MTU × loss. */
import type { InteropCase } from './case.js';
import { addressCases } from './cases-addresses.js';
import { cmCases } from './cases-cm.js';
import { datagramCases } from './cases-datagram.js';
import { verbsCases } from './cases-errors.js';
import { lateAckCases } from './cases-late-acks.js';
import { lossCases } from './cases-loss.js';
import { nvmeCases } from './cases-nvme.js';
import { partitionCases } from './cases-partitions.js';
import { perftestCases } from './cases-perftest.js';
import { processCases } from './cases-processes.js';
import { qperfCases } from './cases-qperf.js';
import { rcCases } from './cases-rc.js';
import { recoveryCases } from './cases-recovery.js';
import { disturbedRpingCases, rpingCases } from './cases-rping.js';
import { ucCases } from './cases-uc.js';
import { valkeyCases } from './cases-valkey.js';

export const cases: readonly InteropCase[] = [
  ...rpingCases,
  ...rcCases,
  ...cmCases,
  ...datagramCases,
  ...verbsCases,
  ...perftestCases,
  ...qperfCases,
  ...disturbedRpingCases,
  ...lateAckCases,
  ...lossCases,
  ...recoveryCases,
  ...partitionCases,
  ...nvmeCases,
  ...valkeyCases,
  ...ucCases,
  ...addressCases,
  ...processCases,
];
