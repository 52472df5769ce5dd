/**
 * The soft kernel without addon, network and peers: an HCA that keeps books, a channel in memory, made-up interfaces,
 * and a connection manager that does what the test says.
 */
import {
  ChannelMajor,
  type ChannelRequest,
  type HcaEvent,
  type HcaOptions,
  type NativeChannelServer,
  type NativeHca,
  type PathParameters,
  type QpAttributeValues,
  type QpCreateParameters,
  type SrqAttributeValues,
  type SrqCreateParameters,
} from '../../kernel-bridge/hca/binding.js';
import { type IoctlName, ioctls } from '../../kernel-bridge/ioctl/codes.js';
import { QpState } from '../../kernel-bridge/ioctl/constants.js';
import type { Input } from '../../kernel-bridge/ioctl/layout.js';
import {
  CqProviderIn,
  QpProviderIn,
  SrqProviderIn,
  withProviderData,
} from '../../kernel-bridge/ioctl/provider-data.js';
import { gidOfAddress, sockaddrData } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import type {
  CmConnection,
  CmConnectParameters,
  CmEvents,
  CmListenerControl,
  CmListenParameters,
  CmPath,
  CmQpParameters,
  CmReply,
  CmRequest,
  CmState,
  ConnectionManager,
} from '../../kernel-bridge/kernel/cm/service.js';
import type { SidrLookupEvents, SidrLookupParameters } from '../../kernel-bridge/kernel/cm/sidr-service.js';
import type {
  DefaultRoute,
  HostInterface,
  HostNetwork,
} from '../../kernel-bridge/kernel/hca-driver/host-interfaces.js';
import { guidOfMac } from '../../kernel-bridge/kernel/hca-driver/ports.js';
import { Kernel } from '../../kernel-bridge/kernel/kernel.js';
import { type KernelOptionsInput, kernelOptionsSchema } from '../../kernel-bridge/options.js';
import { FakeLookup, FakeSidrListener } from './fake-sidr.js';

// ── Channel ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A finished request. */
export interface Answer {
  status: number;
  information: number;
  output: Uint8Array;
}

/** A channel whose requests are handed over one by one. */
export class FakeServer implements NativeChannelServer {
  readonly answers = new Map<number, Answer & { serial: number }>();
  readonly serials = new Map<number, number>();
  readonly queue: ChannelRequest[] = [];
  closed = false;

  take(): ChannelRequest | undefined {
    return this.queue.shift();
  }

  complete(
    slot: number,
    serial: number,
    status: number,
    information: number,
    output: Uint8Array | null,
  ): boolean {
    if (this.serials.get(slot) !== serial || this.answers.has(slot)) return false;
    this.answers.set(slot, { serial, status, information, output: output?.slice() ?? new Uint8Array(0) });
    return true;
  }

  close(): void {
    this.closed = true;
  }
}

// ── HCA ─────────────────────────────────────────────────────────────────────────────────────────────────────

interface FakeQp {
  /** QpMask of the latest modify, refused ones too. */
  mask: number;
  parameters: QpCreateParameters;
  qpn: number;
  attributes: QpAttributeValues;
}

const noPath: PathParameters = {
  source: new Uint8Array(16),
  destination: new Uint8Array(16),
  flowLabel: 0,
  trafficClass: 0,
  hopLimit: 0,
  scopeId: 0,
};

/** Books of an HCA: refuses what a real one refuses, counts what lives, records what was done. */
export class FakeHca implements NativeHca {
  readonly kernelId = 1;
  readonly slot = 3;
  readonly wireReady = true;
  readonly wireProblem = '';
  readonly commIdBase = 0x0304_0000;
  readonly limits = {
    maxQp: 100,
    maxCq: 100,
    maxPd: 100,
    maxMr: 100,
    maxMw: 100,
    maxSrq: 100,
    maxSrqWr: 256,
    maxSrqSge: 8,
    maxQpWr: 256,
    maxSge: 8,
    maxCqEntries: 1024,
    maxInline: 512,
    maxReadDepth: 16,
    maxMrSize: 2 ** 40,
    maxAh: 100,
    maxGroups: 50,
    maxGroupQps: 20,
    maxAttached: 200,
    maxPkeys: 16,
  };
  readonly events: HcaEvent[] = [];
  readonly pds = new Set<number>();
  readonly mrs = new Map<number, number>();
  readonly mws = new Map<number, number>();
  readonly cqs = new Set<number>();
  readonly srqs = new Map<number, SrqCreateParameters & { limit: number }>();
  readonly qps = new Map<number, FakeQp>();
  readonly waiters = new Map<
    number,
    { type: number; server: NativeChannelServer; slot: number; serial: number }[]
  >();
  /** CQs whose events the kernel is told. */
  readonly listened = new Set<number>();
  readonly armed: { cq: number; solicitedOnly: boolean }[] = [];
  readonly wills = new Map<number, Uint8Array>();
  readonly ahs = new Map<number, { pd: number; path: PathParameters; pathMtu: number }>();
  /** `QP/group/interface`, in hex. */
  readonly attachments = new Set<string>();
  readonly pkeyTables = new Map<
    number,
    { pkeys: number[]; gids: Uint8Array[]; badPkeys: number; badQkeys: number }
  >();
  readonly claims = new Map<number, string>();
  readonly mads: Uint8Array[] = [];
  /** P_Keys of {@link mads}. */
  readonly madPkeys: number[] = [];
  /** What a command answers instead, by its name. */
  readonly refuse = new Map<keyof NativeHca, number>();
  /** A state whose modify fails with this status. */
  refuseState: { state: number; status: number } | undefined;
  sendStatus: number = Status.SUCCESS;
  closed = false;
  private nextHandle = 0x100;
  private nextPort = 49_152;

  configure(_options: HcaOptions): void {}
  takeEvent(): HcaEvent | undefined {
    return this.events.shift();
  }

  allocatePd() {
    const status = this.refuse.get('allocatePd') ?? Status.SUCCESS;
    const pd = this.nextHandle++;
    if (status === Status.SUCCESS) this.pds.add(pd);
    return { status, pd };
  }
  deallocatePd(pd: number): number {
    const children = [...this.ahs.values(), ...this.srqs.values()].map((child) => child.pd);
    const used = [...this.mrs.values(), ...this.mws.values(), ...children].includes(pd);
    if (used || [...this.qps.values()].some(({ parameters }) => parameters.pd === pd))
      return Status.DEVICE_BUSY;
    return this.pds.delete(pd) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  registerMr(pd: number, _address: number, _length: number, access: number) {
    const status = this.refuse.get('registerMr') ?? Status.SUCCESS;
    const lkey = this.nextHandle++;
    if (status === Status.SUCCESS) this.mrs.set(lkey, pd);
    return { status, lkey, rkey: (access & 7) === 0 ? 0 : 0x1234_0000 + lkey };
  }
  deregisterMr(pd: number, lkey: number): number {
    const status = this.refuse.get('deregisterMr');
    if (status !== undefined) return status;
    if (this.mrs.get(lkey) !== pd) return Status.INVALID_HANDLE;
    this.mrs.delete(lkey);
    return Status.SUCCESS;
  }
  allocateMw(pd: number) {
    const status = this.refuse.get('allocateMw') ?? Status.SUCCESS;
    const mw = this.nextHandle++;
    if (status === Status.SUCCESS) this.mws.set(mw, pd);
    return { status, mw, rkey: 0x0a0b_0c0d };
  }
  deallocateMw(mw: number): number {
    return this.mws.delete(mw) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  createCq(ringAddress: number, _ringBytes: number, _entries: number) {
    const refused = this.refuse.get('createCq');
    const status = refused ?? (ringAddress === 0 ? Status.INVALID_PARAMETER : Status.SUCCESS);
    const cq = this.nextHandle++;
    if (status === Status.SUCCESS) this.cqs.add(cq);
    return { status, cq };
  }
  resizeCq(cq: number, ringAddress: number): number {
    if (ringAddress === 0) return Status.INVALID_PARAMETER;
    return this.refuse.get('resizeCq') ?? (this.cqs.has(cq) ? Status.SUCCESS : Status.INVALID_HANDLE);
  }
  destroyCq(cq: number): number {
    const used = [...this.qps.values()].some(({ parameters: p }) => p.sendCq === cq || p.receiveCq === cq);
    if (used) return Status.DEVICE_BUSY;
    return this.cqs.delete(cq) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  createSrq(parameters: SrqCreateParameters) {
    const refused = this.refuse.get('createSrq');
    const status = refused ?? (parameters.ringAddress === 0 ? Status.INVALID_PARAMETER : Status.SUCCESS);
    const srq = this.nextHandle++;
    if (status === Status.SUCCESS) this.srqs.set(srq, { ...parameters, limit: 0 });
    return { status, srq };
  }
  modifySrq(handle: number, _mask: number, attributes: Partial<SrqAttributeValues>): number {
    const srq = this.srqs.get(handle);
    if (!srq) return Status.INVALID_HANDLE;
    const refused = this.refuse.get('modifySrq');
    if (refused !== undefined) return refused;
    if (attributes.ringAddress === 0) return Status.INVALID_PARAMETER;
    Object.assign(srq, attributes);
    return Status.SUCCESS;
  }
  querySrq(handle: number) {
    const { entries, limit, sge } = this.srqs.get(handle) ?? { entries: 0, limit: 0, sge: 0 };
    return { status: entries === 0 ? Status.INVALID_HANDLE : Status.SUCCESS, entries, limit, sge };
  }
  destroySrq(handle: number): number {
    if ([...this.qps.values()].some(({ parameters }) => parameters.srq === handle)) return Status.DEVICE_BUSY;
    return this.srqs.delete(handle) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  createQp(parameters: QpCreateParameters) {
    const refused = this.refuse.get('createQp');
    const status =
      refused ?? ([0, 1, 3].includes(parameters.type) ? Status.SUCCESS : Status.INVALID_PARAMETER);
    const qp = this.nextHandle++;
    const qpn = 0x03_0000 | (qp & 0xffff);
    const attributes: QpAttributeValues = {
      state: 0,
      currentState: 0,
      type: parameters.type,
      qpn,
      access: 0,
      pkeyIndex: 0,
      port: 0,
      qkey: 0,
      path: noPath,
      pathMtu: 0,
      destinationQpn: 0,
      receivePsn: 0,
      sendPsn: 0,
      responderResources: 0,
      initiatorDepth: 0,
      minRnrTimer: 0,
      ackTimeout: 0,
      retryCount: 0,
      rnrRetry: 0,
    };
    if (status === Status.SUCCESS) this.qps.set(qp, { mask: 0, parameters, qpn, attributes });
    return { status, qp, qpn };
  }
  modifyQp(handle: number, mask: number, attributes: Partial<QpAttributeValues>): number {
    const qp = this.qps.get(handle);
    if (!qp) return Status.INVALID_HANDLE;
    qp.mask = mask;
    if ((mask & 1) !== 0) {
      if (this.refuseState?.state === attributes.state) return this.refuseState!.status;
      const from = qp.attributes.state;
      const to = attributes.state ?? 0;
      const forward = to === from + 1 || (to === QpState.INIT && from === QpState.INIT);
      if (to !== QpState.ERROR && to !== QpState.RESET && !forward) return Status.INVALID_DEVICE_STATE;
    }
    const { state, ...rest } = attributes;
    Object.assign(qp.attributes, rest);
    if ((mask & 1) !== 0) qp.attributes.state = state ?? 0;
    return Status.SUCCESS;
  }
  queryQp(handle: number) {
    const qp = this.qps.get(handle);
    return {
      status: qp ? Status.SUCCESS : Status.INVALID_HANDLE,
      attributes: qp?.attributes ?? ({} as QpAttributeValues),
    };
  }
  destroyQp(handle: number): number {
    return this.qps.delete(handle) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  setWill(qp: number, _path: PathParameters, mad: Uint8Array): number {
    this.wills.set(qp, mad);
    return Status.SUCCESS;
  }

  createAh(pd: number, path: PathParameters, pathMtu: number) {
    const status = this.refuse.get('createAh') ?? (this.pds.has(pd) ? Status.SUCCESS : Status.INVALID_HANDLE);
    const ah = this.nextHandle++;
    if (status === Status.SUCCESS) this.ahs.set(ah, { pd, path, pathMtu });
    return { status, ah };
  }
  destroyAh(ah: number): number {
    return this.ahs.delete(ah) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  attachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number {
    const refused = this.refuse.get('attachMulticast');
    if (refused !== undefined) return refused;
    const key = `${qp.toString(16)}/${Buffer.from(group).toString('hex')}/${interfaceIndex.toString(16)}`;
    if (!this.qps.has(qp)) return Status.INVALID_HANDLE;
    if (this.attachments.has(key)) return Status.INVALID_DEVICE_STATE;
    this.attachments.add(key);
    return Status.SUCCESS;
  }
  detachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number {
    const key = `${qp.toString(16)}/${Buffer.from(group).toString('hex')}/${interfaceIndex.toString(16)}`;
    if (!this.qps.has(qp)) return Status.INVALID_HANDLE;
    return this.attachments.delete(key) ? Status.SUCCESS : Status.INVALID_PARAMETER;
  }
  createPkeyTable() {
    const status = this.refuse.get('createPkeyTable') ?? Status.SUCCESS;
    const table = this.nextHandle++;
    if (status === Status.SUCCESS)
      this.pkeyTables.set(table, { pkeys: [0xffff], gids: [], badPkeys: 0, badQkeys: 0 });
    return { status, table };
  }
  setPkeyTable(table: number, pkeys: Uint16Array, gids: readonly Uint8Array[]): number {
    const found = this.pkeyTables.get(table);
    if (!found) return Status.INVALID_HANDLE;
    if (pkeys.length === 0 || pkeys.length > this.limits.maxPkeys) return Status.INVALID_PARAMETER;
    Object.assign(found, { pkeys: [...pkeys], gids: [...gids] });
    return Status.SUCCESS;
  }
  queryPkeyTable(table: number) {
    const found = this.pkeyTables.get(table);
    const { badPkeys, badQkeys } = found ?? { badPkeys: 0, badQkeys: 0 };
    return { status: found || table === 0 ? Status.SUCCESS : Status.INVALID_HANDLE, badPkeys, badQkeys };
  }
  destroyPkeyTable(table: number): number {
    if ([...this.qps.values()].some(({ parameters }) => parameters.pkeyTable === table))
      return Status.DEVICE_BUSY;
    return this.pkeyTables.delete(table) ? Status.SUCCESS : Status.INVALID_HANDLE;
  }

  listenCq(cq: number): number {
    this.listened.add(cq);
    return Status.SUCCESS;
  }
  armCq(cq: number, solicitedOnly: boolean): number {
    this.armed.push({ cq, solicitedOnly });
    return Status.SUCCESS;
  }
  addCqWaiter(cq: number, type: number, server: NativeChannelServer, slot: number, serial: number): number {
    const refused = this.refuse.get('addCqWaiter');
    if (refused !== undefined) return refused;
    this.waiters.set(cq, [...(this.waiters.get(cq) ?? []), { type, server, slot, serial }]);
    return Status.SUCCESS;
  }
  removeCqWaiter(cq: number, slot: number, serial: number): number {
    const before = this.waiters.get(cq) ?? [];
    const after = before.filter((waiter) => waiter.slot !== slot || waiter.serial !== serial);
    this.waiters.set(cq, after);
    return after.length < before.length ? Status.SUCCESS : Status.INVALID_HANDLE;
  }
  /** A completion event: completes all waiters natively, as the engine's thread would. */
  fireCq(cq: number, status: number = Status.SUCCESS): void {
    for (const { server, slot, serial } of this.waiters.get(cq) ?? []) {
      server.complete(slot, serial, status, 0, null);
      this.events.push({ type: 'notified', slot, serial });
    }
    this.waiters.delete(cq);
  }

  sendMad(_path: PathParameters, mad: Uint8Array, pkey = 0xffff): number {
    this.mads.push(mad);
    this.madPkeys.push(pkey);
    return this.sendStatus;
  }
  claimPort(service: number, address: Uint8Array | null, port: number) {
    const granted = port || this.nextPort++;
    const name = `${service.toString(16)}/${granted}/${address ? Buffer.from(address).toString('hex') : '*'}`;
    if ([...this.claims.values()].includes(name))
      return { status: Status.ADDRESS_ALREADY_EXISTS, claim: 0, port: 0 };
    const claim = this.nextHandle++;
    this.claims.set(claim, name);
    return { status: Status.SUCCESS, claim, port: granted };
  }
  releasePort(claim: number): void {
    this.claims.delete(claim);
  }
  counters(): Record<string, number> {
    return {};
  }
  objectCounts() {
    return {
      pd: this.pds.size,
      mr: this.mrs.size,
      mw: this.mws.size,
      cq: this.cqs.size,
      qp: this.qps.size,
      srq: this.srqs.size,
      ring: 0,
      range: 0,
    };
  }
  close(): void {
    this.closed = true;
  }
}

// ── Connection management ───────────────────────────────────────────────────────────────────────────────────

/** A connection that records what was asked of it; the test plays the peer through {@link events}. */
export class FakeConnection implements CmConnection {
  state: CmState = 'idle';
  readonly localCommId = 0x0304_0001;
  readonly remoteCommId = 0x0700_0001;
  readonly receivePsn = 0x00ab_cdef;
  events: CmEvents = {};
  readonly calls: string[] = [];
  accepted: { parameters: CmQpParameters; privateData: Uint8Array } | undefined;

  constructor(readonly parameters?: CmConnectParameters) {}

  ready(): void {
    this.calls.push('ready');
  }
  accept(parameters: CmQpParameters, privateData: Uint8Array): void {
    this.calls.push('accept');
    this.accepted = { parameters, privateData };
  }
  reject(privateData: Uint8Array): void {
    this.calls.push(`reject ${privateData.length}`);
  }
  disconnect(): void {
    this.calls.push('disconnect');
  }
  communicationEstablished(): void {
    this.calls.push('communicationEstablished');
  }
  abandon(): void {
    this.calls.push('abandon');
  }
  will(): { path: CmPath; mad: Uint8Array } {
    return { path: noPath, mad: new Uint8Array(256).fill(0xdd) };
  }
}

/** A listener whose requests the test puts in. */
export class FakeListener implements CmListenerControl {
  readonly requests: { connection: FakeConnection; request: CmRequest }[] = [];
  closed = false;

  constructor(readonly parameters: CmListenParameters) {}

  get waiting(): number {
    return this.requests.length;
  }
  takeRequest(): { connection: FakeConnection; request: CmRequest } | undefined {
    return this.requests.shift();
  }
  close(): void {
    this.closed = true;
  }
  /** A REQ arrives. */
  arrive(request: Partial<CmRequest> = {}): FakeConnection {
    const connection = new FakeConnection();
    this.requests.push({ connection, request: cmRequest(request) });
    this.parameters.onRequest();
    return connection;
  }
}

/** A connection manager without wire. */
export class FakeCm implements ConnectionManager {
  readonly options = kernelOptionsSchema.parse({}).cm;
  readonly connections: FakeConnection[] = [];
  readonly listeners: FakeListener[] = [];
  readonly lookups: FakeLookup[] = [];
  readonly sidrListeners: FakeSidrListener[] = [];
  /** Thrown by listen() and listenForLookups(). */
  listenError: Error | undefined;
  /** Called by connect() and lookup(), for platforms whose MADs do not leave. */
  onConnect: () => void = () => {};
  closed = false;

  receive(): void {}
  listen(parameters: CmListenParameters): FakeListener {
    if (this.listenError) throw this.listenError;
    const listener = new FakeListener(parameters);
    this.listeners.push(listener);
    return listener;
  }
  connect(parameters: CmConnectParameters, events: CmEvents): FakeConnection {
    const connection = new FakeConnection(parameters);
    connection.events = events;
    this.connections.push(connection);
    this.onConnect();
    return connection;
  }
  listenForLookups(parameters: CmListenParameters): FakeSidrListener {
    if (this.listenError) throw this.listenError;
    const listener = new FakeSidrListener(parameters);
    this.sidrListeners.push(listener);
    return listener;
  }
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): FakeLookup {
    const lookup = new FakeLookup(parameters, events);
    this.lookups.push(lookup);
    this.onConnect();
    return lookup;
  }
  counters(): Record<string, number> {
    return {};
  }
  close(): void {
    this.closed = true;
  }
}

const otherGid = gidOfAddress('192.0.2.9');
const ownGid = gidOfAddress('192.0.2.2');

/** What a REQ said. */
export function cmRequest(more: Partial<CmRequest> = {}): CmRequest {
  return {
    serviceId: 0x0106_1388n,
    localAddress: ownGid,
    localPort: 0,
    peerAddress: otherGid,
    peerPort: 40_000,
    path: { ...noPath, source: ownGid, destination: otherGid, hopLimit: 64 },
    peerQpn: 0x0a_0001,
    sendPsn: 0x11_1111,
    responderResources: 4,
    initiatorDepth: 8,
    retryCount: 5,
    rnrRetryCount: 7,
    pathMtu: 2,
    localAckTimeout: 18,
    pkey: 0xffff,
    peerUsesSrq: false,
    privateData: new Uint8Array(56).fill(0x51),
    ...more,
  };
}

/** What a REP said. */
export function cmReply(more: Partial<CmReply> = {}): CmReply {
  return {
    peerQpn: 0x0b_0002,
    sendPsn: 0x22_2222,
    responderResources: 3,
    initiatorDepth: 2,
    rnrRetryCount: 7,
    targetAckDelay: 15,
    peerUsesSrq: false,
    privateData: new Uint8Array(196).fill(0x52),
    ...more,
  };
}

// ── Interfaces ──────────────────────────────────────────────────────────────────────────────────────────────

/** An interface named as the system would. */
export function hostInterface(
  name: string,
  index: number,
  addresses: string[],
  more: Partial<HostInterface> = {},
): HostInterface {
  return {
    name,
    index,
    mac: name === 'lo' ? undefined : Uint8Array.of(2, 0xfc, 0, 0, 0, index),
    mtu: name === 'lo' ? 65_536 : 1500,
    up: true,
    addresses: addresses.map((one) => {
      const [address, prefix] = one.split('/');
      return {
        gid: gidOfAddress(address!),
        family: address!.includes(':') ? 6 : 4,
        prefixLength: Number(prefix),
      };
    }),
    ...more,
  };
}

export class FakeNetwork implements HostNetwork {
  list: HostInterface[] = [
    hostInterface('lo', 1, ['127.0.0.1/8', '::1/128']),
    hostInterface('ifb0', 2, []),
    hostInterface('eth0', 4, ['192.0.2.2/24', 'fd00::2/64', 'fe80::fc:ff:fe00:1/64']),
  ];
  routes: DefaultRoute[] = [
    { family: 4, interfaceName: 'eth0', metric: 0 },
    { family: 6, interfaceName: 'eth0', metric: 1024 },
  ];
  reads = 0;

  interfaces(): HostInterface[] {
    this.reads++;
    return this.list;
  }
  defaultRoutes(): DefaultRoute[] {
    return this.routes;
  }
  identity(): string {
    return 'boot 1';
  }
}

/** CA GUID of the rig's eth0. */
export const ethGuid = guidOfMac(Uint8Array.of(2, 0xfc, 0, 0, 0, 4));

// ── The rig ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A request that was submitted. */
export class Submitted {
  constructor(
    private readonly rig: KernelRig,
    readonly slot: number,
    readonly serial: number,
  ) {}

  get answer(): Answer | undefined {
    return this.rig.server.answers.get(this.slot);
  }
  /** NTSTATUS; PENDING while there is no answer. */
  get status(): number {
    return this.answer?.status ?? Status.PENDING;
  }
  get output(): Uint8Array {
    return this.answer?.output ?? new Uint8Array(0);
  }
  cancel(): void {
    this.rig.request({ major: ChannelMajor.cancel, slot: this.slot, serial: this.serial });
  }
}

const nothing = new Uint8Array(0);

/** A kernel with everything around it made up, and the IOCTLs as short calls. */
export class KernelRig {
  readonly server = new FakeServer();
  readonly hca = new FakeHca();
  readonly network = new FakeNetwork();
  readonly cm = new FakeCm();
  readonly faults: Error[] = [];
  readonly kernel: Kernel;
  file: number;
  private nextSlot = 0;

  constructor(options: KernelOptionsInput = {}) {
    this.kernel = new Kernel({
      server: this.server,
      hca: this.hca,
      network: this.network,
      options: kernelOptionsSchema.parse(options),
      createConnectionManager: (platform) => {
        this.cm.onConnect = () => platform.sendMad(noPath, new Uint8Array(256));
        return this.cm;
      },
    });
    this.kernel.io.onFault = (fault) => this.faults.push(fault);
    this.file = this.open('\\\\.\\WinVerbs').answer?.information ?? 0;
  }

  request(request: Partial<ChannelRequest>): void {
    const whole = {
      slot: -1,
      serial: 0,
      major: 0,
      fileId: 0,
      code: 0,
      input: nothing,
      outputLength: 0,
      ...request,
    };
    this.server.queue.push(whole);
    while (this.kernel.serveRequests());
  }

  submit(request: Partial<ChannelRequest>): Submitted {
    const slot = this.nextSlot++;
    const serial = 0x8000_0000 + slot;
    this.server.serials.set(slot, serial);
    this.request({ ...request, slot, serial });
    return new Submitted(this, slot, serial);
  }

  open(name: string): Submitted {
    return this.submit({ major: ChannelMajor.create, input: new TextEncoder().encode(name) });
  }

  close(fileId = this.file): Submitted {
    return this.submit({ major: ChannelMajor.close, fileId });
  }

  ioctl(name: IoctlName, input: Uint8Array = nothing, outputLength = 1024, fileId = this.file): Submitted {
    return this.control(ioctls[name].code, input, outputLength, fileId);
  }

  control(code: number, input: Uint8Array, outputLength: number, fileId = this.file): Submitted {
    return this.submit({ major: ChannelMajor.deviceControl, fileId, code, input, outputLength });
  }

  /** Passes the HCA's events on. */
  events(): void {
    while (this.kernel.serveEvents());
  }

  // ── Objects, each made the good way; the id comes back ────────────────────────────────────────────────────

  private made(request: Submitted): bigint {
    if (request.status !== Status.SUCCESS) throw new Error(`not made: 0x${request.status.toString(16)}`);
    return s.WvIoObject.decode(request.output).id;
  }

  id(id: bigint): Uint8Array {
    return s.WvIoObject.encode({ id });
  }

  device(guid = ethGuid): bigint {
    return this.made(this.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({ guid })));
  }
  pd(device: bigint): bigint {
    return this.made(this.ioctl('PD_ALLOCATE', s.WvIoId.encode({ id: device })));
  }
  cqInput(device: bigint, entries = 16, ring: Input<typeof CqProviderIn> = {}): Uint8Array {
    const provider = CqProviderIn.encode({ ringAddress: 0x1000n, ringBytes: 4096, entries, ...ring });
    return withProviderData(s.WvIoId.encode({ id: device, data: entries }), provider);
  }
  cq(device: bigint): bigint {
    return this.made(this.ioctl('CQ_CREATE', this.cqInput(device)));
  }
  srqInput(
    pd: bigint,
    more: Input<typeof s.WvIoSrqAttributes> = {},
    ring: Input<typeof SrqProviderIn> = {},
  ): Uint8Array {
    const provider = SrqProviderIn.encode({
      ringAddress: 0x3000n,
      ringBytes: 4096,
      entries: 16,
      stride: 48,
      ...ring,
    });
    const head = s.WvIoSrqAttributes.encode({ id: { id: pd }, maxWr: 10, maxSge: 2, ...more });
    return withProviderData(head, provider);
  }
  srq(pd: bigint): bigint {
    return this.made(this.ioctl('SRQ_CREATE', this.srqInput(pd)));
  }
  qpInput(pd: bigint, cq: bigint, more: Input<typeof s.WvIoQpCreate> = {}): Uint8Array {
    const provider = QpProviderIn.encode({
      ringAddress: 0x2000n,
      ringBytes: 8192,
      sendEntries: 16,
      sendStride: 128,
      receiveEntries: 16,
      receiveStride: 64,
      token: 77,
    });
    const head = s.WvIoQpCreate.encode({
      id: { id: pd },
      sendCqId: cq,
      receiveCqId: cq,
      sendDepth: 10,
      sendSge: 2,
      receiveDepth: 10,
      receiveSge: 2,
      ...more,
    });
    return withProviderData(head, provider);
  }
  qp(pd: bigint, cq: bigint, more: Input<typeof s.WvIoQpCreate> = {}): bigint {
    return this.made(this.ioctl('QP_CREATE', this.qpInput(pd, cq, more)));
  }
  endpoint(): bigint {
    return this.made(this.ioctl('EP_CREATE', s.WvIoEpCreate.encode({ epType: 0x106n })));
  }

  // ── Endpoints ─────────────────────────────────────────────────────────────────────────────────────────────

  bind(id: bigint, port = 0, address = '192.0.2.2'): Submitted {
    const family = address.includes(':') ? 6 : 4;
    return this.ioctl(
      'EP_BIND',
      s.WvIoEpBind.encode({ id, address: sockaddrData({ family, address, port }) }),
    );
  }
  route(id: bigint, more: Input<typeof s.IbPathRecord> = {}): Submitted {
    const path = { sgid: ownGid, dgid: otherGid, hopFlowRaw: 64, mtu: 0x83, ...more };
    return this.ioctl('EP_MODIFY', s.WvIoEpRoute.encode({ id: { id, data: 1 }, path }));
  }
  connect(id: bigint, qpId: bigint, more: Input<typeof s.WvIoEpConnect> = {}): Submitted {
    const peerAddress = sockaddrData({ family: 4, address: '192.0.2.9', port: 5000 });
    const param = { responderResources: 4n, initiatorDepth: 4n, retryCount: 7, rnrRetryCount: 6 };
    return this.ioctl('EP_CONNECT', s.WvIoEpConnect.encode({ id, qpId, peerAddress, param, ...more }));
  }
  accept(id: bigint, qpId: bigint, more: Input<typeof s.WvIoEpAccept> = {}): Submitted {
    const param = { responderResources: 16n, initiatorDepth: 2n, retryCount: 7, rnrRetryCount: 6 };
    return this.ioctl('EP_ACCEPT', s.WvIoEpAccept.encode({ id, qpId, param, ...more }), 4);
  }
  disconnect(id: bigint, qpId = 0n): Submitted {
    return this.ioctl('EP_DISCONNECT', s.WvIoEpDisconnect.encode({ id, qpId }), 4);
  }
  notify(id: bigint): Submitted {
    return this.ioctl('EP_DISCONNECT_NOTIFY', this.id(id), 0);
  }
  getRequest(id: bigint, epId: bigint): Submitted {
    return this.ioctl('EP_GET_REQUEST', s.WvIoEpGetRequest.encode({ id, epId }), 0);
  }
  query(id: bigint) {
    return s.WvIoEpAttributes.decode(this.ioctl('EP_QUERY', this.id(id)).output);
  }

  /** A listener on port 5000, and what its connection manager sees. */
  listener(port = 5000): { id: bigint; control: FakeListener } {
    const id = this.endpoint();
    this.bind(id, port);
    const { status } = this.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog: 4n }));
    if (status !== Status.SUCCESS) throw new Error(`does not listen: 0x${status.toString(16)}`);
    return { id, control: this.cm.listeners.at(-1)! };
  }

  /** A queue pair with all it needs; `handle` is the HCA's. */
  queuePair(): { device: bigint; pd: bigint; cq: bigint; qp: bigint; handle: number } {
    const device = this.device();
    const pd = this.pd(device);
    const cq = this.cq(device);
    const qp = this.qp(pd, cq);
    return { device, pd, cq, qp, handle: [...this.hca.qps.keys()].at(-1)! };
  }

  qpState(handle: number): number | undefined {
    return this.hca.qps.get(handle)?.attributes.state;
  }
}
