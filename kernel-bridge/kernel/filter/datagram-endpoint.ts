/**
 * A datagram endpoint: executes the actions of datagram-endpoint-states.ts. endpoint-machine.ts has the common part of
 * all endpoints; connection management sends lookups and their replies (SIDR, IBA 1 §12.11).
 */
import type { PathParameters } from '../../hca/soft-hca-binding.js';
import { EpType, WvDatagram } from '../../ioctl/constants.js';
import { addressOfGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type {
  CmListenParameters,
  SidrInquiry,
  SidrListener,
  SidrLookup,
  SidrReply,
  SidrRequest,
} from '../cm/service.js';
import { isLoopback, isMulticast, isUnspecified, isV4, sameGid } from '../hca-driver/hca-ports.js';
import { type Irp, IrpQueue } from '../io-manager/irp.js';
import {
  type DatagramAction,
  type DatagramEndpointKind,
  type DatagramSignalAction,
  datagramTables,
} from './datagram-endpoint-states.js';
import {
  type CommonAction,
  EndpointMachine,
  type Nameable,
  type RequestArguments,
  type RequestStep,
  type SignalData,
} from './endpoint-machine.js';
import type { DatagramPeer, EndpointAddress, EndpointServices } from './endpoint-types.js';

/** Maximum number of an endpoint's peers that can be queried; beyond it the oldest are forgotten. */
export const PEERS_KEPT = 1024;
/** Maximum number of groups of one endpoint. */
export const GROUPS_MOST = 1024;
/** Hop limit of packets to a group, as in rdma_cm. */
const groupHops = 64;

const NOTHING = new Uint8Array(0);
const gidKey = (gid: Uint8Array): string => Buffer.from(gid).toString('hex');
const peerKey = ({ gid, port }: EndpointAddress): string => `${gidKey(gid)}/${port}`;

/** A waiting Lookup. */
interface Pending {
  lookup: SidrLookup;
}

export class DatagramEndpoint extends EndpointMachine<DatagramEndpointKind, DatagramEndpoint> {
  declare protected listener: SidrListener | undefined;
  private inquiry: SidrInquiry | undefined = undefined;
  /** The peer that sent the lookup. */
  private asker: DatagramPeer | undefined = undefined;
  /** Peers, oldest first. */
  private readonly peers = new Map<string, DatagramPeer>();
  private readonly groups = new Map<string, DatagramPeer>();
  private readonly lookups = new IrpQueue<Pending>((_irp, { lookup }) => lookup.abandon());

  constructor(services: EndpointServices) {
    super(EpType.DATAGRAM, services, datagramTables);
  }

  /** A peer or group; without an address, the peer that sent the lookup. */
  find(address: EndpointAddress | undefined): DatagramPeer | undefined {
    if (!address) return this.asker;
    if (isMulticast(address.gid)) return this.groups.get(gidKey(address.gid));
    const asker = this.asker && peerKey(this.asker.peer) === peerKey(address) ? this.asker : undefined;
    return this.peers.get(peerKey(address)) ?? asker;
  }

  // ── Requests ────────────────────────────────────────────────────────────────────────────────────────────

  /** One table for all endpoints: `this` is the endpoint of the request. */
  private static readonly requestActions: Readonly<
    Record<Exclude<DatagramAction, CommonAction>, RequestStep<DatagramEndpoint>>
  > = {
    lookup(irp, args) {
      const { path, pkey } = this.route!;
      const peer = args.address!;
      const loopback = isLoopback(peer.gid) && this.services.isOwn(path.destination);
      if (!sameGid(peer.gid, path.destination) && !loopback) {
        throw new StatusError(
          Status.INVALID_ADDRESS,
          `the route must lead to the peer ${addressOfGid(peer.gid)}; got ${addressOfGid(path.destination)}`,
        );
      }
      if (peer.port === 0)
        throw new StatusError(Status.INVALID_ADDRESS, 'the port of the peer must not be 0');
      const local = this.local!;
      const { lookup, status } = this.services.lookup(
        {
          serviceId: this.serviceId(peer.port),
          path: { ...path, pkey },
          localPort: local.port,
          pkey,
          privateData: args.privateData!,
        },
        {
          answered: (reply) => this.lookedUp(irp, { local, peer, path }, reply, args.answerPeer!),
          timedOut: (failure) => {
            if (this.lookups.remove(irp)) irp.complete(failure ?? Status.TIMEOUT);
          },
        },
      );
      if (status !== Status.SUCCESS) {
        lookup.abandon();
        throw new StatusError(status);
      }
      this.lookups.insert(irp, { lookup });
      return undefined;
    },

    accept(irp, args) {
      const { qpn, qkey } = args.datagram!;
      this.inquiry!.accept(qpn, qkey, args.privateData!);
      this.inquiry = undefined;
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    reject(irp, args) {
      this.inquiry!.reject(args.privateData!);
      this.inquiry = undefined;
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    join(irp, args) {
      const group = args.address!;
      const key = gidKey(group.gid);
      if (this.groups.has(key)) {
        throw new StatusError(
          Status.ADDRESS_ALREADY_EXISTS,
          `the endpoint is already a member of ${addressOfGid(group.gid)}`,
        );
      }
      if (this.groups.size >= GROUPS_MOST) throw new StatusError(Status.INSUFFICIENT_RESOURCES);
      const joined: DatagramPeer = {
        ...this.pathToGroup(group),
        peer: group,
        qpn: WvDatagram.MULTICAST_QPN,
        qkey: WvDatagram.QKEY,
        sidrStatus: 0,
        privateData: NOTHING,
      };
      this.groups.set(key, joined);
      args.answerPeer!(irp, joined);
      return undefined;
    },

    leave(irp, args) {
      const { gid } = args.address!;
      if (!this.groups.delete(gidKey(gid))) {
        throw new StatusError(Status.NOT_FOUND, `the endpoint is not a member of ${addressOfGid(gid)}`);
      }
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },
  };

  protected act(action: DatagramAction, irp: Irp, args: RequestArguments): number | undefined {
    if (DatagramEndpoint.isCommon(action)) return this.common(action, irp, args);
    return DatagramEndpoint.requestActions[action].call(this, irp, args);
  }

  private lookedUp(
    irp: Irp,
    where: Pick<DatagramPeer, 'local' | 'peer' | 'path'>,
    reply: SidrReply,
    answer: (irp: Irp, peer: DatagramPeer) => void,
  ): void {
    if (!this.lookups.remove(irp)) return;
    const accepted = reply.status === 0;
    const peer: DatagramPeer = {
      ...where,
      qpn: accepted ? reply.qpn : 0,
      qkey: accepted ? reply.qkey : 0,
      sidrStatus: reply.status,
      privateData: reply.privateData,
    };
    const key = peerKey(where.peer);
    this.peers.delete(key);
    this.peers.set(key, peer);
    if (this.peers.size > PEERS_KEPT) {
      for (const oldest of this.peers.keys()) {
        this.peers.delete(oldest);
        break;
      }
    }
    if (accepted) answer(irp, peer);
    else irp.complete(Status.CONNECTION_REFUSED);
  }

  /** RoCE has no subnet manager to join with: the group's address is its GID, and the sending port is the local one. */
  private pathToGroup({ gid, scopeId }: EndpointAddress): { local: EndpointAddress; path: PathParameters } {
    const bound = this.local!;
    const source = isUnspecified(bound.gid) ? this.services.sourceFor(gid, scopeId) : bound.gid;
    if (!source) {
      throw new StatusError(
        Status.NETWORK_UNREACHABLE,
        `no route to ${addressOfGid(gid)}; bind the endpoint to a local address`,
      );
    }
    if (isV4(source) !== isV4(gid)) {
      throw new StatusError(
        Status.INVALID_ADDRESS,
        `${addressOfGid(gid)} must be of the same family as ${addressOfGid(source)}, the address of the endpoint`,
      );
    }
    const port = this.services.portOf(source, bound.scopeId || scopeId);
    if (!port) throw new StatusError(Status.INVALID_ADDRESS);
    if (scopeId !== 0 && scopeId !== port.interfaceIndex) {
      throw new StatusError(
        Status.INVALID_ADDRESS,
        `the interface of ${addressOfGid(gid)} must be that of the endpoint, ${port.interfaceIndex}; got ${scopeId}`,
      );
    }
    return {
      local: { ...bound, gid: source },
      path: {
        source,
        destination: gid,
        flowLabel: 0,
        trafficClass: 0,
        hopLimit: groupHops,
        scopeId: port.interfaceIndex,
      },
    };
  }

  // ── Events ──────────────────────────────────────────────────────────────────────────────────────────────

  private static readonly signalActions: Readonly<
    Record<DatagramSignalAction, (this: DatagramEndpoint, data: SignalData) => void>
  > = {
    stay() {
      this.assignedBy = undefined;
    },

    adopt(data) {
      if (!data || !('inquiry' in data)) return;
      const { inquiry, request, local } = data;
      this.assignedBy = undefined;
      this.inquiry = inquiry;
      this.standAt(local);
      this.asker = {
        local,
        peer: { gid: request.peerAddress, port: request.peerPort, scopeId: request.path.scopeId },
        path: request.path,
        qpn: 0,
        qkey: 0,
        sidrStatus: 0,
        privateData: request.privateData,
      };
    },

    onWithdrawn() {
      this.inquiry = undefined;
    },

    onDeviceLost(data) {
      const status = data && 'lost' in data ? data.lost : Status.DEVICE_REMOVED;
      this.letGo();
      for (let taken = this.lookups.removeFirst(); taken; taken = this.lookups.removeFirst()) {
        taken.context.lookup.abandon();
        taken.irp.complete(status);
      }
      this.endGetRequests(status);
      this.stopListening();
    },
  };

  protected react(action: DatagramSignalAction, data: SignalData): void {
    DatagramEndpoint.signalActions[action].call(this, data);
  }

  // ── Hooks of the machine ────────────────────────────────────────────────────────────────────────────────

  protected cancelOwn(): void {
    this.lookups.cancelAll();
  }

  protected letGo(): void {
    const { inquiry } = this;
    this.inquiry = undefined;
    if (inquiry) {
      inquiry.events = {};
      inquiry.abandon();
    }
    this.peers.clear();
    this.groups.clear();
  }

  protected startListening(parameters: CmListenParameters): SidrListener {
    return this.services.listenForLookups(parameters);
  }

  protected own(endpoint: Nameable): DatagramEndpoint | undefined {
    return endpoint instanceof DatagramEndpoint ? endpoint : undefined;
  }

  protected takeRequest(): ((endpoint: DatagramEndpoint) => void) | undefined {
    const taken: { inquiry: SidrInquiry; request: SidrRequest } | undefined = this.listener?.takeRequest();
    if (!taken) return undefined;
    const { inquiry, request } = taken;
    const local = { gid: request.localAddress, port: this.bound!.port, scopeId: request.path.scopeId };
    return (endpoint) => {
      // The new owner gets all events from here on; none can occur in between.
      inquiry.events = { timedOut: () => endpoint.signal('withdrawn') };
      endpoint.signal('delivered', { inquiry, request, local });
    };
  }
}
