/** A refused request names the parameter that was wrong, its value, and what would be right. */
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

test('memory: rights that need another, and too much of it', () => {
  const bytes = new Uint8Array(8);
  for (const access of [WvAccess.REMOTE_ATOMIC, 0x2]) {
    throwsWv(
      () => pd.registerMemory(bytes, access),
      INVALID_PARAMETER,
      /without LOCAL_WRITE \(0x8\); 0x[ac]/,
    );
    throwsWv(() => pd.registerMemoryOverlapped(bytes, access), INVALID_PARAMETER, /without LOCAL_WRITE/);
  }
  throwsWv(() => pd.registerMemory(bytes, 0x4000), INVALID_PARAMETER, /access rights are 16384/);
  throwsWv(
    () => pd.allocateFastRegion(2 ** 52),
    INVALID_PARAMETER,
    /The length is 4503599627370496; .* from 1 to \d+/,
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
    const text = new RegExp(`QP_CREATE: ${name} is ${value}; .* from 0 to \\d+`);
    throwsWv(() => pd.createConnectQueuePair({ ...sizes, [name]: value }), status, text);
  }
  throwsWv(
    () => device.createCompletionQueue(2 ** 30),
    INVALID_PARAMETER,
    /entries is 1073741824; .* to \d+/,
  );
  throwsWv(() => cq.resize(2 ** 30), INVALID_PARAMETER, /entries is 1073741824; .* to \d+/);
  throwsWv(() => pd.createSharedReceiveQueue(1e7, 1), INVALID_PARAMETER, /maxWr is 10000000; .* to \d+/);
  throwsWv(() => pd.createSharedReceiveQueue(8, 999), INVALID_PARAMETER, /maxSge is 999; .* to \d+/);
});

const { STATE, PORT_NUMBER, PKEY_INDEX, SEND_PSN, CAPABILITIES, CURRENT_STATE } = QpAttr;
const modifications: readonly [Partial<WvQpAttributes>, options: number, status: number, text: RegExp][] = [
  [{}, PKEY_INDEX, INVALID_DEVICE_STATE, /no STATE, and attributes alone cannot be changed in RESET/],
  [
    { qpState: QpState.RTR },
    STATE,
    INVALID_DEVICE_STATE,
    /in RESET, .* no step to RTR; there are those to INIT, RESET, ERROR/,
  ],
  [{ qpState: 99 }, STATE, INVALID_PARAMETER, /qpState is 99/],
  [{ qpState: QpState.INIT }, STATE | (1 << 25), INVALID_PARAMETER, /options have 0x2000000;/],
  [{ qpState: QpState.INIT }, STATE | CAPABILITIES, NOT_SUPPORTED, /CAPABILITIES, which cannot change/],
  [
    { qpState: QpState.INIT },
    STATE | SEND_PSN,
    INVALID_PARAMETER,
    /have SEND_PSN, which the step from RESET to INIT/,
  ],
  [
    { qpState: QpState.INIT, portNumber: 7 },
    STATE | PORT_NUMBER,
    INVALID_PARAMETER,
    /portNumber is 7; .* 1 to 1/,
  ],
  [
    { qpState: QpState.INIT, pkeyIndex: 700 },
    STATE | PKEY_INDEX,
    INVALID_PARAMETER,
    /pkeyIndex is 700; .* 0 to \d/,
  ],
  [
    { qpState: QpState.INIT, currentQpState: QpState.RTS },
    STATE | CURRENT_STATE,
    INVALID_DEVICE_STATE,
    /currentQpState is 3, but the queue pair is in RESET/,
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
  throwsWv(bind(region, 0, 65), INVALID_PARAMETER, /ends at byte 65 of a region of 64 bytes/);
  throwsWv(bind(region, 60, 5), INVALID_PARAMETER, /ends at byte 65/);
  throwsWv(bind(region, -1, 5), INVALID_PARAMETER, /offset -1 and length 5/);
  throwsWv(bind({} as typeof region, 0, 5), INVALID_PARAMETER, /no registered memory/);
  throwsWv(bind(region, 0, 5, 0x4000), INVALID_PARAMETER, /access rights are 0x4000/);
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
  await rejectsWith(one.ep.accept(uc, {}), INVALID_PARAMETER, /of type UC, and the peer's is of another/);
  one.ep.reject();
  await rejectsWith(connecting, Status.CONNECTION_REFUSED, /./);
});

test.run();
