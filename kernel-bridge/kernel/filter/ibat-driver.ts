/** `\\.\ibat`: from IP addresses to devices and paths (IBAT interface version 6). */
import { type IbatName, ibatTable } from '../../ioctl/codes.js';
import { IBAT_VERSION } from '../../ioctl/constants.js';
import { decodeOptionalSockaddr, decodeSockaddr } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import { IbatIpToPortIn, IbatPathIn, IbatPortRecord, IbPathRecord } from '../../ioctl/structs.js';
import {
  isLoopback,
  isMulticast,
  isUnspecified,
  isV4,
  mtuCode,
  type PortTable,
} from '../hca-driver/hca-ports.js';
import { DEFAULT_PKEY } from '../hca-driver/pkeys.js';
import { DeviceObject, DriverObject } from '../io-manager/device-object.js';
import { IoctlTable } from '../io-manager/ioctl-table.js';
import type { Irp } from '../io-manager/irp.js';
import type { WorkItems } from '../io-manager/work-items.js';
import { endpointAddress } from './endpoint-types.js';

/** Selector "exactly" in the high two bits of MTU and packet life time (IBA 1 §15.2.5.16). */
const exactly = 0x80;
/** Hop limit of a routed packet. */
const hopLimit = 64;

export class IbatDriver {
  readonly driver: DriverObject;
  readonly device: DeviceObject;

  constructor(
    private readonly ports: PortTable,
    private readonly work: WorkItems,
    /** The packet life time of all paths, as a code: 4.096 µs × 2^n. */
    private readonly packetLife: number,
  ) {
    this.driver = new DriverObject('\\Driver\\ibat', {
      create: (file, irp) =>
        file.relativeName === ''
          ? irp.complete(Status.SUCCESS, 0)
          : irp.complete(Status.OBJECT_NAME_NOT_FOUND),
      deviceControl: (_file, irp) => this.deviceControl(irp),
      cleanup: () => {},
      close: () => {},
    });
    this.device = new DeviceObject(this.driver, '\\Device\\ibat', undefined);
  }

  private readonly table = new IoctlTable<(irp: Irp, input: Uint8Array) => number>(ibatTable, {
    IP_TO_PORT: (irp, input) => {
      const { version, address } = IbatIpToPortIn.decode(input);
      if (version !== IBAT_VERSION) return irp.complete(Status.INVALID_PARAMETER);
      const { gid, scopeId } = endpointAddress(decodeSockaddr(address));
      const port = isUnspecified(gid) ? undefined : this.ports.ofGid(gid, scopeId);
      if (!port) return irp.complete(Status.NOT_FOUND);
      const { guid, portGuid, pkeys } = port;
      IbatPortRecord.encode(
        { caGuid: guid, portGuid, pKey: pkeys[0] ?? DEFAULT_PKEY, portNum: 1 },
        irp.output,
      );
      return irp.complete(Status.SUCCESS, IbatPortRecord.size);
    },

    PATH: (irp, input) => {
      const { version, localAddress, remoteAddress } = IbatPathIn.decode(input);
      if (version !== IBAT_VERSION) return irp.complete(Status.INVALID_PARAMETER);
      const localGiven = decodeOptionalSockaddr(localAddress);
      const local = localGiven && endpointAddress(localGiven);
      const remote = endpointAddress(decodeSockaddr(remoteAddress));
      const record = this.path(local?.gid, remote.gid, local?.scopeId || remote.scopeId);
      IbPathRecord.encode(record, irp.output);
      return irp.complete(Status.SUCCESS, IbPathRecord.size);
    },
  } satisfies Record<IbatName, (irp: Irp, input: Uint8Array) => number>);

  /**
   * The path between two addresses. Without a local one, or with the unspecified one, the OS's route selects it.
   *
   * @throws StatusError BAD_NETWORK_NAME for a destination that is not a host, INVALID_ADDRESS for a local address of
   * another host, INVALID_PARAMETER for two families, NETWORK_UNREACHABLE without a route from there.
   */
  path(local: Uint8Array | undefined, remote: Uint8Array, scopeId: number) {
    if (isUnspecified(remote) || isMulticast(remote) || (isV4(remote) && (remote[12] ?? 0) >= 240))
      throw new StatusError(Status.BAD_NETWORK_NAME);
    if (local && isV4(local) !== isV4(remote)) {
      throw new StatusError(Status.INVALID_PARAMETER, 'local and remote address must be of the same family');
    }
    const given = local && !isUnspecified(local) ? local : undefined;
    // A connection to the loopback address ends at its own source address.
    const destination = given && isLoopback(remote) && !isLoopback(given) ? given : remote;
    if (given && !this.ports.ofGid(given, scopeId)) throw new StatusError(Status.INVALID_ADDRESS);
    const route = this.ports.routeTo(destination, given, scopeId);
    if (!route) throw new StatusError(Status.NETWORK_UNREACHABLE);
    const { source, port, pathMtu } = route;
    return {
      sgid: source,
      dgid: destination,
      hopFlowRaw: hopLimit,
      numPath: 1,
      pkey: port.pkeys[0] ?? DEFAULT_PKEY,
      mtu: exactly | mtuCode(pathMtu),
      pktLife: exactly | this.packetLife,
    };
  }

  private deviceControl(irp: Irp): number {
    const served = this.table.find(irp);
    if (typeof served === 'number') return irp.complete(served);
    const input = irp.takeInput().slice();
    // Reading interfaces and routes may block.
    return this.work.pend(irp, () => {
      try {
        served.handler(irp, input);
      } catch (error) {
        if (!(error instanceof StatusError) || irp.completed) throw error;
        irp.complete(error.status);
      }
    });
  }
}
