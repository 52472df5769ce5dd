/**
 * For drivers that run in the soft kernel's thread: the parameters of their entry routine and the constants that they
 * need. `loadDriver` of `networkdirect/kernel-bridge` loads them. This module has types and constants only, so that a
 * driver shares the kernel's own objects; the verbs are provided by {@link KernelServices} and {@link KernelAl}.
 *
 * @module networkdirect/kernel
 * @group Advanced
 * @example
 * ```ts
 * import type { DriverEntry } from 'networkdirect/kernel';
 * import { Status } from 'networkdirect/kernel';
 *
 * export const driverEntry: DriverEntry = (driver, kernel) => {
 *   driver.createDevice('\\Device\\Echo', ['\\DosDevices\\Echo']);
 *   driver.onIoctl(0x00222000, (irp) => {
 *     const input = irp.takeInput();
 *     irp.output.set(input);
 *     return irp.complete(Status.SUCCESS, input.length);
 *   }, 1, 1);
 *   driver.routines.unload = () => {};
 * };
 * ```
 */

export {
  type UvpAddressVector,
  UvpBindRequest,
  type UvpCompletion,
  type UvpHandle,
  type UvpMemory,
  UvpSendRequest,
  type UvpSge,
} from '../door/user-verbs.js';
export * from '../ioctl/index.js';
export { type PathParameters, type QpAttributeValues, QpMask } from '../schema/generated/attributes.js';
export { CqEventType, QpEventType, SrqEventType } from '../schema/generated/numbers.js';
export type { ClientDriver, DriverRoutines, IoctlHandler } from './drivers/client-driver.js';
export type { DriverEntry } from './drivers/driver-host.js';
export type { ConnectionParameters, EndpointAttributes, KernelEndpoint } from './drivers/kernel-endpoint.js';
export type { IbFastRegion, IbMemory, IbQpAsked } from './drivers/kernel-memory.js';
export type { KernelAl, KernelServices, KernelTimer } from './drivers/kernel-services.js';
export type { KernelVerbs } from './drivers/kernel-verbs.js';
export type { IbAl } from './hca-driver/al.js';
export type {
  IbCaAttributes,
  IbModifyCa,
  IbModifyPort,
  IbPortAttributes,
} from './hca-driver/ci-attributes.js';
export type { IbSrqAttributes } from './hca-driver/ci-srq.js';
export type { IbAddressVector } from './hca-driver/hca-ports.js';
export type {
  Hca,
  IbAv,
  IbCa,
  IbCaDispatch,
  IbCq,
  IbCqDispatch,
  IbMcast,
  IbMr,
  IbMw,
  IbPd,
  IbQp,
  IbQpCreate,
  IbQpDispatch,
  IbSrq,
  IbSrqDispatch,
  WithProvider,
} from './hca-driver/ib-objects.js';
export type {
  DeviceObject,
  DriverDispatch,
  DriverObject,
  FileObject,
  References,
} from './io-manager/device-object.js';
export type {
  CancelRoutine,
  IoStatus,
  Irp,
  IrpQueue,
  IrpStackLocation,
  IrpState,
  RequestorMode,
} from './io-manager/irp.js';
export type { DriverFault } from './io-manager/irql.js';
