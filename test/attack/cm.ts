/**
 * Attacks on connection management: MADs over UDP to victims that continuously look up services, or connect and disconnect. The victims are
 * on one host. The first attacker is on another host and sees the MADs that they send to it; the second one is another process of their own
 * host, and gets copies of these MADs.
 */
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import type { Attack, Outcome, Run } from './attack.js';
import type { MadBurst, MadSetup, MadsSent } from './mad-flood.js';
import type { Knowledge } from './mads.js';
import { Program } from './process.js';
import { Victims } from './victims.js';

/** MADs of one attacker between two updates of its knowledge. */
const BURST = 256;
/** Additional addresses of the other host. */
const OTHERS = ['10.99.0.66', '10.99.0.67'] as const;

/**
 * Both kinds of requests are repeated 15 times: connection requests every 0.27 s, lookups every 4.3 s. None times out before the test
 * reports a hang.
 */
const RESPONSE_TIMEOUT_CODES = { cm: 16, sidr: 20 } as const;
const kernelFor = (kind: MadSetup['kind']): KernelOptionsInput => ({
  rc: { ackTimeoutCode: 14 },
  cm: { timewaitMs: 50, responseTimeoutCode: RESPONSE_TIMEOUT_CODES[kind], maxRetries: 15 },
});

async function floodOf(kind: MadSetup['kind'], { build, seed, count, progress }: Run): Promise<Outcome> {
  const network = await TwoHosts.start();
  try {
    const [host, elsewhere] = network.hosts;
    for (const other of OTHERS) {
      network.run(elsewhere, ['ip', 'address', 'add', `${other}/24`, 'dev', elsewhere.interface]);
    }
    const attack = (by: readonly string[], setup: Omit<MadSetup, 'kind' | 'destination'>): Program => {
      const whole: MadSetup = { kind, destination: host.address, ...setup };
      return new Program('mad-flood', { build: 'plain', by, args: [JSON.stringify(whole)] });
    };
    const sources = [elsewhere.address, ...OTHERS];
    const far = attack(elsewhere.by, { seed, sources, listens: true, partners: false });
    const own = [host.address, '127.0.0.1'];
    const near = attack(host.by, { seed: seed + 1, sources: own, listens: false, partners: true });
    await Promise.all([far.next('start'), near.next('start')]);
    const victims = await Victims.start({
      build,
      seed,
      kernel: kernelFor(kind),
      connections: 0,
      datagrams: 0,
      place: { victim: host, partner: host },
      attacker: elsewhere.address,
      churn: kind === 'cm',
      lookups: kind === 'sidr',
    });
    const { lookups = 0 } = victims.ports;
    const churn = [victims.ports.churn ?? 0, victims.partnerPorts.churn ?? 0];
    const total = { packets: 0, refused: 0 };
    let knowledge: Knowledge = { requests: [], connections: [] };
    while (total.packets < count) {
      const packets = Math.min(BURST, Math.ceil((count - total.packets) / 2));
      const burst: MadBurst = { packets, knowledge, churn, lookups };
      const sent = await Promise.all([far, near].map((one) => one.ask<MadsSent>(burst)));
      knowledge = sent[0]!.knowledge;
      for (const one of sent) {
        total.packets += one.packets;
        total.refused += one.refused;
      }
      await victims.drained();
      progress(total.packets);
    }
    const { findings, before, after } = await victims.end();
    far.kill();
    near.kill();
    const sum = (of: 'hca' | 'cm', name: string): number => after[0][of][name] ?? 0;
    const both = (name: string): number => sum('cm', name) + (after[1].cm[name] ?? 0);
    const done = after.flatMap(({ activities }) => activities);
    const figures: Record<string, number> = {
      heard: after[0].hca.mad_rx! + after[1].hca.mad_rx! - before.hca.mad_rx!,
      'wrong source': both('dropped.wrongSource'),
      'of another request': both('dropped.otherRequest'),
      'foreign QPN': both('dropped.foreignQpn'),
      known: knowledge.requests.length + knowledge.connections.length,
      rounds: after[0].bystander.rounds,
      unsent: total.refused,
    };
    for (const { name, rounds, figures: more } of done) {
      figures[name] = (figures[name] ?? 0) + rounds;
      for (const [key, value] of Object.entries(more)) figures[key] = (figures[key] ?? 0) + value;
    }
    if (knowledge.requests.length + knowledge.connections.length === 0) {
      findings.push('the attack: the attacker has learned nothing');
    }
    return { done: total.packets, findings, figures };
  } finally {
    network.end();
  }
}

const madAttack = (
  kind: MadSetup['kind'],
  what: string,
  counts: { full: number; short: number },
): Attack => ({
  name: kind,
  what,
  unit: 'MADs',
  ...counts,
  seldom: true,
  needs: ['namespaces'],
  run: (run) => floodOf(kind, run),
});

export const cmAttacks: readonly Attack[] = [
  madAttack(
    'sidr',
    'another host that is looked up and replies anything at any time, and sends any requests; another process that forges replies',
    { full: 400_000, short: 4000 },
  ),
  madAttack(
    'cm',
    'CM messages of every kind, with ids of live connections, by another host and another process, while connections come and go',
    { full: 400_000, short: 4000 },
  ),
];
