/** Random sequences of verbs: the steps, and the generator of runs. */
import fc from 'fast-check';

const OPERATIONS = [
  'createCq',
  'allocatePd',
  'register',
  'deregister',
  'allocateMw',
  'createQp',
  'createQp',
  'createSrq',
  'modifySrq',
  'notifySrq',
  'destroyBusySrq',
  'receiveShared',
  'receiveShared',
  'resume',
  'modify',
  'receive',
  'receive',
  'send',
  'send',
  'send',
  'send',
  'write',
  'write',
  'write',
  'read',
  'read',
  'add',
  'bind',
  'bind',
  'invalidate',
  'invalidate',
  'poll',
  'poll',
  'poll',
  'resize',
  'notify',
  'cancel',
  'connect',
  'connect',
  'connect',
  'createUd',
  'createAh',
  'startUd',
  'resetUd',
  'receiveDatagram',
  'sendDatagram',
  'sendDatagram',
  'sendDatagram',
  'attach',
  'detach',
  'disconnect',
  'leave',
  'notifyDisconnect',
  'drain',
  'addRef',
  'release',
] as const;

type Operation = (typeof OPERATIONS)[number];

/** One step. The numbers select objects and parameters, modulo their number. */
export interface Step {
  readonly op: Operation;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** A whole run. */
export interface Plan {
  readonly steps: readonly Step[];
  /** Whether everything is released, or the file is closed first. */
  readonly end: 'release' | 'closeFile';
  /** Determines the order in which everything is released. */
  readonly order: number;
  /** The initial objects: a connection, one whose ends use shared Receives, an unreliable one, and datagram queue pairs. */
  readonly begin: {
    readonly connected: boolean;
    readonly shared: boolean;
    readonly unreliable: boolean;
    readonly datagrams: boolean;
  };
}

const nat = fc.nat(999);
/** Random runs. */
export const plans: fc.Arbitrary<Plan> = fc.record({
  steps: fc.array(fc.record({ op: fc.constantFrom(...OPERATIONS), a: nat, b: nat, c: nat }), {
    minLength: 10,
    maxLength: 96,
    size: 'max',
  }),
  end: fc.constantFrom('release', 'release', 'closeFile'),
  order: nat,
  begin: fc.record({
    connected: fc.boolean(),
    shared: fc.boolean(),
    unreliable: fc.boolean(),
    datagrams: fc.boolean(),
  }),
});
