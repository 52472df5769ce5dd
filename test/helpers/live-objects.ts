/**
 * Live kernel objects of every kind, created only by IOCTLs. A valid input for every IOCTL uses them, as the starting point of fuzzing.
 */
import type { DeviceFile } from '../../kernel-bridge/door/device-file.js';
import type { AddonBinding } from '../../kernel-bridge/hca/soft-hca-binding.js';
import * as ioctl from '../../kernel-bridge/ioctl/index.js';
import {
  type HcaFileName,
  IbatCode,
  type IbatName,
  IoctlCode,
  type IoctlName,
} from '../../kernel-bridge/ioctl/index.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';

/** The functions of the addon that a UVP uses to register memory with the HCA. */
export type MemoryAddon = Pick<AddonBinding, 'allocateRing' | 'releaseRing' | 'pin' | 'unpin'>;

/** Endpoints by state. */
interface LiveEndpoints {
  idle: bigint;
  fresh: bigint;
  bound: bigint;
  listening: bigint;
  routed: bigint;
  datagramFresh: bigint;
  datagramRouted: bigint;
  datagramListening: bigint;
}

/** Ids of live objects. */
export interface Live {
  guid: bigint;
  device: bigint;
  pd: bigint;
  mw: bigint;
  cq: bigint;
  srq: bigint;
  /** A queue pair on the shared receive queue, so that the latter cannot be destroyed. */
  srqQp: bigint;
  /** A UD queue pair in a multicast group, and an address handle. */
  udQp: bigint;
  ah: bigint;
  qp: bigint;
  endpoints: LiveEndpoints;
  /** All ids. */
  ids: bigint[];
  /** Memory that may be registered; all other memory must be rejected. */
  pinned: { address: bigint; length: number };
  lkey: number;
  listenAddress: ioctl.SocketAddress;
  /** A path record to `listenAddress`. */
  path: Uint8Array;
  ring: (bytes: number) => bigint;
  /** Releases the memory. Call it after the file is closed. */
  release(): void;
}

const cqEntries = 16;
const qpSizes = { sendEntries: 8, sendStride: 128, receiveEntries: 8, receiveStride: 64 };
const qpRingBytes =
  abi.qpHeaderBytes +
  qpSizes.sendEntries * qpSizes.sendStride +
  qpSizes.receiveEntries * qpSizes.receiveStride;
const cqRingBytes = abi.cqHeaderBytes + cqEntries * abi.cqeBytes;

/** The loopback address, which every host has. */
export const loopback: ioctl.SocketAddress = { family: 4, address: '127.0.0.1', port: 0 };

const idOf = (output: Uint8Array): bigint => ioctl.WvIoObject.decode(output).id;

function connectParam() {
  return { responderResources: 1n, initiatorDepth: 1n, retryCount: 7, rnrRetryCount: 6, dataLength: 4 };
}

/** Input of CQ_CREATE and CQ_RESIZE. */
function cqInput(live: Pick<Live, 'ring'>, id: bigint): Uint8Array {
  const ringAddress = live.ring(cqRingBytes);
  return ioctl.withProviderData(
    ioctl.WvIoId.encode({ id, data: cqEntries }),
    ioctl.CqProviderIn.encode({ ringAddress, ringBytes: cqRingBytes, entries: cqEntries }),
  );
}

const srqSizes = { entries: 8, stride: 48 };
const srqRingBytes = abi.srqHeaderBytes + srqSizes.entries * srqSizes.stride;

/** Input of SRQ_CREATE and SRQ_MODIFY. */
function srqInput(live: Pick<Live, 'ring'>, id: bigint): Uint8Array {
  return ioctl.withProviderData(
    ioctl.WvIoSrqAttributes.encode({ id: { id }, maxWr: srqSizes.entries, maxSge: 2, srqLimit: 1 }),
    ioctl.SrqProviderIn.encode({
      ringAddress: live.ring(srqRingBytes),
      ringBytes: srqRingBytes,
      ...srqSizes,
    }),
  );
}

/** The group to which the live UD queue pair is attached. */
const liveGroup = ioctl.gidOfAddress('239.77.0.1');
const otherGroup = ioctl.gidOfAddress('239.77.0.2');

function ahInput(pd: bigint): Uint8Array {
  const gid = ioctl.gidOfAddress(loopback.address);
  const addressVector = { networkRouteValid: 1, sGid: gid, dGid: gid, portNumber: 1, hopLimit: 64 };
  return ioctl.WvIoAhCreate.encode({ id: { id: pd }, addressVector });
}

function groupInput(qp: bigint, raw: Uint8Array): Uint8Array {
  return ioctl.WvIoQpMulticast.encode({ id: { id: qp }, gid: { raw } });
}

function qpInput(
  live: Pick<Live, 'ring' | 'pd' | 'cq'>,
  srqId = 0n,
  qpType: number = ioctl.QpType.RC,
): Uint8Array {
  const create = {
    id: { id: live.pd },
    sendCqId: live.cq,
    receiveCqId: live.cq,
    sendDepth: qpSizes.sendEntries,
    sendSge: 4,
    receiveDepth: qpSizes.receiveEntries,
    receiveSge: 3,
    maxInlineSend: 64,
    initiatorDepth: 1,
    responderResources: 1,
    qpType,
    srqId,
  };
  const receiveEntries = srqId === 0n ? qpSizes.receiveEntries : 0;
  const ringAddress = live.ring(qpRingBytes);
  return ioctl.withProviderData(
    ioctl.WvIoQpCreate.encode(create),
    ioctl.QpProviderIn.encode({ ringAddress, ringBytes: qpRingBytes, ...qpSizes, receiveEntries, token: 1 }),
  );
}

function bindInput(id: bigint, guid: bigint): Uint8Array {
  return ioctl.WvIoEpBind.encode({
    id,
    address: ioctl.sockaddrData(loopback),
    device: { deviceGuid: guid, pkey: 0xffff, portNumber: 1 },
  });
}

function pathInput(remote: ioctl.SocketAddress): Uint8Array {
  return ioctl.IbatPathIn.encode({
    version: ioctl.IBAT_VERSION,
    localAddress: ioctl.encodeSockaddr(loopback),
    remoteAddress: ioctl.encodeSockaddr(remote),
  });
}

function portInput(): Uint8Array {
  return ioctl.IbatIpToPortIn.encode({
    version: ioctl.IBAT_VERSION,
    address: ioctl.encodeSockaddr(loopback),
  });
}

function routeInput(id: bigint, path: Uint8Array): Uint8Array {
  return ioctl.withProviderData(ioctl.WvIoId.encode({ id, data: ioctl.EpOption.ROUTE }), path);
}

/** Creates the objects on two open files. All requests must succeed. */
export function makeLiveObjects(file: DeviceFile, ibat: DeviceFile, addon: MemoryAddon): Live {
  const rings: number[] = [];
  const ring = (bytes: number): bigint => {
    const { address } = addon.allocateRing(bytes);
    rings.push(address);
    return BigInt(address);
  };
  const { caGuid: guid } = ioctl.IbatPortRecord.decode(ibat.ioctl(IbatCode.IP_TO_PORT, portInput(), 24));
  const verb = (code: number, input: Uint8Array) => idOf(file.ioctl(code, input, 256));
  const device = verb(IoctlCode.DEVICE_OPEN, ioctl.WvIoDeviceOpen.encode({ guid }));
  const pd = verb(IoctlCode.PD_ALLOCATE, ioctl.WvIoId.encode({ id: device }));
  const mw = verb(IoctlCode.MW_ALLOCATE, ioctl.WvIoId.encode({ id: pd }));
  const cq = verb(IoctlCode.CQ_CREATE, cqInput({ ring }, device));
  const srq = verb(IoctlCode.SRQ_CREATE, srqInput({ ring }, pd));
  const udQp = verb(IoctlCode.QP_CREATE, qpInput({ ring, pd, cq }, 0n, ioctl.QpType.UD));
  file.ioctl(IoctlCode.QP_ATTACH, groupInput(udQp, liveGroup), 0);
  const ah = verb(IoctlCode.AH_CREATE, ahInput(pd));
  const srqQp = verb(IoctlCode.QP_CREATE, qpInput({ ring, pd, cq }, srq));
  const qp = verb(IoctlCode.QP_CREATE, qpInput({ ring, pd, cq }));

  const memory = addon.pin(new Uint8Array(8192));
  const pinned = { address: BigInt(memory.address), length: 8192 };
  const register = ioctl.WvIoMemoryRegister.encode({
    id: pd,
    address: pinned.address,
    bufferLength: BigInt(pinned.length),
    accessFlags: ioctl.WvAccess.LOCAL_WRITE | ioctl.WvAccess.MW_BIND,
  });
  const keys = file.ioctl(IoctlCode.MEMORY_REGISTER, register, ioctl.WvIoMemoryKeys.size);
  const { lkey } = ioctl.WvIoMemoryKeys.decode(keys);

  const endpoint = (type: number = ioctl.EpType.CONNECT) => {
    const input = ioctl.WvIoEpCreate.encode({ epType: BigInt(type) });
    return idOf(file.ioctl(IoctlCode.EP_CREATE, input, 8));
  };
  const bind = (id: bigint) => {
    const output = file.ioctl(IoctlCode.EP_BIND, bindInput(id, guid), ioctl.WvIoEpBind.size);
    return ioctl.decodeSockaddr(ioctl.WvIoEpBind.decode(output).address.sockAddr);
  };
  const endpoints: LiveEndpoints = {
    idle: endpoint(),
    fresh: endpoint(),
    bound: endpoint(),
    listening: endpoint(),
    routed: endpoint(),
    datagramFresh: endpoint(ioctl.EpType.DATAGRAM),
    datagramRouted: endpoint(ioctl.EpType.DATAGRAM),
    datagramListening: endpoint(ioctl.EpType.DATAGRAM),
  };
  bind(endpoints.bound);
  bind(endpoints.routed);
  const listenAddress = bind(endpoints.listening);
  bind(endpoints.datagramRouted);
  bind(endpoints.datagramListening);
  for (const id of [endpoints.listening, endpoints.datagramListening]) {
    file.ioctl(IoctlCode.EP_LISTEN, ioctl.WvIoEpListen.encode({ id, backlog: 4n }), 0);
  }
  const path = ibat.ioctl(IbatCode.PATH, pathInput(listenAddress), ioctl.IbPathRecord.size);
  for (const id of [endpoints.routed, endpoints.datagramRouted]) {
    file.ioctl(IoctlCode.EP_MODIFY, routeInput(id, path), 0);
  }

  return {
    guid,
    device,
    pd,
    mw,
    cq,
    srq,
    srqQp,
    udQp,
    ah,
    qp,
    endpoints,
    ids: [device, pd, mw, cq, srq, srqQp, udQp, ah, qp, ...Object.values(endpoints)],
    pinned,
    lkey,
    listenAddress,
    path,
    ring,
    release: () => {
      for (const address of rings) addon.releaseRing(address);
      addon.unpin(memory.pin);
    },
  };
}

/** For every IOCTL, an input that is valid or nearly valid with the live objects. */
export function examples(live: Live): Record<IoctlName | IbatName, () => Uint8Array | null> {
  const { endpoints: ep, guid, path } = live;
  const group = ioctl.sockaddrData({ family: 4, address: '239.1.2.3', port: 0 });
  const object = (id: bigint) => () => ioctl.WvIoObject.encode({ id });
  const id = (of: bigint, data = 0) => ioctl.WvIoId.encode({ id: of, data });
  const port = () => ioctl.WvIoDevicePortQuery.encode({ id: live.device, portNumber: 1 });
  return {
    GUID_QUERY: () => null,
    LIBRARY_QUERY: () => ioctl.WvIoGuid.encode({ guid }),
    DEVICE_OPEN: () => ioctl.WvIoDeviceOpen.encode({ guid }),
    DEVICE_CLOSE: object(live.device),
    DEVICE_QUERY: object(live.device),
    DEVICE_PORT_QUERY: port,
    DEVICE_GID_QUERY: port,
    DEVICE_PKEY_QUERY: port,
    DEVICE_NOTIFY: () => id(live.device, 1),
    DEVICE_CANCEL: object(live.device),
    PD_ALLOCATE: () => id(live.device),
    PD_DEALLOCATE: object(live.pd),
    MEMORY_REGISTER: () =>
      ioctl.WvIoMemoryRegister.encode({
        id: live.pd,
        address: live.pinned.address + 64n,
        bufferLength: 4096n,
        accessFlags: ioctl.WvAccess.REMOTE_WRITE,
      }),
    MEMORY_ALLOCATE: () => ioctl.WvIoMemoryRegister.encode({ id: live.pd, bufferLength: 4096n }),
    MEMORY_DEREGISTER: () => id(live.pd, live.lkey),
    MW_ALLOCATE: () => id(live.pd),
    MW_DEALLOCATE: object(live.mw),
    AH_CREATE: () => ahInput(live.pd),
    AH_DESTROY: object(live.ah),
    CQ_CREATE: () => cqInput(live, live.device),
    CQ_DESTROY: object(live.cq),
    CQ_RESIZE: () => cqInput(live, live.cq),
    CQ_NOTIFY: () => id(live.cq, ioctl.CqNotifyType.NEXT_COMPLETION),
    CQ_CANCEL: object(live.cq),
    SRQ_CREATE: () => srqInput(live, live.pd),
    SRQ_DESTROY: object(live.srq),
    SRQ_QUERY: () => ioctl.WvIoSrqAttributes.encode({ id: { id: live.srq } }),
    SRQ_MODIFY: () => srqInput(live, live.srq),
    SRQ_NOTIFY: object(live.srq),
    SRQ_CANCEL: object(live.srq),
    QP_CREATE: () => qpInput(live),
    QP_DESTROY: object(live.qp),
    QP_QUERY: object(live.qp),
    QP_MODIFY: () =>
      ioctl.WvIoQpAttributes.encode({
        id: { id: live.qp },
        options: ioctl.QpAttr.STATE | ioctl.QpAttr.ACCESS_FLAGS,
        qpState: ioctl.QpState.INIT,
        accessFlags: ioctl.WvAccess.LOCAL_WRITE,
        addressVector: { portNumber: 1, hopLimit: 64 },
        pathMtu: 1024,
      }),
    QP_ATTACH: () => groupInput(live.udQp, otherGroup),
    QP_DETACH: () => groupInput(live.udQp, liveGroup),
    QP_CANCEL: object(live.qp),
    EP_CREATE: () => ioctl.WvIoEpCreate.encode({ epType: BigInt(ioctl.EpType.CONNECT) }),
    EP_DESTROY: object(ep.fresh),
    EP_MODIFY: () => routeInput(ep.bound, path),
    EP_BIND: () => bindInput(ep.idle, guid),
    EP_REJECT: () => id(ep.routed),
    EP_CONNECT: () =>
      ioctl.WvIoEpConnect.encode({
        id: ep.routed,
        qpId: live.qp,
        peerAddress: ioctl.sockaddrData(live.listenAddress),
        param: connectParam(),
      }),
    EP_ACCEPT: () => ioctl.WvIoEpAccept.encode({ id: ep.routed, qpId: live.qp, param: connectParam() }),
    EP_DISCONNECT: () => ioctl.WvIoEpDisconnect.encode({ id: ep.routed, qpId: live.qp }),
    EP_DISCONNECT_NOTIFY: object(ep.routed),
    EP_QUERY: object(ep.listening),
    EP_LOOKUP: () =>
      ioctl.WvIoEpLookup.encode({
        id: ep.datagramRouted,
        peerAddress: ioctl.sockaddrData(live.listenAddress),
        dataLength: 4,
      }),
    EP_MULTICAST_JOIN: () => ioctl.WvIoEpMulticast.encode({ id: ep.datagramRouted, address: group }),
    EP_MULTICAST_LEAVE: () => ioctl.WvIoEpMulticast.encode({ id: ep.datagramRouted, address: group }),
    EP_CANCEL: object(ep.listening),
    EP_LISTEN: () => ioctl.WvIoEpListen.encode({ id: ep.bound, backlog: 1n }),
    EP_GET_REQUEST: () => ioctl.WvIoEpGetRequest.encode({ id: ep.listening, epId: ep.fresh }),
    PD_CANCEL: object(live.pd),
    IP_TO_PORT: portInput,
    PATH: () => pathInput(live.listenAddress),
  };
}

export const datagramForms = [
  'EP_ACCEPT',
  'EP_QUERY',
  'EP_GET_REQUEST',
  'EP_REJECT',
] as const satisfies readonly IoctlName[];
type DatagramForm = (typeof datagramForms)[number];

/** The same for IOCTLs of datagram endpoints, some of which have another layout. */
export function datagramExamples({ endpoints: ep }: Live): Record<DatagramForm, () => Uint8Array> {
  return {
    EP_ACCEPT: () =>
      ioctl.WvIoEpDatagramAccept.encode({
        id: ep.datagramFresh,
        param: { qpn: 77, qkey: ioctl.WvDatagram.QKEY },
      }),
    EP_QUERY: () => ioctl.WvIoEpDatagramQuery.encode({ id: ep.datagramListening }),
    EP_GET_REQUEST: () => ioctl.WvIoEpGetRequest.encode({ id: ep.datagramListening, epId: ep.datagramFresh }),
    EP_REJECT: () => ioctl.WvIoId.encode({ id: ep.datagramFresh }),
  };
}

/** A valid input for every IOCTL that only files of an HCA support. */
export function hcaFileExamples(id: bigint): Record<HcaFileName, () => Uint8Array> {
  return {
    CA_QUERY: () => ioctl.WvIoObject.encode({ id }),
    CA_PORT_QUERY: () => ioctl.WvIoDevicePortQuery.encode({ id, portNumber: 1 }),
    CA_MODIFY: () => ioctl.IbIoCaModify.encode({ id, flags: ioctl.ModifyCaFlag.SYSTEM_IMAGE_GUID }),
    CA_PORT_MODIFY: () =>
      ioctl.IbIoPortModify.encode({ id, portNumber: 1, flags: ioctl.ModifyPortFlag.INIT_TYPE }),
    CA_FATAL_EVENT: () => ioctl.WvIoObject.encode({ id }),
    CA_PORT_EVENT: () => ioctl.WvIoDevicePortQuery.encode({ id, portNumber: 1 }),
  };
}
