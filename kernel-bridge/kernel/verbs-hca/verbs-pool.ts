/** The real HCAs of a kernel: one native host, whose events are passed to their device or connection. */
import type { HcaEvent } from '../../hca/soft-hca-binding.js';
import type { VerbsHca } from '../../hca/verbs-binding.js';
import { ownerAt } from '../../schema/generated/attributes.js';
import { eventOf, word } from '../../schema/generated/events.js';
import type { CmMessage } from './cm-ids.js';

/** Receives the events of a device. */
export interface DeviceSink {
  /** Current number of the device; 0: it is gone. */
  readonly number: number;
  readonly events: HcaEvent[];
  /** Ports, addresses or P_Keys have changed. */
  changed(): void;
  /** Called when the OS is removing the device. */
  gone(): void;
}

export class VerbsPool {
  readonly devices = new Set<DeviceSink>();
  /** Set by the owner of the connections. */
  onCm: (message: CmMessage) => void = () => {};
  private users = 0;

  constructor(readonly host: VerbsHca) {}

  /** Adds a user of the host; the last one to release it closes it. */
  acquire(): void {
    this.users++;
  }

  release(): void {
    this.users--;
    if (this.users === 0) this.host.close();
  }

  /** Passes on all events that have arrived. */
  pump(): void {
    const { host } = this;
    for (;;) {
      const event = eventOf(host.takeEvent(), host, host.bytes);
      if (!event) return;
      if (event.type === 'cm') this.onCm(event);
      else this.dispatch(event, word(host.words, ownerAt));
    }
  }

  private dispatch(event: HcaEvent, number: number): void {
    const sink = [...this.devices].find((one) => one.number === number);
    if (event.type === 'gone') sink?.gone();
    else if (event.type === 'port') sink?.changed();
    else sink?.events.push(event);
  }
}
