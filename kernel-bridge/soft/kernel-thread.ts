/**
 * Entry of the soft kernel's thread: loads the kernel, and when that fails, or the kernel fails later, tells the
 * user side why. The user side may be blocked in native code then, so the reason takes the channel and not a message.
 */
import { workerData } from 'node:worker_threads';
import { addon } from '../hca/index.js';

const { channel, entry } = workerData as { channel: number; entry: string };

function text(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

process.on('uncaughtExceptionMonitor', (error) => {
  addon.failChannel(channel, `the soft kernel failed with ${text(error)}`);
});

try {
  await import(entry);
} catch (error) {
  addon.failChannel(channel, `the soft kernel could not be loaded: ${text(error)}`);
  throw error;
}
