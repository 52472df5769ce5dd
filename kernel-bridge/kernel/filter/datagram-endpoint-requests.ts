/**
 * IOCTLs that only datagram endpoints have, or have in a form of their own. The WinVerbs interface never defined their
 * layouts; those in structs.ts are ours.
 */
import type { IoctlName } from '../../ioctl/codes.js';
import { Capacity, QpType } from '../../ioctl/constants.js';
import type { Input } from '../../ioctl/layout.js';
import { decodeOptionalSockaddr, decodeSockaddr, gidOfSockaddr } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import * as s from '../../ioctl/structs.js';
import { isMulticast } from '../hca-driver/ports.js';
import type { Irp } from '../io-manager/irp.js';
import type { Call, Handler } from './call.js';
import { DatagramEndpoint } from './datagram-endpoint.js';
import type { EndpointServices } from './endpoint-services.js';
import { deviceAddress } from './endpoint-steps.js';
import { addressData, type DatagramPeer, type EndpointAddress, endpointAddress } from './endpoint-types.js';

function find(call: Call, id: bigint): DatagramEndpoint {
  const endpoint = call.find(call.file.endpoints, id);
  if (endpoint instanceof DatagramEndpoint) return endpoint;
  throw new StatusError(Status.NOT_SUPPORTED, `${call.row.name}: the endpoint is none of datagrams`);
}

function checkedData(call: Call, data: Uint8Array, length: number, most: number): Uint8Array {
  if (length <= most) return data.slice(0, length);
  throw new StatusError(
    Status.INVALID_BUFFER_SIZE,
    `${call.row.name}: ${length} bytes of private data; at most ${most} fit`,
  );
}

/** A group's address; throws StatusError INVALID_ADDRESS. */
function groupOf({ sockAddr }: { sockAddr: Uint8Array }): EndpointAddress {
  const text = decodeSockaddr(sockAddr);
  const group = endpointAddress(text);
  if (isMulticast(group.gid)) return group;
  throw new StatusError(
    Status.INVALID_ADDRESS,
    `${text.address} is no multicast group; 224.0.0.0/4 and ff00::/8 are`,
  );
}

function attributes(
  local: EndpointAddress | undefined,
  peer: DatagramPeer | undefined,
  backlog: number,
  services: EndpointServices,
): Input<typeof s.WvIoEpDatagramAttributes> {
  const param = peer && {
    addressVector: {
      networkRouteValid: 1,
      hopLimit: peer.path.hopLimit,
      trafficClass: peer.path.trafficClass,
      flowLabel: peer.path.flowLabel,
      sGid: peer.path.source,
      dGid: peer.path.destination,
      portNumber: 1,
    },
    qpn: peer.qpn,
    qkey: peer.qkey,
    dataLength: peer.privateData.length,
    sidrStatus: peer.sidrStatus,
    data: peer.privateData,
  };
  return {
    localAddress: addressData(local),
    peerAddress: addressData(peer?.peer),
    device: deviceAddress(local, services),
    backlog: BigInt(backlog),
    ...(param && { param }),
  };
}

/** Completes a request with a peer's attributes; the room in its output was checked. */
const answerPeer =
  (services: EndpointServices) =>
  (irp: Irp, peer: DatagramPeer): void => {
    s.WvIoEpDatagramAttributes.encode(attributes(peer.local, peer, 0, services), irp.output);
    irp.complete(Status.SUCCESS, s.WvIoEpDatagramAttributes.size);
  };

/** EP_QUERY of a datagram endpoint. */
export function queryDatagram(call: Call, endpoint: DatagramEndpoint, services: EndpointServices): number {
  const { peerAddress } = s.WvIoEpDatagramQuery.decode(call.input);
  if (call.irp.outputCapacity < s.WvIoEpDatagramAttributes.size) return call.fail(Status.BUFFER_TOO_SMALL);
  const selected = decodeOptionalSockaddr(peerAddress.sockAddr);
  const answer = () => {
    const peer = endpoint.find(selected && endpointAddress(selected));
    if (selected && !peer) {
      throw new StatusError(Status.NOT_FOUND, `the endpoint knows nothing of ${selected.address}`);
    }
    const { local, backlog, state } = endpoint;
    const value = attributes(peer?.local ?? local, peer, state === 'listening' ? backlog : 0, services);
    return call.struct(s.WvIoEpDatagramAttributes, value);
  };
  return endpoint.handle('query', call.irp, { answer });
}

/** EP_ACCEPT of a datagram endpoint, with the queue pair's id or number. */
export function acceptDatagram(call: Call, endpoint: DatagramEndpoint): number {
  const { qpId, param } = s.WvIoEpDatagramAccept.decode(call.input);
  const privateData = checkedData(call, param.data, param.dataLength, Capacity.LOOKUP_ANSWER_DATA);
  const qp = qpId === 0n ? undefined : call.find(call.file.qps, qpId).qp;
  if (qp && qp.create.type !== QpType.UD) {
    throw new StatusError(Status.INVALID_PARAMETER, 'datagram endpoints name UD queue pairs');
  }
  const qpn = qp?.qpn ?? param.qpn;
  if (qpn < 2 || qpn >= 0xff_ffff) {
    throw new StatusError(Status.INVALID_PARAMETER, `queue pair number ${qpn}; it takes 2 … 0xFFFFFE`);
  }
  return endpoint.handle('accept', call.irp, { datagram: { qpn, qkey: param.qkey }, privateData });
}

/** The handlers of requests that only datagram endpoints have. */
export function datagramEndpointRequests(services: EndpointServices) {
  return {
    EP_LOOKUP: (call) => {
      const input = s.WvIoEpLookup.decode(call.input);
      const endpoint = find(call, input.id);
      const privateData = checkedData(call, input.data, input.dataLength, Capacity.LOOKUP_DATA);
      const address = gidOfSockaddr(input.peerAddress.sockAddr);
      return endpoint.handle('lookup', call.irp, {
        address,
        privateData,
        answerPeer: answerPeer(services),
      });
    },

    EP_MULTICAST_JOIN: (call) => {
      const { id, address } = s.WvIoEpMulticast.decode(call.input);
      const endpoint = find(call, id);
      return endpoint.handle('join', call.irp, {
        address: groupOf(address),
        answerPeer: answerPeer(services),
      });
    },

    EP_MULTICAST_LEAVE: (call) => {
      const { id, address } = s.WvIoEpMulticast.decode(call.input);
      return find(call, id).handle('leave', call.irp, { address: groupOf(address) });
    },
  } satisfies Partial<Record<IoctlName, Handler>>;
}
