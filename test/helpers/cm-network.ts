/** Hosts with a connection manager each, connected by a simulated network, all in virtual time. */

import { createConnectionManager } from '../../kernel-bridge/kernel/cm/connection-manager.js';
import { gidEquals } from '../../kernel-bridge/kernel/cm/gids.js';
import { type CmMessage, type CmMessageName, parseMad } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import type {
  CmConnection,
  CmConnectParameters,
  CmEvents,
  CmListenerControl,
  CmPath,
  CmPlatform,
  CmQpParameters,
  CmReject,
  CmReply,
  CmRequest,
  CmTimer,
  ConnectionManager,
  Gid,
  SidrInquiry,
  SidrListener,
  SidrLookup,
  SidrLookupParameters,
  SidrReply,
  SidrRequest,
} from '../../kernel-bridge/kernel/cm/service.js';
import { pkeyIndexFor } from '../../kernel-bridge/kernel/hca-driver/pkeys.js';
import { type CmOptions, cmOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';

interface ClockEntry {
  readonly at: number;
  readonly run: () => void;
  live: boolean;
}

/** Timers in order of their time; timers of equal time are in order of creation. */
export class VirtualClock {
  now = 0;
  /** The timers, sorted so that the next one is the last element. Canceled timers remain until they are due. */
  readonly #entries: ClockEntry[] = [];
  #pending = 0;

  get pending(): number {
    return this.#pending;
  }

  schedule(milliseconds: number, run: () => void): CmTimer {
    const entry = { at: this.now + milliseconds, run, live: true };
    const entries = this.#entries;
    let low = 0;
    for (let high = entries.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (entries[middle]!.at > entry.at) low = middle + 1;
      else high = middle;
    }
    entries.splice(low, 0, entry);
    this.#pending += 1;
    return { cancel: () => this.#end(entry) };
  }

  /** Runs everything that is due up to and including `milliseconds` from now. */
  advance(milliseconds: number): void {
    const end = this.now + milliseconds;
    for (let next = this.#first(); next && next.at <= end; next = this.#first()) this.#run(next);
    this.now = end;
  }

  /** Runs until no timers are left. Throws if that exceeds the limit. */
  runToEnd(boundMs = 100_000_000): void {
    const end = this.now + boundMs;
    for (let next = this.#first(); next; next = this.#first()) {
      if (next.at > end) throw new Error(`Timers are still pending ${boundMs} ms after the start.`);
      this.#run(next);
    }
  }

  #first(): ClockEntry | undefined {
    while (this.#entries.at(-1)?.live === false) this.#entries.pop();
    return this.#entries.at(-1);
  }

  #run(entry: ClockEntry): void {
    this.#end(entry);
    this.now = entry.at;
    entry.run();
  }

  #end(entry: ClockEntry): void {
    if (entry.live) this.#pending -= 1;
    entry.live = false;
  }
}

/** A message in flight. */
export interface Passing {
  readonly from: string;
  readonly to: string;
  readonly mad: Uint8Array;
  readonly message: CmMessage;
}

export class Network {
  readonly clock = new VirtualClock();
  readonly hosts: Host[] = [];
  /** Log of all sent messages, such as `client REQ`, including lost ones. */
  readonly log: string[] = [];
  readonly sent: Passing[] = [];
  /** The delays of a message's copies. An empty list loses the message, two delays duplicate it. */
  route: (passing: Passing) => number[] = () => [1];

  add(name: string, gid: Gid, options: Partial<CmOptions> = {}, firstId = 0x0100_0000): Host {
    const host = new Host(this, name, gid, options, firstId);
    this.hosts.push(host);
    return host;
  }

  send(from: Host, path: CmPath, mad: Uint8Array): void {
    const message = parseMad(mad);
    if (typeof message === 'string') throw new Error(`${from.name} sent an invalid CM message: ${message}`);
    if (!gidEquals(path.source, from.gid))
      throw new Error(`${from.name} used the address of another host as its source.`);
    const to = this.hosts.find((host) => gidEquals(host.gid, path.destination));
    const passing = { from: from.name, to: to?.name ?? 'no host', mad: Uint8Array.from(mad), message };
    this.sent.push(passing);
    this.log.push(`${from.name} ${describe(message)}`);
    if (!to) return;
    for (const delay of this.route(passing)) {
      this.clock.schedule(delay, () =>
        to.cm.receive(path.source, path.destination, path.scopeId, passing.mad, from.slot),
      );
    }
  }

  /** Drops the first `count` messages of a name from a host. */
  lose(from: string, name: CmMessageName, count = 1): void {
    let left = count;
    const { route } = this;
    this.route = (passing) => {
      if (passing.from === from && passing.message.name === name && left > 0) {
        left -= 1;
        return [];
      }
      return route(passing);
    };
  }

  last(from: string, name: CmMessageName): Passing {
    const found = this.sent.findLast((passing) => passing.from === from && passing.message.name === name);
    if (!found) throw new Error(`${from} did not send a ${name}.`);
    return found;
  }

  /** Descriptions of leftover objects; empty if there are none. */
  leftovers(): string[] {
    return this.hosts.flatMap(({ name, cm, timers, ids }) => {
      const { connections, timewait, waitingRequests, lookups, sidrWaiting, sidrAnswered } = cm.counters();
      const requests = { connections, timewait, waitingRequests, lookups, sidrWaiting, sidrAnswered };
      return Object.entries({ timers, ids: ids.size, ...requests })
        .filter(([, count]) => count)
        .map(([what, count]) => `${name}: ${count} ${what}`);
    });
  }

  /** Runs until all timers have ended. Returns the leftovers. */
  end(): string[] {
    this.clock.runToEnd();
    return this.leftovers();
  }
}

function describe({ name, body }: CmMessage): string {
  if (name === 'REJ') return `REJ${body.reason}`;
  if (name === 'MRA') return `MRA${body.message}`;
  return name;
}

export class Host {
  readonly name: string;
  readonly gid: Gid;
  readonly cm: ConnectionManager;
  readonly ids = new Set<number>();
  /** Number of free ids. Tests of exhaustion lower it. */
  idsLeft = Number.POSITIVE_INFINITY;
  caGuid: bigint;
  maxPathMtu = 5;
  maxPacketBytes = 0;
  standardOnly = false;
  /** The P_Key table. */
  pkeys = [0xffff];
  /** The slot of a process that bypasses the wire. */
  slot: number | undefined;
  timers = 0;
  nextPsn: number | undefined;
  #nextId: number;
  #random: number;

  constructor(network: Network, name: string, gid: Gid, options: Partial<CmOptions>, firstId: number) {
    this.name = name;
    this.gid = gid;
    this.#nextId = firstId;
    this.#random = firstId ^ (gid[15] ?? 0);
    this.caGuid = 0x0200_00ff_fe00_0000n + BigInt(gid[15] ?? 0);
    const host = this;
    const platform: CmPlatform = {
      get standardOnly() {
        return host.standardOnly;
      },
      sendMad: (path, mad) => network.send(this, path, mad),
      setTimer: (milliseconds, expired) => {
        this.timers += 1;
        let live = true;
        const end = () => {
          if (live) this.timers -= 1;
          live = false;
        };
        const timer = network.clock.schedule(milliseconds, () => {
          end();
          expired();
        });
        return {
          cancel: () => {
            end();
            timer.cancel();
          },
        };
      },
      allocateCommId: () => {
        if (this.idsLeft <= 0) return 0;
        this.idsLeft -= 1;
        this.#nextId += 1;
        this.ids.add(this.#nextId);
        return this.#nextId;
      },
      releaseCommId: (id) => {
        if (!this.ids.delete(id)) throw new Error(`${name} released id ${id}, which it does not have.`);
      },
      randomPsn: () => {
        this.#random = (Math.imul(this.#random, 1_103_515_245) + 12_345) >>> 0;
        return this.nextPsn ?? this.#random >>> 8;
      },
      caGuid: () => this.caGuid,
      maxPathMtu: () => this.maxPathMtu,
      maxPacketBytes: () => this.maxPacketBytes,
      acceptsPkey: (_local, pkey) => pkeyIndexFor(this.pkeys, pkey) >= 0,
    };
    this.cm = createConnectionManager(platform, { ...cmOptionsSchema.parse({}), ...options });
  }
}

export const SERVICE = 0x0106_1c06n;
export const PORT = 0x1c06;

export function ipv4(last: number): Gid {
  return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, last);
}

export function qp(qpn: number, more: Partial<CmQpParameters> = {}): CmQpParameters {
  return {
    qpn,
    responderResources: 4,
    initiatorDepth: 4,
    retryCount: 7,
    rnrRetryCount: 6,
    srq: false,
    ...more,
  };
}

function pathBetween(from: Host, to: Host): CmPath {
  return { source: from.gid, destination: to.gid, flowLabel: 0, trafficClass: 0, hopLimit: 64, scopeId: 0 };
}

export function connectParameters(
  from: Host,
  to: Host,
  more: Partial<CmConnectParameters> = {},
): CmConnectParameters {
  return {
    serviceId: SERVICE,
    path: pathBetween(from, to),
    localPort: 40_000,
    peerPort: PORT,
    qp: qp(0x17),
    pathMtu: 3,
    ackTimeoutCode: 17,
    privateData: new Uint8Array(0),
    ...more,
  };
}

/** One side of a connection: its events by name, and their data. */
export class Side {
  readonly events: string[] = [];
  connection!: CmConnection;
  reply: CmReply | undefined;
  rejection: CmReject | undefined;
  request: CmRequest | undefined;
  /** Called for each event. */
  on: Partial<Record<keyof CmEvents, () => void>> = {};

  readonly listenTo: CmEvents = {
    replied: (reply) => {
      this.reply = reply;
      this.#note('replied');
    },
    established: () => this.#note('established'),
    rejected: (reject) => {
      this.rejection = reject;
      this.#note('rejected', String(reject.reason));
    },
    timedOut: () => this.#note('timedOut'),
    disconnected: () => this.#note('disconnected'),
    disconnectCompleted: (answered) => this.#note('disconnectCompleted', String(answered)),
  };

  get state(): string {
    return this.connection.state;
  }

  #note(event: keyof CmEvents, detail?: string): void {
    this.events.push(detail === undefined ? event : `${event} ${detail}`);
    this.on[event]?.();
  }
}

/** A client and a listening server on a network. The server's sides are queued. */
export class Pair {
  readonly network = new Network();
  readonly client: Host;
  readonly server: Host;
  readonly listener: CmListenerControl;
  /** Accepted requests, oldest first. */
  readonly taken: Side[] = [];
  /** Called by the server for each request that it receives, if set. */
  onTaken: ((side: Side) => void) | undefined = (side) => side.connection.accept(qp(0x11), new Uint8Array(0));
  /** Whether the server takes requests when they arrive. */
  taking = true;

  constructor(options: Partial<CmOptions> = {}, backlog = 0) {
    this.client = this.network.add('client', ipv4(3), options);
    this.server = this.network.add('server', ipv4(2), options);
    this.listener = this.server.cm.listen({
      serviceId: SERVICE,
      address: undefined,
      backlog,
      onRequest: () => {
        while (this.taking && this.take() !== undefined);
      },
    });
  }

  take(): Side | undefined {
    const found = this.listener.takeRequest();
    if (!found) return undefined;
    const side = new Side();
    side.connection = found.connection;
    side.request = found.request;
    found.connection.events = side.listenTo;
    this.taken.push(side);
    this.onTaken?.(side);
    return side;
  }

  /** Starts connecting; by default the active side confirms replies automatically. */
  connect(more: Partial<CmConnectParameters> = {}, confirm = true): Side {
    const side = new Side();
    if (confirm) side.on.replied = () => side.connection.ready();
    side.connection = this.client.cm.connect(
      connectParameters(this.client, this.server, more),
      side.listenTo,
    );
    return side;
  }

  /** Establishes a connection on both sides. */
  established(more: Partial<CmConnectParameters> = {}): { active: Side; passive: Side } {
    const active = this.connect(more);
    this.network.clock.advance(20);
    const passive = this.taken.at(-1);
    if (!passive || active.state !== 'established' || passive.state !== 'established') {
      throw new Error(`not established: ${active.state}, ${passive?.state}`);
    }
    active.events.length = 0;
    passive.events.length = 0;
    this.network.log.length = 0;
    return { active, passive };
  }

  leftovers(): string[] {
    return this.network.leftovers();
  }

  end(): string[] {
    return this.network.end();
  }
}

// ── Service id resolution ───────────────────────────────────────────────────────────────────────────────────

export const UDP_SERVICE = 0x0111_1c06n;
export const UDP_QKEY = 0x0123_4567;

/** A lookup: the name and data of its result. */
export class PendingLookup {
  readonly events: string[] = [];
  lookup!: SidrLookup;
  reply: SidrReply | undefined;
}

/** A request that the server has received. */
export interface ReceivedLookup {
  readonly inquiry: SidrInquiry;
  readonly request: SidrRequest;
  readonly events: string[];
}

/** A client that performs lookups and a server that listens. */
export class SidrPair {
  readonly network = new Network();
  readonly client: Host;
  readonly server: Host;
  readonly listener: SidrListener;
  /** Received requests, oldest first. */
  readonly taken: ReceivedLookup[] = [];
  /** Called by the server for each request that it receives, if set. */
  onTaken: ((received: ReceivedLookup) => void) | undefined = ({ inquiry }) =>
    inquiry.accept(0x15, UDP_QKEY, new Uint8Array(0));
  /** Whether the server takes requests when they arrive. */
  taking = true;

  constructor(options: Partial<CmOptions> = {}, backlog = 0) {
    this.client = this.network.add('client', ipv4(3), options);
    this.server = this.network.add('server', ipv4(2), options);
    this.listener = this.server.cm.listenForLookups({
      serviceId: UDP_SERVICE,
      address: undefined,
      backlog,
      onRequest: () => {
        if (this.taking) this.take();
      },
    });
  }

  take(): ReceivedLookup | undefined {
    const found = this.listener.takeRequest();
    if (!found) return undefined;
    const received: ReceivedLookup = { ...found, events: [] };
    found.inquiry.events = { timedOut: () => received.events.push('timedOut') };
    this.taken.push(received);
    this.onTaken?.(received);
    return received;
  }

  lookUp(more: Partial<SidrLookupParameters> = {}): PendingLookup {
    const pending = new PendingLookup();
    pending.lookup = this.client.cm.lookup(
      {
        serviceId: UDP_SERVICE,
        path: pathBetween(this.client, this.server),
        localPort: 0xa290,
        pkey: 0xffff,
        privateData: new Uint8Array(0),
        ...more,
      },
      {
        answered: (reply) => {
          pending.reply = reply;
          pending.events.push(`answered ${reply.status}`);
        },
        timedOut: () => pending.events.push('timedOut'),
      },
    );
    return pending;
  }

  leftovers(): string[] {
    return this.network.leftovers();
  }

  end(): string[] {
    return this.network.end();
  }
}
