/**
 * Entry of the soft kernel's Worker: opens the HCA, builds the kernel, and serves the channel of `workerData`. If it
 * cannot start, every open of a device file gets the reason.
 */
import { getSystemErrorName } from 'node:util';
import { workerData } from 'node:worker_threads';
import type { HcaOptions, SoftHca } from '../hca/binding.js';
import { ChannelMajor, type NativeChannelServer } from '../hca/channel-binding.js';
import { loadAddon } from '../hca/index.js';
import { Status } from '../ioctl/status.js';
import type { KernelOptions } from '../options.js';
import { awaitOptions, type OptionsDelivery, tellWarning } from '../options-delivery.js';
import { createConnectionManager } from './cm/connection-manager.js';
import { SystemNetwork } from './hca-driver/host-interfaces.js';
import { Kernel } from './kernel.js';
import { softHca } from './soft-hca/soft-hca.js';

/** Maximum of driver faults reported on stderr; further ones are only counted. */
const faultsTold = 10;

/** The HCA's part of the options. */
function hcaOptions(options: KernelOptions): HcaOptions {
  const { keepAliveMs, rnrPatienceMs, ecn, window, link, icrc, allowPtrace, capture, receiveBufferBytes } =
    options;
  const { faults } = options;
  const dropMads = Object.fromEntries(
    Object.entries(faults.dropMads).map(([attribute, count]) => [Number(attribute), count]),
  );
  return {
    keepAliveMs,
    rnrPatienceMs,
    ecn,
    window,
    link,
    icrc,
    allowPtrace,
    capturePath: capture,
    receiveBufferBytes,
    faults: { ...faults, dropMads },
  };
}

/** What does not keep the kernel from starting, but will be missed. */
function warnOf(hca: SoftHca, { capture }: KernelOptions, warn: (text: string) => void): void {
  if (hca.wireProblem !== '') warn(hca.wireProblem);
  if (capture !== '' && (hca.counters().capture_errors ?? 0) > 0) {
    warn(`The capture file '${capture}' cannot be written; nothing is recorded.`);
  }
}

/** Runs `serve` on each wake-up, and again on a later turn of the event loop as long as it returns true. */
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

function serveKernel(kernel: Kernel, server: NativeChannelServer, events: () => void): () => boolean {
  kernel.io.onFault = (fault) => {
    if (kernel.io.counters.driverFaults <= faultsTold) process.emitWarning(fault);
  };
  kernel.io.onChannelClosed = () => {
    kernel.close();
    server.close();
  };
  events();
  return () => kernel.serveRequests();
}

/** Answers every request with the reason why there is no kernel. */
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

function start(): void {
  const { channel, options: delivery } = workerData as { channel: number; options: OptionsDelivery };
  let requests = (): boolean => false;
  const wakeRequests = pump(() => requests());
  const addon = loadAddon();
  const server = addon.serveChannel(channel, wakeRequests);
  try {
    const options = awaitOptions(delivery);
    let events = (): boolean => false;
    const wakeEvents = pump(() => events());
    const hca = addon.openHca(hcaOptions(options), wakeEvents);
    warnOf(hca, options, (text) => tellWarning(delivery, text));
    const network = new SystemNetwork(addon);
    const kernel = new Kernel({
      server,
      hcas: [softHca({ native: hca, network, options, createConnectionManager })],
      network,
      options,
      newCacheEpoch: () => server.newCacheEpoch(),
    });
    kernel.hcaDriver.onCaptureFailed = (errno) => {
      const text = `The capture has ended: the file '${options.capture}' cannot be written any more (${getSystemErrorName(-errno)}). It has what was recorded before.`;
      if (options.capture !== '') tellWarning(delivery, text);
    };
    events = () => kernel.serveEvents();
    requests = serveKernel(kernel, server, wakeEvents);
    server.answerEvents(wakeEvents);
  } catch (error) {
    requests = refuseAll(
      server,
      `the soft kernel did not start: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  wakeRequests();
}

start();
