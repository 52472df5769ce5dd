/** The error of a rejected request names the invalid parameter, its value, and the valid values. */
import { test } from 'uvu';
import {
  openProvider,
  QpAttr,
  QpState,
  QpType,
  Status,
  WvAccess,
  type WvQpAttributes,
  type WvQpCreate,
} from '../../winverbs/index.js';
import { ADDRESS, openListener, openSide } from '../helpers/loopback.js';
import { rejectsWith, throwsWv } from '../helpers/outcome.js';

const provider = openProvider();
const device = provider.openDevice(
  provider.translateAddress({ family: 4, address: ADDRESS, port: 0 }).deviceGuid,
);
const pd = device.allocateProtectionDomain();
const cq = device.createCompletionQueue(8);
const sizes: WvQpCreate = {
  sendCq: cq,
  receiveCq: cq,
  sendDepth: 4,
  sendSge: 1,
  receiveDepth: 4,
  receiveSge: 1,
};
const { INVALID_PARAMETER, INVALID_DEVICE_STATE, INSUFFICIENT_RESOURCES, NOT_SUPPORTED } = Status;

test.after(async () => {
  await provider[Symbol.asyncDispose]();
});

test('memory: rights that require another one, and too much memory', () => {
  const bytes = new Uint8Array(8);
  for (const access of [WvAccess.REMOTE_ATOMIC, 0x2]) {
    throwsWv(
      () => pd.registerMemory(bytes, access),
      INVALID_PARAMETER,
      /must include LOCAL_WRITE \(0x8\) .*; got 0x\d+\. Use 0x[ac]/,
    );
    throwsWv(() => pd.registerMemoryOverlapped(bytes, access), INVALID_PARAMETER, /must include LOCAL_WRITE/);
  }
  throwsWv(() => pd.registerMemory(bytes, 0x4000), INVALID_PARAMETER, /`access` must be .*; got 16384/);
  throwsWv(
    () => pd.allocateFastRegion(2 ** 52),
    INVALID_PARAMETER,
    /`length` must be an integer from 1 to \d+; got 4503599627370496/,
  );
  pd.deregisterMemory(pd.registerMemory(bytes, WvAccess.ALL));
});

test('queue pairs, completion queues and shared receive queues: each size', () => {
  for (const [name, value, status] of [
    ['sendDepth', -1, INVALID_PARAMETER],
    ['sendDepth', 1e7, INVALID_PARAMETER],
    ['receiveDepth', 1e7, INVALID_PARAMETER],
    ['sendSge', 999, INVALID_PARAMETER],
    ['receiveSge', 999, INVALID_PARAMETER],
    ['maxInlineSend', 1e6, INVALID_PARAMETER],
    ['initiatorDepth', 1000, INSUFFICIENT_RESOURCES],
    ['responderResources', 1000, INSUFFICIENT_RESOURCES],
    ['responderResources', -5, INVALID_PARAMETER],
  ] as const) {
    const text = new RegExp(`QP_CREATE: \`${name}\` must be an integer from 0 to \\d+`);
    throwsWv(() => pd.createConnectQueuePair({ ...sizes, [name]: value }), status, text);
  }
  throwsWv(
    () => device.createCompletionQueue(2 ** 30),
    INVALID_PARAMETER,
    /`entries` must be an integer from \d+ to \d+; got 1073741824/,
  );
  throwsWv(
    () => cq.resize(2 ** 30),
    INVALID_PARAMETER,
    /`entries` must be an integer from \d+ to \d+; got 1073741824/,
  );
  throwsWv(
    () => pd.createSharedReceiveQueue(1e7, 1),
    INVALID_PARAMETER,
    /`maxWr` must be an integer from \d+ to \d+/,
  );
  throwsWv(
    () => pd.createSharedReceiveQueue(8, 999),
    INVALID_PARAMETER,
    /`maxSge` must be an integer from \d+ to \d+/,
  );
});

const { STATE, PORT_NUMBER, PKEY_INDEX, SEND_PSN, CAPABILITIES, CURRENT_STATE } = QpAttr;
const modifications: readonly [Partial<WvQpAttributes>, options: number, status: number, text: RegExp][] = [
  [{}, PKEY_INDEX, INVALID_DEVICE_STATE, /must include STATE: in RESET, attributes cannot be changed/],
  [
    { qpState: QpState.RTR },
    STATE,
    INVALID_DEVICE_STATE,
    /must be one of INIT, RESET, ERROR while the queue pair is in RESET; got RTR/,
  ],
  [{ qpState: 99 }, STATE, INVALID_PARAMETER, /`qpState` must be a value of QpState; got 99/],
  [
    { qpState: QpState.INIT },
    STATE | (1 << 25),
    INVALID_PARAMETER,
    /`options` must be an OR of QpAttr values; got 0x2000000/,
  ],
  [{ qpState: QpState.INIT }, STATE | CAPABILITIES, NOT_SUPPORTED, /CAPABILITIES, which cannot be changed/],
  [
    { qpState: QpState.INIT },
    STATE | SEND_PSN,
    INVALID_PARAMETER,
    /must not include SEND_PSN in a transition from RESET to INIT/,
  ],
  [
    { qpState: QpState.INIT, portNumber: 7 },
    STATE | PORT_NUMBER,
    INVALID_PARAMETER,
    /`portNumber` must be 1; got 7/,
  ],
  [
    { qpState: QpState.INIT, pkeyIndex: 700 },
    STATE | PKEY_INDEX,
    INVALID_PARAMETER,
    /`pkeyIndex` must be 0; got 700/,
  ],
  [
    { qpState: QpState.INIT, currentQpState: QpState.RTS },
    STATE | CURRENT_STATE,
    INVALID_DEVICE_STATE,
    /`currentQpState` must be RESET, .*; got 3/,
  ],
];
for (const [attributes, options, status, text] of modifications) {
  test(`modify: ${text.source}`, async () => {
    const qp = pd.createConnectQueuePair(sizes);
    throwsWv(() => qp.modify(attributes, options), status, text);
    await rejectsWith(qp.modifyOverlapped(attributes, options), status, text);
    qp.release();
  });
}

test('windows: region, range and rights', () => {
  const qp = pd.createConnectQueuePair(sizes);
  const window = pd.allocateMemoryWindow();
  const region = pd.registerMemory(new Uint8Array(64), WvAccess.ALL);
  const bind =
    (memory: typeof region, offset: number, length: number, access = 1) =>
    () =>
      qp.bindMemoryWindow(window, 0, memory, offset, length, access, 0);
  throwsWv(bind(region, 0, 65), INVALID_PARAMETER, /must be at most the region's 64 bytes; got 0 \+ 65/);
  throwsWv(bind(region, 60, 5), INVALID_PARAMETER, /got 60 \+ 5/);
  throwsWv(bind(region, -1, 5), INVALID_PARAMETER, /got -1 and 5/);
  throwsWv(bind({} as typeof region, 0, 5), INVALID_PARAMETER, /returned by registerMemory/);
  throwsWv(bind(region, 0, 5, 0x4000), INVALID_PARAMETER, /`access` .*; got 0x4000/);
  window.release();
  qp.release();
});

test('accept: a queue pair of another type', async () => {
  const one = openSide(provider);
  const other = openSide(provider);
  const { listener, peer } = openListener(provider);
  const uc = one.pd.createConnectQueuePair({ ...sizes, sendCq: one.cq, receiveCq: one.cq, type: QpType.UC });
  const requested = listener.getRequest(one.ep);
  other.ep.bindAddress({ ...peer, port: 0 });
  other.ep.resolveRoute(peer);
  const connecting = other.ep.connect(other.qp, peer, {});
  await requested;
  await rejectsWith(one.ep.accept(uc, {}), INVALID_PARAMETER, /must be of the peer's type, .*; got UC/);
  one.ep.reject();
  await rejectsWith(connecting, Status.CONNECTION_REFUSED, /./);
});

test.run();
