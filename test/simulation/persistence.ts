/** A program that reconnects until its transfer is complete, as long as its host is running. */
import type { FlowPlan } from './connection.js';
import type { World } from './world.js';

const AGAIN_MS = 100;

/** Starts a transfer. `world.finish` waits for it. */
export function persist(world: World, plan: Omit<FlowPlan, 'mayFail' | 'onDone' | 'onLost'>): void {
  world.pending += 1;
  const again = () => world.after(AGAIN_MS * (1 + world.below(10)), connect);
  const connect = (): void => {
    if (!plan.client.isOn) {
      again();
      return;
    }
    world.connect({
      ...plan,
      mayFail: true,
      onDone: () => {
        world.pending -= 1;
      },
      onLost: again,
    });
  };
  connect();
}
