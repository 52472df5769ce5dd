/**
 * The real HCAs of a kernel together: one native host with its events, which go to the device or the connection that they are about.
 */
import type { HcaEvent } from '../../hca/binding.js';
import { VerbsEvent, type VerbsHost } from '../../hca/verbs-binding.js';
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

  constructor(readonly host: VerbsHost) {}

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
    for (let kind = host.takeEvent(); kind !== VerbsEvent.none; kind = host.takeEvent()) this.dispatch(kind);
  }

  private dispatch(kind: number): void {
    const { words, bytes } = this.host;
    const at = (index: number): number => words[index] ?? 0;
    if (kind === VerbsEvent.cm) {
      const length = at(11);
      this.onCm({
        event: at(0),
        status: at(1),
        id: at(2),
        listener: at(3),
        responderResources: at(4),
        initiatorDepth: at(5),
        retryCount: at(6),
        rnrRetryCount: at(7),
        srq: at(8) !== 0,
        qpn: at(9),
        qkey: at(10),
        data: bytes.slice(32, 32 + length),
      });
      return;
    }
    const [number, handle, token, event, reason] = [at(0), at(1), at(2), at(3), at(4)];
    const sink = [...this.devices].find((one) => one.number === number);
    if (!sink) return;
    if (kind === VerbsEvent.qp) sink.events.push({ type: 'qp', qp: handle, token, event, reason });
    else if (kind === VerbsEvent.cq) sink.events.push({ type: 'cq', cq: handle, event });
    else if (kind === VerbsEvent.srq) sink.events.push({ type: 'srq', srq: handle, event });
    else if (kind === VerbsEvent.gone) sink.gone();
    else sink.changed();
  }
}
