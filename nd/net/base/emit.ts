/** Calls to the program's listeners and handlers. */
import type { EventEmitter } from 'node:events';

/**
 * As in `node:net`, an exception in a listener or handler of the program becomes an uncaught exception and does not fail the connection.
 */
export function uncaught(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/** Emits an event. Exceptions in listeners are handled as in {@link uncaught}. */
export function emitEvent(emitter: EventEmitter, event: string, ...details: unknown[]): void {
  try {
    emitter.emit(event, ...details);
  } catch (error) {
    uncaught(error);
  }
}
