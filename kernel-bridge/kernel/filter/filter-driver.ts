/**
 * The WinVerbs filter driver, `\\.\WinVerbs`: translates the buffered IOCTLs of the WinVerbs interface into verbs of
 * the HCA driver and steps of connection management. The IOCTL table selects the handlers and has the sizes that are
 * checked before they run.
 */
import { hcaFileTable, type IoctlName, ioctlTable, type NamedIoctlRow } from '../../ioctl/codes.js';
import { Status, StatusError } from '../../ioctl/status.js';
import { type Contain, type IbAl, ibOpenAl } from '../hca-driver/al.js';
import { Hca } from '../hca-driver/ib-objects.js';
import { samePartition } from '../hca-driver/pkeys.js';
import {
  DeviceObject,
  type DriverDispatch,
  DriverObject,
  type FileObject,
} from '../io-manager/device-object.js';
import { IoctlTable } from '../io-manager/ioctl-table.js';
import type { Irp } from '../io-manager/irp.js';
import { atDispatchLevel } from '../io-manager/irql.js';
import type { WorkItems } from '../io-manager/work-items.js';
import { Call, type Handler } from './call.js';
import { completionQueueRequests } from './completion-queue-requests.js';
import { Endpoint } from './connect-endpoint.js';
import { type DeviceServices, deviceRequests } from './device-requests.js';
import { endpointRequests } from './endpoint-requests.js';
import type { EndpointServices } from './endpoint-types.js';
import { cancelRegistrations, freeObjects } from './file-cleanup.js';
import { type AnyEndpoint, WvFile } from './file-objects.js';
import { hcaFileHandlers } from './hca-file-requests.js';
import { protectionDomainRequests } from './protection-domain-requests.js';
import { queuePairRequests } from './queue-pair-requests.js';
import { sharedReceiveQueueRequests } from './shared-receive-queue-requests.js';

/**
 * Requests that may block: they read the host's interfaces, open or close files, or claim ports. They pend and are
 * served by a work item; all others are served at DISPATCH_LEVEL.
 */
const mayWait: ReadonlySet<string> = new Set<IoctlName>([
  'GUID_QUERY',
  'LIBRARY_QUERY',
  'DEVICE_OPEN',
  'DEVICE_CLOSE',
  'DEVICE_PORT_QUERY',
  'DEVICE_GID_QUERY',
  'DEVICE_PKEY_QUERY',
  'EP_BIND',
  'EP_MODIFY',
  'EP_LISTEN',
  'EP_MULTICAST_JOIN',
]);

/** A handler, and whether it is in {@link mayWait}. */
interface ServedHandler {
  readonly handle: Handler;
  readonly waits: boolean;
}

function tableOf(
  rows: readonly NamedIoctlRow[],
  handlers: Readonly<Record<string, Handler>>,
): IoctlTable<ServedHandler> {
  const entries = Object.entries(handlers).map(([name, handle]) => [
    name,
    { handle, waits: mayWait.has(name) },
  ]);
  return new IoctlTable(rows, Object.fromEntries(entries));
}

function handlersOf(devices: DeviceServices, endpoints: EndpointServices): Record<IoctlName, Handler> {
  return {
    ...deviceRequests(devices),
    ...protectionDomainRequests,
    ...completionQueueRequests,
    ...sharedReceiveQueueRequests,
    ...queuePairRequests,
    ...endpointRequests(endpoints),
  };
}

/** The filter driver's counters. */
export interface FilterCounters {
  /** Verbs that failed while destroying the objects of a closing file; 0 in a correct kernel. */
  cleanupFailures: number;
}

/** The filter's platform. */
export interface FilterPlatform {
  devices: DeviceServices;
  endpoints: EndpointServices;
  work: WorkItems;
  /** Runs the filter's callbacks. */
  contain: Contain;
}

/** Handlers report errors with a StatusError before they have done anything. */
function serve(handler: Handler, call: Call): number {
  const { irp } = call;
  const { state } = irp;
  try {
    return handler(call);
  } catch (error) {
    if (error instanceof StatusError && irp.state === state) return irp.complete(error.status);
    throw error;
  }
}

export class FilterDriver {
  readonly driver: DriverObject;
  readonly device: DeviceObject;
  readonly counters: FilterCounters = { cleanupFailures: 0 };
  private readonly files = new Set<WvFile>();
  private readonly table: IoctlTable<ServedHandler>;
  private readonly hcaTable: IoctlTable<ServedHandler>;
  /** Serves an HCA's own file: its verbs, with tables like those of `\\.\WinVerbs`. */
  readonly aboveHca: DriverDispatch;
  /** The filter is a client of the verbs like any other. */
  private readonly al: IbAl;
  private readonly work: WorkItems;

  constructor({ devices, endpoints, work, contain }: FilterPlatform) {
    this.work = work;
    const handlers = handlersOf(devices, endpoints);
    this.table = tableOf(ioctlTable, handlers);
    this.hcaTable = tableOf([...ioctlTable, ...hcaFileTable], hcaFileHandlers(handlers));
    const files = this.fileDispatch();
    this.aboveHca = files;
    this.driver = new DriverObject('\\Driver\\winverbs', {
      ...files,
      create: (file, irp) =>
        file.relativeName === '' ? files.create(file, irp) : irp.complete(Status.OBJECT_NAME_NOT_FOUND),
    });
    this.device = new DeviceObject(this.driver, '\\Device\\WinVerbs', undefined);
    this.al = ibOpenAl(this.device, contain).al!;
  }

  private fileDispatch(): DriverDispatch {
    return {
      create: (file, irp) => {
        const opened = new WvFile(this.al);
        if (file.device.extension instanceof Hca) opened.hcaDevice = file.device as DeviceObject<Hca>;
        file.context = opened;
        this.files.add(opened);
        return irp.complete(Status.SUCCESS, 0);
      },
      deviceControl: (file, irp) => this.deviceControl(file, irp),
      cleanup: (file) => {
        if (!(file.context instanceof WvFile)) return;
        cancelRegistrations(file);
        this.counters.cleanupFailures += freeObjects(file.context);
        this.files.delete(file.context);
      },
      close: (file) => {
        file.context = undefined;
      },
    };
  }

  /**
   * Called when an HCA is gone or has failed: its pending requests and endpoints end with `status`. Objects remain
   * until they are destroyed.
   */
  deviceLost(hca: Hca, status: number): void {
    for (const file of this.files) {
      for (const [, endpoint] of file.endpoints.entries()) {
        if (endpoint.isOn(hca)) endpoint.deviceLost(status);
      }
      for (const [, { ca, portWaits }] of file.devices.entries()) {
        if (hca.unplugged && ca?.hca === hca) portWaits.completeAll(status);
      }
    }
  }

  /** Called when an HCA's P_Key table was replaced: connections end if their entry no longer names their partition. */
  partitionsChanged(hca: Hca, before: readonly number[]): void {
    for (const file of this.files) {
      for (const [, endpoint] of file.endpoints.entries()) {
        const qp = endpoint instanceof Endpoint ? endpoint.queuePair?.qp : undefined;
        if (qp?.pd.ca.hca !== hca) continue;
        const same = samePartition(before[qp.pkeyIndex], hca.port.pkeys[qp.pkeyIndex]);
        if (!same) atDispatchLevel(() => (endpoint as Endpoint).partitionGone());
      }
    }
  }

  /** The endpoints of all files. */
  endpoints(): AnyEndpoint[] {
    return [...this.files].flatMap((file) => file.endpoints.entries().map(([, endpoint]) => endpoint));
  }

  /** Whether there is an endpoint, which must be notified when its device is gone. */
  get watching(): boolean {
    for (const file of this.files) if (file.endpoints.size > 0) return true;
    return false;
  }

  /** Creates the tables of a kernel client, for its endpoints and other objects; {@link closeTables} frees them. */
  openTables(al: IbAl): WvFile {
    const tables = new WvFile(al);
    this.files.add(tables);
    return tables;
  }

  /** Destroys everything in the tables of a kernel client. */
  closeTables(tables: WvFile): void {
    this.counters.cleanupFailures += freeObjects(tables);
    this.files.delete(tables);
  }

  private deviceControl(file: FileObject, irp: Irp): number {
    const wvFile = file.context;
    if (!(wvFile instanceof WvFile) || wvFile.closing) return irp.complete(Status.FILE_CLOSED);
    const served = (wvFile.hcaDevice ? this.hcaTable : this.table).find(irp);
    if (typeof served === 'number') return irp.complete(served);
    const { row, handler } = served;
    const input = irp.takeInput();
    if (!handler.waits)
      return atDispatchLevel(() => serve(handler.handle, new Call(wvFile, irp, row, input)));
    const call = new Call(wvFile, irp, row, input.slice());
    return this.work.pend(irp, () => serve(handler.handle, call));
  }
}
