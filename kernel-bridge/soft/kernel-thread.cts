/**
 * Entry of the soft kernel's thread: loads the kernel, and when that fails, or the kernel fails later, tells the
 * user side why. The user side may be blocked in native code then, so the reason takes the channel and not a message.
 *
 * The kernel is sixty modules, and loading them one by one takes longer than starting the thread: where a build has
 * put them into one file (scripts/bundle-kernel.mjs), that is what is loaded. So this is a CommonJS module.
 */
import fs = require('node:fs');
import path = require('node:path');
import vm = require('node:vm');
import worker = require('node:worker_threads');

interface Addon {
  failChannel(id: number, reason: string): void;
}

interface Bundle {
  /** The compiled modules that it was made of. */
  readonly files: readonly string[];
  addon(): Addon;
  /** Runs the kernel's entry. */
  start(): void;
}

/** `entry` is the kernel's entry as a URL, `addon` a module that exports the addon; `bundle` a file with both. */
const { channel, entry, addon, bundle } = worker.workerData as {
  channel: number;
  entry: string;
  addon: string;
  bundle: string | undefined;
};

function text(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function modifiedAt(file: string): number {
  return fs.statSync(file).mtimeMs;
}

/** What V8 made of the bundle when it was built; undefined where that was another bundle. */
function keptCode(file: string, source: string): Buffer | undefined {
  if (!fs.existsSync(file)) return undefined;
  const kept = fs.readFileSync(file);
  const end = kept.indexOf('*/') + 2;
  return source.startsWith(kept.toString('latin1', 0, end)) ? kept.subarray(end) : undefined;
}

/** The bundle, unless it cannot be had, or one of its modules was compiled after it. */
function freshBundle(file: string): Bundle | undefined {
  try {
    const madeAt = modifiedAt(file);
    const source = fs.readFileSync(file, 'utf8');
    const cachedData = keptCode(file.replace(/cjs$/, 'cache'), source);
    // Code that another Node or other flags have made is not used by V8.
    const script = new vm.Script(source, { filename: file, ...(cachedData === undefined ? {} : { cachedData }) });
    const made = {} as Bundle;
    script.runInThisContext()(made, require, path.dirname(file));
    return made.files.some((one) => modifiedAt(one) > madeAt) ? undefined : made;
  } catch {
    return undefined;
  }
}

async function main(): Promise<void> {
  const made = bundle === undefined ? undefined : freshBundle(bundle);
  const { failChannel } = made?.addon() ?? ((await import(addon)) as { addon: Addon }).addon;
  process.on('uncaughtExceptionMonitor', (error) => {
    failChannel(channel, `the soft kernel failed with ${text(error)}`);
  });
  try {
    if (made === undefined) await import(entry);
    else made.start();
  } catch (error) {
    failChannel(channel, `the soft kernel could not be loaded: ${text(error)}`);
    throw error;
  }
}

// A rejection ends the thread, as any error that nobody handles.
void main();
