// QP_MODIFY and QP_QUERY through the IOCTL interface: from × to × type × every option bit. WinVerbs's rule is that a transition always sets
// its own attributes, and each option adds one. Other fields have invalid values and are ignored. The complete result of QP_QUERY is
// compared after every request, including rejected ones.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  gidOfAddress,
  type Input,
  IoctlCode,
  QpAttr,
  QpState,
  QpStateOut,
  QpType,
  type Value,
  WvIoQpAttributes,
} from '../../kernel-bridge/ioctl/index.js';
import {
  type IWVAddressHandle,
  openProvider,
  Status,
  StatusError,
  statusName,
  WcStatus,
  WVConnectQueuePair,
  WVDatagramQueuePair,
  type WVQueuePair,
} from '../../winverbs/index.js';
import { ADDRESS, take } from '../helpers/loopback.js';
import {
  namesOf,
  type QpAttributeName,
  type QpStateName,
  type QpTypeName,
  qpRule,
  qpTypes,
} from '../helpers/qp-rules.js';
import { firstIf } from '../helpers/tiers.js';
import { nothingLeft } from '../helpers/verbs-model-outcome.js';

type Raw = Value<typeof WvIoQpAttributes>;
type RawInput = Input<typeof WvIoQpAttributes>;
/** Only connection management sets the RNR time limit and the extensions. */
type Named = Exclude<QpAttributeName, 'state' | 'drainNotify' | 'rnrTimeout' | 'extensions'>;

const states = Object.keys(QpState) as QpStateName[];

/** The option that adds an attribute. */
const optionOf: Readonly<Record<Named, number>> = {
  currentState: QpAttr.CURRENT_STATE,
  initiatorDepth: QpAttr.INITIATOR_DEPTH,
  responderResources: QpAttr.RESPONDER_RESOURCES,
  destinationQpn: QpAttr.DESTINATION_QPN,
  qkey: QpAttr.QKEY,
  sendPsn: QpAttr.SEND_PSN,
  receivePsn: QpAttr.RECEIVE_PSN,
  access: QpAttr.ACCESS_FLAGS,
  path: QpAttr.AV,
  port: QpAttr.PORT_NUMBER,
  pkeyIndex: QpAttr.PKEY_INDEX,
  ackTimeout: QpAttr.ACK_TIMEOUT,
  minRnrTimer: QpAttr.RNR_NAK_TIMEOUT,
  retryCount: QpAttr.ERROR_RETRY_COUNT,
  rnrRetry: QpAttr.RNR_RETRY_COUNT,
  // Only set by RTR, without an option.
  pathMtu: 0,
};
const optional = (Object.keys(optionOf) as Named[]).filter((name) => optionOf[name] !== 0);
const unsupported = QpAttr.CAPABILITIES | QpAttr.PATH_MIG_STATE | QpAttr.FLAGS | QpAttr.ALTERNATE_AV;

/** The offset of an attribute in the structure. */
const fieldOf = {
  currentState: 'currentQpState',
  initiatorDepth: 'initiatorDepth',
  responderResources: 'responderResources',
  destinationQpn: 'destinationQpn',
  qkey: 'qkey',
  sendPsn: 'sendPsn',
  receivePsn: 'receivePsn',
  access: 'accessFlags',
  path: 'addressVector',
  port: 'addressVector',
  pkeyIndex: 'pkeyIndex',
  ackTimeout: 'localAckTimeout',
  minRnrTimer: 'rnrNakTimeout',
  retryCount: 'sequenceErrorRetryCount',
  rnrRetry: 'rnrRetryCount',
  pathMtu: 'pathMtu',
} as const satisfies Readonly<Record<Named, keyof Raw>>;

const home = gidOfAddress(ADDRESS);

const noVector: Partial<Raw['addressVector']> = { hopLimit: 0xff, dLid: 0xffff, portNumber: 0xff };

/** No attribute may have this value. */
const nonsense: RawInput = {
  sendDepth: 0xffff_ffff,
  sendSge: 0xffff_ffff,
  receiveDepth: 0xffff_ffff,
  receiveSge: 0xffff_ffff,
  maxInlineSend: 0xffff_ffff,
  initiatorDepth: 0xffff_ffff,
  responderResources: 0xffff_ffff,
  qpType: 0xff,
  currentQpState: 0xff,
  apmState: 0xff,
  qpn: 0xffff_ffff,
  destinationQpn: 0xffff_ffff,
  qkey: 0xffff_ffff,
  sendPsn: 0xffff_ffff,
  receivePsn: 0xffff_ffff,
  addressVector: noVector,
  alternateAddressVector: { networkRouteValid: 1, portNumber: 0xff },
  pathMtu: 0xffff,
  alternatePathMtu: 0xffff,
  pkeyIndex: 0xffff,
  alternatePkeyIndex: 0xffff,
  localAckTimeout: 0xff,
  alternateLocalAckTimeout: 0xff,
  rnrNakTimeout: 0xff,
  sequenceErrorRetryCount: 0xff,
  rnrRetryCount: 0xff,
  accessFlags: 0xff,
  qpFlags: 0xff,
};

/** Valid values of all attributes, different ones for every `n`. */
function goodValues(n: number): Partial<Raw> {
  return {
    initiatorDepth: n % 5,
    responderResources: (n + 1) % 5,
    destinationQpn: 0x10_0000 + n,
    qkey: 0x7fff_ffff - n,
    sendPsn: 0xff_ffff - n,
    receivePsn: 0x80_0000 + n,
    accessFlags: n % 32,
    pathMtu: 256 << (n % 5),
    pkeyIndex: 0,
    localAckTimeout: n % 32,
    rnrNakTimeout: (n + 3) % 32,
    sequenceErrorRetryCount: n % 8,
    rnrRetryCount: (n + 3) % 8,
  };
}

/** Attributes of a path, without the port. Its peer is not on any host here. */
function goodPath(n: number): Partial<Raw['addressVector']> {
  return {
    networkRouteValid: 1,
    hopLimit: 1 + (n % 255),
    trafficClass: (n * 3) % 256,
    flowLabel: 0xf_ffff - n,
    sGid: home,
    dGid: gidOfAddress(`198.51.100.${1 + (n % 200)}`),
  };
}

/** The attributes that a transition always sets. */
function carried(type: QpTypeName, from: QpStateName, to: QpStateName | undefined): Named[] {
  const again = from === 'INIT' && to === 'INIT';
  const rule = to && qpRule(type, again ? 'RESET' : from, to);
  return namesOf(rule?.required ?? '') as Named[];
}

/** The fields in which two structures differ, with both values. */
function differing(expected: object, found: object): string[] {
  const values = Object.entries(found);
  return Object.entries(expected).flatMap(([name, value], i) => {
    const other: unknown = values[i]![1];
    if (value instanceof Uint8Array && other instanceof Uint8Array) {
      return Buffer.compare(value, other) === 0 ? [] : [`${name}: ${value}, not ${other}`];
    }
    if (typeof value === 'object' && typeof other === 'object' && other !== null) {
      return differing(value, other).map((line) => `${name}.${line}`);
    }
    return value === other ? [] : [`${name}: ${value}, not ${other}`];
  });
}

/** A queue pair, and the expected result of a query. */
class Walked {
  readonly qp: WVQueuePair;
  readonly fresh: Raw;
  expected: Raw;
  requests = 0;
  private n = 0;

  constructor(
    private readonly world: World,
    readonly type: QpTypeName,
  ) {
    const { pd, cq } = world;
    const sizes = { sendCq: cq, receiveCq: cq, sendDepth: 3, sendSge: 2, receiveDepth: 5, receiveSge: 1 };
    const create = { ...sizes, maxInlineSend: 32, signalSends: true };
    const depths = type === 'RC' ? { initiatorDepth: 3, responderResources: 4 } : {};
    const qp =
      type === 'UD'
        ? pd.createDatagramQueuePair(create)
        : pd.createConnectQueuePair({ ...create, ...depths, type: QpType[type] });
    assert.ok(qp instanceof WVConnectQueuePair || qp instanceof WVDatagramQueuePair);
    this.qp = qp;
    world.made.push(qp);
    assert.is(qp.sendSge, 4, 'two were requested');
    const { sendCq: _sendCq, receiveCq: _receiveCq, ...counts } = sizes;
    this.fresh = {
      ...WvIoQpAttributes.zero(),
      ...counts,
      ...depths,
      id: { id: qp.id, verbInfo: 0, data: 0 },
      // The ring's capacity.
      sendSge: qp.sendSge,
      maxInlineSend: 32,
      qpType: QpType[type],
      qpn: qp.qpn,
      qpFlags: 1,
    };
    this.expected = this.fresh;
    this.compare('as made');
  }

  compare(what: string): void {
    const output = this.qp.file.callId(IoctlCode.QP_QUERY, this.qp.id, WvIoQpAttributes.size);
    const found = WvIoQpAttributes.decode(output);
    assert.equal(differing(this.expected, found), [], `${this.type}: ${what}, as queried`);
  }

  get state(): QpStateName {
    return states[this.expected.qpState]!;
  }

  /**
   * Sends one QP_MODIFY and compares the query after it. The named attributes have valid values except for `change`. Without `to`, the
   * options lack STATE, and `qpState` is a state that does not exist.
   */
  modify(
    to: QpStateName | undefined,
    options: number,
    status: number,
    change: Partial<Raw> & { av?: Partial<Raw['addressVector']>; state?: number } = {},
  ): void {
    this.requests++;
    const { av: avChange, state: otherState, ...fields } = change;
    const from = this.state;
    const given = optional.filter((name) => (options & optionOf[name]) !== 0);
    const counts = new Set([...carried(this.type, from, to), ...given]);
    const n = this.n++;
    const good: Partial<Raw> = { ...goodValues(n), currentQpState: QpState[from], ...fields };
    const values: Partial<Raw> = {};
    for (const name of counts) {
      const field = fieldOf[name];
      if (field !== 'addressVector') Object.assign(values, { [field]: good[field] });
    }
    // Without the option, port 0 selects the only port.
    const portNumber = given.includes('port') ? 1 : 0;
    const addressVector: Partial<Raw['addressVector']> = {
      ...noVector,
      ...(counts.has('path') ? { ...goodPath(n), dLid: 0 } : {}),
      ...(counts.has('port') ? { portNumber } : {}),
      ...avChange,
    };
    const input = WvIoQpAttributes.encode({
      ...nonsense,
      ...values,
      ...fields,
      addressVector,
      id: { id: this.qp.id },
      options: (options | (to === undefined && otherState === undefined ? 0 : QpAttr.STATE)) >>> 0,
      qpState: otherState ?? (to === undefined ? 0 : QpState[to]),
    });
    const what = `${this.type} ${from} to ${to ?? otherState ?? 'the same'}, options 0x${options.toString(16)}, ${JSON.stringify(change)}`;
    let found: number = Status.SUCCESS;
    try {
      const output = this.qp.file.call(IoctlCode.QP_MODIFY, input, QpStateOut.size);
      if (status === Status.SUCCESS) {
        assert.is(QpStateOut.decode(output).state, QpState[to ?? from], `${what}: the state answered`);
      }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      found = error.status;
    }
    assert.is(statusName(found), statusName(status), what);
    if (status === Status.SUCCESS) this.took(to ?? from, counts, values, addressVector);
    this.compare(what);
  }

  /** The changes of a successful request. */
  private took(
    to: QpStateName,
    counts: ReadonlySet<Named>,
    { currentQpState: _currentQpState, ...values }: Partial<Raw>,
    av: Partial<Raw['addressVector']>,
  ): void {
    const state = QpState[to];
    if (to === 'RESET') this.expected = this.fresh;
    const { addressVector: before } = this.expected;
    const addressVector = {
      ...before,
      ...(counts.has('path') ? av : {}),
      portNumber: counts.has('port') ? 1 : before.portNumber,
    };
    this.expected = { ...this.expected, ...values, addressVector, qpState: state, currentQpState: state };
  }

  /** Moves the queue pair to a state with valid transitions, unless it is already there. */
  async reach(state: QpStateName): Promise<void> {
    if (this.state === state) return;
    this.modify('RESET', 0, Status.SUCCESS);
    const way = ['INIT', 'RTR', 'RTS', 'SQD'] as const;
    const last = state === 'SQERROR' ? 'RTS' : state;
    for (const step of way.slice(0, way.indexOf(last as 'RTS') + 1)) this.modify(step, 0, Status.SUCCESS);
    if (state === 'SQERROR') await this.failSend();
    if (state === 'ERROR') this.modify('ERROR', 0, Status.SUCCESS);
  }

  /** Sends from deregistered memory. This leads to SQERROR, or to ERROR for a reliable connection. */
  async failSend(): Promise<void> {
    const { gone, ah, cq } = this.world;
    const sgl = [{ region: gone, offset: 0, length: 8 }];
    if (this.qp instanceof WVDatagramQueuePair) {
      const to = { addressHandle: ah, destinationQpn: 2, destinationQkey: 1 };
      this.qp.sendMessage({ ...to, context: 'bad', sgl, flags: 0 });
    } else if (this.qp instanceof WVConnectQueuePair) this.qp.send('bad', sgl, 0);
    assert.is((await take(cq, 1))[0]!.status, WcStatus.LOCAL_PROTECTION_ERROR);
    const state = this.type === 'RC' ? QpState.ERROR : QpState.SQERROR;
    this.expected = { ...this.expected, qpState: state, currentQpState: state };
    this.compare('a send failed');
  }
}

type World = ReturnType<typeof openWorld>;

function openWorld() {
  const provider = openProvider();
  const device = provider.openDevice(provider.translateAddress(ADDRESS).deviceGuid);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(64);
  const gone = pd.registerMemory(new Uint8Array(8), 0);
  pd.deregisterMemory(gone);
  const ah: IWVAddressHandle = pd.createAddressHandle({ sourceGid: ADDRESS, destinationGid: ADDRESS });
  const { maxQpInitiatorDepth: maxDepth } = device.query();
  const made: WVQueuePair[] = [];
  const close = () => {
    for (const object of [...made, ah, cq, pd, device, provider]) object.release();
  };
  return { pd, cq, gone, ah, maxDepth, made, close };
}

async function inWorld(run: (world: World) => Promise<void>): Promise<void> {
  const world = openWorld();
  try {
    await run(world);
  } finally {
    world.close();
  }
  await nothingLeft();
}

for (const type of qpTypes) {
  firstIf(type === 'RC', test)(`${type}: every transition with every option`, () =>
    inWorld(async (world) => {
      const one = new Walked(world, type);
      for (const from of states) {
        // A reliable queue pair has no send queue error; see below.
        if (from === 'SQERROR' && type === 'RC') continue;
        for (const to of [...states, undefined]) {
          const attempt = async (options: number, status: number, change: Partial<Raw> = {}) => {
            await one.reach(from);
            one.modify(to, options, status, change);
          };
          // Without STATE, the state does not change, and a queue pair in RESET or ERROR rejects everything.
          const rule =
            to !== undefined || (from !== 'RESET' && from !== 'ERROR')
              ? qpRule(type, from, to ?? from)
              : undefined;
          const may = rule ? ['currentState', ...namesOf(`${rule.required} ${rule.optional}`)] : [];
          const withRule = rule ? Status.SUCCESS : Status.INVALID_DEVICE_STATE;
          await attempt(0, withRule);
          await attempt(
            optional.reduce((all, name) => (may.includes(name) ? all | optionOf[name] : all), 0),
            withRule,
          );
          for (const name of optional) {
            const allowed = !rule || may.includes(name);
            await attempt(optionOf[name], allowed ? withRule : Status.INVALID_PARAMETER);
          }
          for (let bit = 1; bit !== 0; bit <<= 1) {
            if (bit === QpAttr.STATE || optional.some((name) => optionOf[name] === bit)) continue;
            await attempt(bit, (bit & unsupported) !== 0 ? Status.NOT_SUPPORTED : Status.INVALID_PARAMETER);
          }
          for (const state of states) {
            const currentQpState = QpState[state];
            if (state !== from)
              await attempt(QpAttr.CURRENT_STATE, Status.INVALID_DEVICE_STATE, { currentQpState });
          }
          await attempt(QpAttr.CURRENT_STATE, Status.INVALID_PARAMETER, { currentQpState: 7 });
          // Programs cannot set a controlled Q_Key, even if something else is also invalid.
          for (const qkey of [0x8000_0000, 0xffff_ffff]) {
            await attempt(QpAttr.QKEY, Status.ACCESS_DENIED, { qkey });
          }
        }
        await one.reach(from);
        for (const state of [7, 255]) one.modify(undefined, 0, Status.INVALID_PARAMETER, { state });
      }
      assert.ok(one.requests > 1500, `${one.requests} requests`);
    }),
  );

  test(`${type}: a transition requires its attributes and checks each`, () =>
    inWorld(async (world) => {
      const { maxDepth } = world;
      const bad: Partial<Record<Named, (Partial<Raw> & { av?: Partial<Raw['addressVector']> })[]>> = {
        port: [{ av: { portNumber: 2 } }, { av: { portNumber: 255 } }],
        access: [{ accessFlags: 0x20 }, { accessFlags: 0x80 }],
        pkeyIndex: [{ pkeyIndex: 1 }, { pkeyIndex: 0xffff }],
        pathMtu: [0, 255, 1000, 8192].map((pathMtu) => ({ pathMtu })),
        destinationQpn: [{ destinationQpn: 0x100_0000 }],
        receivePsn: [{ receivePsn: 0x100_0000 }],
        sendPsn: [{ sendPsn: 0x100_0000 }],
        responderResources: [maxDepth + 1, 0x1_0000].map((responderResources) => ({ responderResources })),
        initiatorDepth: [maxDepth + 1, 0x1_0000].map((initiatorDepth) => ({ initiatorDepth })),
        minRnrTimer: [{ rnrNakTimeout: 32 }],
        ackTimeout: [{ localAckTimeout: 32 }],
        retryCount: [{ sequenceErrorRetryCount: 8 }],
        rnrRetry: [{ rnrRetryCount: 8 }],
        path: [{ av: { networkRouteValid: 0 } }],
      };
      const one = new Walked(world, type);
      const path: readonly Partial<Raw['addressVector']>[] = [
        { sGid: gidOfAddress('192.0.2.1') },
        { dGid: new Uint8Array(16) },
        { dGid: gidOfAddress('2001:db8::1') },
      ];
      let refused = 0;
      const refuse = (to: QpStateName, name: Named, options: number) => {
        for (const change of bad[name] ?? []) {
          one.modify(to, options, Status.INVALID_PARAMETER, change);
          refused++;
        }
        if (name === 'path') {
          for (const av of path) one.modify(to, options, Status.INVALID_ADDRESS, { av });
        }
        if (name === 'qkey') one.modify(to, options, Status.ACCESS_DENIED, { qkey: 0x8000_0000 });
      };
      for (const from of states) {
        if (from === 'SQERROR' && type === 'RC') continue;
        for (const to of states) {
          if (!qpRule(type, from, to)) continue;
          await one.reach(from);
          const always = carried(type, from, to);
          for (const name of always) refuse(to, name, 0);
          for (const name of namesOf(qpRule(type, from, to)!.optional) as Named[]) {
            if (!always.includes(name) && name in optionOf) refuse(to, name, optionOf[name] ?? 0);
          }
          if (always.includes('port')) {
            one.modify(to, QpAttr.PORT_NUMBER, Status.INVALID_PARAMETER, { av: { portNumber: 0 } });
          }
        }
      }
      assert.ok(refused > 5, `${refused} refused`);
    }));
}

test('an RC queue pair is never in SQERROR: a failed send leads to ERROR, and no request leads to SQERROR', () =>
  inWorld(async (world) => {
    const one = new Walked(world, 'RC');
    await one.reach('RTS');
    await one.failSend();
    assert.is(one.state, 'ERROR');
    const options = QpAttr.CURRENT_STATE;
    for (const to of states)
      one.modify(to, options, Status.INVALID_DEVICE_STATE, { currentQpState: QpState.SQERROR });
    one.modify('RTS', 0, Status.INVALID_DEVICE_STATE);
    one.modify('RESET', 0, Status.SUCCESS);
  }));

test.run();
