import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { Capacity, WvDatagram } from '../kernel-bridge/ioctl/constants.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { encodeSockaddr, sockaddrData } from '../kernel-bridge/ioctl/sockaddr.js';
import {
  WvIoEpDatagramAccept,
  WvIoEpDatagramAttributes,
  WvIoEpDatagramQuery,
  WvIoEpLookup,
  WvIoEpMulticast,
} from '../kernel-bridge/ioctl/structs.js';
import { checkedSmall } from './checked-numbers.js';
import { WVDatagramQueuePair } from './datagram-queue-pair.js';
import { addressOrAny, addressOrNone, checkedData, WVEndpoint } from './endpoint.js';
import type {
  IWVDatagramEndpoint,
  SocketAddress,
  WvDatagramAttributes,
  WvDatagramParam,
} from './interfaces.js';
import type { WVProvider } from './provider.js';
import { socketAddress } from './socket-address.js';
import { checkedObject, guarded, Status, WvError } from './status.js';

const FIRST_QPN = 2;

/** The error NOT_FOUND with the address that the endpoint does not know. */
function unknownAddress(error: unknown, name: string, expected: string, given?: SocketAddress): unknown {
  if (given === undefined || !(error instanceof WvError && error.status === Status.NOT_FOUND)) return error;
  return new WvError(Status.NOT_FOUND, `\`${name}\` must be ${expected}; got ${given.address}.`, {
    cause: error,
  });
}

/**
 * IWVDatagramEndpoint: service ID resolution (SIDR, IBA 1 §12.11) and multicast groups, in RDMA CM's UDP port space. On
 * the requesting side an endpoint has any number of peers and groups: call bindAddress, then lookup and joinMulticast.
 * On the replying side, call bindAddress and listen, pass another endpoint to getRequest, then accept or reject the
 * lookup on that endpoint. There is no connection: messages are sent with UD queue pairs and address handles. A call in
 * the wrong state fails with INVALID_DEVICE_STATE.
 *
 * @example
 * const endpoint = provider.createDatagramEndpoint();
 * endpoint.bindAddress({ family: 4, address: '192.0.2.1', port: 0 });
 * const peer = await endpoint.lookup({ family: 4, address: '192.0.2.9', port: 7174 });
 * const handle = pd.createAddressHandle(peer.addressVector!);
 */
export class WVDatagramEndpoint extends WVEndpoint implements IWVDatagramEndpoint {
  /** @internal */
  constructor(provider: WVProvider, id: bigint) {
    super('datagram endpoint', provider, id, Capacity.LOOKUP_REPLY_DATA, 'IWVDatagramEndpoint');
  }

  /**
   * Waits for a lookup at this listener and moves it into `endpoint`, a fresh one of the same provider
   * (EP_GET_REQUEST). Its query() then returns the peer's address and private data.
   *
   * Completes with SUCCESS, CANCELED, INVALID_DEVICE_STATE (not listening), CONNECTION_IN_USE (`endpoint` is not
   * fresh), DEVICE_REMOVED.
   * @category Connect
   */
  getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void> {
    return this.nextRequest(endpoint instanceof WVDatagramEndpoint ? endpoint : undefined, endpoint);
  }

  /**
   * Looks up a peer's queue pair by address and port (EP_LOOKUP). This call resolves the route. The result remains
   * available from query().
   *
   * Completes with SUCCESS, CONNECTION_REFUSED (query() of the peer returns its reason and private data), TIMEOUT (no
   * reply), HOST_UNREACHABLE, NETWORK_UNREACHABLE, CANCELED, DEVICE_REMOVED.
   *
   * @param privateData - At most 180 bytes; the peer receives them zero-padded to 180.
   * @throws WvError INVALID_BUFFER_SIZE, INVALID_DEVICE_STATE (not bound), NETWORK_UNREACHABLE and others of
   *   resolveRoute
   * @category Connect
   */
  lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes> {
    this.check();
    const data = checkedData(privateData, Capacity.LOOKUP_DATA);
    const address = socketAddress(peer, 'peer');
    this.resolveRoute(address);
    const input = WvIoEpLookup.encode({
      id: this.id,
      peerAddress: { sockAddr: encodeSockaddr(address) },
      dataLength: data.length,
      data,
    });
    return this.overlapped(IoctlCode.EP_LOOKUP, input, WvIoEpDatagramAttributes.size, attributes);
  }

  /**
   * Replies to a lookup with the queue pair and Q_Key to send to (EP_ACCEPT). No message confirms that the reply has
   * arrived. If the reply is lost, the peer repeats its request and gets the same reply without involving the
   * application.
   *
   * Completes with SUCCESS, CONNECTION_ABORTED (the peer has given up), INVALID_PARAMETER (not a UD queue pair).
   *
   * @throws WvError INVALID_BUFFER_SIZE (more than 136 bytes of private data), INVALID_PARAMETER
   * @category Connect
   */
  accept(param: WvDatagramParam): Overlapped<void> {
    this.check();
    checkedObject('param', param, 'qp, a datagram queue pair or its number');
    const data = checkedData(param.privateData, Capacity.LOOKUP_REPLY_DATA);
    const { qp } = param;
    const input = WvIoEpDatagramAccept.encode({
      id: this.id,
      qpId: typeof qp === 'number' ? 0n : this.checkedQp(qp).id,
      param: {
        qpn: typeof qp === 'number' ? checkedQpn(qp) : 0,
        qkey: checkedSmall('qkey', param.qkey ?? WvDatagram.QKEY, 0xffff_ffff),
        dataLength: data.length,
        data,
      },
    });
    return this.overlapped<void>(IoctlCode.EP_ACCEPT, input, 0, () => undefined);
  }

  /**
   * Joins a multicast group (EP_MULTICAST_JOIN) and returns its address vector, QPN 0xFFFFFF and Q_Key. RoCE has no
   * subnet manager: the group's address is its GID, and the host becomes a member when a queue pair is attached
   * (IWVDatagramQueuePair.attachMulticast).
   *
   * Completes with SUCCESS, INVALID_ADDRESS (not a group, or not of the family and interface of the endpoint's
   * address), ADDRESS_ALREADY_EXISTS (already joined), NETWORK_UNREACHABLE (not bound to an address, and no route to
   * the group).
   *
   * @param group - Its port is ignored.
   * @category Connect
   */
  joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes> {
    const input = this.multicast(group);
    const { size } = WvIoEpDatagramAttributes;
    return this.overlapped(IoctlCode.EP_MULTICAST_JOIN, input, size, attributes);
  }

  /**
   * Leaves a group (EP_MULTICAST_LEAVE). Completes with SUCCESS, NOT_FOUND (not joined), INVALID_ADDRESS.
   * @category Connect
   */
  leaveMulticast(group: SocketAddress): Overlapped<void> {
    const input = this.multicast(group);
    return this.overlapped<void>(
      IoctlCode.EP_MULTICAST_LEAVE,
      input,
      0,
      () => undefined,
      (error) => unknownAddress(error, 'group', 'a joined group', group),
    );
  }

  /**
   * Returns the attributes of a peer that was looked up or of a joined group (EP_QUERY). Without an address, it returns
   * those of the peer that has sent the lookup. An endpoint remembers its latest 1024 peers.
   *
   * @throws WvError NOT_FOUND (this peer or group is unknown)
   * @category Connect
   */
  query(peer?: SocketAddress): WvDatagramAttributes {
    this.check();
    const peerAddress = sockaddrData(peer === undefined ? undefined : socketAddress(peer, 'peer'));
    const input = WvIoEpDatagramQuery.encode({ id: this.id, peerAddress });
    let output: Uint8Array;
    try {
      output = this.file.call(IoctlCode.EP_QUERY, input, WvIoEpDatagramAttributes.size);
    } catch (error) {
      throw unknownAddress(error, 'peer', 'the peer of a lookup, or a joined group', peer);
    }
    return guarded('EP_QUERY', () => attributes(output));
  }

  private multicast(group: SocketAddress): Uint8Array {
    this.check();
    const address = { sockAddr: encodeSockaddr(socketAddress(group, 'group')) };
    return WvIoEpMulticast.encode({ id: this.id, address });
  }

  private checkedQp(qp: Exclude<WvDatagramParam['qp'], number>): WVDatagramQueuePair {
    if (!(qp instanceof WVDatagramQueuePair) || qp.pd.device.provider !== this.provider) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`qp\` must be a datagram queue pair of the endpoint's provider, or a queue pair number; got ${shown(qp)}.`,
      );
    }
    qp.check();
    return qp;
  }
}

function checkedQpn(qpn: number): number {
  if (Number.isInteger(qpn) && qpn >= FIRST_QPN && qpn < WvDatagram.MULTICAST_QPN) return qpn;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`qp\` must be a queue pair number from ${FIRST_QPN} to ${WvDatagram.MULTICAST_QPN - 1}; got ${shown(qpn)}.`,
  );
}

function attributes(output: Uint8Array): WvDatagramAttributes {
  const { localAddress, peerAddress, device, backlog, param } = WvIoEpDatagramAttributes.decode(output);
  const { addressVector: av, qpn, qkey, sidrStatus, dataLength, data } = param;
  return {
    localAddress: addressOrAny(localAddress.sockAddr),
    peerAddress: addressOrNone(peerAddress.sockAddr),
    device,
    backlog: Number(backlog),
    addressVector:
      av.networkRouteValid === 0
        ? undefined
        : {
            sourceGid: av.sGid,
            destinationGid: av.dGid,
            flowLabel: av.flowLabel,
            trafficClass: av.trafficClass,
            hopLimit: av.hopLimit,
            portNumber: av.portNumber,
          },
    qpn,
    qkey,
    sidrStatus,
    privateData: data.slice(0, dataLength),
  };
}
