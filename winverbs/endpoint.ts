import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { EpOption } from '../kernel-bridge/ioctl/constants.js';
import { kindOf, shown } from '../kernel-bridge/ioctl/shown.js';
import { decodeSockaddr, encodeSockaddr, gidOfAddress } from '../kernel-bridge/ioctl/sockaddr.js';
import { WvIoEpBind, WvIoEpGetRequest, WvIoEpListen, WvIoId } from '../kernel-bridge/ioctl/structs.js';
import { checkedSmall } from './checked-numbers.js';
import type { IWVEndpoint, SocketAddress, WvDeviceAddress, WvPathRecord } from './interfaces.js';
import { encodePathRecord } from './path-record.js';
import type { WVProvider } from './provider.js';
import { socketAddress } from './socket-address.js';
import { checkedObject, guarded, Status, WvError } from './status.js';
import { WvOverlapped } from './wv-object.js';

const NO_BYTES = new Uint8Array(0);

/** Returns the private data, if it is not too long. @throws WvError INVALID_PARAMETER, INVALID_BUFFER_SIZE */
export function checkedData(data: Uint8Array | undefined, most: number): Uint8Array {
  const bytes = data ?? NO_BYTES;
  if (!(bytes instanceof Uint8Array))
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`privateData\` must be a Uint8Array; got ${kindOf(bytes)}.`,
    );
  if (bytes.length <= most) return bytes;
  throw new WvError(
    Status.INVALID_BUFFER_SIZE,
    `\`privateData\` must be at most ${most} bytes; got ${bytes.length}.`,
  );
}

function isWildcard(address: SocketAddress): boolean {
  const gid = gidOfAddress(address.address);
  return gid.subarray(address.family === 4 ? 12 : 0).every((byte) => byte === 0);
}

function familyOf(sockaddr: Uint8Array): number {
  return sockaddr[0]! | (sockaddr[1]! << 8);
}

/** Decodes the address of an IOCTL; the IPv4 wildcard if none was set. */
export function addressOrAny(sockaddr: Uint8Array): SocketAddress {
  return addressOrNone(sockaddr) ?? { family: 4, address: '0.0.0.0', port: 0 };
}

/** Decodes the address of an IOCTL, if one was set. */
export function addressOrNone(sockaddr: Uint8Array): SocketAddress | undefined {
  return familyOf(sockaddr) === 0 ? undefined : decodeSockaddr(sockaddr);
}

/**
 * IWVEndpoint: the common part of connect and datagram endpoints.
 * @hideconstructor
 */
export abstract class WVEndpoint extends WvOverlapped implements IWVEndpoint {
  /** The bound address. @internal */
  protected local: SocketAddress | undefined = undefined;

  constructor(
    kind: string,
    /** @internal */
    readonly provider: WVProvider,
    id: bigint,
    /** Maximum private data of a Reject, in bytes. */
    private readonly rejectRoom: number,
    own: 'IWVConnectEndpoint' | 'IWVDatagramEndpoint',
  ) {
    const file = provider.file.ofDevice(() => this.deviceName());
    super(kind, file, IoctlCode.EP_CANCEL, id, ['IWVEndpoint', own]);
    provider.addChild(this);
  }

  /**
   * Binds the endpoint to an address of a device, or to the wildcard to listen on all addresses (EP_BIND). Port 0
   * selects a free port. Returns the address with the port, as `query()` does.
   *
   * @throws WvError INVALID_ADDRESS, NOT_FOUND (no device of this host has the address), ADDRESS_ALREADY_EXISTS
   * @category Connect
   */
  bindAddress(address: SocketAddress, device?: WvDeviceAddress): SocketAddress {
    this.check();
    const given = socketAddress(address);
    if (device !== undefined) checkedObject('device', device, 'deviceGuid, pkey and portNumber');
    const owner = isWildcard(given) ? (device ?? {}) : this.provider.translateAddress(given);
    const input = WvIoEpBind.encodeOnce({
      id: this.id,
      address: { sockAddr: encodeSockaddr(given) },
      device: owner,
    });
    const output = this.file.call(IoctlCode.EP_BIND, input, WvIoEpBind.size);
    const local = guarded('EP_BIND', () => decodeSockaddr(WvIoEpBind.decode(output).address.sockAddr));
    this.local = local;
    return { ...local };
  }

  /** The name of the device that has the endpoint's address; undefined without an address or such a device. */
  private deviceName(): string | undefined {
    const { local } = this;
    if (local === undefined || isWildcard(local)) return undefined;
    try {
      return this.provider.deviceName(this.provider.translateAddress({ ...local, port: 0 }).deviceGuid);
    } catch {
      return undefined;
    }
  }

  /**
   * Resolves the path to a peer (IBAT) and sets it (EP_MODIFY).
   *
   * @throws WvError INVALID_DEVICE_STATE (not bound), HOST_UNREACHABLE, NETWORK_UNREACHABLE, NOT_FOUND
   * @category Connect
   */
  resolveRoute(peer: SocketAddress): void {
    this.check();
    if (this.local === undefined) {
      throw new WvError(
        Status.INVALID_DEVICE_STATE,
        'The endpoint must be bound before resolveRoute(); call bindAddress() first.',
      );
    }
    const path = this.provider.queryPath(this.local, socketAddress(peer, 'peer'));
    this.file.callWith(IoctlCode.EP_MODIFY, WvIoId.encodeOnce({ id: this.id, data: EpOption.ROUTE }), path);
  }

  /**
   * Sets the complete path to a peer (EP_MODIFY): partition, traffic class, hop limit, flow label, MTU and packet
   * lifetime. The peer must be that of connect() or lookup(), and the source the bound address. The peer sends on the
   * same path, because the REQ carries it. If the path has the port's first partition, or none, the pkeyIndex of a
   * queue pair in INIT takes precedence.
   *
   * @example
   * const { record } = provider.resolvePath('192.0.2.9');
   * endpoint.modify({ ...record, trafficClass: 0xa0, packetLifeTime: 14 });
   *
   * @throws WvError INVALID_DEVICE_STATE (not bound, or already connecting), INVALID_ADDRESS (another source address,
   *   or a destination that is not a host), INVALID_PARAMETER (a member is out of range, or the port is not in the
   *   partition)
   * @category Connect
   */
  modify(path: WvPathRecord): void {
    this.check();
    const record = encodePathRecord(path);
    this.file.callWith(IoctlCode.EP_MODIFY, WvIoId.encodeOnce({ id: this.id, data: EpOption.ROUTE }), record);
  }

  /**
   * Accepts requests for this address from now on (EP_LISTEN). `backlog` is the maximum number of waiting requests;
   * further ones are refused. 0 selects the soft kernel's limit (1024 for each listener, 4096 for each thread). With
   * `pkey`, requests for other partitions are refused as well; without it, every partition of the port is accepted.
   *
   * @throws WvError ADDRESS_ALREADY_EXISTS (the port is in use), INVALID_DEVICE_STATE, INVALID_PARAMETER (not a 16-bit
   *   number, or, with `pkey`, not the soft kernel)
   * @category Connect
   */
  listen(backlog: number, pkey?: number): void {
    this.check();
    if (pkey !== undefined) {
      const key = checkedSmall('pkey', pkey, 0xffff);
      const head = WvIoId.encodeOnce({ id: this.id, data: EpOption.PARTITION });
      this.file.callWith(IoctlCode.EP_MODIFY, head, Uint8Array.of(key >>> 8, key & 0xff));
    }
    const checked = BigInt(checkedSmall('backlog', backlog, 0xffff_ffff));
    this.file.call(IoctlCode.EP_LISTEN, WvIoEpListen.encodeOnce({ id: this.id, backlog: checked }));
  }

  /**
   * Rejects the peer's request or reply with private data (EP_REJECT): at most 148 bytes for a connection, 136 for a
   * lookup of a datagram service.
   *
   * @throws WvError INVALID_BUFFER_SIZE, INVALID_DEVICE_STATE
   * @category Connect
   */
  reject(privateData?: Uint8Array): void {
    this.check();
    const data = checkedData(privateData, this.rejectRoom);
    const input = new Uint8Array(WvIoId.size + data.length);
    WvIoId.encode({ id: this.id }, input);
    input.set(data, WvIoId.size);
    this.file.call(IoctlCode.EP_REJECT, input);
  }

  /** Moves the next request into `endpoint`, a fresh one of the same type and provider (EP_GET_REQUEST). */
  protected nextRequest(endpoint: WVEndpoint | undefined, given: unknown): Overlapped<void> {
    this.check();
    if (endpoint?.provider !== this.provider) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`endpoint\` must be of the listener's type and provider; got ${shown(given)}.`,
      );
    }
    endpoint.check();
    const input = WvIoEpGetRequest.encodeOnce({ id: this.id, epId: endpoint.id });
    return this.overlapped<void>(IoctlCode.EP_GET_REQUEST, input, 0, () => undefined);
  }

  /** The soft kernel cancels the waiting requests of an endpoint that it destroys. */
  protected override unused(): void {
    if (!this.file.extended) super.unused();
  }

  protected override destroy(): void {
    this.file.destroy(IoctlCode.EP_DESTROY, this.id);
    this.provider.removeChild(this);
  }
}
