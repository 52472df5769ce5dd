/** All attacks, in the order of a run. */
import type { Attack } from './attack.js';
import { cmAttacks } from './cm.js';
import { halfOpenAttacks } from './half-open.js';
import { hoardAttack } from './hoard.js';
import { ioctlAttack } from './ioctl.js';
import { keptTokenAttacks } from './kept-tokens.js';
import { killAttacks } from './kills.js';
import { sharedMapAttack } from './shared-map.js';
import { stuckAttack } from './stuck.js';
import { wireAttacks } from './wire.js';

export const attacks: readonly Attack[] = [
  ...wireAttacks,
  ...cmAttacks,
  ...halfOpenAttacks,
  ioctlAttack,
  hoardAttack,
  ...keptTokenAttacks,
  ...killAttacks,
  sharedMapAttack,
  stuckAttack,
];
