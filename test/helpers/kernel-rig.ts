/**
 * The soft kernel without addon, network and peers: a fake HCA, an in-memory channel, simulated interfaces, and a connection manager that
 * the test controls.
 */
import * as assert from 'uvu/assert';
import {
  ChannelMajor,
  type ChannelRequest,
  type NativeChannelServer,
} from '../../kernel-bridge/hca/request-channel-binding.js';
import { type IoctlName, ioctls } from '../../kernel-bridge/ioctl/codes.js';
import type { Input } from '../../kernel-bridge/ioctl/layout.js';
import {
  CqProviderIn,
  QpProviderIn,
  SrqProviderIn,
  withProviderData,
} from '../../kernel-bridge/ioctl/provider-data.js';
import { addressOfGid, gidOfAddress, sockaddrData } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import type { HcaMaker } from '../../kernel-bridge/kernel/hca-driver/backend.js';
import type { HcaRegistry } from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';
import type {
  HostInterface,
  HostNetwork,
  HostRoute,
} from '../../kernel-bridge/kernel/hca-driver/network-interfaces.js';
import { Kernel } from '../../kernel-bridge/kernel/kernel.js';
import { guidOfMac } from '../../kernel-bridge/kernel/soft-hca/guids.js';
import { softHca } from '../../kernel-bridge/kernel/soft-hca/soft-hca.js';
import {
  type KernelOptionsInput,
  kernelOptionsSchema,
} from '../../kernel-bridge/option-checks/option-schemas.js';
import { FakeHca, noPath } from './fake-hca.js';
import { FakeCm, type FakeListener, otherGid, ownGid } from './rig-cm.js';

// ── Channel ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A finished request. */
export interface Answer {
  status: number;
  information: number;
  output: Uint8Array;
}

/** A channel whose requests are passed in individually. */
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

// ── Interfaces ──────────────────────────────────────────────────────────────────────────────────────────────

/** An interface with a name of the kind that the OS assigns. */
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
  /** Routes by destination. Other destinations have no route. */
  readonly routes = new Map<string, HostRoute>([
    ['192.0.2.9', { source: gidOfAddress('192.0.2.2'), interfaceIndex: 4, mtu: 0 }],
    ['fd00::9', { source: gidOfAddress('fd00::2'), interfaceIndex: 4, mtu: 0 }],
  ]);
  reads = 0;

  /** Receivers of changes. If the network does not report changes, the kernel scans periodically. */
  readonly watchers = new Set<() => void>();
  reportsChanges = false;
  readonly routeWatchers = new Set<() => void>();

  watch(changed: () => void): (() => void) | undefined {
    if (!this.reportsChanges) return undefined;
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  }

  interfaces(): HostInterface[] {
    this.reads++;
    return this.list;
  }
  /** Adds a route with a source address and an interface. */
  addRoute(destination: string, source: string, interfaceIndex: number, mtu = 0): void {
    this.routes.set(destination, { source: gidOfAddress(source), interfaceIndex, mtu });
  }
  route(
    destination: Uint8Array,
    source: Uint8Array | undefined,
    interfaceIndex: number,
  ): HostRoute | undefined {
    const address = addressOfGid(destination);
    const found = this.routes.get(interfaceIndex === 0 ? address : `${address}%${interfaceIndex}`);
    return found && { ...found, source: source ?? found.source };
  }
  watchRoutes(changed: () => void): (() => void) | undefined {
    this.routeWatchers.add(changed);
    return () => this.routeWatchers.delete(changed);
  }
  identity(): string {
    return 'boot 1';
  }
}

/** CA GUID of the rig's eth0. */
export const ethGuid = guidOfMac(Uint8Array.of(2, 0xfc, 0, 0, 0, 4));

// ── The rig ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A submitted request. */
export class Submitted {
  constructor(
    private readonly rig: KernelRig,
    readonly slot: number,
    readonly serial: number,
  ) {}

  get answer(): Answer | undefined {
    return this.rig.server.answers.get(this.slot);
  }
  /** NTSTATUS; PENDING until it is completed. */
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

/** A kernel in a simulated environment, with the IOCTLs as short calls. */
export class KernelRig {
  readonly server = new FakeServer();
  readonly hca = new FakeHca();
  readonly network = new FakeNetwork();
  readonly cm = new FakeCm();
  readonly faults: Error[] = [];
  /** Number of times that the kernel has invalidated the caches of the user side. */
  cacheEpochs = 0;
  readonly kernel: Kernel;
  file: number;
  private nextSlot = 0;

  constructor(options: KernelOptionsInput = {}, others: readonly HcaMaker[] = []) {
    const { network } = this;
    const parsed = kernelOptionsSchema.parse(options);
    const hca = softHca({
      native: this.hca,
      network,
      options: parsed,
      createConnectionManager: (platform) => {
        this.cm.onConnect = () => platform.sendMad(noPath, new Uint8Array(256));
        return this.cm;
      },
    });
    this.kernel = new Kernel({
      server: this.server,
      hcas: [hca, ...others],
      network,
      options: parsed,
      newCacheEpoch: () => {
        this.cacheEpochs++;
      },
    });
    this.kernel.io.onFault = (fault) => this.faults.push(fault);
    this.file = this.open('\\\\.\\WinVerbs').answer?.information ?? 0;
  }

  /** The live queues of the software HCA. */
  get registry(): HcaRegistry {
    return this.kernel.hcaDriver.find(ethGuid)!.extension.registry;
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

  /** Forwards the HCA's events. */
  events(): void {
    while (this.kernel.serveEvents());
  }

  // ── Objects, each created by valid requests; the id is returned ──────────────────────────────────────────────

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

  /** A listener on port 5000 and its counterpart in connection management. */
  listener(port = 5000): { id: bigint; control: FakeListener } {
    const id = this.endpoint();
    this.bind(id, port);
    const { status } = this.ioctl('EP_LISTEN', s.WvIoEpListen.encode({ id, backlog: 4n }));
    if (status !== Status.SUCCESS) throw new Error(`does not listen: 0x${status.toString(16)}`);
    return { id, control: this.cm.listeners.at(-1)! };
  }

  /** A queue pair with all objects that it needs; `handle` is the HCA's. */
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

export function expect(request: Submitted, status: number, what = ''): void {
  assert.is(statusName(request.status), statusName(status), what);
}

/** Ends a test and checks that no rule of the I/O manager was broken. */
export function sound(rig: KernelRig): void {
  assert.equal(rig.faults, []);
  assert.is(rig.kernel.filter.counters.cleanupFailures, 0);
  assert.is(rig.kernel.io.counters.abandonedIrps, 0);
}
