/** Rules of Modify QP according to IBA 1 §11.2.5.2, which tests expect. They were written independently of the product's tables. */
import { QpMask } from '../../kernel-bridge/hca/soft-hca-binding.js';
import type { QpState, QpType } from '../../kernel-bridge/ioctl/constants.js';

export type QpAttributeName = keyof typeof QpMask;
export type QpTypeName = keyof typeof QpType;
export type QpStateName = keyof typeof QpState;

/** A valid transition. Attributes are names separated by spaces. */
interface QpRule {
  from: QpStateName;
  to: QpStateName;
  types: QpTypeName[];
  required: string;
  optional: string;
}

export const qpTypes: QpTypeName[] = ['RC', 'UC', 'UD'];
const connected = 'path pathMtu destinationQpn receivePsn';
const qpRules: QpRule[] = [
  { from: 'RESET', to: 'INIT', types: ['RC', 'UC'], required: 'pkeyIndex port access', optional: '' },
  { from: 'RESET', to: 'INIT', types: ['UD'], required: 'pkeyIndex port qkey', optional: '' },
  { from: 'INIT', to: 'INIT', types: ['RC', 'UC'], required: '', optional: 'pkeyIndex port access' },
  { from: 'INIT', to: 'INIT', types: ['UD'], required: '', optional: 'pkeyIndex port qkey' },
  {
    from: 'INIT',
    to: 'RTR',
    types: ['RC'],
    required: `${connected} responderResources minRnrTimer`,
    optional: 'access pkeyIndex rnrTimeout extensions',
  },
  { from: 'INIT', to: 'RTR', types: ['UC'], required: connected, optional: 'access pkeyIndex' },
  { from: 'INIT', to: 'RTR', types: ['UD'], required: '', optional: 'pkeyIndex qkey' },
  {
    from: 'RTR',
    to: 'RTS',
    types: ['RC'],
    required: 'ackTimeout retryCount rnrRetry sendPsn initiatorDepth',
    optional: 'currentState access minRnrTimer',
  },
  { from: 'RTR', to: 'RTS', types: ['UC'], required: 'sendPsn', optional: 'currentState access' },
  { from: 'RTR', to: 'RTS', types: ['UD'], required: 'sendPsn', optional: 'currentState qkey' },
  ...(['RTS', 'SQD'] as const).flatMap((from): QpRule[] => [
    { from, to: 'RTS', types: ['RC'], required: '', optional: 'currentState access minRnrTimer' },
    { from, to: 'RTS', types: ['UC'], required: '', optional: 'currentState access' },
    { from, to: 'RTS', types: ['UD'], required: '', optional: 'currentState qkey' },
  ]),
  { from: 'RTS', to: 'SQD', types: qpTypes, required: '', optional: 'drainNotify' },
  {
    from: 'SQD',
    to: 'SQD',
    types: ['RC'],
    required: '',
    optional:
      'port path ackTimeout retryCount rnrRetry initiatorDepth responderResources access pkeyIndex minRnrTimer',
  },
  { from: 'SQD', to: 'SQD', types: ['UC'], required: '', optional: 'path access pkeyIndex' },
  { from: 'SQD', to: 'SQD', types: ['UD'], required: '', optional: 'pkeyIndex qkey' },
  { from: 'SQERROR', to: 'RTS', types: ['UC'], required: '', optional: 'currentState access' },
  { from: 'SQERROR', to: 'RTS', types: ['UD'], required: '', optional: 'currentState qkey' },
];

/** The rule of a transition; undefined if it is invalid. RESET and ERROR accept no attributes, from any state. */
export function qpRule(type: QpTypeName, from: QpStateName, to: QpStateName): QpRule | undefined {
  if (to === 'RESET' || to === 'ERROR')
    return { from, to, types: qpTypes, required: '', optional: 'currentState' };
  return qpRules.find((one) => one.from === from && one.to === to && one.types.includes(type));
}

export const namesOf = (names: string): QpAttributeName[] =>
  names.split(' ').filter((name): name is QpAttributeName => name in QpMask);
