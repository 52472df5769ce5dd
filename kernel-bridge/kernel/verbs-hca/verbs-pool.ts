/**
 * The real HCAs of a kernel together: one native host with its events, which go to the device or the connection that they are about.
 */
import type { HcaEvent } from '../../hca/soft-hca-binding.js';
import type { VerbsHca } from '../../hca/verbs-binding.js';
import { ownerAt } from '../../schema/generated/attributes.js';
import { eventOf, word } from '../../schema/generated/events.js';
import type { CmMessage } from './cm-ids.js';

/** Who hears of the events of a device. */
export interface DeviceSink {
  /** The device's number now; 0: it is gone. */
  readonly number: number;
  readonly events: HcaEvent[];
  /** Ports, addresses or P_Keys have changed. */
  changed(): void;
  /** The system takes the device away. */
  gone(): void;
}

export class VerbsPool {
  readonly devices = new Set<DeviceSink>();
  /** Set by who has the connections. */
  onCm: (message: CmMessage) => void = () => {};
  private users = 0;

  constructor(readonly host: VerbsHca) {}

  /** One more HCA uses the host; the last to let go closes it. */
  acquire(): void {
    this.users++;
  }

  release(): void {
    this.users--;
    if (this.users === 0) this.host.close();
  }

  /** Takes all events that have come, and passes each on. */
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
