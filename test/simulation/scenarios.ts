/** All scenarios. */
import type { Scenario } from './scenario.js';
import { crowd, everybody, incast, mice } from './scenarios-crowds.js';
import { hole, reroute } from './scenarios-lengths.js';
import { crash, flap, mads, partition } from './scenarios-outages.js';
import { pair } from './scenarios-pair.js';

export const scenarios: readonly Scenario[] = [
  pair,
  incast,
  everybody,
  mice,
  crowd,
  flap,
  partition,
  crash,
  mads,
  hole,
  reroute,
];
