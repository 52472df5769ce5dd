import { loadAddonFile } from './addon-file.js';
import { type RawHca, softHcaOf } from './command-words.js';
import { channelServer, type RawChannelServer } from './request-channel-server.js';
import type { AddonBinding } from './soft-hca-binding.js';

/** The addon as created by native code. */
type RawBinding = Omit<AddonBinding, 'serveChannel' | 'openHca' | 'ringReceiveDoorbell'> & {
  openHca(...parameters: Parameters<AddonBinding['openHca']>): RawHca;
  serveChannel(id: number, onRequest: () => void): RawChannelServer;
};

let addon: AddonBinding | undefined;

/**
 * Loads the native addon on the first call; a program that uses only other HCAs does not need it.
 *
 * @throws Error with the reason why it cannot be loaded, and the command that builds it.
 */
export function loadAddon(): AddonBinding {
  if (addon === undefined) {
    const raw = loadAddonFile('hca') as RawBinding;
    addon = {
      ...raw,
      // One doorbell for both queues of a queue pair: the engine checks both.
      ringReceiveDoorbell: raw.ringDoorbell,
      openHca: (options, onEvent, server) => softHcaOf(raw.openHca(options, onEvent, server)),
      serveChannel: (id, onRequest) => channelServer(raw.serveChannel(id, onRequest)),
    };
  }
  return addon;
}

export { checkThreadsAllowed } from './permissions.js';
export * from './request-channel-binding.js';
export * from './soft-hca-binding.js';
