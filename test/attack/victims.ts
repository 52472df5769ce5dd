/** A victim and its partner, between whom goes a connection that nobody attacks. */
import type { KernelOptionsInput } from '../../winverbs/index.js';
import type { AimMessage } from './packets.js';
import { type Build, HANG_MS, Program } from './process.js';
import type { Answer, Health } from './victim.js';

/** Rounds that the bystanders' connection makes after an attack to show that it lives. */
const ROUNDS_AFTER = 20;

export interface VictimOptions {
  readonly build: Build;
  readonly seed: number;
  readonly kernel: KernelOptionsInput;
  readonly connections: number;
  readonly datagrams: number;
}

type Only<K extends string> = Extract<Answer, Record<K, unknown>>;

export class Victims {
  readonly victim: Program;
  partner!: Program;
  #before!: Health;

  private constructor({ build, kernel, connections, datagrams, seed }: VictimOptions) {
    this.victim = new Program('victim', {
      build,
      options: kernel,
      args: ['serve', connections, datagrams, seed],
    });
  }

  static async start(options: VictimOptions): Promise<Victims> {
    const victims = new Victims(options);
    const { port } = await victims.victim.next<{ port: number }>('start');
    victims.partner = new Program('victim', {
      build: options.build,
      options: options.kernel,
      args: ['ask', port],
    });
    await victims.partner.next('start');
    await victims.lives();
    [victims.#before] = await victims.health();
    return victims;
  }

  /** Kernel objects that the victim has at its end: those of its own end of the bystanders' connection. */
  static readonly ownObjects = { qp: 1, cq: 1, pd: 1, mr: 1, ah: 0, mw: 0, srq: 0 } as const;

  async aims(): Promise<AimMessage[]> {
    return (await this.victim.ask<Only<'aims'>>('aim')).aims;
  }

  async health(): Promise<[victim: Health, partner: Health]> {
    const both = [this.victim, this.partner].map((one) => one.ask<Only<'health'>>('health'));
    const [victim, partner] = await Promise.all(both);
    return [victim!.health, partner!.health];
  }

  /** QPNs of the connection that nobody attacks. */
  async spared(): Promise<number[]> {
    return (await this.health()).map(({ bystander }) => bystander.qpn);
  }

  /** Waits until the bystanders have exchanged some more. */
  async lives(): Promise<void> {
    const [{ bystander }] = await this.health();
    const until = performance.now() + HANG_MS;
    for (;;) {
      const both = await this.health();
      for (const { bystander: one } of both) if (one.failure !== undefined) return;
      if (both[0].bystander.rounds >= bystander.rounds + ROUNDS_AFTER) return;
      if (performance.now() > until) {
        throw new Error(`the bystanders' connection stands still after ${bystander.rounds} rounds`);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Ends both in good order; answers what is wrong with them. */
  async end(): Promise<{ findings: string[]; before: Health; after: [Health, Health]; left: Health }> {
    const findings: string[] = [];
    await this.lives();
    const after = await this.health();
    const stopped = this.partner.ask<Only<'left'>>('end');
    await stopped;
    const { left } = await this.victim.ask<Only<'left'>>('end');
    for (const [name, { bystander }] of [
      ['victim', after[0]],
      ['partner', after[1]],
      ['victim, at its end', left],
    ] as const) {
      if (bystander.failure !== undefined) findings.push(`bystander (${name}): ${bystander.failure}`);
    }
    for (const text of left.damage) findings.push(`memory: ${text}`);
    for (const [kind, count] of Object.entries(Victims.ownObjects)) {
      if (left.objects[kind] !== count) {
        findings.push(`objects: ${left.objects[kind]} of ${kind} are left, not ${count}`);
      }
    }
    for (const program of [this.victim, this.partner]) {
      const how = await program.exited;
      if (how !== 'exit code 0') findings.push(`${program.name} ended by ${how}. ${program.errors.trim()}`);
    }
    return { findings, before: this.#before, after, left };
  }
}
