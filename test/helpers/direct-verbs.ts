/** The HCA driver's verbs, called directly with an IRP of the caller, as other kernel code does. */

import { hcaFileName } from '../../kernel-bridge/ioctl/hca-file.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { type IbAl, ibOpenAl } from '../../kernel-bridge/kernel/hca-driver/al.js';
import { ciOpenCa } from '../../kernel-bridge/kernel/hca-driver/ci-ca.js';
import { Hca, type IbCa, type IbCaDispatch } from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';
import { type DeviceObject, DriverObject } from '../../kernel-bridge/kernel/io-manager/device-object.js';
import { Irp, IrpMajor, type RequestorMode } from '../../kernel-bridge/kernel/io-manager/irp.js';
import type { Kernel } from '../../kernel-bridge/kernel/kernel.js';
import { ethGuid, type KernelRig } from './kernel-rig.js';

/** A verb's IRP after the call; it may complete later. */
export class VerbCall<T> {
  readonly irp: Irp<T>;
  /** The verb's return value: PENDING, or the IRP's status. */
  readonly returned: number;

  constructor(verb: (irp: Irp<T>) => number, requestorMode: RequestorMode = 'kernel') {
    this.irp = new Irp<T>({ major: IrpMajor.internal, requestorMode, onComplete: () => {} });
    this.returned = this.irp.dispatch(verb);
  }

  get status(): number {
    return this.irp.ioStatus.status;
  }

  get information(): T | undefined {
    return this.irp.ioStatus.information;
  }
}

/** The access layer of a new kernel client. */
export function openAl(kernel: Kernel, name = '\\Driver\\client'): IbAl {
  const client = new DriverObject(name, {
    create: (_file, irp) => irp.complete(Status.SUCCESS),
    deviceControl: (_file, irp) => irp.complete(Status.INVALID_DEVICE_REQUEST),
    cleanup: () => {},
    close: () => {},
  });
  return ibOpenAl(client, (code) => kernel.io.contain(code)).al!;
}

/** Opens an instance of the rig's eth0. */
export function openCa(
  rig: KernelRig,
  dispatch?: IbCaDispatch,
  mode: RequestorMode = 'kernel',
): VerbCall<IbCa> {
  return openCaOf(rig.kernel, ethGuid, dispatch, mode);
}

/** Opens an instance of a kernel's HCA. */
export function openCaOf(
  kernel: Kernel,
  guid: bigint,
  dispatch?: IbCaDispatch,
  mode: RequestorMode = 'kernel',
  al = openAl(kernel),
  context: unknown = undefined,
): VerbCall<IbCa> {
  const device = kernel.io.reference(hcaFileName(guid));
  if (typeof device === 'number' || !(device.extension instanceof Hca))
    throw new Error('The HCA does not exist.');
  const udata = { input: new Uint8Array(0), output: new Uint8Array(0), outputSize: 0 };
  const asked = new VerbCall<IbCa>(
    (irp) => ciOpenCa(al, device as DeviceObject<Hca>, context, dispatch, udata, irp),
    mode,
  );
  device.references.release();
  return asked;
}

/** An open instance of the rig's eth0. */
export function openedCa(rig: KernelRig, dispatch?: IbCaDispatch): IbCa {
  const { status, information } = openCa(rig, dispatch);
  if (status !== Status.SUCCESS || !information) throw new Error(`not opened: 0x${status.toString(16)}`);
  return information;
}
