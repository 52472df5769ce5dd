/** `networkdirect/winverbs`: the error of every function, method and option for wrong arguments and in wrong states. */
import { constants } from 'node:buffer';
import { suite } from 'uvu';
import * as wv from '../../winverbs/index.js';
import { complete, doorsOf, type ErrorRows, provoke, untyped } from '../helpers/error-rows.js';

const test = suite('errors of networkdirect/winverbs');

const HOST = '127.0.0.1';
const U8 = new Uint8Array(3);
const { RemoteMemory, WvAccess, WvSend } = wv;
const { SIGNALED } = WvSend;
const api = untyped(wv);

const provider = untyped(wv.openProvider());
const { deviceGuid } = provider.translateAddress!(HOST) as wv.WvDeviceAddress;
const device = untyped(provider.openDevice!(deviceGuid));
const { gidTableLength } = device.queryPort!(1) as wv.WvPortAttributes;
const cq = untyped(device.createCompletionQueue!(8));
const pd = untyped(device.allocateProtectionDomain!());
const create = { sendCq: cq, receiveCq: cq, sendDepth: 4, sendSge: 2, receiveDepth: 4, receiveSge: 2 };
const qp = untyped(pd.createConnectQueuePair!({ ...create, memoryManagement: true }));
const datagrams = untyped(pd.createDatagramQueuePair!(create));
const started = untyped(pd.createDatagramQueuePair!(create));
started.start!(1);
const srq = untyped(pd.createSharedReceiveQueue!(4, 1));
const region = pd.registerMemory!(new Uint8Array(64), WvAccess.LOCAL_WRITE | WvAccess.MW_BIND);
const window = untyped(pd.allocateMemoryWindow!());
const fast = untyped(pd.allocateFastRegion!(4096));
const handle = untyped(pd.createAddressHandle!({ sourceGid: HOST, destinationGid: HOST }));
const remote = new RemoteMemory({ address: 0n, rkey: 1 });
const sge = { region, offset: 0, length: 4 };
const address = { family: 4, address: HOST, port: 0 };
const peer = { ...address, port: 1 };
const endpoint = untyped(provider.createConnectEndpoint!());
const bound = untyped(provider.createConnectEndpoint!());
bound.bindAddress!(address);
const datagramEndpoint = untyped(provider.createDatagramEndpoint!());
datagramEndpoint.bindAddress!(address);
const unboundDatagrams = untyped(provider.createDatagramEndpoint!());
const released = untyped(pd.createConnectQueuePair!(create));
released.release!();
const claim = untyped(wv.claimLocalName('errors-winverbs'));

test.after(() => {
  for (const one of [claim, unboundDatagrams, datagramEndpoint, bound, endpoint, handle, fast, window])
    one.release!();
  pd.deregisterMemory!(region);
  for (const one of [srq, started, datagrams, qp, cq, pd, device, provider]) one.release!();
});

const rows: ErrorRows = {
  openProvider: [
    [
      () => api.openProvider!('x'),
      'INVALID_PARAMETER',
      "\\\\.\\WinVerbs: `options` must be an object with cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 'x'.",
    ],
    [
      () => api.openProvider!({ keepalive: 5 }),
      'INVALID_PARAMETER',
      "\\\\.\\WinVerbs: `options` must contain only cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 'keepalive'.",
    ],
  ],
  'KernelOptionsInput.cm': [
    [
      () => api.openProvider!({ cm: 5 }),
      'INVALID_PARAMETER',
      '\\\\.\\WinVerbs: `cm` must be an object with responseTimeoutCode, maxRetries, timewaitMs, mraServiceTimeoutCode; got 5.',
    ],
  ],
  'KernelOptionsInput.rc': [
    [
      () => api.openProvider!({ rc: { trafficClass: 2 } }),
      'INVALID_PARAMETER',
      '\\\\.\\WinVerbs: `rc.trafficClass` must be a multiple of 4 from 0 to 252, a DSCP shifted left by two; got 2.',
    ],
  ],
  'KernelOptionsInput.faults': [
    [
      () => api.openProvider!({ faults: { dropMads: { 15: 1 } } }),
      'INVALID_PARAMETER',
      "\\\\.\\WinVerbs: `faults.dropMads` must contain only numbers of CM attributes as keys, from 16 (REQ) to 26 (APR); got '15'.",
    ],
  ],
  'WvUnknown.queryInterface': [
    [
      () => provider.queryInterface!('IWVDevice'),
      'NOT_SUPPORTED',
      "`name` must be an interface of this provider (IUnknown, IWVProvider); got 'IWVDevice'.",
    ],
  ],
  'WvUnknown.addRef': [
    [
      () => released.addRef!(),
      'INVALID_HANDLE',
      'This queue pair was released. Use it before its last release(), or keep a reference with addRef().',
    ],
  ],
  'WvOverlappedObject.getOverlappedResult': [
    [
      () => cq.getOverlappedResult!({}),
      'INVALID_PARAMETER',
      '`request` must be an Overlapped; got an object.',
    ],
  ],
  'WvOverlappedObject.cancelOverlappedRequests': [
    [
      () => released.cancelOverlappedRequests!(),
      'INVALID_HANDLE',
      'This queue pair was released. Use it before its last release(), or keep a reference with addRef().',
    ],
  ],
  'IWVProvider.notifyDeviceChange': [
    [
      () => provider.notifyDeviceChange!(-1),
      'INVALID_PARAMETER',
      '`known` must be an integer from 0 to 4294967295; got -1.',
    ],
  ],
  'IWVProvider.queryDevice': [
    [
      () => provider.queryDevice!(5),
      'INVALID_PARAMETER',
      '`guid` must be a 64-bit bigint, as queryDeviceList() returns; got 5.',
    ],
    [() => provider.queryDevice!(5n), 'NO_SUCH_DEVICE', '`guid` must be one of queryDeviceList(); got 0x5.'],
  ],
  'IWVProvider.translateAddress': [
    [
      () => provider.translateAddress!('x'),
      'INVALID_ADDRESS',
      "`address` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 'x'.",
    ],
    [
      () => provider.translateAddress!({ family: 6, address: HOST, port: 0 }),
      'INVALID_ADDRESS',
      "`address` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got { family: 6, address: '127.0.0.1', port: 0 }.",
    ],
    [
      () => provider.translateAddress!('127.0.0.1:70000'),
      'INVALID_ADDRESS',
      "The port of '127.0.0.1:70000' must be an integer from 0 to 65535; got 70000.",
    ],
    [
      () => provider.translateAddress!('fe80::1%nosuch'),
      'INVALID_ADDRESS',
      "'fe80::1%nosuch' is not a valid address: this host has no interface 'nosuch' with an IPv6 link-local address.",
    ],
    [
      () => provider.translateAddress!('192.0.2.1'),
      'NOT_FOUND',
      'No device of this host has the address 192.0.2.1.',
    ],
  ],
  'IWVProvider.resolvePath': [
    [
      () => provider.resolvePath!(5),
      'INVALID_ADDRESS',
      "`remote` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 5.",
    ],
    [
      () => provider.resolvePath!(HOST, null),
      'INVALID_ADDRESS',
      "`local` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got null.",
    ],
    [
      () => provider.resolvePath!('239.1.2.3'),
      'INVALID_PARAMETER',
      '`local` must be an address of the interface to use, of the same family, because 239.1.2.3 is a multicast group; got undefined.',
    ],
  ],
  'IWVProvider.openDevice': [
    [
      () => provider.openDevice!(undefined),
      'INVALID_PARAMETER',
      '`guid` must be a 64-bit bigint, as queryDeviceList() returns; got undefined.',
    ],
    [() => provider.openDevice!(7n), 'NO_SUCH_DEVICE', '`guid` must be one of queryDeviceList(); got 0x7.'],
  ],
  'IWVProvider.createConnectEndpoint': [
    [
      () => provider.createConnectEndpoint!(256),
      'INVALID_PARAMETER',
      '`protocol` must be an integer from 0 to 255; got 256.',
    ],
    [
      () => provider.createConnectEndpoint!(17),
      'NOT_SUPPORTED',
      '`protocol` must not be 17 (UDP), which has no connections. Use createDatagramEndpoint(), or another protocol.',
    ],
  ],
  'IWVDevice.queryPort': [
    [() => device.queryPort!(0), 'INVALID_PARAMETER', '`port` must be an integer from 1 to 255; got 0.'],
    [() => device.queryPort!(5), 'INVALID_PORT_HANDLE', 'DEVICE_PORT_QUERY: `port` must be 1; got 5.'],
  ],
  'IWVDevice.queryGid': [
    [
      () => device.queryGid!(1, 99),
      'INVALID_PARAMETER_2',
      `\`index\` must be below the ${gidTableLength} GID entries of port 1; got 99.`,
    ],
  ],
  'IWVDevice.findGid': [
    [
      () => device.findGid!(1, U8),
      'INVALID_PARAMETER',
      '`gid` must be a GID of 16 bytes or an IP address as text; got 3 bytes.',
    ],
    [
      () => device.findGid!(1, new Uint8Array(16)),
      'INVALID_ADDRESS',
      'Port 1 does not have the GID 00000000000000000000000000000000.',
    ],
  ],
  'IWVDevice.queryPkey': [
    [
      () => device.queryPkey!(1, -1),
      'INVALID_PARAMETER_2',
      '`index` must be below the 1 P_Key entries of port 1; got -1.',
    ],
  ],
  'IWVDevice.findPkey': [
    [() => device.findPkey!(1, 'x'), 'INVALID_PARAMETER', "`pkey` must be a 16-bit number; got 'x'."],
    [() => device.findPkey!(1, 5), 'INVALID_ADDRESS', 'Port 1 does not have the P_Key 0x5.'],
  ],
  'IWVDevice.createCompletionQueue': [
    [
      () => device.createCompletionQueue!(0),
      'INVALID_PARAMETER',
      "`entries` must be an integer from 1 to the device's `maxCqEntries`; got 0.",
    ],
  ],
  'IWVDevice.notify': [
    [() => device.notify!('x'), 'INVALID_PARAMETER', "`port` must be an integer from 1 to 255; got 'x'."],
  ],
  'IWVCompletionQueue.resize': [
    [
      () => cq.resize!(1.5),
      'INVALID_PARAMETER',
      "`entries` must be an integer from 1 to the device's `maxCqEntries`; got 1.5.",
    ],
  ],
  'IWVCompletionQueue.poll': [
    [
      () => cq.poll!(5),
      'INVALID_PARAMETER',
      '`completions` must be an array; got a number. Pass the maximum number of completions as `n`.',
    ],
    [() => cq.poll!([], 'x'), 'INVALID_PARAMETER', "`n` must be an integer from 0 to 4294967295; got 'x'."],
  ],
  'IWVCompletionQueue.notify': [
    [
      () => cq.notify!('all'),
      'INVALID_PARAMETER',
      "`type` must be 'any', 'solicited' or 'errors'; got 'all'.",
    ],
  ],
  'IWVCompletionQueue.batchNotify': [
    [
      () => cq.batchNotify!(99),
      'INVALID_PARAMETER',
      "`n` must be an integer from 1 to the queue's 8 entries; got 99.",
    ],
  ],
  'IWVProtectionDomain.registerMemory': [
    [
      () => pd.registerMemory!('x', 8),
      'INVALID_PARAMETER',
      '`buffer` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got a string.',
    ],
    [() => pd.registerMemory!(new Uint8Array(0), 8), 'INVALID_PARAMETER', '`buffer` must not be empty.'],
    [
      () => pd.registerMemory!(U8, 'x'),
      'INVALID_PARAMETER',
      "`access` must be an OR of WvAccess values; got 'x'.",
    ],
    [
      () => pd.registerMemory!(U8, 2 ** 53),
      'INVALID_PARAMETER',
      '`access` must be an OR of WvAccess values; got 9007199254740992.',
    ],
    [
      () => pd.registerMemory!(U8, WvAccess.REMOTE_ATOMIC),
      'INVALID_PARAMETER',
      '`access` must include LOCAL_WRITE (0x8) for peers to change the memory; got 0x4. Use 0xc.',
    ],
    [
      () => pd.registerMemory!(U8, WvAccess.REMOTE_VIEW | WvAccess.REMOTE_READ),
      'INVALID_PARAMETER',
      '`buffer` must be memory from allocate() for peers to map it (REMOTE_VIEW); got other memory.',
    ],
  ],
  'IWVProtectionDomain.registerMemoryOverlapped': [
    [
      () => pd.registerMemoryOverlapped!(5, 8),
      'INVALID_PARAMETER',
      '`buffer` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got a number.',
    ],
  ],
  'IWVProtectionDomain.deregisterMemory': [
    [
      () => pd.deregisterMemory!({}),
      'INVALID_PARAMETER',
      '`region` must be registered in this protection domain; got an object.',
    ],
  ],
  'IWVProtectionDomain.deregisterMemoryOverlapped': [
    [
      () => pd.deregisterMemoryOverlapped!(null),
      'INVALID_PARAMETER',
      '`region` must be registered in this protection domain; got null.',
    ],
  ],
  'IWVProtectionDomain.allocateFastRegion': [
    [
      () => pd.allocateFastRegion!(0),
      'INVALID_PARAMETER',
      "`maxLength` must be an integer from 1 to the device's `maxMrSize`; got 0.",
    ],
  ],
  'IWVProtectionDomain.createSharedReceiveQueue': [
    [
      () => pd.createSharedReceiveQueue!(0, 1),
      'INVALID_PARAMETER',
      "`maxWr` must be an integer from 1 to the device's `maxSrqWr`; got 0.",
    ],
    [
      () => pd.createSharedReceiveQueue!(4, 'x'),
      'INVALID_PARAMETER',
      "`maxSge` must be an integer from 0 to the device's `maxSrqSge`; got 'x'.",
    ],
    [
      () => pd.createSharedReceiveQueue!(4, 1, 5),
      'INVALID_PARAMETER',
      '`srqLimit` must be an integer from 0 (no event) to `maxWr` (4); got 5.',
    ],
  ],
  'IWVProtectionDomain.createConnectQueuePair': [
    [
      () => pd.createConnectQueuePair!(5),
      'INVALID_PARAMETER',
      '`create` must be an object with sendCq, receiveCq, sendDepth, sendSge, receiveDepth and receiveSge; got 5.',
    ],
  ],
  'IWVProtectionDomain.createDatagramQueuePair': [
    [
      () => pd.createDatagramQueuePair!(null),
      'INVALID_PARAMETER',
      '`create` must be an object with sendCq, receiveCq, sendDepth, sendSge, receiveDepth and receiveSge; got null.',
    ],
  ],
  'WvQpCreate.sendCq': [
    [
      () => pd.createConnectQueuePair!({ ...create, sendCq: {} }),
      'INVALID_PARAMETER',
      "`sendCq` must be a completion queue of this protection domain's device; got an object.",
    ],
  ],
  'WvQpCreate.receiveCq': [
    [
      () => pd.createConnectQueuePair!({ ...create, receiveCq: undefined }),
      'INVALID_PARAMETER',
      "`receiveCq` must be a completion queue of this protection domain's device; got undefined.",
    ],
  ],
  'WvQpCreate.srq': [
    [
      () => pd.createConnectQueuePair!({ ...create, srq: cq }),
      'INVALID_PARAMETER',
      "`srq` must be a shared receive queue of this protection domain's device; got an object.",
    ],
  ],
  'WvQpCreate.sendDepth': [
    [
      () => pd.createConnectQueuePair!({ ...create, sendDepth: -1 }),
      'INVALID_PARAMETER',
      'QP_CREATE: `sendDepth` must be an integer from 0 to 16384; got -1.',
    ],
  ],
  'WvQpCreate.sendSge': [
    [
      () => pd.createConnectQueuePair!({ ...create, sendSge: 99 }),
      'INVALID_PARAMETER',
      'QP_CREATE: `sendSge` must be an integer from 0 to 32; got 99.',
    ],
  ],
  'WvQpCreate.receiveDepth': [
    [
      () => pd.createConnectQueuePair!({ ...create, receiveDepth: 'x' }),
      'INVALID_PARAMETER',
      "QP_CREATE: `receiveDepth` must be an integer from 0 to 16384; got 'x'.",
    ],
  ],
  'WvQpCreate.receiveSge': [
    [
      () => pd.createConnectQueuePair!({ ...create, receiveSge: {} }),
      'INVALID_PARAMETER',
      'QP_CREATE: `receiveSge` must be an integer from 0 to 32; got an object.',
    ],
  ],
  'WvQpCreate.maxInlineSend': [
    [
      () => pd.createConnectQueuePair!({ ...create, maxInlineSend: 1e9 }),
      'INVALID_PARAMETER',
      'QP_CREATE: `maxInlineSend` must be an integer from 0 to 1024; got 1000000000.',
    ],
  ],
  'WvQpCreate.initiatorDepth': [
    [
      () => pd.createConnectQueuePair!({ ...create, initiatorDepth: 999 }),
      'INSUFFICIENT_RESOURCES',
      'QP_CREATE: `initiatorDepth` must be an integer from 0 to 128; got 999.',
    ],
  ],
  'WvQpCreate.responderResources': [
    [
      () => pd.createConnectQueuePair!({ ...create, responderResources: -1 }),
      'INVALID_PARAMETER',
      'QP_CREATE: `responderResources` must be an integer from 0 to 128; got -1.',
    ],
  ],
  'WvQpCreate.signalSends': [
    [
      () => pd.createConnectQueuePair!({ ...create, signalSends: 1 }),
      'INVALID_PARAMETER',
      '`signalSends` must be a boolean; got 1.',
    ],
  ],
  'WvQpCreate.memoryManagement': [
    [
      () => pd.createConnectQueuePair!({ ...create, memoryManagement: 'x' }),
      'INVALID_PARAMETER',
      "`memoryManagement` must be a boolean; got 'x'.",
    ],
  ],
  'WvQpCreate.type': [
    [
      () => pd.createConnectQueuePair!({ ...create, type: 9 }),
      'INVALID_PARAMETER',
      '`type` must be RC (0) or UC (1); got 9.',
    ],
  ],
  'IWVProtectionDomain.createAddressHandle': [
    [
      () => pd.createAddressHandle!(5),
      'INVALID_PARAMETER',
      '`vector` must be an object with sourceGid and destinationGid; got 5.',
    ],
    [
      () => pd.createAddressHandle!({ sourceGid: 5, destinationGid: HOST }),
      'INVALID_PARAMETER',
      '`sourceGid` must be a GID of 16 bytes or an IP address as text; got 5.',
    ],
    [
      () => pd.createAddressHandle!({ sourceGid: HOST, destinationGid: 'x' }),
      'INVALID_ADDRESS',
      "`destinationGid` must be an IP address, such as '192.0.2.1', '239.1.2.3' or '2001:db8::1'; got 'x'.",
    ],
    [
      () => pd.createAddressHandle!({ sourceGid: HOST, destinationGid: HOST, flowLabel: -1 }),
      'INVALID_PARAMETER',
      '`flowLabel` must be an integer from 0 to 1048575; got -1.',
    ],
    [
      () => pd.createAddressHandle!({ sourceGid: HOST, destinationGid: HOST, flowLabel: 2 ** 20 }),
      'INVALID_PARAMETER',
      '`flowLabel` must be an integer from 0 to 1048575; got 1048576.',
    ],
    [
      () => pd.createAddressHandle!({ sourceGid: HOST, destinationGid: HOST, trafficClass: 256 }),
      'INVALID_PARAMETER',
      '`trafficClass` must be an integer from 0 to 255; got 256.',
    ],
    [
      () => pd.createAddressHandle!({ sourceGid: HOST, destinationGid: HOST, hopLimit: 'x' }),
      'INVALID_PARAMETER',
      "`hopLimit` must be an integer from 0 to 255; got 'x'.",
    ],
    [
      () => pd.createAddressHandle!({ sourceGid: HOST, destinationGid: HOST, portNumber: 5 }),
      'INVALID_PORT_HANDLE',
      'AH_CREATE: `portNumber` must be 1; got 5.',
    ],
  ],
  'IWVSharedReceiveQueue.modify': [
    [
      () => srq.modify!(0, 0),
      'INVALID_PARAMETER',
      "`maxWr` must be an integer from 1 to the device's `maxSrqWr`; got 0.",
    ],
    [
      () => srq.modify!(4, 5),
      'INVALID_PARAMETER',
      '`limit` must be an integer from 0 (no event) to `maxWr` (4); got 5.',
    ],
  ],
  'IWVSharedReceiveQueue.postReceive': [
    [
      () => srq.postReceive!(0, 5),
      'INVALID_PARAMETER',
      'PostReceive: `sgl` must be an array of { region, offset, length }, even for a single SGE; got 5.',
    ],
    [
      () => srq.postReceive!(0, [5]),
      'INVALID_PARAMETER',
      'PostReceive: `sgl[0]` must be { region, offset, length }, with the result of registerMemory() as region; got 5.',
    ],
    [
      () => srq.postReceive!(0, [{ ...sge, region: {} }]),
      'INVALID_PARAMETER',
      'PostReceive: The region of SGE 0 must be the result of registerMemory(); got an object.',
    ],
    [
      () => srq.postReceive!(0, null),
      'INVALID_PARAMETER',
      'PostReceive: `sgl` must be an array of { region, offset, length }; got null.',
    ],
  ],
  'IWVQueuePair.query': [
    [
      () => released.query!(),
      'INVALID_HANDLE',
      'This queue pair was released. Use it before its last release(), or keep a reference with addRef().',
    ],
  ],
  'IWVQueuePair.modify': [
    [
      () => qp.modify!(5, 1),
      'INVALID_PARAMETER',
      '`attributes` must be an object with attributes of the queue pair, such as { qpState: 6 }; got 5.',
    ],
    [() => qp.modify!({}, 'x'), 'INVALID_PARAMETER', "`options` must be an OR of QpAttr values; got 'x'."],
    [
      () => qp.modify!({ qpState: 99 }, wv.QpAttr.STATE),
      'INVALID_PARAMETER',
      'QP_MODIFY: `qpState` must be a value of QpState; got 99.',
    ],
    [
      () => qp.modify!({ trafficClass: 256 }, wv.QpAttr.STATE),
      'INVALID_PARAMETER',
      '`trafficClass` must be an integer from 0 to 255; got 256.',
    ],
    [
      () => qp.modify!({ accessFlags: 2 ** 20 }, wv.QpAttr.ACCESS_FLAGS),
      'INVALID_PARAMETER',
      '`accessFlags` must contain only bits of 0x1f; got 0x100000.',
    ],
    [
      () => qp.modify!({ sendPsn: -1 }, wv.QpAttr.STATE),
      'INVALID_PARAMETER',
      'QP_MODIFY: `sendPsn` must be an integer from 0 to 16777215; got -1.',
    ],
    [
      () => qp.modify!({ sourceGid: 5 }, wv.QpAttr.STATE),
      'INVALID_PARAMETER',
      'QP_MODIFY: `sourceGid` must be a Uint8Array of at most 16 bytes; got 5.',
    ],
  ],
  'IWVQueuePair.modifyOverlapped': [
    [
      () => qp.modifyOverlapped!({}, 7n),
      'INVALID_PARAMETER',
      '`options` must be an OR of QpAttr values; got 7n.',
    ],
  ],
  'IWVQueuePair.postReceive': [
    [
      () => qp.postReceive!(0, [sge]),
      'INVALID_DEVICE_STATE',
      'PostReceive: The queue pair is in RESET; receives can be posted from INIT on.',
    ],
  ],
  'IWVQueuePair.postSend': [
    [() => qp.postSend!(5), 'INVALID_PARAMETER', '`requests` must be an array; got 5.'],
    [
      () => qp.postSend!([5]),
      'INVALID_PARAMETER',
      'Request 1 of 1: `request` must be an object with opcode and sgl, both optional; got 5.',
    ],
    [
      () => qp.postSend!([{ opcode: 99 }]),
      'INVALID_PARAMETER',
      'Request 1 of 1: `opcode` must be an integer from 0 to 4; got 99.',
    ],
    [
      () => qp.postSend!([{ flags: 7n }]),
      'INVALID_PARAMETER',
      'Request 1 of 1: `flags` must be a 32-bit number; got 7n.',
    ],
  ],
  'IWVConnectQueuePair.send': [
    [
      () => qp.send!(0, [sge], SIGNALED),
      'INVALID_DEVICE_STATE',
      'PostSend: The queue pair is not ready to send yet; send requests can be posted from RTS on.',
    ],
    [() => qp.send!(0, [sge], 7n), 'INVALID_PARAMETER', '`flags` must be a 32-bit number; got 7n.'],
    [
      () => released.send!(0, [sge], SIGNALED),
      'INVALID_HANDLE',
      'This queue pair was released. Use it before its last release(), or keep a reference with addRef().',
    ],
  ],
  'IWVConnectQueuePair.sendAndInvalidate': [
    [
      () => qp.sendAndInvalidate!(0, [sge], 'x', 1),
      'INVALID_PARAMETER',
      "`flags` must be a 32-bit number; got 'x'.",
    ],
  ],
  'IWVConnectQueuePair.read': [
    [
      () => qp.read!(0, [sge], SIGNALED, 5, 0),
      'INVALID_PARAMETER',
      '`remote` must be a RemoteMemory; got 5. Create one with new RemoteMemory().',
    ],
  ],
  'IWVConnectQueuePair.write': [
    [
      () => qp.write!(0, [sge], SIGNALED, null, 0),
      'INVALID_PARAMETER',
      '`remote` must be a RemoteMemory; got null. Create one with new RemoteMemory().',
    ],
  ],
  'IWVConnectQueuePair.direct': [
    [
      () => qp.direct!(9, U8, remote, 0),
      'INVALID_PARAMETER',
      '`operation` must be an integer from 0 to 3; got 9.',
    ],
    [() => qp.direct!(0, 'x', remote, 0), 'INVALID_PARAMETER', '`bytes` must be a Uint8Array; got a string.'],
    [
      () => qp.direct!(0, U8, {}, 0),
      'INVALID_PARAMETER',
      '`remote` must be a RemoteMemory; got an object. Create one with new RemoteMemory().',
    ],
    [
      () => qp.direct!(0, U8, remote, -1),
      'INVALID_PARAMETER',
      '`offset` must be a non-negative integer; got -1.',
    ],
  ],
  'IWVConnectQueuePair.view': [
    [
      () => qp.view!(remote, 0, 0),
      'INVALID_PARAMETER',
      '`offset` and `length` must be integers, at least 0 and 1; got 0 and 0.',
    ],
  ],
  'IWVConnectQueuePair.compareExchange': [
    [
      () => qp.compareExchange!(0, [sge], SIGNALED, 1n, 2n, remote, 0),
      'INVALID_PARAMETER',
      '`sge` must be { region, offset, length }, with the result of registerMemory() as region; got an array.',
    ],
    [
      () => qp.compareExchange!(0, null, SIGNALED, 1n, 2n, remote, 0),
      'INVALID_PARAMETER',
      '`sge` must be { region, offset, length }, with the result of registerMemory() as region; got null.',
    ],
    [
      () => qp.compareExchange!(0, sge, SIGNALED, 1, 2n, remote, 0),
      'INVALID_PARAMETER',
      '`compare` must be a bigint from 0 to 2^64 - 1; got 1.',
    ],
    [
      () => qp.compareExchange!(0, sge, SIGNALED, 1n, -2n, remote, 0),
      'INVALID_PARAMETER',
      '`exchange` must be a bigint from 0 to 2^64 - 1; got -2n.',
    ],
  ],
  'IWVConnectQueuePair.fetchAdd': [
    [
      () => qp.fetchAdd!(0, sge, SIGNALED, 'x', remote, 0),
      'INVALID_PARAMETER',
      "`value` must be a bigint from 0 to 2^64 - 1; got 'x'.",
    ],
  ],
  'IWVConnectQueuePair.bindMemoryWindow': [
    [
      () => qp.bindMemoryWindow!(5, 0, region, 0, 8, 0, SIGNALED),
      'INVALID_PARAMETER',
      "`window` must be a memory window of the queue pair's protection domain; got 5.",
    ],
    [
      () => qp.bindMemoryWindow!(window, 0, 5, 0, 8, 0, SIGNALED),
      'INVALID_PARAMETER',
      '`region` must be an object with lkey, address and length; got 5.',
    ],
    [
      () => qp.bindMemoryWindow!(window, 0, {}, 0, 8, 0, SIGNALED),
      'INVALID_PARAMETER',
      '`region` must be a region returned by registerMemory(); got an object.',
    ],
    [
      () => qp.bindMemoryWindow!(window, 0, region, -1, 8, 0, SIGNALED),
      'INVALID_PARAMETER',
      '`offset` and `length` must be non-negative integers; got -1 and 8.',
    ],
    [
      () => qp.bindMemoryWindow!(window, 0, region, 60, 8, 0, SIGNALED),
      'INVALID_PARAMETER',
      "`offset` + `length` must be at most the region's 64 bytes; got 60 + 8.",
    ],
    [
      () => qp.bindMemoryWindow!(window, 0, region, 0, 8, 'x', SIGNALED),
      'INVALID_PARAMETER',
      "`access` of a window must be an OR of REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC and ZERO_BASED (0x2f); got 'x'.",
    ],
    [
      () => qp.bindMemoryWindow!(window, 0, region, 0, 8, 0, 'x'),
      'INVALID_PARAMETER',
      "`flags` must be a 32-bit number; got 'x'.",
    ],
  ],
  'IWVConnectQueuePair.invalidateMemoryWindow': [
    [
      () => qp.invalidateMemoryWindow!({}, 0, SIGNALED),
      'INVALID_PARAMETER',
      "`window` must be a memory window of the queue pair's protection domain; got an object.",
    ],
    [
      () => qp.invalidateMemoryWindow!(window, 0, 'x'),
      'INVALID_PARAMETER',
      "`flags` must be a 32-bit number; got 'x'.",
    ],
  ],
  'IWVConnectQueuePair.fastRegister': [
    [
      () => qp.fastRegister!(5, 0, sge, 0, SIGNALED),
      'INVALID_PARAMETER',
      "`region` must be created by allocateFastRegion() of the queue pair's protection domain; got 5.",
    ],
    [
      () => qp.fastRegister!(fast, 0, 5, 0, SIGNALED),
      'INVALID_PARAMETER',
      '`memory` must be { region, offset, length }, with the result of registerMemory() as region; got 5.',
    ],
    [
      () => qp.fastRegister!(fast, 0, sge, 'x', SIGNALED),
      'INVALID_PARAMETER',
      "`access` must be an OR of WvAccess values; got 'x'.",
    ],
    [
      () => qp.fastRegister!(fast, 0, sge, 0, SIGNALED, 256),
      'INVALID_PARAMETER',
      'PostSend: `keyByte` must be from 0 to 255, or -1 for the next one; got 256.',
    ],
  ],
  // A failed registration leaves nothing behind that its next request would have.
  'IWVConnectQueuePair.invalidateRegion': [
    [
      () => qp.invalidateRegion!(5, 0, SIGNALED),
      'INVALID_PARAMETER',
      "`region` must be created by allocateFastRegion() of the queue pair's protection domain; got 5.",
    ],
    [
      () => qp.invalidateRegion!(fast, 0, SIGNALED),
      'INVALID_DEVICE_STATE',
      'PostSend: The queue pair is not ready to send yet; send requests can be posted from RTS on.',
    ],
  ],
  'new RemoteMemory': [
    [
      () => new RemoteMemory(5 as never),
      'INVALID_PARAMETER',
      '`memory` must be an object with address and rkey; got 5.',
    ],
    [
      () => new RemoteMemory({ address: -1n, rkey: 1 }),
      'INVALID_PARAMETER',
      '`address` must be a bigint from 0 to 2^64 - 1, or an integer below 2^53; got -1n.',
    ],
    [
      () => new RemoteMemory({ address: 0n, rkey: 1n as never }),
      'INVALID_PARAMETER',
      '`rkey` must be an unsigned 32-bit integer; got 1n.',
    ],
  ],
  'IWVDatagramQueuePair.start': [
    [
      () => datagrams.start!('x'),
      'INVALID_PARAMETER',
      "QP_MODIFY: `qkey` must be an integer from 0 to 4294967295; got 'x'.",
    ],
    [
      () => datagrams.start!(1, null),
      'INVALID_PARAMETER',
      '`options` must be an object with portNumber, pkeyIndex and sendPsn, all optional; got null.',
    ],
    [
      () => started.start!(1),
      'INVALID_DEVICE_STATE',
      'The queue pair must be in RESET or INIT before start(); it is in RTS.',
    ],
  ],
  'WvDatagramStart.portNumber': [
    [
      () => datagrams.start!(1, { portNumber: 5 }),
      'INVALID_PARAMETER',
      'QP_MODIFY: `portNumber` must be 1; got 5.',
    ],
  ],
  'WvDatagramStart.pkeyIndex': [
    [
      () => datagrams.start!(1, { pkeyIndex: -1 }),
      'INVALID_PARAMETER',
      'QP_MODIFY: `pkeyIndex` must be an integer from 0 to 65535; got -1.',
    ],
  ],
  'WvDatagramStart.sendPsn': [
    [
      () => datagrams.start!(1, { sendPsn: 'x' }),
      'INVALID_PARAMETER',
      "QP_MODIFY: `sendPsn` must be an integer from 0 to 16777215; got 'x'.",
    ],
  ],
  'IWVDatagramQueuePair.send': [
    [
      () => started.send!(0, 5, sge, SIGNALED, 5, 1),
      'INVALID_PARAMETER',
      "`addressHandle` must be an address handle of the queue pair's protection domain; got 5.",
    ],
    [
      () => started.send!(0, handle, sge, SIGNALED, -1, 1),
      'INVALID_PARAMETER',
      'PostSend: `destinationQpn` must be an unsigned 24-bit integer; got -1.',
    ],
    [
      () => started.send!(0, handle, sge, SIGNALED, 5, 'x'),
      'INVALID_PARAMETER',
      "PostSend: `destinationQkey` must be an unsigned 32-bit integer; got 'x'.",
    ],
    [
      () => started.send!(0, handle, 5, SIGNALED, 5, 1),
      'INVALID_PARAMETER',
      '`sge` must be { region, offset, length }, with the result of registerMemory() as region; got 5.',
    ],
    [
      () => started.send!(0, handle, { ...sge, length: -1 }, SIGNALED, 5, 1),
      'INVALID_PARAMETER',
      'PostSend: The length of SGE 0 must be a non-negative whole number of bytes within the memory; got -1.',
    ],
    [
      () => datagrams.send!(0, handle, sge, SIGNALED, 5, 1),
      'INVALID_DEVICE_STATE',
      'PostSend: The queue pair is not ready to send yet; send requests can be posted from RTS on.',
    ],
  ],
  'IWVDatagramQueuePair.sendMessage': [
    [
      () => started.sendMessage!(5),
      'INVALID_PARAMETER',
      '`message` must be an object with context, addressHandle, sgl, flags, destinationQpn and destinationQkey; got 5.',
    ],
  ],
  'IWVDatagramQueuePair.attachMulticast': [
    [
      () => started.attachMulticast!(5),
      'INVALID_PARAMETER',
      '`group` must be a GID of 16 bytes or an IP address as text; got 5.',
    ],
    [
      () => started.attachMulticast!('239.1.2.3', 'x'),
      'INVALID_PARAMETER',
      "`lid` must be an integer from 0 to 65535; got 'x'.",
    ],
  ],
  'IWVDatagramQueuePair.detachMulticast': [
    [
      () => started.detachMulticast!(U8),
      'INVALID_PARAMETER',
      '`group` must be a GID of 16 bytes or an IP address as text; got 3 bytes.',
    ],
  ],
  'IWVEndpoint.bindAddress': [
    [
      () => endpoint.bindAddress!(HOST.slice(1)),
      'NOT_FOUND',
      'No device of this host has the address 27.0.0.1.',
    ],
    [
      () => endpoint.bindAddress!(address, 5),
      'INVALID_PARAMETER',
      '`device` must be an object with deviceGuid, pkey and portNumber; got 5.',
    ],
    [
      () => endpoint.bindAddress!({ ...address, address: '192.0.2.1' }),
      'NOT_FOUND',
      'No device of this host has the address 192.0.2.1.',
    ],
    [
      () => bound.bindAddress!(address),
      'INVALID_DEVICE_STATE',
      'EP_BIND: The endpoint must not be bound or hold a request. Create another.',
    ],
  ],
  'IWVEndpoint.resolveRoute': [
    [
      () => endpoint.resolveRoute!(peer),
      'INVALID_DEVICE_STATE',
      'The endpoint must be bound before resolveRoute(); call bindAddress() first.',
    ],
    [
      () => bound.resolveRoute!(5),
      'INVALID_ADDRESS',
      "`peer` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 5.",
    ],
  ],
  'IWVEndpoint.modify': [
    [
      () => endpoint.modify!({ sourceGid: HOST, destinationGid: HOST }),
      'INVALID_DEVICE_STATE',
      'EP_MODIFY: The endpoint must be bound, without a connection, and must not be listening. Call bindAddress() first.',
    ],
    [() => bound.modify!(5), 'INVALID_PARAMETER', '`path` must be a path record; got 5.'],
    [
      () => bound.modify!({ sourceGid: HOST, destinationGid: HOST, mtu: 5 }),
      'INVALID_PARAMETER',
      "`mtu` must be one of 256, 512, 1024, 2048, 4096 bytes, or 0 for the port's; got 5.",
    ],
    [
      () => bound.modify!({ sourceGid: HOST, destinationGid: HOST, trafficClass: 2 }),
      'INVALID_PARAMETER',
      '`trafficClass` must be a DSCP shifted left by two, a multiple of 4; got 2. Use the option ecn for the ECN bits.',
    ],
  ],
  'IWVEndpoint.listen': [
    [
      () => bound.listen!(-1),
      'INVALID_PARAMETER',
      '`backlog` must be an integer from 0 to 4294967295; got -1.',
    ],
    [() => bound.listen!(1, 'x'), 'INVALID_PARAMETER', "`pkey` must be an integer from 0 to 65535; got 'x'."],
    [
      () => endpoint.listen!(1),
      'INVALID_DEVICE_STATE',
      'EP_LISTEN: The endpoint must be bound, without a route or a connection, and must not be listening. Call bindAddress() first.',
    ],
  ],
  'IWVEndpoint.reject': [
    [() => bound.reject!(5), 'INVALID_PARAMETER', '`privateData` must be a Uint8Array; got a number.'],
    [
      () => bound.reject!(new Uint8Array(500)),
      'INVALID_BUFFER_SIZE',
      '`privateData` must be at most 148 bytes; got 500.',
    ],
    [
      () => bound.reject!(),
      'INVALID_DEVICE_STATE',
      "EP_REJECT: The endpoint must hold a peer's request or reply. This call follows getRequest() or connect().",
    ],
  ],
  'IWVConnectEndpoint.getRequest': [
    [
      () => bound.getRequest!(endpoint),
      'INVALID_DEVICE_STATE',
      'EP_GET_REQUEST: The endpoint must be listening. Call listen() first.',
    ],
    [
      () => bound.getRequest!(5),
      'INVALID_PARAMETER',
      "`endpoint` must be of the listener's type and provider; got 5.",
    ],
  ],
  'IWVConnectEndpoint.connect': [
    [
      () => bound.connect!(5, peer, {}),
      'INVALID_PARAMETER',
      "`qp` must be a connect queue pair of the endpoint's provider; got 5.",
    ],
    [
      () => bound.connect!(qp, 5, {}),
      'INVALID_ADDRESS',
      "`peer` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 5.",
    ],
    [
      () => bound.connect!(qp, peer, 5),
      'INVALID_PARAMETER',
      '`param` must be an object with privateData, depths and counts, all optional; got 5.',
    ],
    [
      () => endpoint.connect!(qp, peer, {}),
      'INVALID_DEVICE_STATE',
      'EP_CONNECT: The endpoint must have a route and no connection, and `qp` must be in RESET or INIT. Call bindAddress() and resolveRoute() first.',
    ],
  ],
  'WvConnectParam.privateData': [
    [
      () => bound.connect!(qp, peer, { privateData: 'x' }),
      'INVALID_PARAMETER',
      '`privateData` must be a Uint8Array; got a string.',
    ],
    [
      () => bound.connect!(qp, peer, { privateData: new Uint8Array(57) }),
      'INVALID_BUFFER_SIZE',
      '`privateData` must be at most 56 bytes; got 57.',
    ],
  ],
  'WvConnectParam.responderResources': [
    [
      () => bound.connect!(qp, peer, { responderResources: -1 }),
      'INVALID_PARAMETER',
      '`responderResources` must be an integer from 0 to 4294967295; got -1.',
    ],
  ],
  'WvConnectParam.initiatorDepth': [
    [
      () => bound.connect!(qp, peer, { initiatorDepth: 'x' }),
      'INVALID_PARAMETER',
      "`initiatorDepth` must be an integer from 0 to 4294967295; got 'x'.",
    ],
  ],
  'WvConnectParam.retryCount': [
    [
      () => bound.connect!(qp, peer, { retryCount: 8 }),
      'INVALID_PARAMETER',
      '`retryCount` must be an integer from 0 to 7; got 8.',
    ],
  ],
  'WvConnectParam.rnrRetryCount': [
    [
      () => bound.connect!(qp, peer, { rnrRetryCount: 8 }),
      'INVALID_PARAMETER',
      '`rnrRetryCount` must be an integer from 0 to 7; got 8.',
    ],
  ],
  'IWVConnectEndpoint.accept': [
    [
      () => bound.accept!(5, {}),
      'INVALID_PARAMETER',
      "`qp` must be a connect queue pair of the endpoint's provider; got 5.",
    ],
    [
      () => bound.accept!(null, {}),
      'INVALID_PARAMETER',
      '`qp` must be a queue pair; got null. Only after connect() may it be null.',
    ],
    [
      () => bound.accept!(qp, {}),
      'INVALID_DEVICE_STATE',
      "EP_ACCEPT: The endpoint must hold a peer's request or reply, and a new `qp` must be in RESET or INIT. This call follows getRequest() or connect().",
    ],
  ],
  'IWVConnectEndpoint.disconnect': [
    [
      () => bound.disconnect!(),
      'INVALID_DEVICE_STATE',
      'The endpoint must have a connection to disconnect; it never had one.',
    ],
  ],
  'IWVConnectEndpoint.notifyDisconnect': [
    [
      () => bound.notifyDisconnect!(),
      'INVALID_DEVICE_STATE',
      'EP_DISCONNECT_NOTIFY: The endpoint must have a connection or be connecting. This call follows connect() or getRequest().',
    ],
  ],
  'IWVConnectEndpoint.keepQueuePairOnDisconnect': [
    [() => bound.keepQueuePairOnDisconnect!(1), 'INVALID_PARAMETER', '`keep` must be a boolean; got 1.'],
  ],
  'IWVDatagramEndpoint.getRequest': [
    [
      () => datagramEndpoint.getRequest!(bound),
      'INVALID_PARAMETER',
      "`endpoint` must be of the listener's type and provider; got an object.",
    ],
  ],
  'IWVDatagramEndpoint.lookup': [
    [
      () => datagramEndpoint.lookup!(5),
      'INVALID_ADDRESS',
      "`peer` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 5.",
    ],
    [
      () => datagramEndpoint.lookup!(peer, 'x'),
      'INVALID_PARAMETER',
      '`privateData` must be a Uint8Array; got a string.',
    ],
  ],
  'IWVDatagramEndpoint.accept': [
    [
      () => datagramEndpoint.accept!(5),
      'INVALID_PARAMETER',
      '`param` must be an object with qp, a datagram queue pair or its number; got 5.',
    ],
  ],
  'WvDatagramParam.qp': [
    [
      () => datagramEndpoint.accept!({ qp: 'x' }),
      'INVALID_PARAMETER',
      "`qp` must be a datagram queue pair of the endpoint's provider, or a queue pair number; got 'x'.",
    ],
    [
      () => datagramEndpoint.accept!({ qp: -1 }),
      'INVALID_PARAMETER',
      '`qp` must be a queue pair number from 2 to 16777214; got -1.',
    ],
  ],
  'WvDatagramParam.qkey': [
    [
      () => datagramEndpoint.accept!({ qp: started, qkey: -1 }),
      'INVALID_PARAMETER',
      '`qkey` must be an integer from 0 to 4294967295; got -1.',
    ],
  ],
  'WvDatagramParam.privateData': [
    [
      () => datagramEndpoint.accept!({ qp: started, privateData: 5 }),
      'INVALID_PARAMETER',
      '`privateData` must be a Uint8Array; got a number.',
    ],
  ],
  'IWVDatagramEndpoint.joinMulticast': [
    [
      () => unboundDatagrams.joinMulticast!({ ...address, address: '239.1.2.3' }),
      'INVALID_DEVICE_STATE',
      'EP_MULTICAST_JOIN: The endpoint must be bound. Call bindAddress() first.',
    ],
    [
      () => datagramEndpoint.joinMulticast!(5),
      'INVALID_ADDRESS',
      "`group` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 5.",
    ],
  ],
  'IWVDatagramEndpoint.leaveMulticast': [
    [
      () => datagramEndpoint.leaveMulticast!(null),
      'INVALID_ADDRESS',
      "`group` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got null.",
    ],
    [
      () => datagramEndpoint.leaveMulticast!({ ...address, address: '239.1.2.3' }),
      'NOT_FOUND',
      '`group` must be a joined group; got 239.1.2.3.',
    ],
  ],
  'IWVDatagramEndpoint.query': [
    [
      () => datagramEndpoint.query!(peer),
      'NOT_FOUND',
      '`peer` must be the peer of a lookup, or a joined group; got 127.0.0.1.',
    ],
    [
      () => datagramEndpoint.query!(5),
      'INVALID_ADDRESS',
      "`peer` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 5.",
    ],
  ],
  nextCompletion: [
    [() => api.nextCompletion!(5), 'INVALID_PARAMETER', '`cq` must be a completion queue; got 5.'],
    [
      () => api.nextCompletion!(cq, 5),
      'INVALID_PARAMETER',
      '`options` must be an object with signal; got 5.',
    ],
  ],
  firstCompletion: [
    [
      () => api.firstCompletion!([5]),
      'INVALID_PARAMETER',
      '`cqs` must contain only completion queues; got 5.',
    ],
  ],
  'WaitOptions.signal': [
    [
      () => api.nextCompletion!(cq, { signal: 5 }),
      'INVALID_PARAMETER',
      '`signal` must be an AbortSignal; got 5.',
    ],
  ],
  addressOf: [
    [
      () => api.addressOf!(5),
      'INVALID_PARAMETER',
      '`gid` must be a GID of 16 bytes or an IP address as text; got 5.',
    ],
  ],
  addressOfGid: [[() => api.addressOfGid!(U8), 'INVALID_PARAMETER', '`gid` must have 16 bytes; got 3.']],
  gidOf: [
    [
      () => api.gidOf!(U8),
      'INVALID_PARAMETER',
      '`address` must be a GID of 16 bytes or an IP address as text; got 3 bytes.',
    ],
    [
      () => api.gidOf!('x'),
      'INVALID_ADDRESS',
      "`address` must be an IP address, such as '192.0.2.1', '239.1.2.3' or '2001:db8::1'; got 'x'.",
    ],
  ],
  gidOfAddress: [[() => api.gidOfAddress!(5), 'INVALID_ADDRESS', '`address` must be a string; got 5.']],
  isMulticastGid: [[() => api.isMulticastGid!(5), 'INVALID_PARAMETER', '`gid` must be a Uint8Array; got 5.']],
  parseGrh: [
    [() => api.parseGrh!('x'), 'INVALID_PARAMETER', "`bytes` must be a Uint8Array; got 'x'."],
    [
      () => api.parseGrh!(U8),
      'INVALID_PARAMETER',
      '`bytes` must start with the 40 bytes of a GRH; got 3 bytes without an IP header.',
    ],
  ],
  replyAddressVector: [
    [() => api.replyAddressVector!(5), 'INVALID_PARAMETER', '`grh` must be a Uint8Array; got 5.'],
  ],
  parseSocketAddress: [
    [() => api.parseSocketAddress!(5), 'INVALID_ADDRESS', '`address` must be a string; got 5.'],
    [
      () => api.parseSocketAddress!('x'),
      'INVALID_ADDRESS',
      "'x' is not a valid address: it is neither IPv4 (192.0.2.1) nor IPv6 (2001:db8::1).",
    ],
  ],
  scopeIdOfAddress: [
    [
      () => api.scopeIdOfAddress!('x'),
      'INVALID_ADDRESS',
      "'x' is not a valid address: it is neither IPv4 (192.0.2.1) nor IPv6 (2001:db8::1).",
    ],
  ],
  registerUserVerbs: [
    [
      () => api.registerUserVerbs!(7n, () => ({})),
      'INVALID_PARAMETER',
      'registerUserVerbs: `library` must be 1 to 31 Latin-1 characters without spaces; got 7n.',
    ],
    [
      () => api.registerUserVerbs!('x', 5),
      'INVALID_PARAMETER',
      "registerUserVerbs: `make` must be a function that creates the provider 'x'; got 5.",
    ],
  ],
  allocate: [
    [
      () => api.allocate!('x'),
      'INVALID_PARAMETER',
      `allocate: \`bytes\` must be an integer from 1 to ${constants.MAX_LENGTH}; got 'x'.`,
    ],
  ],
  'AllocateOptions.shared': [
    [
      () => api.allocate!(8, { shared: {} }),
      'INVALID_PARAMETER',
      'allocate: `shared` must be a boolean; got an object.',
    ],
  ],
  claimLocalName: [
    [
      () => api.claimLocalName!(5),
      'INVALID_PARAMETER',
      'claimLocalName: `name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got 5.',
    ],
  ],
  'LocalNameClaim.publish': [
    [
      () => claim.publish!(0),
      'INVALID_PARAMETER',
      'publish: `port` must be an integer from 1 to 65535; got 0.',
    ],
  ],
  portsOfLocalName: [
    [
      () => api.portsOfLocalName!(''),
      'INVALID_PARAMETER',
      'portsOfLocalName: `name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got \'\'.',
    ],
  ],
};

provoke(test, rows);

test('each function, method and option has rows', () => {
  complete(doorsOf('networkdirect/winverbs'), rows, [
    [/^(?:WvUnknown|LocalNameClaim)\.release$/, 'without arguments, and releasing twice is permitted'],
    [/^(?:new )?Wv(?:Object|Overlapped)(?:\.|$)/, 'base classes, whose methods are those of WvUnknown'],
    [
      /^IWV\w+\.(?:getFileHandle|queryDeviceList|createDatagramEndpoint|allocate(?:ProtectionDomain|MemoryWindow))$/,
      'without arguments',
    ],
    [
      /^IWV(?:Device|ConnectEndpoint|SharedReceiveQueue)\.query$|^IWVCompletionQueue\.peek$/,
      'without arguments',
    ],
    [/^IWVSharedReceiveQueue\.notify$|^IWVQueuePair\.(?:start|submit)Batch$/, 'without arguments'],
    [/^WvQpCreate\.context$/, 'any value'],
    [/^requireUserVerbs$/, 'exported as a type only'],
    [/^(?:UserVerbs|Uvp\w+|ProviderDoors|OverlappedSource)\./, 'written by providers'],
    [
      /^(?:new (?:MemoryRegion|Overlapped|StatusError))$|^Overlapped\.|^GetResultOptions\./,
      'not created by programs',
    ],
    [/^RemoteMemory\./, 'of networkdirect/net, which has a class of the same name'],
    [
      /^status(?:Hex|Name|Text)$|^(?:asAddress|widen|firstTaken|checkedSignal|socketAddress)$/,
      'any value, or internal',
    ],
  ]);
});

test.run();
