/** The kernel's services for a loaded driver: I/O manager, verbs, connections, timers. */

import type { UserVerbs } from '../../door/user-verbs.js';
import { hcaFileName } from '../../ioctl/hca-file.js';
import { gidOfAddress, scopeIdOfAddress } from '../../ioctl/sockaddr.js';
import { Status, StatusError, statusText } from '../../ioctl/status.js';
import { callVerb } from '../filter/call.js';
import type { EndpointServices } from '../filter/endpoint-types.js';
import type { WvFile } from '../filter/file-objects.js';
import type { FilterDriver } from '../filter/filter-driver.js';
import { type IbAl, ibCloseAl, ibOpenAl } from '../hca-driver/al.js';
import * as attributes from '../hca-driver/ci-attributes.js';
import { ciAttachMcast, ciDetachMcast, ciQueryAv } from '../hca-driver/ci-datagram.js';
import * as events from '../hca-driver/ci-events.js';
import * as queues from '../hca-driver/ci-queues.js';
import * as srqs from '../hca-driver/ci-srq.js';
import { Hca } from '../hca-driver/ib-objects.js';
import type { DeviceObject, FileObject } from '../io-manager/device-object.js';
import type { IoManager } from '../io-manager/io-manager.js';
import type { Irp } from '../io-manager/irp.js';
import { assertPassive, atDispatchLevel, DriverFault } from '../io-manager/irql.js';
import type { ClientDriver } from './client-driver.js';
import { KernelEndpoint } from './kernel-endpoint.js';
import { KernelVerbs } from './kernel-verbs.js';

/** The parts of the services. */
export interface KernelPlatform {
  readonly io: IoManager;
  readonly filter: FilterDriver;
  readonly endpoints: EndpointServices;
  /** The GUIDs of the HCAs' devices; scans the host's interfaces. */
  guids(): bigint[];
  /** The provider of an HCA's devices, by its library name. */
  userVerbs(library: string): UserVerbs;
  refuseTransfers(buffer: ArrayBuffer): void;
}

function refused(status: number, what: string): StatusError {
  return new StatusError(status, `${what}: ${statusText(status)}`);
}

/** A client's access layer: the verbs for its objects. */
export class KernelAl {
  private readonly tables: WvFile;

  /** The verbs that create and destroy objects, and those that are called directly. */
  readonly verbs: KernelVerbs;
  private readonly endpoints = new Set<KernelEndpoint>();

  /** @internal */
  constructor(
    /** For verbs that take an access layer. */
    readonly al: IbAl,
    private readonly platform: KernelPlatform,
    library: string,
    private readonly closed: (layer: KernelAl) => void,
  ) {
    this.tables = platform.filter.openTables(al);
    this.verbs = new KernelVerbs(this.tables, platform.userVerbs(library), platform.refuseTransfers);
  }

  /**
   * Creates a connect endpoint. The access layer cannot be closed before the endpoint. Datagram endpoints are created
   * with IOCTLs, on a WinVerbs file of {@link KernelServices.openFile}.
   *
   * @throws StatusError INVALID_HANDLE: the access layer is closed.
   */
  createEndpoint(): KernelEndpoint {
    if (this.al.closed) throw refused(Status.INVALID_HANDLE, 'The access layer is closed');
    const { endpoints, io } = this.platform;
    const ended = (one: KernelEndpoint): void => void this.endpoints.delete(one);
    const endpoint = new KernelEndpoint(this.al, endpoints, io.work, this.verbs, this.tables, ended);
    this.endpoints.add(endpoint);
    return endpoint;
  }

  /** Closes the access layer. @returns SUCCESS, DEVICE_BUSY while it has instances or endpoints. */
  close(): number {
    const status = ibCloseAl(this.al);
    if (status === Status.SUCCESS) {
      this.platform.filter.closeTables(this.tables);
      this.closed(this);
    }
    return status;
  }

  /**
   * Destroys everything that the client has created, and closes the access layer.
   *
   * @internal
   */
  destroy(): void {
    for (const endpoint of [...this.endpoints]) endpoint.close();
    this.platform.filter.closeTables(this.tables);
    this.verbs.end();
    ibCloseAl(this.al);
  }
}

/** Maximum delay of the host's timers, in milliseconds. */
const longestTimer = 2 ** 31 - 1;

const objectVerbs = {
  ciGetCaAttributes: attributes.ciGetCaAttributes,
  ciGetPortAttributes: attributes.ciGetPortAttributes,
  ciQueryGids: attributes.ciQueryGids,
  ciQueryPkeys: attributes.ciQueryPkeys,
  ciQueryCa: attributes.ciQueryCa,
  ciQueryPort: attributes.ciQueryPort,
  ciModifyCa: attributes.ciModifyCa,
  ciModifyPort: attributes.ciModifyPort,
  ciModifyPkeys: attributes.ciModifyPkeys,
  ciGetCaFatalEvent: events.ciGetCaFatalEvent,
  ciGetCaPortEvent: events.ciGetCaPortEvent,
  ciCancelCaEvents: events.ciCancelCaEvents,
  ciGetQpEvent: events.ciGetQpEvent,
  ciCancelQpEvents: events.ciCancelQpEvents,
  ciQueryQp: queues.ciQueryQp,
  ciGetCqEvent: queues.ciGetCqEvent,
  ciCancelCqEvents: queues.ciCancelCqEvents,
  ciQuerySrq: srqs.ciQuerySrq,
  ciGetSrqEvent: srqs.ciGetSrqEvent,
  ciCancelSrqEvents: srqs.ciCancelSrqEvents,
  ciQueryAv,
  ciAttachMcast,
  ciDetachMcast,
} as const;

/** The functions of {@link KernelServices.verbs}. */
interface ObjectVerbs extends Readonly<typeof objectVerbs> {}

/** A timer of a driver. */
export interface KernelTimer {
  /** Cancels the timer; no effect once its routine has run. */
  cancel(): void;
}

/** The kernel's services for a loaded driver, passed to its entry routine. */
export class KernelServices {
  /**
   * Verbs that need no provider, for objects of any client. Attributes: `ciQueryCa`, `ciQueryPort`, `ciGetCaAttributes`,
   * `ciGetPortAttributes`, `ciQueryGids`, `ciQueryPkeys`, `ciModifyCa`, `ciModifyPort`, `ciModifyPkeys`, `ciQueryQp`,
   * `ciQuerySrq`, `ciQueryAv`. Events by request: `ciGetCaFatalEvent`, `ciGetCaPortEvent`, `ciGetQpEvent`, `ciGetCqEvent`,
   * `ciGetSrqEvent`, and `ciCancel…Events`. Groups: `ciAttachMcast`, `ciDetachMcast`.
   */
  readonly verbs: ObjectVerbs = objectVerbs;

  private readonly layers = new Set<KernelAl>();
  private readonly files = new Set<FileObject>();
  /** References of the driver on devices of HCAs. */
  private readonly hcas = new Map<DeviceObject, number>();
  /** Verbs that have not completed. */
  private readonly pending = new Set<{ cancel(): boolean }>();

  /** @internal */
  constructor(
    private readonly driver: ClientDriver,
    private readonly platform: KernelPlatform,
  ) {}

  // ── Access layers and HCAs ───────────────────────────────────────────────────────────────────────────────

  /** CA GUIDs of the current devices. At PASSIVE_LEVEL. @throws DriverFault at DISPATCH_LEVEL. */
  hcaGuids(): bigint[] {
    assertPassive('listing the HCAs');
    return this.platform.guids();
  }

  /**
   * The CA GUID of the device with an IP address. At PASSIVE_LEVEL.
   *
   * @throws StatusError NO_SUCH_DEVICE, or INVALID_ADDRESS for an invalid address; DriverFault at DISPATCH_LEVEL.
   */
  hcaOfAddress(address: string): bigint {
    assertPassive('looking up an address');
    const port = this.platform.endpoints.portOf(gidOfAddress(address), scopeIdOfAddress(address));
    if (!port) throw refused(Status.NO_SUCH_DEVICE, `The address ${address}`);
    return port.guid;
  }

  /**
   * The device object of an HCA, with a reference that {@link KernelServices.dereference} releases. At PASSIVE_LEVEL.
   *
   * @throws StatusError NO_SUCH_DEVICE.
   */
  referenceHca(guid: bigint): DeviceObject<Hca> {
    this.driver.assertThere();
    const device = this.platform.io.reference(hcaFileName(guid));
    if (typeof device === 'number') throw refused(device, `The HCA ${guid.toString(16)}`);
    if (!(device.extension instanceof Hca)) {
      device.references.release();
      throw refused(Status.NO_SUCH_DEVICE, hcaFileName(guid));
    }
    this.hcas.set(device, (this.hcas.get(device) ?? 0) + 1);
    return device as DeviceObject<Hca>;
  }

  /** Releases the reference of {@link KernelServices.referenceHca}. @throws DriverFault: the driver has none. */
  dereference(device: DeviceObject): void {
    const count = this.hcas.get(device) ?? 0;
    if (count === 0) throw new DriverFault(`${this.driver.name} does not reference ${device.name}`);
    if (count === 1) this.hcas.delete(device);
    else this.hcas.set(device, count - 1);
    device.references.release();
  }

  /**
   * Opens the access layer for HCAs like this one. It references the client: one of the driver's devices, or the driver
   * itself.
   *
   * @throws StatusError DEVICE_REMOVED if the client is being removed.
   */
  openAl(hca: DeviceObject<Hca>, client: DeviceObject | ClientDriver = this.driver): KernelAl {
    const { status, al } = ibOpenAl(client, (code) => this.driver.contain(code));
    if (!al) throw refused(status, 'The access layer');
    const closed = (one: KernelAl): void => void this.layers.delete(one);
    const layer = new KernelAl(al, this.platform, hca.extension.backend.userLibrary, closed);
    this.layers.add(layer);
    return layer;
  }

  // ── I/O manager ──────────────────────────────────────────────────────────────────────────────────────────

  /** Opens a file as a kernel client. At PASSIVE_LEVEL. @throws StatusError as for any program. */
  openFile(name: string): FileObject {
    this.driver.assertThere();
    const file = this.platform.io.openFile(name);
    if (typeof file === 'number') throw refused(file, `Opening ${name}`);
    this.files.add(file);
    return file;
  }

  /** Closes a file of {@link KernelServices.openFile}. At PASSIVE_LEVEL. */
  closeFile(file: FileObject): void {
    this.platform.io.closeFile(file);
    this.files.delete(file);
  }

  /**
   * Sends an IOCTL on a file, in kernel mode. `done` receives the status, the output, and IoStatus.Information: on the
   * file of an HCA the id of the new object, otherwise the number of bytes.
   */
  request(
    file: FileObject,
    code: number,
    input: Uint8Array,
    outputLength: number,
    done: (status: number, output: Uint8Array, information: number) => void,
  ): Irp {
    const ended = (status: number, output: Uint8Array, information: number): void =>
      this.driver.contain(() => done(status, output, information));
    return this.platform.io.request(file, code, input, outputLength, ended);
  }

  /**
   * Calls a verb with a new IRP and returns the IRP; `done` runs when it completes, possibly before this returns.
   * Asynchronous form.
   */
  call<T>(verb: (irp: Irp<T>) => number, done: (status: number, information: T | undefined) => void): Irp<T> {
    let irp: Irp<T> | undefined;
    const ended = (status: number, information: T | undefined): void => {
      if (irp) this.pending.delete(irp);
      this.driver.contain(() => done(status, information));
    };
    irp = callVerb<T>(verb, ended, 'kernel');
    if (!irp.completed) this.pending.add(irp);
    return irp;
  }

  /** Calls a verb and waits for it; the result is IoStatus.Information. @throws StatusError with the verb's status. */
  wait<T>(verb: (irp: Irp<T>) => number): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.call<T>(verb, (status, information) => {
        if (status === Status.SUCCESS) resolve(information as T);
        else reject(refused(status, 'The verb'));
      });
    });
  }

  /** Runs code at PASSIVE_LEVEL as soon as possible; the driver stays loaded until then (IoQueueWorkItem). */
  queueWorkItem(work: () => void): void {
    const { references } = this.driver;
    this.driver.assertThere();
    references.acquire();
    this.platform.io.work.queue(() => {
      references.release();
      this.driver.contain(work);
    });
  }

  /**
   * Runs code once at DISPATCH_LEVEL after a delay; the driver stays loaded until then (KeSetTimer).
   *
   * @param milliseconds - 0 to 2^31 - 1.
   * @throws StatusError INVALID_PARAMETER: another value.
   */
  setTimer(milliseconds: number, expired: () => void): KernelTimer {
    if (!(milliseconds >= 0 && milliseconds <= longestTimer)) {
      const text = `\`milliseconds\` must be from 0 to ${longestTimer}; got ${milliseconds}`;
      throw refused(Status.INVALID_PARAMETER, text);
    }
    this.driver.assertThere();
    const { references } = this.driver;
    references.acquire();
    let pending = true;
    const end = (): void => {
      pending = false;
      references.release();
    };
    const timer = setTimeout(() => {
      end();
      this.driver.contain(() => atDispatchLevel(expired));
    }, milliseconds).unref();
    return {
      cancel: () => {
        clearTimeout(timer);
        if (pending) end();
      },
    };
  }

  /**
   * Destroys everything left of a driver that was unloaded, or whose loading has failed.
   *
   * @internal
   */
  destroy(): void {
    // Pending requests are cancelled first, because they use the objects.
    for (const irp of [...this.pending]) irp.cancel();
    const { io } = this.platform;
    for (const file of [...this.files]) if (!file.closing) io.closeFile(file);
    for (const layer of this.layers) layer.destroy();
    for (const [device, count] of this.hcas) for (let n = 0; n < count; n++) device.references.release();
    for (const kept of [this.files, this.layers, this.hcas]) kept.clear();
  }
}
