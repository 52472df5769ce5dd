/** Hosts, their network and their connections in virtual time, for scenarios. */
import type { CmConnection, CmPath } from '../../kernel-bridge/kernel/cm/service.js';
import type { CmOptions } from '../../kernel-bridge/option-checks/option-schemas.js';
import { seeded } from '../helpers/random.js';
import {
  attributesOf,
  type ConnectionSettings,
  FlowConnection,
  type FlowPlan,
  type PeerOfQp,
  serve,
  usualSettings,
} from './connection.js';
import { SimulatedHost } from './host.js';
import {
  createSimulation,
  type HostOptions,
  type NativeSimulation,
  type News,
  NewsKind,
  type PortOptions,
  QpEvent,
} from './native-simulation.js';

export const NS_PER_MS = 1e6;
/** The exact clock, not that of a host. */
const TRUE_CLOCK = 0xffff_ffff;
/** Longer than the network keeps any old packet. */
const AFTERWARDS_MS = 130_000;
const LONGEST_END_MS = 3_600_000;

/** A violated invariant. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

interface Watched {
  readonly lost: (why: string) => void;
  readonly established: (() => void) | undefined;
}

export class World {
  readonly native: NativeSimulation;
  readonly hosts: SimulatedHost[] = [];
  readonly flows: FlowConnection[] = [];
  settings: ConnectionSettings = usualSettings;
  /** Incomplete transfers, with or without a current connection. */
  pending = 0;
  /** Number of links so far. */
  links = 0;
  /** Called occasionally, between events. */
  onProgress: (() => void) | undefined;
  readonly #news: News;
  readonly #random: () => number;
  readonly #timers = new Map<number, () => void>();
  readonly #endpoints = new Map<number, Watched>();
  readonly #byVertex = new Map<number, SimulatedHost>();
  #lastTimer = 0;
  #failure: string | undefined;
  #steps = 0;

  constructor(seed: number, faults?: Float64Array) {
    const { native, news } = createSimulation(seed);
    this.native = native;
    this.#news = news;
    this.#random = seeded(seed);
    if (faults) native.prescribeFaults(faults);
  }

  get nowMs(): number {
    return this.native.now() / NS_PER_MS;
  }

  /** A random integer below `end`. */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** Reports a violation, which ends the current run. */
  fail(what: string): void {
    this.#failure ??= what;
  }

  // ── Network and hosts ──────────────────────────────────────────────────────────────────────────────────────

  addHosts(count: number): SimulatedHost[] {
    const added = Array.from({ length: count }, (_, i) => new SimulatedHost(this, this.hosts.length + i));
    this.hosts.push(...added);
    for (const host of added) this.#byVertex.set(host.vertex, host);
    return added;
  }

  /** Adds a link with the same options in both directions. */
  link(a: number, b: number, options: PortOptions): number {
    const link = this.native.addLink(a, b);
    this.links = link + 1;
    this.setLink(link, options);
    return link;
  }

  setLink(link: number, options: PortOptions): void {
    this.native.setPort(2 * link, options);
    this.native.setPort(2 * link + 1, options);
  }

  /** Starts a host, with a server. */
  boot(host: SimulatedHost, options: HostOptions = {}, cm: Partial<CmOptions> = {}): void {
    host.boot(options, cm);
    serve(this, host);
  }

  crash(host: SimulatedHost): void {
    host.crash();
    for (const flow of this.flows) if (flow.plan.client === host) flow.forget();
  }

  // ── Connections ────────────────────────────────────────────────────────────────────────────────────────────

  connect(plan: FlowPlan): FlowConnection {
    const made = new FlowConnection(this, plan);
    this.flows[made.flow] = made;
    return made;
  }

  /** Whether the connection of a flow may be lost now. A side whose peer has finished may miss all of the peer's DREQs. */
  mayFail(flow: number): boolean {
    const { plan, state } = this.flows[flow] ?? {};
    return plan?.mayFail !== false || state === 'done';
  }

  /** `lost`: its queue pair has failed. */
  watchEndpoint(endpoint: number, lost: (why: string) => void, established?: () => void): void {
    this.#endpoints.set(endpoint, { lost, established });
  }

  endEndpoint(endpoint: number): void {
    if (this.#endpoints.delete(endpoint)) this.native.endEndpoint(endpoint);
  }

  setDreqOnExit(endpoint: number, connection: CmConnection): void {
    if (this.#endpoints.has(endpoint))
      this.native.setDreqOnExit(endpoint, connection.dreqOnExit()!.path, connection.dreqOnExit()!.mad);
  }

  /** Moves a queue pair to RTS. Returns false on failure, which is a violation. */
  bring(endpoint: number, flow: number, path: CmPath, receivePsn: number, peer: PeerOfQp): boolean {
    const ours = this.flows[flow]?.plan.ours ?? this.settings.ours;
    const status = this.native.bring(
      endpoint,
      attributesOf({ ...this.settings, ours }, path, receivePsn, peer),
    );
    if (status !== 0) this.fail(`a queue pair could not be connected: status 0x${status.toString(16)}`);
    return status === 0;
  }

  // ── Time ───────────────────────────────────────────────────────────────────────────────────────────────────

  setTimer(vertex: number, ns: number, expired: () => void): number {
    this.#lastTimer += 1;
    this.#timers.set(this.#lastTimer, expired);
    this.native.setTimer(vertex, Math.round(ns), this.#lastTimer);
    return this.#lastTimer;
  }

  cancelTimer(id: number): void {
    this.#timers.delete(id);
  }

  after(milliseconds: number, run: () => void): void {
    this.setTimer(TRUE_CLOCK, milliseconds * NS_PER_MS, run);
  }

  /** Runs for a time, or until `done`. @throws Violation */
  run(milliseconds: number, done: () => boolean = () => false): void {
    const end = this.native.now() + milliseconds * NS_PER_MS;
    while (!done()) {
      const more = this.native.run(end);
      this.#check();
      if (!more) return;
      this.#dispatch();
      this.#check();
      this.#steps += 1;
      if (this.#steps % 1000 === 0) this.onProgress?.();
    }
  }

  /** Runs until all flows have ended and connections have left no state. @throws Violation */
  finish(longestMs: number): void {
    const over = () =>
      this.pending === 0 && this.flows.every(({ state }) => state === 'done' || state === 'lost');
    this.run(longestMs, over);
    if (!over()) {
      const left = this.flows.filter(({ state }) => state !== 'done' && state !== 'lost');
      throw new Violation(
        `${left.length} of ${this.flows.length} flows have not ended after ${longestMs} ms (${left[0]?.state}), and ${this.pending} transfers are not done`,
      );
    }
    const quiet = () => this.hosts.every((host) => host.leftovers().length === 0);
    for (let waited = 0; waited < LONGEST_END_MS; waited += AFTERWARDS_MS) {
      this.run(AFTERWARDS_MS);
      if (quiet() && this.native.figures().live === 0) return;
    }
    const { live } = this.native.figures();
    const left = this.hosts.flatMap((host) => host.leftovers());
    if (live > 0) left.push(`${live} packets are still under way`);
    throw new Violation(left.slice(0, 5).join('; '));
  }

  #check(): void {
    const [first] = this.native.violations();
    const what = first ?? this.#failure;
    if (what !== undefined) throw new Violation(`at ${this.nowMs.toFixed(3)} ms: ${what}`);
  }

  #dispatch(): void {
    const [kind = 0, subject = 0, a = 0, b = 0, c = 0] = this.#news.values;
    if (kind === NewsKind.timer) {
      const run = this.#timers.get(a);
      this.#timers.delete(a);
      run?.();
    } else if (kind === NewsKind.mad) {
      const { gids, mad } = this.#news;
      this.#byVertex.get(subject)?.cm?.receive(gids.slice(0, 16), gids.slice(16), 0, mad);
    } else if (kind === NewsKind.flowDone) {
      this.flows[subject]?.finished(a !== 0);
    } else if (kind === NewsKind.qpEvent) {
      const watched = this.#endpoints.get(a);
      if (b === QpEvent.established) watched?.established?.();
      else if (b === QpEvent.fatal) watched?.lost(`its queue pair failed with status ${c}`);
      else if (b === QpEvent.peerLost) watched?.lost(`its queue pair lost the peer (status ${c})`);
    }
  }
}
