/** Counts of events in random runs, so that tests can require them. */

/** The counted events. Extending the model's lists extends this one. */
export const covered = [
  'connection',
  'unreliable connection',
  'connection with shared receives',
  'disconnect',
  'send',
  'unreliable send',
  'write',
  'unreliable write',
  'read',
  'add',
  'bind',
  'invalidate',
  'failed request',
  'receive',
  'unreliable receive',
  'shared receive',
  'shared queue changed',
  'event',
  'address handle',
  'datagram',
  'failed datagram',
  'datagram received',
  'group joined',
  'multicast datagram received',
] as const;

export type Covered = (typeof covered)[number];

export class Coverage {
  readonly counts: Record<Covered, number>;

  constructor() {
    this.counts = Object.fromEntries(covered.map((what) => [what, 0])) as Record<Covered, number>;
  }

  add(what: Covered): void {
    this.counts[what]++;
  }
}
