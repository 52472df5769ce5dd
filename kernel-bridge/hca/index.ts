import { createRequire } from 'node:module';
import type { AddonBinding } from './binding.js';
import { channelServer, type RawChannelServer } from './channel-server.js';
import { hcaOfWords, type RawHca } from './hca-words.js';

const require = createRequire(import.meta.url);

/** Relative to the compiled file, `dist/kernel-bridge/hca/`. */
const builtAddon = '../../../build/Release/networkdirect_hca.node';

/** The addon as native code makes it. */
type RawBinding = Omit<AddonBinding, 'serveChannel' | 'openHca' | 'ringReceive'> & {
  openHca(...parameters: Parameters<AddonBinding['openHca']>): RawHca;
  serveChannel(id: number, onRequest: () => void): RawChannelServer;
};

function loadRaw(): RawBinding {
  const path = process.env.NETWORKDIRECT_HCA_ADDON ?? builtAddon;
  try {
    return require(path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split('\n')[0]! : String(cause);
    const hint = why.includes('Too many open files')
      ? 'This process has no file descriptor left for it; close some, or raise its limit (RLIMIT_NOFILE, ulimit -n).'
      : 'Installing the package builds it and takes a C++17 compiler, make and Python 3; `npm rebuild networkdirect` does it again.';
    throw new Error(`The software HCA's native addon cannot be loaded (${why}). ${hint}`, { cause });
  }
}

let addon: AddonBinding | undefined;

/**
 * Loads the native addon on the first call; a program that only drives another HCA does not need it.
 *
 * @throws Error with the reason why it cannot be loaded, and the command that builds it.
 */
export function loadAddon(): AddonBinding {
  if (addon === undefined) {
    const raw = loadRaw();
    addon = {
      ...raw,
      // One doorbell for both queues of a queue pair: the engine looks at whatever is new.
      ringReceive: raw.ring,
      openHca: (options, onEvent, server) => hcaOfWords(raw.openHca(options, onEvent, server)),
      serveChannel: (id, onRequest) => channelServer(raw.serveChannel(id, onRequest)),
    };
  }
  return addon;
}

export * from './abi.js';
export * from './binding.js';
export * from './channel-binding.js';
