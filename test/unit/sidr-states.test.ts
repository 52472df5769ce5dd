import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { sidrEvents, sidrStates, sidrTransitions } from '../../kernel-bridge/kernel/cm/sidr-exchange.js';
import { sameTable } from '../helpers/state-table.js';

/**
 * The complete state machine, written by hand: the next state, `?` misused by the owner, `!` impossible. Columns are in the order of the
 * header line.
 */
const expected = `
             lookup admit accept reject abandon req rep stale timeout exhausted expired
idle         RQS    RQR   ?      ?      OVR     !   !   !     !       !         !
reqSent      ?      ?     ?      ?      OVR     !   OVR !     RQS     OVR       !
reqReceived  ?      ?     ANS    ANS    ANS     RQR !   OVR   !       !         OVR
answered     ?      ?     ?      ?      ANS     ANS !   OVR   !       !         OVR
over         ?      ?     ?      ?      OVR     !   !   !     !       !         !
`;
const shorthand = { idle: 'IDL', reqSent: 'RQS', reqReceived: 'RQR', answered: 'ANS', over: 'OVR' } as const;

test('every cell of the table is as expected', () => {
  sameTable(sidrTransitions, sidrStates, sidrEvents, shorthand, expected);
});

test('the owner is notified of every end that it did not cause, and never from within its calls', () => {
  const calls: readonly string[] = ['lookup', 'admit', 'accept', 'reject', 'abandon'];
  for (const state of sidrStates) {
    for (const event of sidrEvents) {
      const cell = sidrTransitions[state][event];
      if (cell.kind !== 'go') continue;
      const reports = cell.actions.some((action) => action.startsWith('report'));
      const ends = cell.next === 'over' && (state === 'reqSent' || state === 'reqReceived');
      assert.is(reports, ends && !calls.includes(event), `${state} × ${event}`);
    }
  }
});

test.run();
