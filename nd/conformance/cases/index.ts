import type { Case } from '../runner.js';
import { adapterCases } from './adapter.js';
import { completionCases } from './completion.js';
import { connectCases } from './connect.js';
import { disconnectCases } from './disconnect.js';
import { listenCases } from './listen.js';
import { memoryCases } from './memory.js';
import { queueCases } from './queues.js';
import { regionCases } from './regions.js';
import { scaleCases } from './scale.js';
import { sharedReceiveCases } from './srq.js';
import { stateCases } from './states.js';
import { transferCases } from './transfer.js';
import { v2Cases } from './v2-only.js';
import { windowCases } from './windows.js';

/** All cases, in order of execution. */
export const cases: readonly Case[] = [
  ...adapterCases,
  ...completionCases,
  ...queueCases,
  ...memoryCases,
  ...windowCases,
  ...transferCases,
  ...connectCases,
  ...listenCases,
  ...stateCases,
  ...disconnectCases,
  ...v2Cases,
  ...regionCases,
  ...sharedReceiveCases,
  ...scaleCases,
];
