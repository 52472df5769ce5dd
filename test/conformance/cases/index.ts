import type { Case } from '../runner.js';
import { adapterCases } from './adapter.js';
import { completionCases } from './completion.js';
import { connectCases } from './connect.js';
import { disconnectCases } from './disconnect.js';
import { memoryCases } from './memory.js';
import { queueCases } from './queues.js';
import { scaleCases } from './scale.js';
import { stateCases } from './states.js';
import { transferCases } from './transfer.js';

/** All cases, in the order in which they are run. */
export const cases: readonly Case[] = [
  ...adapterCases,
  ...completionCases,
  ...queueCases,
  ...memoryCases,
  ...transferCases,
  ...connectCases,
  ...stateCases,
  ...disconnectCases,
  ...scaleCases,
];
