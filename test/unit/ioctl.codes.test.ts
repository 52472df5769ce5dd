import { test } from 'uvu';
import * as assert from 'uvu/assert';
import * as constants from '../../kernel-bridge/ioctl/constants.js';
import {
  IbatCode,
  IoctlCode,
  type IoctlTail,
  ibatIoctls,
  ibatTable,
  ioctlName,
  ioctlRow,
  ioctls,
  ioctlTable,
} from '../../kernel-bridge/ioctl/index.js';

type Row = [
  fn: number,
  name: string,
  code: number,
  input: string,
  inputTail: IoctlTail,
  output: string,
  outputTail: IoctlTail,
  cancel: string,
];

/** The IOCTL table of the WinVerbs interface, written independently of the library's table. '' means none. */
const expected: Row[] = [
  [1, 'GUID_QUERY', 0x003be004, '', 'none', 'WV_IO_GUID_LIST', 'list', ''],
  [2, 'LIBRARY_QUERY', 0x003be008, 'u64be Guid', 'none', '', 'text', ''],
  [3, 'DEVICE_OPEN', 0x003be00c, 'WV_IO_ID (CA GUID)', 'provider', 'WV_IO_ID', 'provider', ''],
  [4, 'DEVICE_CLOSE', 0x003be010, 'u64 Id', 'none', '', 'none', ''],
  [5, 'DEVICE_QUERY', 0x003be014, 'u64 Id', 'none', 'WV_IO_DEVICE_ATTRIBUTES', 'none', ''],
  [
    6,
    'DEVICE_PORT_QUERY',
    0x003be018,
    'WV_IO_DEVICE_PORT_QUERY',
    'none',
    'WV_IO_PORT_ATTRIBUTES',
    'none',
    '',
  ],
  [7, 'DEVICE_GID_QUERY', 0x003be01c, 'WV_IO_DEVICE_PORT_QUERY', 'none', '', 'list', ''],
  [8, 'DEVICE_PKEY_QUERY', 0x003be020, 'WV_IO_DEVICE_PORT_QUERY', 'none', '', 'list', ''],
  [9, 'DEVICE_NOTIFY', 0x003be024, 'WV_IO_ID', 'none', 'u32 Flags', 'none', 'DEVICE_CANCEL'],
  [10, 'DEVICE_CANCEL', 0x003be028, 'u64 Id', 'none', '', 'none', ''],
  [11, 'PD_ALLOCATE', 0x003be02c, 'WV_IO_ID', 'provider', 'WV_IO_ID', 'provider', ''],
  [12, 'PD_DEALLOCATE', 0x003be030, 'u64 Id', 'none', '', 'none', ''],
  [
    13,
    'MEMORY_REGISTER',
    0x003be034,
    'WV_IO_MEMORY_REGISTER',
    'none',
    'WV_IO_MEMORY_KEYS',
    'none',
    'PD_CANCEL',
  ],
  [14, 'MEMORY_DEREGISTER', 0x003be038, 'WV_IO_ID', 'none', '', 'none', ''],
  [15, 'MW_ALLOCATE', 0x003be03c, 'WV_IO_ID', 'provider', 'WV_IO_ID (rkey)', 'provider', ''],
  [16, 'MW_DEALLOCATE', 0x003be040, 'u64 Id', 'none', '', 'none', ''],
  [17, 'AH_CREATE', 0x003be044, 'WV_IO_AH_CREATE', 'provider', 'WV_IO_AH_CREATE', 'provider', ''],
  [18, 'AH_DESTROY', 0x003be048, 'u64 Id', 'none', '', 'none', ''],
  [19, 'CQ_CREATE', 0x003be04c, 'WV_IO_ID', 'provider', 'WV_IO_ID', 'provider', ''],
  [20, 'CQ_DESTROY', 0x003be050, 'u64 Id', 'none', '', 'none', ''],
  [21, 'CQ_RESIZE', 0x003be054, 'WV_IO_ID', 'provider', 'WV_IO_ID', 'provider', ''],
  [22, 'CQ_NOTIFY', 0x003be058, 'WV_IO_ID', 'none', '', 'none', 'CQ_CANCEL'],
  [23, 'CQ_CANCEL', 0x003be05c, 'u64 Id', 'none', '', 'none', ''],
  [24, 'SRQ_CREATE', 0x003be060, 'WV_IO_SRQ_ATTRIBUTES', 'provider', 'WV_IO_SRQ_ATTRIBUTES', 'provider', ''],
  [25, 'SRQ_DESTROY', 0x003be064, 'u64 Id', 'none', '', 'none', ''],
  [26, 'SRQ_QUERY', 0x003be068, 'WV_IO_SRQ_ATTRIBUTES', 'provider', 'WV_IO_SRQ_ATTRIBUTES', 'provider', ''],
  [27, 'SRQ_MODIFY', 0x003be06c, 'WV_IO_SRQ_ATTRIBUTES', 'provider', 'WV_IO_SRQ_ATTRIBUTES', 'provider', ''],
  [28, 'SRQ_NOTIFY', 0x003be070, 'u64 Id', 'none', '', 'none', 'SRQ_CANCEL'],
  [29, 'SRQ_CANCEL', 0x003be074, 'u64 Id', 'none', '', 'none', ''],
  [30, 'QP_CREATE', 0x003be078, 'WV_IO_QP_CREATE', 'provider', 'WV_IO_QP_CREATE', 'provider', ''],
  [31, 'QP_DESTROY', 0x003be07c, 'u64 Id', 'none', '', 'none', ''],
  [32, 'QP_QUERY', 0x003be080, 'u64 Id', 'none', 'WV_IO_QP_ATTRIBUTES', 'none', ''],
  [33, 'QP_MODIFY', 0x003be084, 'WV_IO_QP_ATTRIBUTES', 'none', '', 'provider', 'QP_CANCEL'],
  [34, 'QP_ATTACH', 0x003be088, 'WV_IO_QP_MULTICAST', 'none', '', 'none', 'QP_CANCEL'],
  [35, 'QP_DETACH', 0x003be08c, 'WV_IO_QP_MULTICAST', 'none', '', 'none', ''],
  [36, 'QP_CANCEL', 0x003be090, 'u64 Id', 'none', '', 'none', ''],
  [37, 'EP_CREATE', 0x003be094, 'u64 EpType', 'none', 'u64 Id', 'none', ''],
  [38, 'EP_DESTROY', 0x003be098, 'u64 Id', 'none', '', 'none', ''],
  [39, 'EP_MODIFY', 0x003be09c, 'WV_IO_ID', 'option', '', 'none', ''],
  [40, 'EP_BIND', 0x003be0a0, 'WV_IO_EP_BIND', 'none', 'WV_IO_EP_BIND', 'none', ''],
  [41, 'EP_REJECT', 0x003be0a4, 'WV_IO_ID', 'privateData', '', 'none', ''],
  [42, 'EP_CONNECT', 0x003be0a8, 'WV_IO_EP_CONNECT', 'none', '', 'none', 'EP_CANCEL'],
  [43, 'EP_ACCEPT', 0x003be0ac, 'WV_IO_EP_ACCEPT', 'none', '', 'provider', 'EP_CANCEL'],
  [44, 'EP_DISCONNECT', 0x003be0b0, 'WV_IO_EP_DISCONNECT', 'none', '', 'provider', 'EP_CANCEL'],
  [45, 'EP_DISCONNECT_NOTIFY', 0x003be0b4, 'u64 Id', 'none', '', 'none', 'EP_CANCEL'],
  [46, 'EP_QUERY', 0x003be0b8, 'u64 Id', 'none', 'WV_IO_EP_ATTRIBUTES', 'none', ''],
  [
    47,
    'EP_LOOKUP',
    0x003be0bc,
    'WV_IO_EP_LOOKUP',
    'none',
    'WV_IO_EP_DATAGRAM_ATTRIBUTES',
    'none',
    'EP_CANCEL',
  ],
  [
    48,
    'EP_MULTICAST_JOIN',
    0x003be0c0,
    'WV_IO_EP_MULTICAST',
    'none',
    'WV_IO_EP_DATAGRAM_ATTRIBUTES',
    'none',
    '',
  ],
  [49, 'EP_MULTICAST_LEAVE', 0x003be0c4, 'WV_IO_EP_MULTICAST', 'none', '', 'none', ''],
  [50, 'EP_CANCEL', 0x003be0c8, 'u64 Id', 'none', '', 'none', ''],
  [51, 'EP_LISTEN', 0x003be0cc, 'WV_IO_EP_LISTEN', 'none', '', 'none', ''],
  [52, 'EP_GET_REQUEST', 0x003be0d0, 'WV_IO_EP_GET_REQUEST', 'none', '', 'none', 'EP_CANCEL'],
  [53, 'PD_CANCEL', 0x003be0d4, 'u64 Id', 'none', '', 'none', ''],
  [128, 'MEMORY_ALLOCATE', 0x003be200, 'WV_IO_MEMORY_REGISTER', 'none', 'WV_IO_MEMORY_KEYS', 'none', ''],
];

test('every WinVerbs IOCTL has its code, its structures and its pending behaviour', () => {
  const actual = ioctlTable.map((row) => [
    (row.code - 0x003be000) / 4,
    row.name,
    row.code,
    row.input?.name ?? '',
    row.inputTail,
    row.output?.name ?? '',
    row.outputTail,
    row.cancel ?? '',
  ]);
  for (const [i, row] of expected.entries()) assert.equal(actual[i], row, row[1]);
  assert.is(actual.length, 54);
});

test('codes are buffered control codes with read and write access', () => {
  for (const [fn, name, code] of expected) {
    const control = 0x3b * 2 ** 16 + 3 * 2 ** 14 + (0x800 + fn) * 2 ** 2;
    assert.is(code, control, name);
    assert.is(IoctlCode[name as keyof typeof IoctlCode], control, name);
    assert.is(ioctlRow(control)?.name, name);
    assert.is(ioctlName(control), name);
  }
  assert.is(Object.keys(IoctlCode).length, 54);
});

test('a request may pend if and only if an IOCTL cancels it, and that IOCTL exists and does not pend', () => {
  for (const row of ioctlTable) {
    assert.is(row.pends, row.cancel !== null, row.name);
    if (row.cancel === null) continue;
    assert.not.ok(ioctls[row.cancel as keyof typeof ioctls].pends, row.name);
  }
  assert.is(ioctlTable.filter((row) => row.pends).length, 12);
});

test('three IOCTLs have structures of this package, and two have other structures for datagram endpoints', () => {
  const names = ioctlTable.filter((row) => !row.defined).map((row) => row.name);
  assert.equal(names, ['EP_LOOKUP', 'EP_MULTICAST_JOIN', 'EP_MULTICAST_LEAVE']);
  const forms = ioctlTable.flatMap(({ name, datagram }) =>
    datagram ? [[name, datagram.input.name, datagram.output?.name]] : [],
  );
  assert.equal(forms, [
    ['EP_ACCEPT', 'WV_IO_EP_DATAGRAM_ACCEPT', undefined],
    ['EP_QUERY', 'WV_IO_EP_DATAGRAM_QUERY', 'WV_IO_EP_DATAGRAM_ATTRIBUTES'],
  ]);
});

test('IBAT has its two codes', () => {
  assert.equal(IbatCode, { IP_TO_PORT: 0x00222010, PATH: 0x00222018 });
  assert.equal(
    ibatTable.map((row) => [row.name, row.input?.size, row.output?.size, row.pends]),
    [
      ['IP_TO_PORT', 32, 24, false],
      ['PATH', 60, 64, false],
    ],
  );
  assert.is(ibatIoctls.PATH.code, 0x00222018);
  assert.is(ioctlRow(0x00222018)?.name, 'PATH');
  assert.is(constants.IBAT_VERSION, 6);
});

test('an unknown code has no row, and its name is its number', () => {
  for (const code of [0, 0x003be000, 0x003be0d8, 0x003be005, -1, Number.NaN])
    assert.is(ioctlRow(code), undefined);
  assert.is(ioctlName(0x003be0d8), '0x003BE0D8');
});

/** Enumerations and flags of the interface, written independently of the library's definitions. */
const expectedConstants: Record<string, Record<string, number>> = {
  WvAccess: {
    REMOTE_READ: 1,
    REMOTE_WRITE: 10,
    REMOTE_ATOMIC: 4,
    LOCAL_WRITE: 8,
    MW_BIND: 16,
    ZERO_BASED: 32,
    REMOTE_VIEW: 0x4000_0000,
    NON_CACHABLE: 2147483648,
    ALL: 0x1f,
  },
  WvSend: { IMMEDIATE: 1, FENCE: 2, SIGNALED: 4, SOLICITED: 8, INLINE: 16 },
  WvWc: { IMMEDIATE: 1, INVALIDATED: 2, GRH_VALID: 4, SOLICITED: 8 },
  WcStatus: {
    SUCCESS: 0,
    LOCAL_LENGTH_ERROR: 1,
    LOCAL_OP_ERROR: 2,
    LOCAL_PROTECTION_ERROR: 3,
    FLUSHED: 4,
    MW_BIND_ERROR: 5,
    REMOTE_ACCESS_ERROR: 6,
    REMOTE_OP_ERROR: 7,
    RNR_RETRY_ERROR: 8,
    TIMEOUT_RETRY_ERROR: 9,
    REMOTE_INVALID_REQUEST: 10,
    BAD_RESPONSE: 11,
    LOCAL_ACCESS_ERROR: 12,
    ERROR: 13,
  },
  WvOpcode: {
    SEND: 0,
    RDMA_WRITE: 1,
    RDMA_READ: 2,
    COMPARE_EXCHANGE: 3,
    FETCH_ADD: 4,
    BIND_WINDOW: 5,
    INVALIDATE: 6,
    FAST_REGISTER: 7,
    RECEIVE: 128,
    RECEIVE_RDMA_WRITE: 129,
  },
  QpType: { RC: 0, UC: 1, UD: 3 },
  RnrRetry: { FOR_EVER: 7, MOST: 6 },
  QpState: { RESET: 0, INIT: 1, RTR: 2, RTS: 3, SQD: 4, SQERROR: 5, ERROR: 6 },
  ApmState: { MIGRATED: 1, REARM: 2, ARMED: 3 },
  QpFlag: { SIGNAL_SENDS: 1, MEMORY_MANAGEMENT: 2 },
  QpAttr: {
    CAPABILITIES: 0x1,
    INITIATOR_DEPTH: 0x2,
    RESPONDER_RESOURCES: 0x4,
    CURRENT_STATE: 0x8,
    STATE: 0x10,
    PATH_MIG_STATE: 0x20,
    DESTINATION_QPN: 0x40,
    QKEY: 0x80,
    SEND_PSN: 0x100,
    RECEIVE_PSN: 0x200,
    FLAGS: 0x400,
    ACCESS_FLAGS: 0x800,
    AV: 0x1000,
    ALTERNATE_AV: 0x2000,
    PORT_NUMBER: 0x4000,
    PKEY_INDEX: 0x8000,
    ACK_TIMEOUT: 0x10000,
    RNR_NAK_TIMEOUT: 0x20000,
    ERROR_RETRY_COUNT: 0x40000,
    RNR_RETRY_COUNT: 0x80000,
  },
  CqNotifyType: { ERROR: 0, NEXT_COMPLETION: 1, SOLICITED: 2 },
  EpType: { CONNECT: 0x106, DATAGRAM: 0x111 },
  IpProtocol: { TCP: 6, UDP: 17 },
  WvDatagram: { QKEY: 0x01234567, MULTICAST_QPN: 0xffffff },
  EpOption: { ROUTE: 1, KEEP_QP: 0x8000_0001, PARTITION: 0x8000_0002 },
  WvEvent: { ERROR: 1, STATE: 2, ADDRESS: 4, LINK_ADDRESS: 8, PARTITION: 16, MANAGEMENT: 32 },
  DeviceType: { UNKNOWN: 0, INFINIBAND: 1, IWARP: 2 },
  AtomicCapability: { NONE: 0, DEVICE: 1, NODE: 2 },
  PortState: { NOP: 0, DOWN: 1, INIT: 2, ARMED: 3, ACTIVE: 4, ACTIVE_DEFER: 5 },
  PortTransport: { IB: 0, IWARP: 1, RDMAOE: 2 },
  WvCapability: {
    RESIZE_MAX_WR: 0x1,
    BAD_PKEY_COUNTER: 0x2,
    BAD_QKEY_COUNTER: 0x4,
    PATH_MIGRATION: 0x10,
    CHANGE_PHYSICAL_PORT: 0x20,
    AH_PORT_CHECKING: 0x40,
    QP_STATE_MODIFIER: 0x80,
    SHUTDOWN_PORT: 0x100,
    INIT_TYPE: 0x200,
    PORT_ACTIVE_EVENT: 0x400,
    SYSTEM_IMAGE_GUID: 0x800,
    RC_RNR_NAK_GENERATION: 0x1000,
    SRQ_RESIZE: 0x2000,
    BATCH_NOTIFY_CQ: 0x4000,
    MEM_MGT_EXTENSIONS: 1 << 21,
    FIXED_CQ: 1 << 30,
    IN_ORDER_DMA: 1 << 28,
    LOOPBACK: 1 << 29,
  },
  AddressFamily: { IPV4: 2, IPV6: 23 },
  Capacity: {
    CONNECT_DATA: 56,
    REP_DATA: 196,
    REJ_DATA: 148,
    LIBRARY_NAME: 32,
    EP_CREATE_IDS: 16,
    LOOKUP_DATA: 180,
    LOOKUP_REPLY_DATA: 136,
  },
};

test('enumerations and flags have the numbers of the interface', () => {
  const { IBAT_VERSION: _, DEFAULT_PKEY, ...actual } = constants;
  assert.is(DEFAULT_PKEY, 0xffff);
  assert.equal(actual as Record<string, Record<string, number>>, expectedConstants);
});

test.run();
