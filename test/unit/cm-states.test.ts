import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { cmEvents, cmStates, transitions } from '../../kernel-bridge/kernel/cm/connection-states.js';
import { sameTable } from '../helpers/state-table.js';

/**
 * The complete state machine, written by hand: the next state, `.` ignored, `?` misused by the owner, `!` impossible.
 * Columns are in the order of the header line.
 */
const expected = `
                connect admit accept ready reject disconnect packetSeen abandon req mraReq mraRep rej rep rtu dreq drep stale staleReply timeout exhausted expired displaced
idle            RQS     RQR   ?      ?     ?      IDL        ?          IDL     !   !      !      !   !   !   !    !    !     !          !       !         !       !
reqSent         ?       ?     ?      ?     TMW    TMW        ?          TMW     .   MRQ    .      TMW RPR .   .    .    !     TMW        RQS     TMW       !       !
mraReqReceived  ?       ?     ?      ?     TMW    TMW        ?          TMW     .   .      .      TMW RPR .   .    .    !     TMW        MRQ     TMW       !       !
repReceived     ?       ?     ?      EST   TMW    TMW        ?          TMW     .   .      .      TMW RPR .   TMW  .    TMW   !          !       !         !       !
reqReceived     ?       ?     RPS    ?     TMW    TMW        ?          TMW     RQR .      .      TMW .   .   .    .    TMW   !          !       !         TMW     IDL
repSent         ?       ?     ?      ?     TMW    TMW        EST        TMW     RPS .      MRP    TMW .   EST TMW  .    TMW   !          RPS     TMW       !       !
mraRepReceived  ?       ?     ?      ?     TMW    TMW        EST        TMW     MRP .      .      TMW .   EST TMW  .    TMW   !          MRP     TMW       !       !
established     ?       ?     ?      ?     ?      DRS        EST        DRS     .   .      .      TMW EST .   TMW  .    DRS   !          !       !         !       !
dreqSent        ?       ?     ?      ?     ?      ?          DRS        DRS     .   .      .      TMW .   .   TMW  TMW  TMW   !          DRS     TMW       !       !
timewait        ?       ?     ?      ?     ?      TMW        TMW        TMW     TMW .      .      .   TMW TMW TMW  .    !     !          !       !         IDL     !
`;

const shorthand = {
  idle: 'IDL',
  reqSent: 'RQS',
  mraReqReceived: 'MRQ',
  repReceived: 'RPR',
  reqReceived: 'RQR',
  repSent: 'RPS',
  mraRepReceived: 'MRP',
  established: 'EST',
  dreqSent: 'DRS',
  timewait: 'TMW',
} as const;

test('every cell of the table is as expected', () => {
  sameTable(transitions, cmStates, cmEvents, shorthand, expected);
});

const reports = /^report/;

test('the owner of an active connection is notified of each end that it did not request', () => {
  for (const state of cmStates) {
    for (const event of cmEvents) {
      const cell = transitions[state][event];
      if (cell.kind !== 'go' || cell.next !== 'timewait' || state === 'timewait') continue;
      const asked = event === 'reject' || event === 'abandon';
      assert.is(
        cell.actions.some((action) => reports.test(action)),
        !asked,
        `${state} × ${event}`,
      );
    }
  }
});

test('an owner’s calls never report events from within the call', () => {
  const calls = ['connect', 'accept', 'ready', 'reject', 'disconnect', 'packetSeen', 'abandon'] as const;
  for (const state of cmStates) {
    for (const call of calls) {
      const cell = transitions[state][call];
      if (cell.kind !== 'go') continue;
      for (const action of cell.actions) {
        if (reports.test(action)) assert.match(action, /Later$/, `${state} × ${call}`);
      }
    }
  }
});

test('nothing is sent after an event was reported, because the owner may call the connection from within it', () => {
  for (const state of cmStates) {
    for (const event of cmEvents) {
      const cell = transitions[state][event];
      if (cell.kind !== 'go') continue;
      const index = cell.actions.findIndex((action) => reports.test(action));
      const later = index < 0 ? [] : cell.actions.slice(index + 1);
      assert.not.ok(
        later.some((action) => /^(send|re(?!port)|extend|await)/.test(action)),
        `${state} × ${event}`,
      );
    }
  }
});

test('abandoning detaches the owner before anything else', () => {
  for (const state of cmStates) {
    const cell = transitions[state].abandon;
    assert.is(cell.kind === 'go' && cell.actions[0], 'detach', state);
  }
});

test.run();
