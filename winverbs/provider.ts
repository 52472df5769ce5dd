import { queryInterfaces } from '../kernel-bridge/control/counters.js';
import type { DeviceFile } from '../kernel-bridge/door/device-file.js';
import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type { UserVerbs } from '../kernel-bridge/door/user-verbs.js';
import { openDeviceFile } from '../kernel-bridge/index.js';
import { IbatCode, IoctlCode, SettingsCode } from '../kernel-bridge/ioctl/codes.js';
import { Capacity, EpType, IBAT_VERSION, IpProtocol } from '../kernel-bridge/ioctl/constants.js';
import { CONTROL_DEVICE } from '../kernel-bridge/ioctl/control.js';
import { connectEpType } from '../kernel-bridge/ioctl/port-space.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { addressOfGid, encodeSockaddr, scopeIdOfAddress } from '../kernel-bridge/ioctl/sockaddr.js';
import {
  ChangeCount,
  IbatIpToPortIn,
  IbatPathIn,
  IbatPortRecord,
  IbPathRecord,
  WvGuidEntries,
  WvIoEpCreate,
  WvIoGuid,
  WvIoGuidList,
  WvIoObject,
} from '../kernel-bridge/ioctl/structs.js';
import type { KernelOptionsInput } from '../kernel-bridge/option-checks/option-schemas.js';
import { loadUserVerbs } from '../kernel-bridge/uvp/index.js';
import { gidOf, isMulticastGid } from './address-vector.js';
import { checkedSmall } from './checked-numbers.js';
import { WVConnectEndpoint } from './connect-endpoint.js';
import { WVDatagramEndpoint } from './datagram-endpoint.js';
import { WVDevice } from './device.js';
import type {
  IWVConnectEndpoint,
  IWVDatagramEndpoint,
  IWVDevice,
  IWVProvider,
  SocketAddress,
  WvDeviceAddress,
  WvDeviceAttributes,
  WvPath,
} from './interfaces.js';
import { KernelFile } from './kernel-file.js';
import { decodePathRecord } from './path-record.js';
import { socketAddress } from './socket-address.js';
import { guarded, Status, WvError } from './status.js';
import { WvObject } from './wv-object.js';

/** The provider's two interfaces to the kernel and to the HCA's user-mode provider. */
export interface ProviderDoors {
  /** Interface 1: opens a device file. */
  openFile(name: string): DeviceFile;
  /** Interface 2: loads the UVP that LIBRARY_QUERY names. */
  loadUserVerbs(library: string): UserVerbs;
}

const WINVERBS = '\\\\.\\WinVerbs';
const IBAT = '\\\\.\\ibat';

/**
 * IWVProvider: the entry to the devices of this host. Each provider has its own file on `\\.\WinVerbs`; closing it
 * frees everything that the provider and its objects have left.
 * @hideconstructor
 */
export class WVProvider extends WvObject implements IWVProvider {
  /** @internal */
  readonly file: KernelFile;
  private ibat: KernelFile | undefined = undefined;
  private control: KernelFile | undefined = undefined;

  constructor(private readonly doors: ProviderDoors) {
    super('provider', ['IWVProvider']);
    this.file = guarded(WINVERBS, () => new KernelFile(doors.openFile(WINVERBS)));
  }

  get maxAcceptData(): number {
    return this.file.extended ? Capacity.REP_DATA : Capacity.CONNECT_DATA;
  }

  /** Returns the provider's file (GetFileHandle). @category Devices */
  getFileHandle(): DeviceFile {
    this.check();
    return this.file.file;
  }

  /** Returns the CA GUIDs of all devices (GUID_QUERY). @category Devices */
  queryDeviceList(): bigint[] {
    this.check();
    for (let room = 32; ; ) {
      const output = this.file.call(IoctlCode.GUID_QUERY, null, WvIoGuidList.size + (room - 1) * 8);
      const count = Number(WvIoObject.decode(output).id);
      const guids = WvGuidEntries.decode(output.subarray(8)).slice(0, count);
      // Devices may have been added meanwhile. If the output was not filled, the list is complete.
      if (guids.length >= count || guids.length < room) return guids;
      room = count + 8;
    }
  }

  /**
   * See {@link IWVProvider.notifyDeviceChange}. Completes with SUCCESS or CANCELED; the provider's last release cancels
   * it.
   *
   * @throws WvError NOT_SUPPORTED (an OS driver does not report changes), INVALID_PARAMETER
   * @category Devices
   */
  notifyDeviceChange(known: number): Overlapped<number> {
    this.check();
    const count = checkedSmall('known', known, 0xffff_ffff);
    if (!this.file.extended) {
      throw new WvError(
        Status.NOT_SUPPORTED,
        'This driver does not report changes; query the devices instead.',
      );
    }
    this.control ??= guarded(CONTROL_DEVICE, () => new KernelFile(this.doors.openFile(CONTROL_DEVICE)));
    const input = ChangeCount.encode({ count });
    const decode = (output: Uint8Array): number => ChangeCount.decode(output).count;
    return this.control.overlapped(SettingsCode.AWAIT_CHANGE, input, ChangeCount.size, decode);
  }

  /** @internal See {@link IWVDevice.name}. */
  deviceName(guid: bigint): string {
    const hex = guid.toString(16).padStart(16, '0');
    try {
      const found = queryInterfaces((name) => this.doors.openFile(name)).find((one) => one.guid === guid);
      return found?.hca?.device ?? found?.name ?? hex;
    } catch {
      // An OS driver has no such file, and a removed device has no interface.
      return hex;
    }
  }

  /**
   * Returns attributes of a device, which is opened for this call.
   *
   * @throws WvError NO_SUCH_DEVICE
   * @category Devices
   */
  queryDevice(guid: bigint): WvDeviceAttributes {
    checkGuid(guid);
    const device = this.openDevice(guid);
    try {
      return device.query();
    } finally {
      device.release();
    }
  }

  /**
   * Returns the device and port of a local address (IBAT).
   *
   * @throws WvError INVALID_ADDRESS (not a valid IP address), NOT_FOUND (not an address of a device of this host)
   * @category Connect
   */
  translateAddress(address: string | SocketAddress): WvDeviceAddress {
    this.check();
    const given = socketAddress(address);
    const input = IbatIpToPortIn.encodeOnce({ version: IBAT_VERSION, address: encodeSockaddr(given) });
    let output: Uint8Array;
    try {
      output = this.openIbat().call(IbatCode.IP_TO_PORT, input, IbatPortRecord.size);
    } catch (error) {
      if (!(error instanceof WvError && error.status === Status.NOT_FOUND)) throw error;
      const text = `No device of this host has the address ${given.address}.`;
      throw new WvError(Status.NOT_FOUND, text, { cause: error });
    }
    const record = IbatPortRecord.decode(output);
    return { deviceGuid: record.caGuid, pkey: record.pKey, portNumber: record.portNum };
  }

  /**
   * Returns the path to an address (IBAT): the device to open and the address vector to use on it. Without `local` the
   * host's routes choose the source address. A multicast group needs `local`, which selects the interface.
   *
   * @example
   * const { device, addressVector } = provider.resolvePath('192.0.2.9');
   *
   * @throws WvError INVALID_ADDRESS (not a valid IP address, or `local` is not this host's), NETWORK_UNREACHABLE (no
   *   route), INVALID_PARAMETER (two address families, or a group without `local`), BAD_NETWORK_NAME (not the address
   *   of a host)
   * @category Connect
   */
  resolvePath(remote: string | SocketAddress, local?: string | SocketAddress): WvPath {
    this.check();
    const to = socketAddress(remote, 'remote');
    const from = local === undefined ? undefined : socketAddress(local, 'local');
    const group = gidOf(to.address);
    if (isMulticastGid(group)) {
      if (from === undefined || from.family !== to.family) {
        throw new WvError(
          Status.INVALID_PARAMETER,
          `\`local\` must be an address of the interface to use, of the same family, because ${to.address} is a multicast group; got ${shown(local)}.`,
        );
      }
      const device = this.translateAddress(from);
      const { portNumber } = device;
      const route = { sourceGid: gidOf(from.address), destinationGid: group };
      return { device, addressVector: { ...route, portNumber }, record: route };
    }
    const chosen = { family: to.family, address: to.family === 4 ? '0.0.0.0' : '::', port: 0 };
    const record = decodePathRecord(this.queryPath(from ?? chosen, to));
    const scopeId = scopeIdOfAddress((from ?? to).address);
    const address = addressOfGid(record.sourceGid, scopeId);
    const device = this.translateAddress({ family: to.family, address, port: 0 });
    return {
      device,
      addressVector: {
        sourceGid: record.sourceGid,
        destinationGid: record.destinationGid,
        flowLabel: record.flowLabel,
        trafficClass: record.trafficClass,
        hopLimit: record.hopLimit,
        portNumber: device.portNumber,
      },
      record,
    };
  }

  /**
   * Opens a device and loads its user-mode verbs provider.
   *
   * @throws WvError NO_SUCH_DEVICE, NOT_SUPPORTED (its provider is missing or incomplete)
   * @category Devices
   */
  openDevice(guid: bigint): IWVDevice {
    this.check();
    checkGuid(guid);
    let name: Uint8Array;
    try {
      name = this.file.call(IoctlCode.LIBRARY_QUERY, WvIoGuid.encode({ guid }), 32);
    } catch (error) {
      if (!(error instanceof WvError && error.status === Status.NO_SUCH_DEVICE)) throw error;
      const text = `\`guid\` must be one of queryDeviceList(); got 0x${guid.toString(16)}.`;
      throw new WvError(Status.NO_SUCH_DEVICE, text, { cause: error });
    }
    const end = name.indexOf(0);
    const library = Buffer.from(end < 0 ? name : name.subarray(0, end)).toString('latin1');
    const verbs = guarded('OpenDevice', () => this.doors.loadUserVerbs(library));
    return WVDevice.open(this, guid, verbs);
  }

  /**
   * Creates a connect endpoint in the state Idle (EP_CREATE), in the port space of an IP protocol, as it appears in the
   * RDMA CM's service IDs (IBA 1 Annex A11.2.1).
   *
   * @throws WvError INVALID_PARAMETER (not an IP protocol number), NOT_SUPPORTED (UDP, which has no connections), or
   *   the error of a Windows driver, which may support only the port space of TCP
   * @category Connect
   */
  createConnectEndpoint(protocol: number = IpProtocol.TCP): IWVConnectEndpoint {
    this.check();
    const checked = checkedSmall('protocol', protocol, 0xff);
    if (checked === IpProtocol.UDP) {
      throw new WvError(
        Status.NOT_SUPPORTED,
        '`protocol` must not be 17 (UDP), which has no connections. Use createDatagramEndpoint(), or another protocol.',
      );
    }
    return new WVConnectEndpoint(this, this.createEndpoint(connectEpType(checked)));
  }

  /**
   * Creates a datagram endpoint in the state Idle (EP_CREATE). @throws WvError NOT_SUPPORTED (the driver has none)
   * @category Connect
   */
  createDatagramEndpoint(): IWVDatagramEndpoint {
    return new WVDatagramEndpoint(this, this.createEndpoint(EpType.DATAGRAM));
  }

  private createEndpoint(type: number): bigint {
    this.check();
    const input = WvIoEpCreate.encodeOnce({ epType: BigInt(type) });
    return WvIoObject.decode(this.file.call(IoctlCode.EP_CREATE, input, WvIoObject.size)).id;
  }

  /**
   * Returns the path between two addresses, as the 64 bytes of `ib_path_rec_t`.
   *
   * @internal
   */
  queryPath(local: SocketAddress, remote: SocketAddress): Uint8Array {
    const input = IbatPathIn.encodeOnce({
      version: IBAT_VERSION,
      localAddress: encodeSockaddr(local),
      remoteAddress: encodeSockaddr(remote),
    });
    return this.openIbat().call(IbatCode.PATH, input, IbPathRecord.size);
  }

  protected override destroy(): void {
    this.ibat?.close();
    this.control?.close();
    this.file.close();
  }

  private openIbat(): KernelFile {
    this.ibat ??= guarded(IBAT, () => new KernelFile(this.doors.openFile(IBAT)));
    return this.ibat;
  }
}

/**
 * Opens WinVerbs. The first open in an isolate starts its kernel with these `options`; later ones must not pass others.
 *
 * @throws WvError INVALID_PARAMETER (an invalid option, or one that differs from the kernel's), and others if the kernel
 *   does not start; the message has the reason
 * @example
 * using provider = openProvider();
 * const device = provider.openDevice(provider.translateAddress('127.0.0.1').deviceGuid);
 */
export function openProvider(options?: KernelOptionsInput): IWVProvider {
  return new WVProvider({ openFile: (name) => openDeviceFile(name, options), loadUserVerbs });
}

function checkGuid(guid: bigint): void {
  if (typeof guid === 'bigint' && BigInt.asUintN(64, guid) === guid) return;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`guid\` must be a 64-bit bigint, as queryDeviceList() returns; got ${shown(guid)}.`,
  );
}
