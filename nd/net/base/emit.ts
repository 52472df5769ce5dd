/** Calls of a program's listeners and handlers. */
import type { EventEmitter } from 'node:events';

/** What a program's listener or handler has thrown is an uncaught exception, as in `node:net`, and no error of a connection. */
export function uncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** Emits an event; see {@link uncaught}. */
export function tell(emitter: EventEmitter, event: string, ...details: unknown[]): void {
  try {
    emitter.emit(event, ...details);
  } catch (error) {
    uncaught(error);
  }
}
