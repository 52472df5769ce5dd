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

/**
 * Both ends; `deliver` is called once. `warnings` are those that the kernel has told since they were last taken; `hear` has those that
 * come later told on the event loop, which it does not keep alive.
 */
export function optionsDelivery(): {
  delivery: OptionsDelivery;
  deliver: (options: KernelOptions) => void;
  warnings: () => string[];
  hear: (onWarning: (text: string) => void) => void;
} {
  const { port1, port2 } = new MessageChannel();
  const ready = new Int32Array(new SharedArrayBuffer(4));
  const deliver = (options: KernelOptions): void => {
    port1.postMessage(options);
    port1.unref();
    Atomics.store(ready, 0, 1);
    Atomics.notify(ready, 0);
  };
  const warnings = (): string[] => {
    const told: string[] = [];
    for (let next = receiveMessageOnPort(port1); next; next = receiveMessageOnPort(port1))
      told.push(next.message);
    return told;
  };
  const hear = (onWarning: (text: string) => void): void => {
    port1.on('message', onWarning);
    port1.unref();
  };
  return { delivery: { port: port2, ready }, deliver, warnings, hear };
}

/** Something that does not keep the kernel from starting: told by the thread that opens it, which may end before this one's turn. */
export function tellWarning({ port }: OptionsDelivery, text: string): void {
  port.postMessage(text);
}

/** Blocks until the options are there. */
export function awaitOptions({ port, ready }: OptionsDelivery): KernelOptions {
  Atomics.wait(ready, 0, 0);
  const delivered = receiveMessageOnPort(port) as { message: KernelOptions } | undefined;
  if (delivered === undefined) throw new Error('the options were not delivered');
  return delivered.message;
}
