import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type { UserVerbs, UvpHandle } from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode, ioctlName } from '../kernel-bridge/ioctl/codes.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import {
  WvGidList,
  WvIoDeviceAttributes,
  WvIoDeviceOpen,
  WvIoDevicePortQuery,
  WvIoEventFlags,
  WvIoId,
  WvIoPortAttributes,
  WvPkeyList,
} from '../kernel-bridge/ioctl/structs.js';
import { checkedGid } from './address-vector.js';
import { WVCompletionQueue } from './completion-queue.js';
import { explainPort } from './explain.js';
import type {
  IWVCompletionQueue,
  IWVDevice,
  IWVProtectionDomain,
  WvDeviceAttributes,
  WvPortAttributes,
} from './interfaces.js';
import { WVProtectionDomain } from './protection-domain.js';
import type { WVProvider } from './provider.js';
import { Status, WvError } from './status.js';
import { WvOverlapped } from './wv-object.js';

/** A P_Key without its membership bit (IBA 1 §10.9.1.1). */
const PKEY_BASE = 0x7fff;

/** Initial size of the buffer for a P_Key or GID table, in entries. It is doubled until the table fits. */
const TABLE_ENTRIES = 128;

/** IWVDevice: an open HCA. */
export class WVDevice extends WvOverlapped implements IWVDevice {
  private known: string | undefined = undefined;
  private knownTraits: WvDeviceAttributes | undefined = undefined;

  private constructor(
    /** @internal */
    readonly provider: WVProvider,
    id: bigint,
    readonly guid: bigint,
    /** @internal */
    readonly verbs: UserVerbs,
    /** @internal */
    readonly ca: UvpHandle,
  ) {
    super(
      'device',
      provider.file.ofDevice(() => this.name),
      IoctlCode.DEVICE_CANCEL,
      id,
      ['IWVDevice'],
    );
    provider.addChild(this);
  }

  /** @internal */
  static open(provider: WVProvider, guid: bigint, verbs: UserVerbs): WVDevice {
    const { file } = provider;
    let ca: UvpHandle = null;
    const { id } = file.verb(IoctlCode.DEVICE_OPEN, WvIoDeviceOpen, WvIoId, {
      pre: (umv) => {
        ca = verbs.preOpenCa?.(guid, umv) ?? null;
        return { guid };
      },
      post: (status, umv) => verbs.postOpenCa?.(guid, status, ca, umv),
      undo: (reply) => WVDevice.close(provider, verbs, reply.id, ca),
    });
    return new WVDevice(provider, id, guid, verbs, ca);
  }

  private static close(provider: WVProvider, verbs: UserVerbs, id: bigint, ca: UvpHandle): void {
    verbs.preCloseCa?.(ca);
    provider.file.destroy(IoctlCode.DEVICE_CLOSE, id, (status) => verbs.postCloseCa?.(ca, status));
  }

  /** See {@link IWVDevice.name}. @category Devices */
  get name(): string {
    this.known ??= this.provider.deviceName(this.guid);
    return this.known;
  }

  /**
   * Attributes that decide what queue pairs support. They are queried once, and remain available after the program has
   * released the device.
   * @internal
   */
  get traits(): Pick<WvDeviceAttributes, 'deviceType' | 'atomicCapability'> {
    this.knownTraits ??= this.queryAttributes();
    return this.knownTraits;
  }

  /** Returns attributes and limits (DEVICE_QUERY). @category Devices */
  query(): WvDeviceAttributes {
    this.check();
    return this.queryAttributes();
  }

  private queryAttributes(): WvDeviceAttributes {
    const output = this.file.callId(IoctlCode.DEVICE_QUERY, this.id, WvIoDeviceAttributes.size);
    const attributes = WvIoDeviceAttributes.decode(output);
    const { maxReadSge, maxSge } = attributes;
    // A Windows driver does not report this field.
    return { ...attributes, maxReadSge: maxReadSge > 0 && maxReadSge < maxSge ? maxReadSge : maxSge };
  }

  /**
   * Returns attributes of a port (DEVICE_PORT_QUERY).
   *
   * @param port - from 1
   * @throws WvError INVALID_PARAMETER, INVALID_PORT_HANDLE (there is no such port)
   * @category Devices
   */
  queryPort(port: number): WvPortAttributes {
    const input = this.portQuery(port);
    let output: Uint8Array;
    try {
      output = this.file.call(IoctlCode.DEVICE_PORT_QUERY, input, WvIoPortAttributes.size);
    } catch (error) {
      throw explainPort(error, 'DEVICE_PORT_QUERY', this, 'port', port);
    }
    const { portCabilityFlags, ...attributes } = WvIoPortAttributes.decode(output);
    return { portCapabilityFlags: portCabilityFlags, ...attributes };
  }

  /**
   * Returns one entry of the port's GID table. @throws WvError INVALID_PARAMETER_2 (there is no such entry)
   * @category Devices
   */
  queryGid(port: number, index: number): Uint8Array {
    return this.entry('GID', port, this.gids(port), index);
  }

  /**
   * Returns the index of a GID in the port's table. @throws WvError INVALID_ADDRESS (not in the table),
   * INVALID_PARAMETER (not 16 bytes)
   * @category Devices
   */
  findGid(port: number, gid: Uint8Array): number {
    const wanted = checkedGid('gid', gid);
    const index = this.gids(port).findIndex((entry) => Buffer.compare(entry, wanted) === 0);
    if (index < 0) this.absent(`the GID ${Buffer.from(wanted).toString('hex')}`, port);
    return index;
  }

  /**
   * Returns one entry of the port's P_Key table. @throws WvError INVALID_PARAMETER_2 (there is no such entry)
   * @category Devices
   */
  queryPkey(port: number, index: number): number {
    return this.entry('P_Key', port, this.pkeys(port), index);
  }

  /**
   * Returns the index of a P_Key of the same partition in the port's table, preferably one with the same membership.
   *
   * @throws WvError INVALID_ADDRESS (not in the table), INVALID_PARAMETER (not a 16-bit number)
   * @category Devices
   */
  findPkey(port: number, pkey: number): number {
    if (!(Number.isInteger(pkey) && pkey >= 0 && pkey <= 0xffff)) {
      throw new WvError(Status.INVALID_PARAMETER, `\`pkey\` must be a 16-bit number; got ${shown(pkey)}.`);
    }
    const table = this.pkeys(port);
    const exact = table.indexOf(pkey);
    if (exact >= 0) return exact;
    const index = table.findIndex((entry) => (entry & PKEY_BASE) === (pkey & PKEY_BASE));
    if (index < 0) this.absent(`the P_Key 0x${pkey.toString(16)}`, port);
    return index;
  }

  /**
   * Creates a completion queue of at least `entries` entries (CQ_CREATE). @throws WvError INVALID_PARAMETER
   * @category Queues
   */
  createCompletionQueue(entries: number): IWVCompletionQueue {
    this.check();
    return WVCompletionQueue.create(this, entries);
  }

  /** Allocates a protection domain (PD_ALLOCATE). @category Memory */
  allocateProtectionDomain(): IWVProtectionDomain {
    this.check();
    return WVProtectionDomain.allocate(this);
  }

  /**
   * Waits for an event of a port (DEVICE_NOTIFY): an OR of WV_EVENT_*, see {@link WvEvent}. Events without a waiter are
   * stored and complete the next wait immediately, so a program that calls this method repeatedly misses no event. If
   * several requests wait, the first gets the event. Every device object has events of its own.
   *
   * Completes with SUCCESS and the flags, which are then cleared, or with CANCELED, NOT_FOUND or INVALID_PORT_HANDLE
   * (no such device or port), DEVICE_REMOVED (the interface is gone), FILE_FORCED_CLOSED (after a fatal error, once
   * ERROR was reported).
   *
   * @param port - from 1
   * @throws WvError INVALID_PARAMETER (not a port number)
   * @category Devices
   */
  notify(port: number): Overlapped<number> {
    this.checkPort(port);
    return this.overlapped(
      IoctlCode.DEVICE_NOTIFY,
      WvIoId.encode({ id: this.id, data: port }),
      WvIoEventFlags.size,
      (output) => WvIoEventFlags.decode(output).flags,
    );
  }

  protected override destroy(): void {
    WVDevice.close(this.provider, this.verbs, this.id, this.ca);
    this.provider.removeChild(this);
  }

  private gids(port: number): Uint8Array[] {
    return WvGidList.decode(this.table(IoctlCode.DEVICE_GID_QUERY, port, 16));
  }

  private pkeys(port: number): number[] {
    return WvPkeyList.decode(this.table(IoctlCode.DEVICE_PKEY_QUERY, port, 2));
  }

  /** Reads the whole table of a port, without querying its length first, which may change before the next IOCTL. */
  private table(code: number, port: number, size: number): Uint8Array {
    for (let room = TABLE_ENTRIES; ; room *= 2) {
      try {
        return this.file.call(code, this.portQuery(port), room * size);
      } catch (error) {
        if (error instanceof WvError && error.status === Status.MORE_ENTRIES && room < 0xffff) continue;
        throw explainPort(error, ioctlName(code), this, 'port', port);
      }
    }
  }

  private checkPort(port: number): void {
    this.check();
    if (!(Number.isInteger(port) && port >= 1 && port <= 255)) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`port\` must be an integer from 1 to 255; got ${shown(port)}.`,
      );
    }
  }

  private portQuery(port: number): Uint8Array {
    this.checkPort(port);
    return WvIoDevicePortQuery.encode({ id: this.id, portNumber: port });
  }

  private entry<T>(what: string, port: number, table: readonly T[], index: number): T {
    const found = table[index];
    if (found !== undefined) return found;
    throw new WvError(
      Status.INVALID_PARAMETER_2,
      `\`index\` must be below the ${table.length} ${what} entries of port ${port}; got ${shown(index)}.`,
    );
  }

  private absent(what: string, port: number): never {
    throw new WvError(Status.INVALID_ADDRESS, `Port ${port} does not have ${what}.`);
  }
}
