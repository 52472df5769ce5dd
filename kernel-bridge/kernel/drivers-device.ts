/** `\\.\NetworkDirectDrivers`: loads drivers into this kernel and unloads them. The host of drivers comes with the first. */
import { DriversCode } from '../ioctl/codes.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { DriverHost, LoadRequest } from './drivers/driver-host.js';
import { DeviceObject, DriverObject } from './io-manager/device.js';
import type { Irp } from './io-manager/irp.js';

/** An answer in JSON: a result, or the status and reason of a refusal. */
export type DriversAnswer =
  | { readonly result: unknown }
  | { readonly status: number; readonly reason: string };

export class DriversDevice {
  readonly driver: DriverObject;
  readonly device: DeviceObject;
  private loading: Promise<DriverHost> | undefined = undefined;
  private host: DriverHost | undefined = undefined;

  constructor(private readonly loadHost: () => Promise<DriverHost>) {
    this.driver = new DriverObject('\\Driver\\NetworkDirectDrivers', {
      create: (file, irp) =>
        irp.complete(file.relativeName === '' ? Status.SUCCESS : Status.OBJECT_NAME_NOT_FOUND),
      deviceControl: (_file, irp) => this.deviceControl(irp),
      cleanup: () => {},
      close: () => {},
    });
    this.device = new DeviceObject(this.driver, '\\Device\\NetworkDirectDrivers', undefined);
  }

  private deviceControl(irp: Irp): number {
    const { controlCode } = irp.stack;
    const actions = new Map<number, (host: DriverHost, request: LoadRequest) => Promise<unknown>>([
      [DriversCode.LOAD, (host, request) => host.load(request)],
      [DriversCode.UNLOAD, (host, { name }) => host.unload(name)],
    ]);
    const action = actions.get(controlCode);
    if (!action) return irp.complete(Status.PROCEDURE_NOT_FOUND);
    const request = requestOf(irp.takeInput());
    if (!request) return irp.complete(Status.INVALID_PARAMETER);
    irp.markPending();
    // What has begun goes on when nobody waits for it any more.
    irp.setCancelRoutine((cancelled) => cancelled.complete(Status.CANCELED));
    void this.answer(irp, (host) => action(host, request));
    return Status.PENDING;
  }

  private async answer(irp: Irp, action: (host: DriverHost) => Promise<unknown>): Promise<void> {
    const told = await this.run(action);
    if (irp.completed) return;
    irp.setCancelRoutine(undefined);
    const text = new TextEncoder().encode(JSON.stringify(told));
    if (text.length > irp.outputCapacity) irp.complete(Status.BUFFER_TOO_SMALL);
    else {
      irp.output.set(text);
      irp.complete(Status.SUCCESS, text.length);
    }
  }

  private async run(action: (host: DriverHost) => Promise<unknown>): Promise<DriversAnswer> {
    try {
      if (!this.host) {
        this.loading ??= this.loadHost();
        this.host = await this.loading;
      }
      // At once, if the host is there: requests take effect in their order.
      return { result: (await action(this.host)) ?? null };
    } catch (error) {
      if (error instanceof StatusError) return { status: error.status, reason: error.message };
      return { status: Status.INTERNAL_ERROR, reason: String(error) };
    }
  }
}

/** The input, or undefined if it is not of the form of one. */
function requestOf(input: Uint8Array): LoadRequest | undefined {
  try {
    const request = JSON.parse(new TextDecoder().decode(input)) as Partial<LoadRequest> | null;
    const { name, url = '', parameters, timeoutMs = 0 } = request ?? {};
    if (typeof name !== 'string' || typeof url !== 'string' || typeof timeoutMs !== 'number')
      return undefined;
    return { name, url, parameters, timeoutMs };
  } catch {
    return undefined;
  }
}
