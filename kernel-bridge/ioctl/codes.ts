/**
 * Every buffered IOCTL: code, structures, tails, and whether the request may stay pending. The filter driver's dispatch
 * and size checks, its callers and the tests all use this table. Source: WinVerbs IOCTL interface; IBAT interface
 * version 6.
 */
import { IbIoCaModify, IbIoPortEvent, IbIoPortModify } from './hca-file.js';
import type { AnyStruct } from './layout.js';
import { statusHex } from './status.js';
import * as s from './structs.js';

/** The kinds of bytes behind the fixed part of an input or output. */
export type IoctlTail =
  /** Nothing: bytes behind the structure are ignored. */
  | 'none'
  /** Provider data, exchanged by UVP and HCA driver (provider-data.ts). */
  | 'provider'
  /** The option's data: 64 bytes of path record for ROUTE. */
  | 'option'
  /** Private data for the peer. */
  | 'privateData'
  /** As many elements as fit. */
  | 'list'
  /** Text that ends with a NUL. */
  | 'text';

/** The definition of one IOCTL. `Code` is its code as a literal type; the types of the code tables derive from it. */
export interface IoctlRow<Code extends number = number> {
  /** The CTL_CODE: device type, access, function and method (METHOD_BUFFERED) in one number. */
  readonly code: Code;
  /** Fixed part of the input; a request with a shorter input fails with BUFFER_TOO_SMALL. Null: no input is needed. */
  readonly input: AnyStruct | null;
  /** Fixed part of the output; a request with a shorter output buffer fails with BUFFER_TOO_SMALL. Null: no output. */
  readonly output: AnyStruct | null;
  /** The kind of bytes that follow the fixed part of the input. */
  readonly inputTail: IoctlTail;
  /** The kind of bytes that follow the fixed part of the output. */
  readonly outputTail: IoctlTail;
  /** Whether the request may stay pending. The others complete before the call returns. */
  readonly pends: boolean;
  /** The IOCTL that cancels the pending requests of an object. */
  readonly cancel: string | null;
  /** Fixed parts for datagram endpoints where they differ; checked by the handler. */
  readonly datagram: {
    /** Fixed part of the input for a datagram endpoint. */
    readonly input: AnyStruct;
    /** Fixed part of the output; null: none. */
    readonly output: AnyStruct | null;
  } | null;
  /** False: the WinVerbs interface defines only the code; the input and output structures are this package's own. */
  readonly defined: boolean;
}

/** A row with its name in {@link IoctlCode} or {@link IbatCode}. */
export interface NamedIoctlRow extends IoctlRow {
  /** The WinVerbs name without its prefix WV_IOCTL_, such as `CQ_CREATE`. */
  readonly name: string;
}

function ioctl<const C extends number>(
  code: C,
  input: AnyStruct | null,
  output: AnyStruct | null,
  more: Partial<Omit<IoctlRow, 'code' | 'input' | 'output' | 'pends'>> = {},
): IoctlRow<C> {
  const cancel = more.cancel ?? null;
  return {
    code,
    input,
    output,
    inputTail: 'none',
    outputTail: 'none',
    datagram: null,
    defined: true,
    ...more,
    cancel,
    pends: cancel !== null,
  };
}

const both = { inputTail: 'provider', outputTail: 'provider' } as const;
const ownForm = { defined: false } as const;
const datagramQuery = { input: s.WvIoEpDatagramQuery, output: s.WvIoEpDatagramAttributes } as const;
const datagramAccept = { input: s.WvIoEpDatagramAccept, output: null } as const;

/** 0x003BE000 + 4 × function: FILE_DEVICE_INFINIBAND, read and write access, METHOD_BUFFERED. */
const winVerbs = {
  /** The CA GUIDs of all devices; the count includes those that did not fit. */
  GUID_QUERY: ioctl(0x003be004, null, s.WvIoGuidList, { outputTail: 'list' }),
  /** The name of the user library (UVP) of a device, with its NUL at most 32 bytes. NO_SUCH_DEVICE; BUFFER_TOO_SMALL. */
  LIBRARY_QUERY: ioctl(0x003be008, s.WvIoGuid, null, { outputTail: 'text' }),
  /** Opens a device and returns its id. NO_SUCH_DEVICE. */
  DEVICE_OPEN: ioctl(0x003be00c, s.WvIoDeviceOpen, s.WvIoId, both),
  /** Closes an open device. Fails with NO_SUCH_DEVICE, or with DEVICE_BUSY (ACCESS_DENIED on Windows drivers) while objects of it exist. */
  DEVICE_CLOSE: ioctl(0x003be010, s.WvIoObject, null),
  /** Limits of an open device. NO_SUCH_DEVICE. */
  DEVICE_QUERY: ioctl(0x003be014, s.WvIoObject, s.WvIoDeviceAttributes),
  /** State and limits of a port. INVALID_PORT_HANDLE. */
  DEVICE_PORT_QUERY: ioctl(0x003be018, s.WvIoDevicePortQuery, s.WvIoPortAttributes),
  /** The GID table of a port, 16 bytes an entry; MORE_ENTRIES if the output is too short for all. INVALID_PORT_HANDLE. */
  DEVICE_GID_QUERY: ioctl(0x003be01c, s.WvIoDevicePortQuery, null, { outputTail: 'list' }),
  /** The P_Key table of a port, 2 bytes an entry in network order; MORE_ENTRIES if the output is too short for all. */
  DEVICE_PKEY_QUERY: ioctl(0x003be020, s.WvIoDevicePortQuery, null, { outputTail: 'list' }),
  /** Waits for an event of the port in Data. Events without a waiter are kept for the next call. */
  DEVICE_NOTIFY: ioctl(0x003be024, s.WvIoId, s.WvIoEventFlags, { cancel: 'DEVICE_CANCEL' }),
  /** Completes a device's pending DEVICE_NOTIFY with CANCELED. */
  DEVICE_CANCEL: ioctl(0x003be028, s.WvIoObject, null),
  /** Creates a protection domain; Id is the device in, the domain out. */
  PD_ALLOCATE: ioctl(0x003be02c, s.WvIoId, s.WvIoId, both),
  /** Destroys a protection domain. Fails with NOT_FOUND, or with DEVICE_BUSY (ACCESS_DENIED on Windows drivers) while objects of it exist. */
  PD_DEALLOCATE: ioctl(0x003be030, s.WvIoObject, null),
  /** Registers memory of the calling process, which stays pinned; may pend while the pages are being pinned. */
  MEMORY_REGISTER: ioctl(0x003be034, s.WvIoMemoryRegister, s.WvIoMemoryKeys, { cancel: 'PD_CANCEL' }),
  /** Deregisters the memory whose lkey is in Data; Id is the protection domain. NOT_FOUND. */
  MEMORY_DEREGISTER: ioctl(0x003be038, s.WvIoId, null),
  /** Creates an unbound memory window; Id is the protection domain in, the window out. */
  MW_ALLOCATE: ioctl(0x003be03c, s.WvIoId, s.WvIoMwKey, both),
  /** Destroys a memory window and revokes its access. NOT_FOUND. */
  MW_DEALLOCATE: ioctl(0x003be040, s.WvIoObject, null),
  /** Creates an address handle, the destination of datagrams. */
  AH_CREATE: ioctl(0x003be044, s.WvIoAhCreate, s.WvIoAhCreate, both),
  /** Destroys an address handle. NOT_FOUND. */
  AH_DESTROY: ioctl(0x003be048, s.WvIoObject, null),
  /** Creates a completion queue; Data is the number of entries, requested in and granted out. */
  CQ_CREATE: ioctl(0x003be04c, s.WvIoId, s.WvIoId, both),
  /** Destroys a completion queue; refused while queue pairs use it. */
  CQ_DESTROY: ioctl(0x003be050, s.WvIoObject, null),
  /** Changes the number of entries, in Data; waiting completions are kept. */
  CQ_RESIZE: ioctl(0x003be054, s.WvIoId, s.WvIoId, both),
  /** Waits for the queue's event selected by Data, a {@link CqNotifyType}. */
  CQ_NOTIFY: ioctl(0x003be058, s.WvIoId, null, { cancel: 'CQ_CANCEL' }),
  /** Completes a queue's pending CQ_NOTIFY with CANCELED. */
  CQ_CANCEL: ioctl(0x003be05c, s.WvIoObject, null),
  /** Creates a shared receive queue; Id is the protection domain in, the queue out. */
  SRQ_CREATE: ioctl(0x003be060, s.WvIoSrqAttributes, s.WvIoSrqAttributes, both),
  /** Destroys a shared receive queue; refused while queue pairs use it. */
  SRQ_DESTROY: ioctl(0x003be064, s.WvIoObject, null),
  /** Size and limit of a shared receive queue. */
  SRQ_QUERY: ioctl(0x003be068, s.WvIoSrqAttributes, s.WvIoSrqAttributes, both),
  /** Changes size and limit of a shared receive queue. */
  SRQ_MODIFY: ioctl(0x003be06c, s.WvIoSrqAttributes, s.WvIoSrqAttributes, both),
  /** Waits for an event: the limit was reached (ALERTED), or a queue pair no longer consumes receives (NOTIFY_CLEANUP). */
  SRQ_NOTIFY: ioctl(0x003be070, s.WvIoObject, null, { cancel: 'SRQ_CANCEL' }),
  /** Completes a queue's pending SRQ_NOTIFY with CANCELED. */
  SRQ_CANCEL: ioctl(0x003be074, s.WvIoObject, null),
  /** Creates a queue pair in RESET. NOT_FOUND if the id of a domain or queue is unknown. */
  QP_CREATE: ioctl(0x003be078, s.WvIoQpCreate, s.WvIoQpCreate, both),
  /** Destroys a queue pair. NOT_FOUND; DEVICE_BUSY while an endpoint uses it. */
  QP_DESTROY: ioctl(0x003be07c, s.WvIoObject, null),
  /** Attributes of a queue pair; Options has the bits of the valid ones. */
  QP_QUERY: ioctl(0x003be080, s.WvIoObject, s.WvIoQpAttributes),
  /** Changes the attributes selected by Options; the output is the new state. */
  QP_MODIFY: ioctl(0x003be084, s.WvIoQpAttributes, null, { outputTail: 'provider', cancel: 'QP_CANCEL' }),
  /** Adds a datagram queue pair to a multicast group in the HCA only; EP_MULTICAST_JOIN also joins it on the network. */
  QP_ATTACH: ioctl(0x003be088, s.WvIoQpMulticast, null, { cancel: 'QP_CANCEL' }),
  /** Removes a queue pair from a multicast group. NOT_FOUND. */
  QP_DETACH: ioctl(0x003be08c, s.WvIoQpMulticast, null),
  /** Completes a queue pair's pending QP_ATTACH and QP_MODIFY with CANCELED. */
  QP_CANCEL: ioctl(0x003be090, s.WvIoObject, null),
  /** Creates an endpoint of the given type. */
  EP_CREATE: ioctl(0x003be094, s.WvIoEpCreate, s.WvIoObject),
  /** Destroys an endpoint and ends its connection. NOT_FOUND. */
  EP_DESTROY: ioctl(0x003be098, s.WvIoObject, null),
  /** Sets the option in Data, an {@link EpOption}; its value follows the structure. */
  EP_MODIFY: ioctl(0x003be09c, s.WvIoId, null, { inputTail: 'option' }),
  /** Sets an endpoint's local address and port; with port 0 the kernel chooses one. */
  EP_BIND: ioctl(0x003be0a0, s.WvIoEpBind, s.WvIoEpBind),
  /** Rejects a connection request, with up to 148 bytes of private data. */
  EP_REJECT: ioctl(0x003be0a4, s.WvIoId, null, { inputTail: 'privateData' }),
  /** Connects to a peer; completes when the peer has replied or the retries are exhausted. */
  EP_CONNECT: ioctl(0x003be0a8, s.WvIoEpConnect, null, { cancel: 'EP_CANCEL' }),
  /** Accepts a request or, on the connecting side, the peer's reply; the output is the queue pair's new state. */
  EP_ACCEPT: ioctl(0x003be0ac, s.WvIoEpAccept, null, {
    outputTail: 'provider',
    cancel: 'EP_CANCEL',
    datagram: datagramAccept,
  }),
  /** Disconnects; the queue pair moves to ERROR. */
  EP_DISCONNECT: ioctl(0x003be0b0, s.WvIoEpDisconnect, null, { outputTail: 'provider', cancel: 'EP_CANCEL' }),
  /** Waits until the peer disconnects or the connection is lost. */
  EP_DISCONNECT_NOTIFY: ioctl(0x003be0b4, s.WvIoObject, null, { cancel: 'EP_CANCEL' }),
  /** Addresses and device of an endpoint, and the peer's parameters. */
  EP_QUERY: ioctl(0x003be0b8, s.WvIoObject, s.WvIoEpAttributes, { datagram: datagramQuery }),
  /** Requests a peer's datagram queue pair (SIDR, IBA 1 §12.11). */
  EP_LOOKUP: ioctl(0x003be0bc, s.WvIoEpLookup, s.WvIoEpDatagramAttributes, {
    ...ownForm,
    cancel: 'EP_CANCEL',
  }),
  /** Joins a multicast group on the interface of the endpoint's address and returns the path to it. */
  EP_MULTICAST_JOIN: ioctl(0x003be0c0, s.WvIoEpMulticast, s.WvIoEpDatagramAttributes, ownForm),
  /** Leaves a multicast group. */
  EP_MULTICAST_LEAVE: ioctl(0x003be0c4, s.WvIoEpMulticast, null, ownForm),
  /** Completes all requests pending on an endpoint with CANCELED. */
  EP_CANCEL: ioctl(0x003be0c8, s.WvIoObject, null),
  /** Starts listening on a bound endpoint. */
  EP_LISTEN: ioctl(0x003be0cc, s.WvIoEpListen, null),
  /** Waits for a listener's next request and moves it to a new endpoint. */
  EP_GET_REQUEST: ioctl(0x003be0d0, s.WvIoEpGetRequest, null, { cancel: 'EP_CANCEL' }),
  /** Completes a protection domain's pending MEMORY_REGISTER with CANCELED. */
  PD_CANCEL: ioctl(0x003be0d4, s.WvIoObject, null),
  /**
   * Creates a region for fast registration, with keys but without memory. This package's addition. The address is
   * ignored; the length is the maximum that may be registered.
   */
  MEMORY_ALLOCATE: ioctl(0x003be200, s.WvIoMemoryRegister, s.WvIoMemoryKeys),
} as const;

/**
 * IOCTLs that exist only on an HCA's file, besides the WinVerbs IOCTLs for verbs: FILE_DEVICE_INFINIBAND, from function
 * 0x900, read and write access, METHOD_BUFFERED. Source: IRP-based verbs RFC (2005).
 */
const hcaFile = {
  /** CiQueryCa: an IB_CA_ATTR, truncated to the output buffer (BUFFER_OVERFLOW). */
  CA_QUERY: ioctl(0x003be400, s.WvIoObject, null, { outputTail: 'list' }),
  /** CiQueryPort: an IB_PORT_ATTR, truncated to the output buffer (BUFFER_OVERFLOW). */
  CA_PORT_QUERY: ioctl(0x003be404, s.WvIoDevicePortQuery, null, { outputTail: 'list' }),
  /** CiModifyCa; kernel mode only. */
  CA_MODIFY: ioctl(0x003be408, IbIoCaModify, null),
  /** CiModifyPort; kernel mode only. */
  CA_PORT_MODIFY: ioctl(0x003be40c, IbIoPortModify, null),
  /** CiGetCaFatalEvent: completes when the HCA has failed. */
  CA_FATAL_EVENT: ioctl(0x003be410, s.WvIoObject, null, { cancel: 'DEVICE_CANCEL' }),
  /** CiGetCaPortEvent: completes with one event of a port. */
  CA_PORT_EVENT: ioctl(0x003be414, s.WvIoDevicePortQuery, IbIoPortEvent, { cancel: 'DEVICE_CANCEL' }),
} as const;

/** FILE_DEVICE_UNKNOWN, any access, METHOD_BUFFERED, on `\\.\ibat`. */
const ibat = {
  /** An address of this host → its CA, port and P_Key. NOT_FOUND: no device has the address. */
  IP_TO_PORT: ioctl(0x00222010, s.IbatIpToPortIn, s.IbatPortRecord),
  /** A local and a remote address → the path between them. */
  PATH: ioctl(0x00222018, s.IbatPathIn, s.IbPathRecord),
} as const;

/** IOCTLs of `\\.\NetworkDirectCounters`, which exists only in the soft kernel: FILE_DEVICE_UNKNOWN, from function 0x900, METHOD_BUFFERED. */
const counters = {
  /** Every counter and the number of live objects, as JSON text. */
  QUERY: ioctl(0x00222400, null, null, { outputTail: 'text' }),
  /** The network interface of each device, as JSON text. */
  INTERFACES: ioctl(0x00222404, null, null, { outputTail: 'text' }),
} as const;

/** IOCTLs of `\\.\NetworkDirectFaults`, which exists only in the soft kernel; the input is the CA GUID of the device. */
const faults = {
  /** Removes the device, as if its interface were gone. */
  UNPLUG: ioctl(0x00222410, s.WvIoGuid, null),
  /** Brings the device back. */
  PLUG: ioctl(0x00222414, s.WvIoGuid, null),
  /** Reports a fatal error of the device. */
  FATAL: ioctl(0x00222418, s.WvIoGuid, null),
  /** Removes the device unless it is in use (DEVICE_BUSY). */
  QUERY_REMOVE: ioctl(0x0022241c, s.WvIoGuid, null),
} as const;

/** IOCTLs of `\\.\NetworkDirectDrivers`, which exists only in the soft kernel; inputs and outputs are JSON text. */
const drivers = {
  /** Loads a driver; pends until its entry routine has returned. */
  LOAD: ioctl(0x00222420, null, null, { outputTail: 'text' }),
  /** Unloads a driver; pends until it is no longer referenced. */
  UNLOAD: ioctl(0x00222424, null, null, { outputTail: 'text' }),
} as const;

/** IOCTLs of `\\.\NetworkDirectSettings`, which exists only in the soft kernel. */
const settings = {
  /** Replaces the P_Key tables of all ports; the input is JSON text, in the form of the option `pkeys`. */
  SET_PKEYS: ioctl(0x00222428, null, null),
  /** Waits until devices or addresses have changed since a change count; returns the new count. */
  AWAIT_CHANGE: ioctl(0x0022242c, s.ChangeCount, s.ChangeCount),
} as const;

/** The codes of a table of rows, by name. */
export type Codes<T extends Readonly<Record<string, IoctlRow>>> = { readonly [K in keyof T]: T[K]['code'] };

function codesOf<T extends Readonly<Record<string, IoctlRow>>>(rows: T): Codes<T> {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, row.code])) as Codes<T>;
}

function named(rows: Readonly<Record<string, IoctlRow>>): readonly NamedIoctlRow[] {
  return Object.entries(rows).map(([name, row]) => ({ name, ...row }));
}

/** Codes of the IOCTLs of `\\.\WinVerbs`: WV_IOCTL_* without the prefix. */
export const IoctlCode = codesOf(winVerbs);
/** Codes of the IOCTLs that exist only on an HCA's file. */
export const HcaFileCode = codesOf(hcaFile);
/** Codes of the IOCTLs of `\\.\ibat`. */
export const IbatCode = codesOf(ibat);

/** Codes of the IOCTLs of `\\.\NetworkDirectCounters`. */
export const CountersCode = codesOf(counters);

/** Codes of the IOCTLs of `\\.\NetworkDirectFaults`. */
export const FaultsCode = codesOf(faults);

/** Codes of the IOCTLs of `\\.\NetworkDirectDrivers`. */
export const DriversCode = codesOf(drivers);

/** Codes of the IOCTLs of `\\.\NetworkDirectSettings`. */
export const SettingsCode = codesOf(settings);

/** The name of a WinVerbs IOCTL in {@link IoctlCode}. */
export type IoctlName = keyof typeof IoctlCode;
/** The name of an HCA file's own IOCTL in {@link HcaFileCode}. */
export type HcaFileName = keyof typeof HcaFileCode;
/** The name of an IBAT IOCTL in {@link IbatCode}. */
export type IbatName = keyof typeof IbatCode;

/** The rows of `\\.\WinVerbs` by name. */
export const ioctls: Readonly<Record<IoctlName, IoctlRow>> = winVerbs;
/** The rows of `\\.\ibat` by name. */
export const ibatIoctls: Readonly<Record<IbatName, IoctlRow>> = ibat;

/** All rows of `\\.\WinVerbs`, in the order of their codes. */
export const ioctlTable = named(winVerbs);
/** All rows that exist only on an HCA's file. */
export const hcaFileTable = named(hcaFile);
/** All rows of `\\.\ibat`. */
export const ibatTable = named(ibat);

/** All rows of `\\.\NetworkDirectCounters`. */
export const countersTable = named(counters);

/** All rows of `\\.\NetworkDirectFaults`. */
export const faultsTable = named(faults);

/** All rows of `\\.\NetworkDirectDrivers`. */
export const driversTable = named(drivers);

/** All rows of `\\.\NetworkDirectSettings`. */
export const settingsTable = named(settings);

const byCode = new Map(
  [ioctlTable, hcaFileTable, ibatTable, countersTable, faultsTable, driversTable, settingsTable]
    .flat()
    .map((row) => [row.code, row]),
);

/** The row of a code, of any device file. */
export function ioctlRow(code: number): NamedIoctlRow | undefined {
  return byCode.get(code);
}

/** The name of a code for messages, without prefix (`CQ_CREATE`), or `0x…` for unknown codes. */
export function ioctlName(code: number): string {
  return byCode.get(code)?.name ?? statusHex(code);
}
