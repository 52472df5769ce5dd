/**
 * The soft kernel's Worker: opens the HCA, builds the kernel, and serves the channel of `workerData`. If it cannot
 * start, every open of a device file fails with the reason.
 */
import { getSystemErrorName } from 'node:util';
import { workerData } from 'node:worker_threads';
import { loadAddon } from '../hca/index.js';
import { ChannelMajor, type NativeChannelServer } from '../hca/request-channel-binding.js';
import type { SoftHca } from '../hca/soft-hca-binding.js';
import { loadVerbsAddon } from '../hca/verbs-binding.js';
import { Status } from '../ioctl/status.js';
import type { KernelOptions } from '../option-checks/option-schemas.js';
import { awaitOptions, type OptionsDelivery, reportWarning } from '../option-checks/options-delivery.js';
import { createConnectionManager } from './cm/connection-manager.js';
import type { ThreadHooks } from './drivers/driver-host.js';
import { SystemNetwork } from './hca-driver/network-interfaces.js';
import { Kernel } from './kernel.js';
import { softHca } from './soft-hca/soft-hca.js';
import { realHcas } from './verbs-hca/choose-hcas.js';

/** Maximum number of driver faults reported as warnings; further ones are only counted. */
const maxReportedFaults = 10;

/** Warns about problems that do not prevent the kernel from starting. */
function warnOf(
  hca: SoftHca,
  { capture }: KernelOptions,
  beside: boolean,
  warn: (text: string) => void,
): void {
  if (hca.wireProblem !== '' && !beside) warn(hca.wireProblem);
  if (capture !== '' && (hca.counters().capture_errors ?? 0) > 0) {
    warn(`The capture file '${capture}' cannot be written; nothing is recorded.`);
  }
}

/** Runs `serve` on each wake-up, and again on the next turn of the event loop as long as it returns true. */
function pump(serve: () => boolean): () => void {
  let scheduled = false;
  const run = (): void => {
    scheduled = false;
    if (!serve() || scheduled) return;
    scheduled = true;
    setImmediate(run);
  };
  return run;
}

/** The text of a driver fault; for an exception, with its stack. */
function textOf({ message, cause }: Error): string {
  const stack = cause instanceof Error ? (cause.stack ?? '').split('\n').slice(1, 4) : [];
  return [`A driver of the soft kernel has failed: ${message}`, ...stack].join('\n');
}

function serveKernel(
  kernel: Kernel,
  server: NativeChannelServer,
  events: () => void,
  warn: (text: string) => void,
): () => boolean {
  kernel.io.onFault = (fault) => {
    if (kernel.io.counters.driverFaults <= maxReportedFaults) warn(textOf(fault));
  };
  kernel.io.onChannelClosed = () => {
    kernel.close();
    server.close();
  };
  events();
  return () => kernel.serveRequests();
}

/** Completes every request with the reason why the kernel did not start. */
function refuseAll(server: NativeChannelServer, reason: string): () => boolean {
  const sentence = new TextEncoder().encode(reason);
  return () => {
    for (let request = server.take(); request; request = server.take()) {
      const { major, slot, serial } = request;
      if (slot < 0) {
        server.close();
        return false;
      }
      if (major === ChannelMajor.create) {
        server.complete(slot, serial, Status.DEVICE_NOT_READY, sentence.length, sentence);
      } else if (major !== ChannelMajor.cancel) {
        server.complete(slot, serial, Status.DEVICE_NOT_READY, 0, null);
      }
    }
    return false;
  };
}

/** The Worker's data, including those added by its entry module. */
interface KernelData {
  readonly channel: number;
  readonly options: OptionsDelivery;
  readonly hooks: ThreadHooks;
}

/** Starts the kernel of this Worker. */
export function startKernel(): void {
  const { channel, options: delivery, hooks } = workerData as KernelData;
  let requests = (): boolean => false;
  const wakeRequests = pump(() => requests());
  const addon = loadAddon();
  const server = addon.serveChannel(channel, wakeRequests);
  try {
    const options = awaitOptions(delivery);
    let events = (): boolean => false;
    const wakeEvents = pump(() => events());
    const warn = (text: string): void => reportWarning(delivery, text);
    const network = new SystemNetwork(addon);
    const real = realHcas({
      choice: options.link === 'local' ? 'soft' : options.hca,
      network,
      load: loadVerbsAddon,
      makeWaker: () => addon.createWaker(wakeEvents),
      warn,
    });
    const soft = real.soft ? addon.openHca(options, wakeEvents, server) : undefined;
    // If a real HCA uses UDP port 4791, the software HCA cannot.
    if (soft) warnOf(soft, options, real.makers.length > 0, warn);
    const kernel = new Kernel({
      server,
      hcas: [
        ...real.makers,
        ...(soft
          ? [
              softHca({
                native: soft,
                network,
                options,
                createConnectionManager,
                otherVersionAt: (service, port, address) => addon.otherDialectAt(service, port, address),
                warn,
              }),
            ]
          : []),
      ],
      network,
      options,
      newCacheEpoch: () => server.newCacheEpoch(),
      hooks,
    });
    kernel.hcaDriver.onCaptureFailed = (errno) => {
      const text = `The capture has ended: the file '${options.capture}' can no longer be written (${getSystemErrorName(-errno)}). It contains what was recorded before.`;
      if (options.capture !== '') warn(text);
    };
    kernel.hcaDriver.onWireLost = () => {
      if (soft) warnOf(soft, options, real.makers.length > 0, warn);
    };
    kernel.hcaDriver.onHcaFailed = (errno) => {
      warn(
        `The software HCA has failed: the thread of its engine cannot continue (${errno === 0 ? 'unknown reason' : getSystemErrorName(-errno)}). Its devices return FILE_FORCED_CLOSED; restart the process.`,
      );
    };
    events = () => kernel.serveEvents();
    requests = serveKernel(kernel, server, wakeEvents, warn);
    server.answerEvents(wakeEvents);
  } catch (error) {
    requests = refuseAll(
      server,
      `the soft kernel did not start: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  wakeRequests();
}
