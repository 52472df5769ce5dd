/** A user-mode provider for tests of the control path. Each hook sends bytes to the driver and checks that it returns them inverted. */
import * as assert from 'uvu/assert';
import type { UmvBuffer, UserVerbs, UvpHandle } from '../../kernel-bridge/door/user-verbs.js';
import { openDeviceFile, Status } from '../../kernel-bridge/index.js';
import { WVProvider } from '../../winverbs/provider.js';

const BYTES = [0x11, 0x22, 0x33, 0x44, 0x55];

function send(umv: UmvBuffer): UvpHandle {
  umv.command = 0x0a0b0c0d;
  umv.input = Uint8Array.from(BYTES);
  umv.outputSize = BYTES.length;
  return {};
}

/** Checks the driver's reply, if the IOCTL has succeeded. */
function check(status: number, umv: UmvBuffer): void {
  if (status !== Status.SUCCESS) return;
  assert.is(umv.status, 0x5a);
  assert.equal(
    [...umv.output],
    BYTES.map((byte) => ~byte & 0xff),
  );
}

export class PlainVerbs implements UserVerbs {
  /** The calls of hooks, in order. */
  readonly calls: string[] = [];
  #address = 0x10_0000;

  #pre(name: string, umv: UmvBuffer): UvpHandle {
    this.calls.push(`pre ${name}`);
    return send(umv);
  }

  #post(name: string, status: number, umv: UmvBuffer): void {
    this.calls.push(`post ${name}`);
    check(status, umv);
  }

  postSend(): void {}
  postReceive(): void {}
  postSrqReceive(): void {}
  pollCq(): number {
    return 0;
  }
  rearmCq(): number {
    return Status.SUCCESS;
  }
  ndModifyQp() {
    return { size: 8, moved: (output: Uint8Array): void => assert.is(output.length, 8) };
  }
  pinMemory() {
    this.#address += 0x1000;
    return { pin: 1, address: this.#address, detachable: false };
  }
  unpinMemory(): void {}

  preOpenCa = (_guid: bigint, umv: UmvBuffer): UvpHandle => this.#pre('ca', umv);
  postOpenCa = (_guid: bigint, status: number, _ca: UvpHandle, umv: UmvBuffer): void =>
    this.#post('ca', status, umv);
  preAllocatePd = (_ca: UvpHandle, umv: UmvBuffer): UvpHandle => this.#pre('pd', umv);
  postAllocatePd = (_ca: UvpHandle, status: number, _pd: UvpHandle, umv: UmvBuffer): void =>
    this.#post('pd', status, umv);
  preCreateCq = (_ca: UvpHandle, _size: { entries: number }, umv: UmvBuffer): UvpHandle =>
    this.#pre('cq', umv);
  postCreateCq = (_ca: UvpHandle, status: number, _n: number, _cq: UvpHandle, umv: UmvBuffer): void =>
    this.#post('cq', status, umv);
  preCreateQp = (_pd: UvpHandle, _create: unknown, umv: UmvBuffer): UvpHandle => this.#pre('qp', umv);
  postCreateQp = (_pd: UvpHandle, status: number, _qp: UvpHandle, umv: UmvBuffer): void =>
    this.#post('qp', status, umv);
  preCreateMw = (_pd: UvpHandle, umv: UmvBuffer): UvpHandle => this.#pre('mw', umv);
  postCreateMw = (_pd: UvpHandle, status: number, _r: number, _mw: UvpHandle, umv: UmvBuffer): void =>
    this.#post('mw', status, umv);
  preCreateSrq = (_pd: UvpHandle, _attributes: unknown, umv: UmvBuffer): UvpHandle => this.#pre('srq', umv);
  postCreateSrq = (_pd: UvpHandle, status: number, _srq: UvpHandle, umv: UmvBuffer): void =>
    this.#post('srq', status, umv);
}

/** Opens WinVerbs over the stand-in driver with a user-mode provider of the test. */
export function openPlain(verbs: UserVerbs = new PlainVerbs()): WVProvider {
  return new WVProvider({ openFile: (name) => openDeviceFile(name), loadUserVerbs: () => verbs });
}
