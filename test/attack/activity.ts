/** Continuous activities of victims, in addition to the bystanders' connection, and their state. */
import { StatusError, statusName } from '../../winverbs/index.js';

/** The state of an activity. */
export interface ActivityHealth {
  readonly name: string;
  /** Number of rounds that have completed correctly. */
  rounds: number;
  /** The first error. */
  failure: string | undefined;
  readonly figures: Record<string, number>;
}

export interface Activity {
  readonly health: ActivityHealth;
  /** Whether the activity uses the other victim, which must then exist until the activity has stopped. */
  readonly asks: boolean;
  /** Stops it and releases its objects. */
  stop(): Promise<void>;
}

/** The state of an activity before its start. */
export function newHealth(name: string, figures: Record<string, number> = {}): ActivityHealth {
  return { name, rounds: 0, failure: undefined, figures };
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** An activity that uses the other victim. It repeats `one`, several at a time, at random intervals. */
export function asking(
  health: ActivityHealth,
  atOnce: number,
  one: () => Promise<void>,
  pause: () => number,
): Activity {
  let stopped = false;
  const running = Array.from({ length: atOnce }, () =>
    watched(health, health.name, async () => {
      while (!stopped) {
        await one();
        await sleep(pause());
      }
    }),
  );
  return {
    health,
    asks: true,
    stop: async () => {
      stopped = true;
      await Promise.all(running);
    },
  };
}

/** Runs until it is stopped or fails; records the failure. */
export async function watched(health: ActivityHealth, what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    const text =
      error instanceof StatusError
        ? `${statusName(error.status)}: ${error.message}`
        : error instanceof Error
          ? error.message
          : String(error);
    health.failure ??= `${what}: ${text}`;
  }
}
