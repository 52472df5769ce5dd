import * as assert from 'uvu/assert';

interface Cell<State extends string> {
  readonly kind: 'go' | 'ignored' | 'misused' | 'impossible';
  readonly next?: State;
}

const signs = { ignored: '.', misused: '?', impossible: '!' } as const;

/**
 * Compares a state machine with a hand-written table, which has a header line of events and a line for each state. A cell contains the
 * short form of the next state, or `.` (ignored), `?` (misuse by the owner) or `!` (impossible).
 */
export function sameTable<State extends string, Event extends string>(
  machine: Readonly<Record<State, Readonly<Record<Event, Cell<State>>>>>,
  states: readonly State[],
  events: readonly Event[],
  shorthand: Readonly<Record<State, string>>,
  expected: string,
): void {
  const [head, ...rows] = expected
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  assert.equal(head, [...events]);
  assert.equal(
    rows.map(([state]) => state),
    [...states],
  );
  for (const [index, state] of states.entries()) {
    for (const [column, event] of events.entries()) {
      const { kind, next } = machine[state][event];
      const found = kind === 'go' ? shorthand[next!] : signs[kind];
      assert.is(found, rows[index]?.[column + 1], `${state} × ${event}`);
    }
  }
}
