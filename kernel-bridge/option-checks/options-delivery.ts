/**
 * Passes options to the soft kernel's thread. The thread starts before they are checked, because loading the checks
 * takes as long as the start.
 *
 * @internal
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { KernelOptions } from './option-schemas.js';

/** The kernel's end, part of the Worker's data. */
export interface OptionsDelivery {
  /** The port to transfer. The options have arrived once {@link ready} is not 0. */
  readonly port: MessagePort;
  readonly ready: Int32Array<SharedArrayBuffer>;
}

/**
 * Creates both ends. `deliver` is called once. `warnings` returns the kernel's warnings since the last call. `hear`
 * reports later ones on the event loop, without keeping it alive.
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
    const received: string[] = [];
    for (let next = receiveMessageOnPort(port1); next; next = receiveMessageOnPort(port1))
      received.push(next.message);
    return received;
  };
  const hear = (onWarning: (text: string) => void): void => {
    port1.on('message', onWarning);
    port1.unref();
  };
  return { delivery: { port: port2, ready }, deliver, warnings, hear };
}

/**
 * Sends a warning about a problem that does not prevent the kernel from starting. The opening thread reports it,
 * because it may end before this thread's next turn.
 */
export function reportWarning({ port }: OptionsDelivery, text: string): void {
  port.postMessage(text);
}

/** Blocks until the options arrive. */
export function awaitOptions({ port, ready }: OptionsDelivery): KernelOptions {
  Atomics.wait(ready, 0, 0);
  const delivered = receiveMessageOnPort(port) as { message: KernelOptions } | undefined;
  if (delivered === undefined) throw new Error('the options were not delivered');
  return delivered.message;
}
