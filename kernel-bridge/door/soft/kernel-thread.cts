/**
 * Entry of the soft kernel's thread. It loads the kernel, and reports to the user side why the kernel could not be loaded or has
 * failed. The user side may be blocked in native code then, so the reason goes through the channel and not by a message.
 *
 * The kernel is many modules, and loading them one by one takes longer than starting the thread. If the build has put them into one
 * file (scripts/bundle-kernel.mjs), this loads that file; so this is a CommonJS module.
 */
import fs = require('node:fs');
import path = require('node:path');
import worker = require('node:worker_threads');

interface Addon {
  failChannel(id: number, reason: string): void;
}

interface Bundle {
  /** The compiled modules that the bundle contains, from its folder; none in the package, where a bundle has no other form. */
  readonly files: readonly string[];
  addon(): Addon;
  /** Runs the kernel's entry. */
  start(): void;
}

/** `entry` is the kernel's entry as a URL, `addon` a module that loads the addon; `bundle` a file with both. */
const { channel, entry, addon, bundle } = worker.workerData as {
  channel: number;
  entry: string;
  addon: string;
  bundle: string | undefined;
};

/** For drivers that programs load (`kernel/drivers/`): `import()` does not work in the bundle, which is one script. */
const hooks = {
  importModule: (url: string): Promise<unknown> => import(url),
  /** Whether an uncaught exception is a driver's. */
  contains: (): boolean => false,
};

function text(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function modifiedAt(file: string): number {
  return fs.statSync(file).mtimeMs;
}

/** The bundle; undefined if it cannot be loaded, or one of its modules was compiled after it. */
function freshBundle(file: string): Bundle | undefined {
  try {
    const madeAt = modifiedAt(file);
    const made = require(file) as Bundle;
    const isOld = made.files.some((one) => modifiedAt(path.join(path.dirname(file), one)) > madeAt);
    return isOld ? undefined : made;
  } catch {
    return undefined;
  }
}

async function main(): Promise<void> {
  const made = bundle === undefined ? undefined : freshBundle(bundle);
  const { failChannel } = made?.addon() ?? ((await import(addon)) as { loadAddon(): Addon }).loadAddon();
  worker.workerData.hooks = hooks;
  process.on('uncaughtExceptionMonitor', (error) => {
    if (!hooks.contains()) failChannel(channel, `the soft kernel failed with ${text(error)}`);
  });
  try {
    if (made === undefined) await import(entry);
    else made.start();
  } catch (error) {
    failChannel(channel, `the soft kernel could not be loaded: ${text(error)}`);
    throw error;
  }
}

// A rejection ends the thread, as any unhandled error does.
void main();
