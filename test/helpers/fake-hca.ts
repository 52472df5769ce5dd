import type { UserHca } from '../../kernel-bridge/hca/user-hca.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';

export interface FakeRing {
  readonly address: number;
  readonly words: Uint32Array;
  readonly bytes: number;
}

/** The HCA's side of the rings, done by hand: tests write CQEs and QP states and read WQEs. */
export class FakeHca implements UserHca {
  readonly rings = new Map<number, FakeRing>();
  readonly pins = new Map<number, Uint8Array>();
  /** Calls, in order: 'doorbell 5', 'arm 3 any', … */
  readonly log: string[] = [];
  armStatus = 0;
  pinStatus = 0;
  /** Runs in progress(). */
  onProgress: () => void = () => {};
  private next = 0x7f00_0000_1000;
  private nextPin = 1;

  allocateRing(bytes: number) {
    const buffer = new ArrayBuffer(bytes);
    const address = this.next;
    this.next += 0x10_0000;
    this.rings.set(address, { address, words: new Uint32Array(buffer), bytes });
    return { buffer, address };
  }

  releaseRing(address: number): void {
    if (!this.rings.delete(address)) throw new Error(`ring ${address} was released twice`);
  }

  pin(view: Uint8Array) {
    if (this.pinStatus !== Status.SUCCESS)
      return { status: this.pinStatus, pin: 0, address: 0, detachable: false };
    const pin = this.nextPin++;
    this.pins.set(pin, view);
    this.next += 0x10_0000;
    return { status: Status.SUCCESS as number, pin, address: this.next, detachable: true };
  }

  unpin(pin: number): void {
    if (!this.pins.delete(pin)) throw new Error(`pin ${pin} was undone twice`);
  }

  readonly doorbell = new Uint32Array(1);

  ringDoorbell(): void {
    this.log.push(`doorbell ${this.doorbell[0]}`);
  }

  ringReceiveDoorbell(): void {
    this.ringDoorbell();
  }

  progress(): boolean {
    this.onProgress();
    return false;
  }

  armCq(cq: number, solicitedOnly: boolean): number {
    this.log.push(`arm ${cq} ${solicitedOnly ? 'solicited' : 'any'}`);
    return this.armStatus;
  }

  armCqBatch(cq: number, count: number): number {
    this.log.push(`arm ${cq} batch ${count}`);
    return this.armStatus;
  }
}

/** Writes one CQE as the HCA does. */
export function writeCqe(
  ring: FakeRing,
  cqe: { token: number; wqe: number } & Partial<
    Record<
      'opcode' | 'status' | 'length' | 'flags' | 'immediate' | 'sourceQpn' | 'vendor' | 'pkeyIndex',
      number
    >
  >,
): void {
  const entries = (ring.bytes - abi.cqHeaderBytes) / abi.cqeBytes;
  const producer = ring.words[abi.cqProducer]!;
  const at = abi.cqHeaderBytes / 4 + (producer % entries) * (abi.cqeBytes / 4);
  ring.words[at + abi.cqeToken] = cqe.token;
  ring.words[at + abi.cqeWqe] = cqe.wqe;
  ring.words[at + abi.cqeOpcode] = cqe.opcode ?? 0;
  ring.words[at + abi.cqeStatus] = cqe.status ?? 0;
  ring.words[at + abi.cqeLength] = cqe.length ?? 0;
  ring.words[at + abi.cqeFlags] = cqe.flags ?? 0;
  ring.words[at + abi.cqeImmediate] = cqe.immediate ?? 0;
  ring.words[at + abi.cqeSourceQpn] = cqe.sourceQpn ?? 0;
  ring.words[at + abi.cqeVendor] = cqe.vendor ?? 0;
  ring.words[at + abi.cqePkeyIndex] = cqe.pkeyIndex ?? 0;
  ring.words[abi.cqProducer] = (producer + 1) >>> 0;
}
