/**
 * How options get to the soft kernel's thread, which is started before they are checked: loading what checks them takes as
 * long as the start.
 *
 * @internal
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { KernelOptions } from './options.js';

/** The kernel's end: part of the Worker's data. */
export interface OptionsDelivery {
  /** To be transferred. Has the options once {@link ready} is not 0. */
  readonly port: MessagePort;
  readonly ready: Int32Array<SharedArrayBuffer>;
}

/** Both ends; `deliver` is called once. */
export function optionsDelivery(): {
  delivery: OptionsDelivery;
  deliver: (options: KernelOptions) => void;
} {
  const { port1, port2 } = new MessageChannel();
  const ready = new Int32Array(new SharedArrayBuffer(4));
  const deliver = (options: KernelOptions): void => {
    port1.postMessage(options);
    port1.unref();
    Atomics.store(ready, 0, 1);
    Atomics.notify(ready, 0);
  };
  return { delivery: { port: port2, ready }, deliver };
}

/** Blocks until the options are there. */
export function awaitOptions({ port, ready }: OptionsDelivery): KernelOptions {
  Atomics.wait(ready, 0, 0);
  const delivered = receiveMessageOnPort(port) as { message: KernelOptions } | undefined;
  if (delivered === undefined) throw new Error('the options were not delivered');
  return delivered.message;
}
