// The explanations of queue pair state transitions agree with the HCA's table in objects/qp_states.cc.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { QpAttr, QpState } from '../../kernel-bridge/ioctl/constants.js';
import { explainModify } from '../../winverbs/explain.js';
import type { IWVDevice } from '../../winverbs/index.js';
import { Status, WvError } from '../../winverbs/status.js';
import { type QpAttributeName, type QpStateName, qpRule, qpTypes } from '../helpers/qp-rules.js';
import { root } from '../helpers/root.js';

/** The options that carry the HCA's attributes: the path with its MTU is AV. `rnrTimeout` and `extensions` are the kernel's own. */
const optionOf: Readonly<Partial<Record<QpAttributeName, number>>> = {
  access: QpAttr.ACCESS_FLAGS,
  pkeyIndex: QpAttr.PKEY_INDEX,
  port: QpAttr.PORT_NUMBER,
  qkey: QpAttr.QKEY,
  path: QpAttr.AV,
  pathMtu: QpAttr.AV,
  destinationQpn: QpAttr.DESTINATION_QPN,
  receivePsn: QpAttr.RECEIVE_PSN,
  responderResources: QpAttr.RESPONDER_RESOURCES,
  minRnrTimer: QpAttr.RNR_NAK_TIMEOUT,
  ackTimeout: QpAttr.ACK_TIMEOUT,
  retryCount: QpAttr.ERROR_RETRY_COUNT,
  rnrRetry: QpAttr.RNR_RETRY_COUNT,
  sendPsn: QpAttr.SEND_PSN,
  initiatorDepth: QpAttr.INITIATOR_DEPTH,
};

const states = Object.keys(QpState) as QpStateName[];
/** Limits that are never exceeded, so that only the transition can be wrong. */
const device = {
  query: () => ({ maxQpInitiatorDepth: 99, maxQpResponderResources: 99, physPortCount: 1 }),
  queryPort: () => ({ activeMtu: 4096, pkeyTableLength: 1 }),
} as unknown as IWVDevice;
const refused = new WvError(Status.INVALID_PARAMETER, 'refused');

/** Returns the explanation of a transition; undefined if nothing is wrong with it. */
function said(from: QpStateName, to: QpStateName, options: number): string | undefined {
  const error = explainModify(
    refused,
    device,
    QpState[from],
    { qpState: QpState[to] },
    QpAttr.STATE | options,
  );
  return error === refused ? undefined : (error as Error).message;
}

test('a transition is rejected if and only if no type of queue pair has it', () => {
  for (const from of states) {
    for (const to of states) {
      const possible = qpTypes.some((type) => qpRule(type, from, to) !== undefined);
      const sentence = said(from, to, 0);
      if (possible) assert.is(sentence, undefined, `${from} to ${to}: ${sentence}`);
      else
        assert.match(
          sentence ?? '',
          /`qpState` must be one of|only a failed request causes/,
          `${from} to ${to}`,
        );
    }
  }
});

test('an option is rejected if and only if no type of queue pair accepts it in a transition', () => {
  for (const to of states.filter((state) => state !== 'SQERROR')) {
    const rules = states.flatMap((from) => qpTypes.flatMap((type) => qpRule(type, from, to) ?? []));
    const taken = new Set(rules.flatMap(({ required, optional }) => `${required} ${optional}`.split(' ')));
    const from = rules[0]!.from;
    for (const option of new Set(Object.values(optionOf))) {
      const names = Object.keys(optionOf).filter((name) => optionOf[name as QpAttributeName] === option);
      const sentence = said(from, to, option);
      if (names.some((name) => taken.has(name)))
        assert.is(sentence, undefined, `${names} to ${to}: ${sentence}`);
      else assert.match(sentence ?? '', 'must not include', `${names} to ${to}`);
    }
  }
});

test('the transitions are those of the engine', () => {
  const source = readFileSync(join(root, 'kernel-bridge/hca/engine/objects/qp_states.cc'), 'utf8');
  const table = /kTransitions\[\] = \{([\s\S]*?)\n\};/.exec(source)![1]!;
  const nameOf = (text: string): string =>
    ({
      Reset: 'RESET',
      Init: 'INIT',
      Rtr: 'RTR',
      Rts: 'RTS',
      Sqd: 'SQD',
      SqError: 'SQERROR',
      Error: 'ERROR',
    })[text]!;
  const steps = [
    ...table.matchAll(/\{kQps(\w+),\s*kQps(\w+),\s*\{\{(\w+)[^}]*\},\s*\{(\w+)[^}]*\},\s*\{(\w+)/g),
  ].map(
    ([, from, to, ...possible]) =>
      `${nameOf(from!)} to ${nameOf(to!)}: ${qpTypes.filter((_, n) => possible[n] === 'true').join(' ')}`,
  );
  const always = ['RESET', 'ERROR'];
  const expected = states.flatMap((from) =>
    states.flatMap((to) => {
      const types = qpTypes.filter((type) => qpRule(type, from, to) !== undefined);
      return types.length === 0 || always.includes(to) ? [] : [`${from} to ${to}: ${types.join(' ')}`];
    }),
  );
  assert.ok(steps.length > 5);
  assert.equal(steps.sort(), expected.sort());
});

test.run();
