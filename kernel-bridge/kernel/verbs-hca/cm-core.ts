/** librdmacm for all real HCAs of a kernel: its ids, ports, and the requests that arrive at listeners. */
import { CmEventType } from '../../hca/verbs-binding.js';
import { type CmEnds, CmIds, type CmMessage } from './cm-ids.js';
import { PortClaims } from './rdma-port-claims.js';
import type { VerbsPool } from './verbs-pool.js';

/** The connections of an HCA, for requests at listeners on all addresses. */
export interface RequestTaker {
  /** Current number of its device. */
  readonly device: number;
}

export class CmCore {
  readonly ids: CmIds;
  readonly claims: PortClaims;
  /** Called with the number of a device that the OS is removing. */
  onRemoval: (id: number) => void = () => {};
  private users = 0;

  constructor(readonly pool: VerbsPool) {
    this.ids = new CmIds(pool.host);
    this.claims = new PortClaims(this.ids);
    pool.onCm = (message) => this.dispatch(message);
  }

  acquire(): void {
    this.users++;
  }

  release(): void {
    this.users--;
    if (this.users === 0) this.claims.close();
  }

  private dispatch(message: CmMessage): void {
    if (message.event === CmEventType.connectRequest) this.request(message);
    else if (message.event === CmEventType.deviceRemoval) this.removed(message.id);
    else this.ids.dispatch(message);
  }

  /** librdmacm keeps each device open to which one of its ids is bound, and the device's removal waits for that. */
  private removed(id: number): void {
    // This call precedes the destruction of the id, because without ids librdmacm may release its state of the device.
    this.ids.closeRemoved(id);
    this.onRemoval(id);
    this.ids.destroy(id);
  }

  private request(message: CmMessage): void {
    const claim = this.claims.ofListener(message.listener);
    const ends = this.ids.ends(message.id);
    for (const [holder, sink] of claim?.sinks ?? []) {
      if (!takes(holder, ends)) continue;
      sink(message);
      return;
    }
    // No process listens for this device any more.
    this.refuse(message.id);
  }

  refuse(id: number): void {
    this.ids.reject(id);
    this.ids.destroy(id);
  }
}

function takes(holder: object, { device }: CmEnds): boolean {
  return !('device' in holder) || holder.device === device;
}
