/** A victim and its partner, connected by a connection that is not attacked. */
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { ADDRESS } from '../helpers/loopback.js';
import { HANG_MS } from '../helpers/within.js';
import type { ActivityHealth } from './activity.js';
import type { AimMessage } from './packets.js';
import { type Build, Program } from './process.js';
import type { Answer, AskJob, Health, Ports, ServeJob } from './victim.js';

/** Rounds that the bystanders' connection makes after an attack to show that it works. */
const ROUNDS_AFTER = 20;

export interface VictimOptions {
  readonly build: Build;
  readonly seed: number;
  readonly kernel: KernelOptionsInput;
  readonly connections: number;
  readonly datagrams: number;
  /** The hosts of both. Default: the loopback interface. */
  readonly place?: Place;
  /** Whether there are short-lived connections between them, and whether one looks up the other's services. */
  readonly churn?: boolean;
  readonly lookups?: boolean;
  /** The address where an attacker replies to lookups. */
  readonly attacker?: string;
}

/** The hosts of victim and partner: their addresses, and the command that starts a process there. */
export interface Place {
  readonly victim: { readonly address: string; readonly by: readonly string[] };
  readonly partner: { readonly address: string; readonly by: readonly string[] };
}

const loopback = { address: ADDRESS, by: [] } as const;
const here: Place = { victim: loopback, partner: loopback };

type Only<K extends string> = Extract<Answer, Record<K, unknown>>;

/** All activities of victims, by name. */
function goingsOn(both: readonly Health[]): Pick<ActivityHealth, 'name' | 'rounds' | 'failure'>[] {
  return both.flatMap(({ bystander, activities }) => [{ name: 'bystander', ...bystander }, ...activities]);
}

export class Victims {
  readonly victim: Program;
  partner!: Program;
  ports!: Ports;
  partnerPorts!: Ports;
  #before!: Health;

  private constructor(options: VictimOptions) {
    const {
      build,
      seed,
      kernel,
      connections,
      datagrams,
      place = here,
      churn = false,
      lookups = false,
    } = options;
    const { address, by } = place.victim;
    const job: ServeJob = { role: 'serve', address, seed, connections, datagrams, churn, lookups };
    this.victim = new Program('victim', { build, by, options: kernel, args: [JSON.stringify(job)] });
  }

  static async start(options: VictimOptions): Promise<Victims> {
    const victims = new Victims(options);
    victims.ports = await victims.victim.next<Ports>('start');
    const { build, seed, kernel, place = here } = options;
    const { address, by } = place.partner;
    const peer = place.victim.address;
    const { attacker = peer } = options;
    const job: AskJob = { role: 'ask', address, seed, peer, ports: victims.ports, attacker };
    victims.partner = new Program('victim', { build, by, options: kernel, args: [JSON.stringify(job)] });
    victims.partnerPorts = await victims.partner.next<Ports>('start');
    const { churn } = victims.partnerPorts;
    if (churn !== undefined) {
      await victims.victim.ask({ connectTo: { family: 4, address, port: churn } });
    }
    await victims.lives();
    [victims.#before] = await victims.health();
    return victims;
  }

  /** Kernel objects that each still has at the end: those of its side of the bystanders' connection. */
  static readonly ownObjects = { qp: 1, cq: 1, pd: 1, mr: 1, ah: 0, mw: 0, srq: 0 } as const;

  async aims(): Promise<AimMessage[]> {
    return (await this.victim.ask<Only<'aims'>>('aim')).aims;
  }

  async health(): Promise<[victim: Health, partner: Health]> {
    const both = [this.victim, this.partner].map((one) => one.ask<Only<'health'>>('health'));
    const [victim, partner] = await Promise.all(both);
    return [victim!.health, partner!.health];
  }

  /** QPNs of the connection that is not attacked. */
  async spared(): Promise<number[]> {
    return (await this.health()).map(({ bystander }) => bystander.qpn);
  }

  /** Waits until the bystanders have completed some more rounds, and the other activities have progressed. */
  async lives(): Promise<void> {
    const begun = goingsOn(await this.health());
    const until = performance.now() + HANG_MS;
    for (;;) {
      const now = goingsOn(await this.health());
      if (now.some(({ failure }) => failure !== undefined)) return;
      const still = now.find(({ rounds }, n) => rounds < begun[n]!.rounds + ROUNDS_AFTER);
      if (still === undefined) return;
      if (performance.now() > until)
        throw new Error(`${still.name}: at a standstill after ${still.rounds} rounds`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /**
   * Waits until both have processed the pending MADs. Otherwise, requests of the partner find the queue full or time out.
   */
  async drained(): Promise<void> {
    const until = performance.now() + HANG_MS;
    for (;;) {
      const both = await this.health();
      if (both.every(({ cm }) => cm.sidrWaiting === 0 && cm.waitingRequests === 0)) return;
      if (goingsOn(both).some(({ failure }) => failure !== undefined)) return;
      if (performance.now() > until) throw new Error(`requests have been pending for ${HANG_MS} ms`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Ends both processes and returns the violations found. */
  async end(): Promise<{ findings: string[]; before: Health; after: [Health, Health]; left: Health }> {
    const findings: string[] = [];
    await this.lives();
    const after = await this.health();
    await Promise.all([this.victim, this.partner].map((one) => one.ask('rest')));
    const { left: partnerLeft } = await this.partner.ask<Only<'left'>>('end');
    const { left } = await this.victim.ask<Only<'left'>>('end');
    for (const [name, health] of [
      ['victim', after[0]],
      ['partner', after[1]],
      ['partner, at its end', partnerLeft],
      ['victim, at its end', left],
    ] as const) {
      for (const { name: what, failure } of goingsOn([health])) {
        if (failure !== undefined) findings.push(`${what} (${name}): ${failure}`);
      }
      for (const counter of Object.keys(health.cm)) {
        if (counter.startsWith('impossible')) findings.push(`states (${name}): ${counter}`);
      }
    }
    for (const text of left.damage) findings.push(`memory: ${text}`);
    for (const [name, { objects, cm }] of [
      ['victim', left],
      ['partner', partnerLeft],
    ] as const) {
      for (const [kind, count] of Object.entries(Victims.ownObjects)) {
        if (objects[kind] !== count) {
          findings.push(`objects (${name}): ${objects[kind]} of ${kind} are left, not ${count}`);
        }
      }
      for (const kind of ['lookups', 'sidrWaiting', 'waitingRequests']) {
        if (cm[kind] !== 0) findings.push(`objects (${name}): ${cm[kind]} of ${kind} are left`);
      }
    }
    for (const program of [this.victim, this.partner]) {
      const how = await program.exited;
      if (how !== 'exit code 0') findings.push(`${program.name} ended by ${how}. ${program.errors.trim()}`);
    }
    return { findings, before: this.#before, after, left };
  }
}
