/** `networkdirect`: the error of every function, method and option for wrong arguments and in wrong states. */
import { constants } from 'node:buffer';
import { suite } from 'uvu';
import * as nd from '../../nd/index.js';
import { complete, doorsOf, type ErrorRows, provoke, untyped } from '../helpers/error-rows.js';

const test = suite('errors of networkdirect');

const HOST = '127.0.0.1';
const U8 = new Uint8Array(3);
const { Nd2MrFlag, Nd2RemoteMemory, NdMwDescriptor } = nd;
const api = untyped(nd);

const provider = untyped(nd.openNetworkDirect2());
const adapter = untyped(provider.openAdapter!(HOST));
const queue = untyped(adapter.createCompletionQueue!(8));
const sizes = { receiveQueueDepth: 2, initiatorQueueDepth: 2 };
const queues = { receiveCompletionQueue: queue, initiatorCompletionQueue: queue };
const queuePair = untyped(adapter.createQueuePair!({ ...queues, ...sizes }));
const srq = untyped(adapter.createSharedReceiveQueue!({ depth: 4 }));
const region = untyped(adapter.createMemoryRegion!());
const unregistered = untyped(adapter.createMemoryRegion!());
const window = untyped(adapter.createMemoryWindow!());
const connector = untyped(adapter.createConnector!());
const bound = untyped(adapter.createConnector!());
bound.bind!(HOST);
const listener = untyped(adapter.createListener!());
const listening = untyped(adapter.createListener!());
listening.bind!(HOST);
listening.listen!();
const file = untyped(adapter.createOverlappedFile!());
file.close!();
const released = untyped(adapter.createConnector!());
released.release!();
const remote = new Nd2RemoteMemory(0n, 1);

const provider1 = untyped(nd.openNetworkDirect());
const adapter1 = untyped(provider1.openAdapter!(HOST));
const queue1 = untyped(adapter1.createCompletionQueue!(8));
const connector1 = untyped(adapter1.createConnector!());
const sizes1 = {
  inboundCompletionQueue: queue1,
  outboundCompletionQueue: queue1,
  inboundEntries: 2,
  outboundEntries: 2,
};
const endpoint = untyped(connector1.createEndpoint!(sizes1));
const listen = untyped(adapter1.listen!());
const window1 = untyped(adapter1.createMemoryWindow!());
const descriptor = new NdMwDescriptor(0n, 8n, 1);
const outcome = { status: 0, bytesTransferred: 0 };
let handle: unknown;
const claim = untyped(nd.claimLocalName('errors-nd'));

let sgl: readonly unknown[] = [];
let sgl1: readonly unknown[] = [];

test.before(async () => {
  await region.register!(new Uint8Array(64), Nd2MrFlag.ALLOW_REMOTE_READ);
  handle = await adapter1.registerMemory!(new Uint8Array(64));
  sgl = [{ memory: region, offset: 0, length: 4 }];
  sgl1 = [{ memory: handle, offset: 0, length: 4 }];
});

test.after(() => {
  // In the order in which objects depend on each other; releasing a queue cancels its requests.
  for (const one of [queuePair, window, region, unregistered, srq, queue, bound, connector]) one.release!();
  for (const one of [listening, listener, adapter, provider]) one.release!();
  for (const one of [endpoint, window1, queue1, listen, connector1, adapter1, provider1, claim])
    one.release!();
});

const rows: ErrorRows = {
  openNetworkDirect: [
    [
      () => api.openNetworkDirect!(5),
      'INVALID_PARAMETER',
      'Startup: \\\\.\\WinVerbs: `options` must be an object with cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 5.',
    ],
  ],
  openNetworkDirect2: [
    [
      () => api.openNetworkDirect2!(null),
      'INVALID_PARAMETER',
      'Startup: \\\\.\\WinVerbs: `options` must be an object with cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got null.',
    ],
    [
      () => api.openNetworkDirect2!({ windows: 5 }),
      'INVALID_PARAMETER',
      "Startup: \\\\.\\WinVerbs: `options` must contain only cm, rc, keepAliveMs, rnrTimeoutMs, ecn, window, longWindowBytes, link, icrc, direct, capture, statistics, receiveBufferBytes, faults, pkeys, hca, kernel, startTimeoutMs; got 'windows'.",
    ],
    [
      () => api.openNetworkDirect2!({ window: 0, cm: { maxRetries: 'x' } }),
      'INVALID_PARAMETER',
      "Startup: \\\\.\\WinVerbs: `cm.maxRetries` must be an integer from 0 to 15; got 'x'. `window` must be an integer from 1 to 4096; got 0.",
    ],
  ],
  'IND2Provider.resolveAddress': [
    [
      () => provider.resolveAddress!(5),
      'INVALID_ADDRESS',
      'ResolveAddress: `address` must be an IP address as a string, or { address, port }; got 5.',
    ],
    [
      () => provider.resolveAddress!('x'),
      'INVALID_ADDRESS',
      "ResolveAddress: `address` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 'x'.",
    ],
    [
      () => provider.resolveAddress!({ address: 5, port: 0 }),
      'INVALID_ADDRESS',
      'ResolveAddress: `address` must be { address: string, port: number } with an optional family of 4 or 6; got family undefined and address 5.',
    ],
    [
      () => provider.resolveAddress!('127.0.0.1:70000'),
      'INVALID_ADDRESS',
      "ResolveAddress: The port of '127.0.0.1:70000' must be an integer from 0 to 65535; got 70000.",
    ],
    [
      () => provider.resolveAddress!('fe80::1%nosuch'),
      'INVALID_ADDRESS',
      "ResolveAddress: 'fe80::1%nosuch' is not a valid address: this host has no interface 'nosuch' with an IPv6 link-local address.",
    ],
    [
      () => provider.resolveAddress!('192.0.2.1'),
      'INVALID_ADDRESS',
      'ResolveAddress: The address does not belong to a device of this host or cannot be used here; use one of its addresses. (No device of this host has the address 192.0.2.1.)',
    ],
  ],
  'IND2Provider.openAdapter': [
    [
      () => provider.openAdapter!(undefined),
      'INVALID_ADDRESS',
      'OpenAdapter: `address` must be an IP address as a string, or { address, port }; got undefined.',
    ],
    [
      () => provider.openAdapter!(7n),
      'INVALID_PARAMETER',
      'OpenAdapter: `adapter` must be the id of an adapter with an address; got 0x7. Use queryAddressList() and resolveAddress().',
    ],
    [
      () => provider.openAdapter!(-1n),
      'INVALID_PARAMETER',
      'OpenAdapter: `adapter` must be an unsigned 64-bit bigint, as resolveAddress returns; got -1n.',
    ],
    [
      () => provider.openAdapter!(HOST, 5),
      'INVALID_PARAMETER',
      'OpenAdapter: `options` must be an object with pkey, keepQueuePairsOnDisconnect; got 5.',
    ],
    [
      () => provider.openAdapter!(HOST, { pKey: 5 }),
      'INVALID_PARAMETER',
      "OpenAdapter: `options` must contain only pkey, keepQueuePairsOnDisconnect; got 'pKey'.",
    ],
  ],
  'NdAdapterOptions.pkey': [
    [
      () => provider.openAdapter!(HOST, { pkey: 'x' }),
      'INVALID_PARAMETER',
      "OpenAdapter: `pkey` must be a 16-bit number whose low 15 bits are not 0; got 'x'.",
    ],
    [
      () => untyped(provider.openAdapter!(HOST, { pkey: 5 })).createQueuePair!({ ...queues, ...sizes }),
      'INVALID_PARAMETER',
      'OpenAdapter: `pkey` must be of a partition that the port is in; got 0x5.',
    ],
  ],
  'NdAdapterOptions.keepQueuePairsOnDisconnect': [
    [
      () => provider.openAdapter!(HOST, { keepQueuePairsOnDisconnect: 1 }),
      'INVALID_PARAMETER',
      'OpenAdapter: `keepQueuePairsOnDisconnect` must be a boolean; got 1.',
    ],
  ],
  'INDProvider.openAdapter': [
    [
      () => provider1.openAdapter!(''),
      'INVALID_ADDRESS',
      "OpenAdapter: `address` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got ''.",
    ],
    [
      () => provider1.openAdapter!(7n),
      'INVALID_PARAMETER',
      'OpenAdapter: `adapter` must be the id of an adapter with an address; got 0x7. Use queryAddressList() and resolveAddress().',
    ],
    [
      () => provider1.openAdapter!(HOST, { pkey: 0 }),
      'INVALID_PARAMETER',
      'OpenAdapter: `pkey` must be a 16-bit number whose low 15 bits are not 0; got 0.',
    ],
  ],
  'NdUnknown.queryInterface': [
    [
      () => provider.queryInterface!('IND2Adapter'),
      'NOT_SUPPORTED',
      "QueryInterface: `name` must be an interface of this Provider (IUnknown, IND2Provider); got 'IND2Adapter'.",
    ],
    [
      () => adapter1.queryInterface!(5),
      'NOT_SUPPORTED',
      'QueryInterface: `name` must be an interface of this Adapter (IUnknown, INDOverlapped, INDAdapter); got 5.',
    ],
  ],
  'NdUnknown.addRef': [
    [() => released.addRef!(), 'INVALID_HANDLE', 'AddRef: This Connector was released; create another.'],
  ],
  'NdOverlappedObject.getOverlappedResult': [
    [
      () => queue.getOverlappedResult!(5),
      'INVALID_PARAMETER',
      'GetOverlappedResult: `request` must be an Overlapped; got 5.',
    ],
    [
      () => adapter1.getOverlappedResult!({}),
      'INVALID_PARAMETER',
      'GetOverlappedResult: `request` must be an Overlapped; got an object.',
    ],
    [
      () => queue.getOverlappedResult!(queue.notify!('any')),
      'PENDING',
      'The request has not completed; await it, or call getResult({ wait: true }) to block until it has.',
    ],
  ],
  'IND2Adapter.query': [
    [() => adapter.query!(1), 'NOT_SUPPORTED', 'Query: `version` must be 0x20000; got 1.'],
  ],
  'IND2Adapter.createCompletionQueue': [
    [
      () => adapter.createCompletionQueue!(0),
      'INVALID_PARAMETER_3',
      'CreateCompletionQueue: `depth` must be an integer from 1 to 1048576; got 0.',
    ],
    [
      () => adapter.createCompletionQueue!('8'),
      'INVALID_PARAMETER_3',
      "CreateCompletionQueue: `depth` must be an integer from 1 to 1048576; got '8'.",
    ],
    [
      () => adapter.createCompletionQueue!(8, 5),
      'INVALID_PARAMETER',
      'CreateCompletionQueue: `affinity` must be an object with a 16-bit number `group` and a 64-bit bigint `mask`; got 5.',
    ],
    [
      () => adapter.createCompletionQueue!(8, { group: 0, mask: 1 }),
      'INVALID_PARAMETER',
      'CreateCompletionQueue: `affinity` must be an object with a 16-bit number `group` and a 64-bit bigint `mask`; got {"group":0,"mask":1}.',
    ],
    [
      () => adapter.createCompletionQueue!(8, undefined, 5),
      'INVALID_HANDLE',
      'CreateCompletionQueue: `file` must be a file returned by createOverlappedFile and not closed; got 5.',
    ],
    [
      () => adapter.createCompletionQueue!(8, undefined, file),
      'INVALID_HANDLE',
      'CreateCompletionQueue: `file` must be a file returned by createOverlappedFile and not closed; got an object.',
    ],
  ],
  'IND2Adapter.createMemoryRegion': [
    [
      () => adapter.createMemoryRegion!(5),
      'INVALID_HANDLE',
      'CreateMemoryRegion: `file` must be a file returned by createOverlappedFile and not closed; got 5.',
    ],
  ],
  'IND2Adapter.createConnector': [
    [
      () => adapter.createConnector!({}),
      'INVALID_HANDLE',
      'CreateConnector: `file` must be a file returned by createOverlappedFile and not closed; got an object.',
    ],
  ],
  'IND2Adapter.createListener': [
    [
      () => adapter.createListener!(file),
      'INVALID_HANDLE',
      'CreateListener: `file` must be a file returned by createOverlappedFile and not closed; got an object.',
    ],
  ],
  'IND2Adapter.createSharedReceiveQueue': [
    [
      () => adapter.createSharedReceiveQueue!(5),
      'INVALID_PARAMETER',
      'CreateSharedReceiveQueue: `options` must be an object with depth, maxRequestSge, notifyThreshold, affinity, overlappedFile; got 5.',
    ],
    [
      () => adapter.createSharedReceiveQueue!({ entries: 5 }),
      'INVALID_PARAMETER',
      "CreateSharedReceiveQueue: `options` must contain only depth, maxRequestSge, notifyThreshold, affinity, overlappedFile; got 'entries'.",
    ],
  ],
  'Nd2SharedReceiveQueueOptions.depth': [
    [
      () => adapter.createSharedReceiveQueue!({ depth: 0 }),
      'INVALID_PARAMETER_3',
      'CreateSharedReceiveQueue: `depth` must be an integer from 1 to 16384; got 0.',
    ],
  ],
  'Nd2SharedReceiveQueueOptions.maxRequestSge': [
    [
      () => adapter.createSharedReceiveQueue!({ depth: 4, maxRequestSge: 99 }),
      'INVALID_PARAMETER_4',
      'CreateSharedReceiveQueue: `maxRequestSge` must be an integer from 1 to 32; got 99.',
    ],
  ],
  'Nd2SharedReceiveQueueOptions.notifyThreshold': [
    [
      () => adapter.createSharedReceiveQueue!({ depth: 4, notifyThreshold: 5 }),
      'INVALID_PARAMETER_5',
      'CreateSharedReceiveQueue: `notifyThreshold` must be an integer from 0 to 4; got 5.',
    ],
  ],
  'Nd2SharedReceiveQueueOptions.affinity': [
    [
      () => adapter.createSharedReceiveQueue!({ depth: 4, affinity: { group: -1, mask: 0n } }),
      'INVALID_PARAMETER',
      'CreateSharedReceiveQueue: `affinity` must be an object with a 16-bit number `group` and a 64-bit bigint `mask`; got {"group":-1,"mask":"0n"}.',
    ],
  ],
  'Nd2SharedReceiveQueueOptions.overlappedFile': [
    [
      () => adapter.createSharedReceiveQueue!({ depth: 4, overlappedFile: 5 }),
      'INVALID_HANDLE',
      'CreateSharedReceiveQueue: `overlappedFile` must be a file returned by createOverlappedFile and not closed; got 5.',
    ],
  ],
  'IND2Adapter.createQueuePair': [
    [
      () => adapter.createQueuePair!(null),
      'INVALID_PARAMETER',
      'CreateQueuePair: `options` must be an object with receiveCompletionQueue, initiatorCompletionQueue, context, initiatorQueueDepth, maxInitiatorRequestSge, inlineDataSize, receiveQueueDepth, maxReceiveRequestSge; got null.',
    ],
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, depth: 5 }),
      'INVALID_PARAMETER',
      "CreateQueuePair: `options` must contain only receiveCompletionQueue, initiatorCompletionQueue, context, initiatorQueueDepth, maxInitiatorRequestSge, inlineDataSize, receiveQueueDepth, maxReceiveRequestSge; got 'depth'.",
    ],
  ],
  'Nd2InitiatorOptions.receiveCompletionQueue': [
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, receiveCompletionQueue: 5 }),
      'INVALID_PARAMETER_2',
      'CreateQueuePair: `receiveCompletionQueue` must be a completion queue of this adapter instance and not released; got 5.',
    ],
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, receiveCompletionQueue: queue1 }),
      'INVALID_PARAMETER_2',
      'CreateQueuePair: `receiveCompletionQueue` must be a completion queue of this adapter instance and not released; got an object.',
    ],
  ],
  'Nd2InitiatorOptions.initiatorCompletionQueue': [
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, initiatorCompletionQueue: undefined }),
      'INVALID_PARAMETER_3',
      'CreateQueuePair: `initiatorCompletionQueue` must be a completion queue of this adapter instance and not released; got undefined.',
    ],
  ],
  'Nd2InitiatorOptions.initiatorQueueDepth': [
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, initiatorQueueDepth: 1e9 }),
      'INVALID_PARAMETER_6',
      'CreateQueuePair: `initiatorQueueDepth` must be an integer from 1 to 16384; got 1000000000.',
    ],
  ],
  'Nd2InitiatorOptions.maxInitiatorRequestSge': [
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, maxInitiatorRequestSge: 0 }),
      'INVALID_PARAMETER_8',
      'CreateQueuePair: `maxInitiatorRequestSge` must be an integer from 1 to 32; got 0.',
    ],
  ],
  'Nd2InitiatorOptions.inlineDataSize': [
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, inlineDataSize: -1 }),
      'INVALID_PARAMETER_9',
      'CreateQueuePair: `inlineDataSize` must be an integer from 0 to 1024; got -1.',
    ],
  ],
  'Nd2QueuePairOptions.receiveQueueDepth': [
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, receiveQueueDepth: 0 }),
      'INVALID_PARAMETER_5',
      'CreateQueuePair: `receiveQueueDepth` must be an integer from 1 to 16384; got 0.',
    ],
  ],
  'Nd2QueuePairOptions.maxReceiveRequestSge': [
    [
      () => adapter.createQueuePair!({ ...queues, ...sizes, maxReceiveRequestSge: [] }),
      'INVALID_PARAMETER_7',
      'CreateQueuePair: `maxReceiveRequestSge` must be an integer from 1 to 32; got an array.',
    ],
  ],
  'IND2Adapter.createQueuePairWithSrq': [
    [
      () => adapter.createQueuePairWithSrq!(undefined),
      'INVALID_PARAMETER',
      'CreateQueuePairWithSrq: `options` must be an object with receiveCompletionQueue, initiatorCompletionQueue, context, initiatorQueueDepth, maxInitiatorRequestSge, inlineDataSize, sharedReceiveQueue; got undefined.',
    ],
  ],
  'Nd2SrqQueuePairOptions.sharedReceiveQueue': [
    [
      () => adapter.createQueuePairWithSrq!({ ...queues, initiatorQueueDepth: 2, sharedReceiveQueue: 5 }),
      'INVALID_PARAMETER_4',
      'CreateQueuePairWithSrq: `sharedReceiveQueue` must belong to this adapter instance and must not be released; got 5.',
    ],
  ],
  'IND2CompletionQueue.resize': [
    [
      () => queue.resize!(0),
      'INVALID_PARAMETER',
      'Resize: `depth` must be an integer from 1 to 1048576; got 0.',
    ],
  ],
  'IND2CompletionQueue.notify': [
    [
      () => queue.notify!('all'),
      'INVALID_PARAMETER',
      "Notify: `type` must be 'any', 'solicited' or 'errors'; got 'all'.",
    ],
  ],
  'IND2CompletionQueue.getResults': [
    [
      () => queue.getResults!(8),
      'INVALID_PARAMETER',
      'GetResults: `results` must be an array; got a number. Pass the maximum number of results as `max`.',
    ],
    [
      () => queue.getResults!([], -1),
      'INVALID_PARAMETER',
      'GetResults: `max` must be an integer from 0 to 4294967295; got -1.',
    ],
  ],
  'IND2SharedReceiveQueue.modify': [
    [
      () => srq.modify!(4, 5),
      'INVALID_PARAMETER',
      'Modify: `depth` must be 1 to 16384 and `notifyThreshold` at most that depth, or 0 to leave either unchanged; got 4 and 5.',
    ],
  ],
  'IND2SharedReceiveQueue.receive': [
    [
      () => srq.receive!(0, 5),
      'INVALID_PARAMETER',
      'Receive: `sgl` must be an array of objects with memory, offset and length; got a number.',
    ],
    [
      () => srq.receive!(0, [{ memory: 5, offset: 0, length: 4 }]),
      'INVALID_HANDLE',
      'Receive: `sgl[0].memory` must be a region of this adapter instance, or its token from getLocalToken(); got 5.',
    ],
  ],
  'IND2MemoryRegion.register': [
    [
      () => unregistered.register!('x', 1),
      'INVALID_PARAMETER',
      'Register: `buffer` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got a string.',
    ],
    [
      () => unregistered.register!(new Uint8Array(0), 1),
      'INVALID_BUFFER_SIZE',
      'Register: `buffer` must not be empty.',
    ],
    [
      () => unregistered.register!(U8, 'x'),
      'INVALID_PARAMETER',
      "Register: `flags` must be an OR of Nd2MrFlag values (0x800000cf in total); got 'x'.",
    ],
    [
      () => unregistered.register!(U8, 0x100),
      'INVALID_PARAMETER',
      'Register: `flags` must be an OR of Nd2MrFlag values (0x800000cf in total); got 0x100.',
    ],
    [
      () => unregistered.register!(U8, 2 ** 53),
      'INVALID_PARAMETER',
      'Register: `flags` must be an OR of Nd2MrFlag values (0x800000cf in total); got 9007199254740992.',
    ],
    [
      () => region.register!(U8, 1),
      'INVALID_DEVICE_STATE',
      'Register: The region must be unregistered; it is registered. Call deregister() first.',
    ],
  ],
  'IND2MemoryRegion.deregister': [
    [
      () => unregistered.deregister!(),
      'INVALID_DEVICE_STATE',
      'Deregister: The region must be registered; it is unregistered. Call register() first.',
    ],
  ],
  'IND2MemoryRegion.getLocalToken': [
    [
      () => unregistered.getLocalToken!(),
      'INVALID_DEVICE_STATE',
      'GetLocalToken: The region must be registered; it is unregistered. Call register() first.',
    ],
  ],
  'IND2MemoryRegion.getRemoteToken': [
    [
      () => unregistered.getRemoteToken!(),
      'INVALID_DEVICE_STATE',
      'GetRemoteToken: The region must be registered; it is unregistered. Call register() first.',
    ],
  ],
  'IND2MemoryWindow.getRemoteToken': [
    [
      () => window.getRemoteToken!(),
      'INVALID_DEVICE_STATE',
      'GetRemoteToken: The window must be bound before it has a token.',
    ],
  ],
  'IND2QueuePair.send': [
    [
      () => queuePair.send!(0, 5),
      'INVALID_PARAMETER',
      'Send: `sgl` must be an array of objects with memory, offset and length; got a number.',
    ],
    [
      () => queuePair.send!(0, [5]),
      'INVALID_PARAMETER',
      'Send: `sgl[0]` must be an object with memory, offset and length; got a number.',
    ],
    [
      () => queuePair.send!(0, [{ memory: region, offset: -1, length: 4 }]),
      'INVALID_PARAMETER',
      'Send: `sgl[0]` must have a non-negative integer as offset, and a length below 2^32; got -1 and 4.',
    ],
    [
      () => queuePair.send!(0, [{ memory: region, offset: 0, length: 4n }]),
      'INVALID_PARAMETER',
      'Send: `sgl[0]` must have a non-negative integer as offset, and a length below 2^32; got 0 and 4n.',
    ],
    [
      () => queuePair.send!(0, [{ memory: {}, offset: 0, length: 4 }]),
      'INVALID_HANDLE',
      'Send: `sgl[0].memory` must be a region returned by createMemoryRegion of this adapter instance; got an object.',
    ],
    [
      () => queuePair.send!(0, [sgl[0], { memory: unregistered, offset: 0, length: 4 }]),
      'INVALID_HANDLE',
      'Send: `sgl[1].memory` must have registered memory. Call register() first.',
    ],
    [
      () => queuePair.send!(0, [{ memory: U8, offset: 0, length: 4 }]),
      'ACCESS_VIOLATION',
      'Send: `sgl[0]` must end within the 3 bytes of its memory; got an end of 4.',
    ],
    [
      () => queuePair.send!(0, [{ memory: U8, offset: 0, length: 3 }]),
      'INVALID_HANDLE',
      'Send: `memory` must be registered; got a Uint8Array.',
    ],
    [
      () => queuePair.send!(0, new Array(257).fill(sgl[0])),
      'DATA_OVERRUN',
      'Send: `sgl` must have at most 256 entries; got 257.',
    ],
    [
      () => queuePair.send!(0, sgl, 0x40),
      'INVALID_PARAMETER_4',
      'Send: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE, INLINE (0x3f in total); got 0x40.',
    ],
    [
      () => queuePair.send!(0, sgl, 7n),
      'INVALID_PARAMETER_4',
      'Send: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE, INLINE (0x3f in total); got 7n.',
    ],
    [
      () => queuePair.send!(0, sgl),
      'CONNECTION_INVALID',
      'Send: There is no connection, and none is being established. (PostSend: The queue pair is not ready to send yet; send requests can be posted from RTS on.)',
    ],
  ],
  'IND2QueuePair.receive': [
    [
      () => queuePair.receive!(0, null),
      'INVALID_PARAMETER',
      'Receive: `sgl` must be an array of objects with memory, offset and length; got null.',
    ],
  ],
  'IND2QueuePair.bind': [
    [
      () => queuePair.bind!(0, 5, window, 0, 8),
      'INVALID_PARAMETER_2',
      'Bind: `region` must belong to this adapter instance and have registered memory; got 5.',
    ],
    [
      () => queuePair.bind!(0, region, 5, 0, 8),
      'INVALID_PARAMETER_3',
      'Bind: `window` must belong to this adapter instance and must not be released; got 5.',
    ],
    [
      () => queuePair.bind!(0, region, window, 60, 8),
      'INVALID_PARAMETER',
      "Bind: `offset` and `length` must be a non-empty range within the memory's 64 bytes; got 60 and 8.",
    ],
    [
      () => queuePair.bind!(0, region, window, 0, 8, 'x'),
      'INVALID_PARAMETER_6',
      "Bind: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE, INLINE (0x3f in total); got 'x'.",
    ],
  ],
  'IND2QueuePair.invalidate': [
    [
      () => queuePair.invalidate!(0, 5),
      'INVALID_PARAMETER_2',
      'Invalidate: `window` must belong to this adapter instance and must not be released; got 5.',
    ],
    [
      () => queuePair.invalidate!(0, window, 0x40),
      'INVALID_PARAMETER_3',
      'Invalidate: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE, INLINE (0x3f in total); got 0x40.',
    ],
  ],
  'IND2QueuePair.read': [
    [
      () => queuePair.read!(0, sgl, 5),
      'INVALID_PARAMETER_4',
      'Read: `remote` must be an instance of Nd2RemoteMemory; got 5.',
    ],
    [
      () => queuePair.read!(0, sgl, remote, -1),
      'INVALID_PARAMETER_5',
      'Read: `offset` must be a non-negative integer; got -1.',
    ],
    [
      () => queuePair.read!(0, sgl, remote, 0, 99),
      'INVALID_PARAMETER_6',
      'Read: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE, INLINE (0x3f in total); got 0x63.',
    ],
  ],
  'IND2QueuePair.write': [
    [
      () => queuePair.write!(0, sgl, descriptor),
      'INVALID_PARAMETER_4',
      'Write: `remote` must be an instance of Nd2RemoteMemory; got an object.',
    ],
    [
      () => queuePair.write!(0, sgl, remote, 'x'),
      'INVALID_PARAMETER_5',
      "Write: `offset` must be a non-negative integer; got 'x'.",
    ],
  ],
  'IND2QueuePair.direct': [
    [
      () => queuePair.direct!(9, U8, remote),
      'INVALID_PARAMETER',
      'direct: `operation` must be an integer from 0 to 3; got 9.',
    ],
    [
      () => queuePair.direct!(0, 'x', remote),
      'INVALID_PARAMETER',
      'direct: `bytes` must be a Uint8Array; got a string.',
    ],
    [
      () => queuePair.direct!(0, U8, 5),
      'INVALID_PARAMETER_4',
      'direct: `remote` must be an instance of Nd2RemoteMemory; got 5.',
    ],
    [
      () => queuePair.direct!(0, U8, remote, -1),
      'INVALID_PARAMETER_5',
      'direct: `offset` must be a non-negative integer; got -1.',
    ],
  ],
  'IND2QueuePair.view': [
    [
      () => queuePair.view!(5, 8),
      'INVALID_PARAMETER_4',
      'view: `remote` must be an instance of Nd2RemoteMemory; got 5.',
    ],
    [
      () => queuePair.view!(remote, 0),
      'INVALID_PARAMETER',
      'view: `offset` and `length` must be integers, at least 0 and 1; got 0 and 0.',
    ],
  ],
  'IND2Connector.bind': [
    [
      () => connector.bind!(5),
      'INVALID_ADDRESS',
      'Bind: `address` must be an IP address as a string, or { address, port }; got 5.',
    ],
    [
      () => connector.bind!('192.0.2.1'),
      'INVALID_ADDRESS',
      'Bind: The address does not belong to a device of this host or cannot be used here; use one of its addresses. (No device of this host has the address 192.0.2.1.)',
    ],
    [
      () => bound.bind!(HOST),
      'ADDRESS_ALREADY_ASSOCIATED',
      'Bind: The connector must be unbound; it is bound. Create another.',
    ],
    [() => released.bind!(HOST), 'INVALID_HANDLE', 'Bind: This Connector was released; create another.'],
  ],
  'IND2Connector.connect': [
    [
      () => connector.connect!(queuePair, '127.0.0.1:1'),
      'ADDRESS_NOT_ASSOCIATED',
      'Connect: The connector must be bound and have no connection; it is unused. Call bind() first.',
    ],
    [
      () => bound.connect!(5, '127.0.0.1:1'),
      'INVALID_PARAMETER_1',
      'Connect: `queuePair` must belong to this adapter instance and must not be released; got 5.',
    ],
    [
      () => bound.connect!(queuePair, HOST),
      'INVALID_ADDRESS',
      "Connect: `address` must have a port from 1 to 65535, such as '192.0.2.1:4000' or '[2001:db8::1]:4000'; got port 0.",
    ],
    [
      () => bound.connect!(queuePair, '[::1]:1'),
      'INVALID_ADDRESS',
      'Connect: `address` must be an IPv4 address, as the local 127.0.0.1 is; got ::1.',
    ],
    [
      () => bound.connect!(queuePair, '127.0.0.1:1', 5),
      'INVALID_PARAMETER',
      'Connect: `options` must be an object with inboundReadLimit, outboundReadLimit, privateData; got 5.',
    ],
    [
      () => bound.connect!(queuePair, '127.0.0.1:1', { readLimit: 5 }),
      'INVALID_PARAMETER',
      "Connect: `options` must contain only inboundReadLimit, outboundReadLimit, privateData; got 'readLimit'.",
    ],
  ],
  'Nd2ConnectOptions.inboundReadLimit': [
    [
      () => bound.connect!(queuePair, '127.0.0.1:1', { inboundReadLimit: -1 }),
      'INVALID_PARAMETER_4',
      'Connect: `inboundReadLimit` must be a non-negative integer; got -1.',
    ],
  ],
  'Nd2ConnectOptions.outboundReadLimit': [
    [
      () => bound.connect!(queuePair, '127.0.0.1:1', { outboundReadLimit: 'x' }),
      'INVALID_PARAMETER_5',
      "Connect: `outboundReadLimit` must be a non-negative integer; got 'x'.",
    ],
  ],
  'Nd2ConnectOptions.privateData': [
    [
      () => bound.connect!(queuePair, '127.0.0.1:1', { privateData: 'x' }),
      'INVALID_PARAMETER',
      'Connect: `privateData` must be a Uint8Array; got a string.',
    ],
    [
      () => bound.connect!(queuePair, '127.0.0.1:1', { privateData: new Uint8Array(57) }),
      'INVALID_BUFFER_SIZE',
      'Connect: `privateData` must be at most 56 bytes; got 57.',
    ],
  ],
  'IND2Connector.completeConnect': [
    [
      () => bound.completeConnect!(),
      'CONNECTION_INVALID',
      "CompleteConnect: The connector must hold the peer's reply; it is bound. This call follows connect().",
    ],
  ],
  'IND2Connector.accept': [
    [
      () => bound.accept!(queuePair),
      'CONNECTION_INVALID',
      'Accept: The connector must hold a connection request; it is bound. This call follows getConnectionRequest().',
    ],
  ],
  'IND2Connector.reject': [
    [
      () => bound.reject!(),
      'INVALID_DEVICE_STATE',
      "Reject: The connector must hold a connection request or the peer's reply; it is bound. This call follows getConnectionRequest() or connect().",
    ],
  ],
  'IND2Connector.getReadLimits': [
    [
      () => bound.getReadLimits!(),
      'INVALID_DEVICE_STATE',
      'GetReadLimits: The connector must have a connection, a request or a reply; it is bound. This call follows getConnectionRequest() or connect().',
    ],
  ],
  'IND2Connector.getPrivateData': [
    [
      () => bound.getPrivateData!(),
      'CONNECTION_INVALID',
      'GetPrivateData: The peer has sent no data, because there is no connection and no reject.',
    ],
  ],
  'IND2Connector.getLocalAddress': [
    [
      () => connector.getLocalAddress!(),
      'ADDRESS_NOT_ASSOCIATED',
      'GetLocalAddress: The connector must have a local address; it is unused. It has one as soon as it is bound or has a peer.',
    ],
  ],
  'IND2Connector.getPeerAddress': [
    [
      () => bound.getPeerAddress!(),
      'CONNECTION_INVALID',
      'GetPeerAddress: The connector must have a peer; it is bound. This call follows getConnectionRequest() or connect().',
    ],
  ],
  'IND2Connector.notifyDisconnect': [
    [
      () => bound.notifyDisconnect!(),
      'CONNECTION_INVALID',
      'NotifyDisconnect: The connector must be connected; it is bound. This call follows accept() or completeConnect().',
    ],
  ],
  'IND2Connector.disconnect': [
    [
      () => bound.disconnect!(),
      'CONNECTION_INVALID',
      'Disconnect: The connector must be connected; it is bound. This call follows accept() or completeConnect().',
    ],
  ],
  'IND2Listener.bind': [
    [
      () => listener.bind!('x'),
      'INVALID_ADDRESS',
      "Bind: `address` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port '192.0.2.1:4000' or '[2001:db8::1]:4000'; got 'x'.",
    ],
    [
      () => listening.bind!(HOST),
      'ADDRESS_ALREADY_ASSOCIATED',
      'Bind: The object is already bound to an address; use a new one.',
    ],
  ],
  'IND2Listener.listen': [
    [
      () => listener.listen!(),
      'INVALID_DEVICE_STATE',
      'Listen: The listener must be bound; call bind() first.',
    ],
    [() => listening.listen!(), 'INVALID_DEVICE_STATE', 'Listen: The listener is already listening.'],
  ],
  'IND2Listener.getLocalAddress': [
    [
      () => listener.getLocalAddress!(),
      'INVALID_DEVICE_STATE',
      'GetLocalAddress: The listener must be bound; call bind() first.',
    ],
  ],
  'IND2Listener.getConnectionRequest': [
    [
      () => listener.getConnectionRequest!(bound),
      'INVALID_DEVICE_STATE',
      'GetConnectionRequest: The listener must be listening; call listen() first.',
    ],
    [
      () => listening.getConnectionRequest!(5),
      'INVALID_PARAMETER_1',
      "GetConnectionRequest: `connector` must belong to the listener's adapter instance; got 5.",
    ],
    [
      () => listening.getConnectionRequest!(bound),
      'CONNECTION_ACTIVE',
      'GetConnectionRequest: The connector must be unused; it is bound. Create another.',
    ],
  ],
  'new Nd2RemoteMemory': [
    [
      () => new Nd2RemoteMemory('x' as never, 1),
      'RangeError',
      "`address` must be a bigint from 0 to 2^64 - 1, or an integer below 2^53; got 'x'.",
    ],
    [() => new Nd2RemoteMemory(0n, -1), 'RangeError', '`token` must be an unsigned 32-bit integer; got -1.'],
    [
      () => new Nd2RemoteMemory(0n, 1n as never),
      'RangeError',
      '`token` must be an unsigned 32-bit integer; got 1n.',
    ],
  ],
  'Nd2RemoteMemory.of': [
    [() => untyped(Nd2RemoteMemory).of!(5), 'TypeError', '`region` must be an IND2MemoryRegion; got 5.'],
    [
      () => untyped(Nd2RemoteMemory).of!(unregistered),
      'INVALID_DEVICE_STATE',
      'Address: The region must be registered; it is unregistered. Call register() first.',
    ],
  ],
  'Nd2RemoteMemory.encode': [
    [() => untyped(remote).encode!('x'), 'TypeError', '`out` must be a Uint8Array; got a string.'],
  ],
  'Nd2RemoteMemory.decode': [
    [() => untyped(Nd2RemoteMemory).decode!(null), 'TypeError', '`bytes` must be a Uint8Array; got null.'],
    [
      () => untyped(Nd2RemoteMemory).decode!(U8),
      'RangeError',
      '`offset` must leave 12 bytes for the wire form; got 0 in 3 bytes.',
    ],
  ],
  'INDAdapter.query': [[() => adapter1.query!(2), 'NOT_SUPPORTED', 'Query: `version` must be 1; got 2.']],
  'INDAdapter.control': [
    [
      () => adapter1.control!(1, null, 0),
      'NOT_SUPPORTED',
      'Control: This adapter does not support vendor-specific requests.',
    ],
  ],
  'INDAdapter.createCompletionQueue': [
    [
      () => adapter1.createCompletionQueue!(0),
      'INVALID_PARAMETER',
      'CreateCompletionQueue: `entries` must be an integer from 1 to 1048576; got 0.',
    ],
  ],
  'INDAdapter.registerMemory': [
    [
      () => adapter1.registerMemory!(5),
      'INVALID_PARAMETER',
      'RegisterMemory: `buffer` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got a number.',
    ],
    [
      () => adapter1.registerMemory!(new Uint8Array(0)),
      'INVALID_BUFFER_SIZE',
      'RegisterMemory: `buffer` must not be empty.',
    ],
  ],
  'INDAdapter.deregisterMemory': [
    [
      () => adapter1.deregisterMemory!({}),
      'INVALID_HANDLE',
      'DeregisterMemory: `memory` must be a handle returned by registerMemory of this adapter instance; got an object.',
    ],
    [
      () => adapter1.deregisterMemory!(5),
      'INVALID_HANDLE',
      'DeregisterMemory: `memory` must be registered by this adapter instance; got the handle 5.',
    ],
  ],
  'INDAdapter.createMemoryWindow': [
    [
      () => adapter1.createMemoryWindow!(5),
      'INVALID_PARAMETER_1',
      'CreateMemoryWindow: `result` must be an object for the outcome of the request; got 5.',
    ],
  ],
  'INDAdapter.listen': [
    [
      () => adapter1.listen!(5),
      'INVALID_PARAMETER',
      'Listen: `options` must be an object with port, backlog, protocol; got 5.',
    ],
    [
      () => adapter1.listen!({ prot: 6 }),
      'INVALID_PARAMETER',
      "Listen: `options` must contain only port, backlog, protocol; got 'prot'.",
    ],
  ],
  'NdListenOptions.port': [
    [
      () => adapter1.listen!({ port: 65_536 }),
      'INVALID_PARAMETER',
      'Listen: `port` must be an integer from 0 (a free port) to 65535; got 65536.',
    ],
  ],
  'NdListenOptions.backlog': [
    [
      () => adapter1.listen!({ backlog: -1 }),
      'INVALID_PARAMETER_1',
      'Listen: `backlog` must be a number of requests, or 0 for the maximum; got -1.',
    ],
  ],
  'NdListenOptions.protocol': [
    [
      () => adapter1.listen!({ protocol: 'tcp' }),
      'INVALID_PARAMETER_3',
      "Listen: `protocol` must be an integer from 0 to 255; got 'tcp'.",
    ],
    [
      () => adapter1.listen!({ protocol: 17 }),
      'NOT_SUPPORTED',
      'Listen: `protocol` must not be 17 (UDP), which has no connections. Use 6 (TCP).',
    ],
  ],
  'INDCompletionQueue.resize': [
    [
      () => queue1.resize!(1.5),
      'INVALID_PARAMETER',
      'Resize: `entries` must be an integer from 1 to 1048576; got 1.5.',
    ],
  ],
  'INDCompletionQueue.notify': [
    [
      () => queue1.notify!(5),
      'INVALID_PARAMETER',
      "Notify: `type` must be 'any', 'solicited' or 'errors'; got 5.",
    ],
  ],
  'INDCompletionQueue.getResults': [
    [
      () => queue1.getResults!('x'),
      'INVALID_PARAMETER',
      'GetResults: `results` must be an array; got a string. Pass the maximum number of results as `max`.',
    ],
  ],
  'INDConnector.createEndpoint': [
    [
      () => connector1.createEndpoint!(5),
      'INVALID_PARAMETER',
      'CreateEndpoint: `options` must be an object with inboundCompletionQueue, outboundCompletionQueue, inboundEntries, outboundEntries, inboundSge, outboundSge, inboundReadLimit, outboundReadLimit; got 5.',
    ],
    [
      () => connector1.createEndpoint!({ ...sizes1, inboundSges: 5 }),
      'INVALID_PARAMETER',
      "CreateEndpoint: `options` must contain only inboundCompletionQueue, outboundCompletionQueue, inboundEntries, outboundEntries, inboundSge, outboundSge, inboundReadLimit, outboundReadLimit; got 'inboundSges'.",
    ],
  ],
  'NdEndpointOptions.inboundCompletionQueue': [
    [
      () => connector1.createEndpoint!({ ...sizes1, inboundCompletionQueue: queue }),
      'INVALID_PARAMETER_1',
      'CreateEndpoint: `inboundCompletionQueue` must be a completion queue of this adapter instance and not released; got an object.',
    ],
  ],
  'NdEndpointOptions.outboundCompletionQueue': [
    [
      () => connector1.createEndpoint!({ ...sizes1, outboundCompletionQueue: null }),
      'INVALID_PARAMETER_2',
      'CreateEndpoint: `outboundCompletionQueue` must be a completion queue of this adapter instance and not released; got null.',
    ],
  ],
  'NdEndpointOptions.inboundEntries': [
    [
      () => connector1.createEndpoint!({ ...sizes1, inboundEntries: 0 }),
      'INVALID_PARAMETER_3',
      'CreateEndpoint: `inboundEntries` must be an integer from 1 to 16384; got 0.',
    ],
  ],
  'NdEndpointOptions.outboundEntries': [
    [
      () => connector1.createEndpoint!({ ...sizes1, outboundEntries: 'x' }),
      'INVALID_PARAMETER_4',
      "CreateEndpoint: `outboundEntries` must be an integer from 1 to 16384; got 'x'.",
    ],
  ],
  'NdEndpointOptions.inboundSge': [
    [
      () => connector1.createEndpoint!({ ...sizes1, inboundSge: 99 }),
      'INVALID_PARAMETER_5',
      'CreateEndpoint: `inboundSge` must be an integer from 1 to 32; got 99.',
    ],
  ],
  'NdEndpointOptions.outboundSge': [
    [
      () => connector1.createEndpoint!({ ...sizes1, outboundSge: 0 }),
      'INVALID_PARAMETER_6',
      'CreateEndpoint: `outboundSge` must be an integer from 1 to 32; got 0.',
    ],
  ],
  'NdEndpointOptions.inboundReadLimit': [
    [
      () => connector1.createEndpoint!({ ...sizes1, inboundReadLimit: -1 }),
      'INVALID_PARAMETER_7',
      'CreateEndpoint: `inboundReadLimit` must be a non-negative integer; got -1.',
    ],
  ],
  'NdEndpointOptions.outboundReadLimit': [
    [
      () => connector1.createEndpoint!({ ...sizes1, outboundReadLimit: {} }),
      'INVALID_PARAMETER_8',
      'CreateEndpoint: `outboundReadLimit` must be a non-negative integer; got an object.',
    ],
  ],
  'INDConnector.connect': [
    [
      () => connector1.connect!(5, '127.0.0.1:1'),
      'INVALID_PARAMETER_1',
      'Connect: `endpoint` must belong to this adapter instance and must not be released; got 5.',
    ],
    [
      () => connector1.connect!(endpoint, 5),
      'INVALID_ADDRESS',
      'Connect: `address` must be an IP address as a string, or { address, port }; got 5.',
    ],
    [
      () => connector1.connect!(endpoint, '127.0.0.1:1', { data: 5 }),
      'INVALID_PARAMETER',
      "Connect: `options` must contain only privateData, localPort, protocol; got 'data'.",
    ],
  ],
  'NdConnectOptions.privateData': [
    [
      () => connector1.connect!(endpoint, '127.0.0.1:1', { privateData: [] }),
      'INVALID_PARAMETER',
      'Connect: `privateData` must be a Uint8Array; got an array.',
    ],
  ],
  'NdConnectOptions.localPort': [
    [
      () => connector1.connect!(endpoint, '127.0.0.1:1', { localPort: -1 }),
      'INVALID_PARAMETER',
      'Connect: `localPort` must be an integer from 0 (a free port) to 65535; got -1.',
    ],
  ],
  'NdConnectOptions.protocol': [
    [
      () => connector1.connect!(endpoint, '127.0.0.1:1', { protocol: 256 }),
      'INVALID_PARAMETER_3',
      'Connect: `protocol` must be an integer from 0 to 255; got 256.',
    ],
  ],
  'INDConnector.completeConnect': [
    [
      () => connector1.completeConnect!(),
      'CONNECTION_INVALID',
      "CompleteConnect: The connector must hold the peer's reply; it is unused. This call follows connect().",
    ],
  ],
  'INDConnector.accept': [
    [
      () => connector1.accept!(endpoint),
      'CONNECTION_INVALID',
      'Accept: The connector must hold a connection request; it is unused. This call follows getConnectionRequest().',
    ],
  ],
  'INDConnector.reject': [
    [
      () => connector1.reject!(),
      'INVALID_DEVICE_STATE',
      "Reject: The connector must hold a connection request or the peer's reply; it is unused. This call follows getConnectionRequest() or connect().",
    ],
  ],
  'INDConnector.getConnectionData': [
    [
      () => connector1.getConnectionData!(),
      'CONNECTION_INVALID',
      'GetConnectionData: The connector must have a connection, a request or a reply; it is unused. This call follows getConnectionRequest() or connect().',
    ],
  ],
  'INDConnector.getLocalAddress': [
    [
      () => connector1.getLocalAddress!(),
      'ADDRESS_NOT_ASSOCIATED',
      'GetLocalAddress: The connector must have a local address; it is unused. It has one as soon as it is bound or has a peer.',
    ],
  ],
  'INDConnector.getPeerAddress': [
    [
      () => connector1.getPeerAddress!(),
      'CONNECTION_INVALID',
      'GetPeerAddress: The connector must have a peer; it is unused. This call follows getConnectionRequest() or connect().',
    ],
  ],
  'INDConnector.notifyDisconnect': [
    [
      () => connector1.notifyDisconnect!(),
      'CONNECTION_INVALID',
      'NotifyDisconnect: The connector must be connected; it is unused. This call follows accept() or completeConnect().',
    ],
  ],
  'INDConnector.disconnect': [
    [
      () => connector1.disconnect!(),
      'CONNECTION_INVALID',
      'Disconnect: The connector must be connected; it is unused. This call follows accept() or completeConnect().',
    ],
  ],
  'INDEndpoint.send': [
    [
      () => endpoint.send!(5, sgl1),
      'INVALID_PARAMETER_1',
      'Send: `result` must be an object for the outcome of the request; got 5.',
    ],
    [
      () => endpoint.send!(outcome, 5),
      'INVALID_PARAMETER',
      'Send: `sgl` must be an array of objects with memory, offset and length; got a number.',
    ],
    [
      () => endpoint.send!(outcome, [{ memory: 5, offset: 0, length: 4 }]),
      'INVALID_HANDLE',
      'Send: `sgl[0].memory` must be registered by this adapter instance; got the handle 5.',
    ],
    [
      () => endpoint.send!(outcome, sgl1, 'x'),
      'INVALID_PARAMETER_4',
      "Send: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT (0x7 in total); got 'x'.",
    ],
    [
      () => endpoint.send!(outcome, sgl1),
      'CONNECTION_INVALID',
      'Send: There is no connection, and none is being established. (PostSend: The queue pair is not ready to send yet; send requests can be posted from RTS on.)',
    ],
  ],
  'INDEndpoint.sendAndInvalidate': [
    [
      () => endpoint.sendAndInvalidate!(outcome, sgl1, 5),
      'INVALID_PARAMETER_4',
      'SendAndInvalidate: `remote` must be an instance of NdMwDescriptor; got 5.',
    ],
  ],
  'INDEndpoint.receive': [
    [
      () => endpoint.receive!(Object.freeze({}), sgl1),
      'INVALID_PARAMETER_1',
      'Receive: `result` must be writable; got one that is frozen, or whose status or bytesTransferred is read-only.',
    ],
    [
      () => endpoint.receive!(outcome, {}),
      'INVALID_PARAMETER',
      'Receive: `sgl` must be an array of objects with memory, offset and length; got an object.',
    ],
  ],
  'INDEndpoint.bind': [
    [
      () => endpoint.bind!(outcome, 'x', window1, 0, 8, 0),
      'INVALID_HANDLE',
      "Bind: `memory` must be a handle returned by registerMemory of this adapter instance; got 'x'.",
    ],
    [
      () => endpoint.bind!(outcome, handle, window, 0, 8, 0),
      'INVALID_PARAMETER_3',
      'Bind: `window` must belong to this adapter instance and must not be released; got an object.',
    ],
    [
      () => endpoint.bind!(outcome, handle, window1, 0, 65, 0),
      'INVALID_PARAMETER',
      "Bind: `offset` and `length` must be a non-empty range within the memory's 64 bytes; got 0 and 65.",
    ],
    [
      () => endpoint.bind!(outcome, handle, window1, 0, 8, undefined),
      'INVALID_PARAMETER_6',
      'Bind: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE, ALLOW_READ, ALLOW_WRITE (0x1b in total); got undefined.',
    ],
  ],
  'INDEndpoint.invalidate': [
    [
      () => endpoint.invalidate!(outcome, null),
      'INVALID_PARAMETER_2',
      'Invalidate: `window` must belong to this adapter instance and must not be released; got null.',
    ],
  ],
  'INDEndpoint.read': [
    [
      () => endpoint.read!(outcome, sgl1, remote, 0),
      'INVALID_PARAMETER_4',
      'Read: `remote` must be an instance of NdMwDescriptor; got an object.',
    ],
    [
      () => endpoint.read!(outcome, sgl1, descriptor, 'x'),
      'INVALID_PARAMETER_5',
      "Read: `offset` must be a non-negative integer; got 'x'.",
    ],
  ],
  'INDEndpoint.write': [
    [
      () => endpoint.write!(outcome, sgl1, descriptor, 0, -1),
      'INVALID_PARAMETER_6',
      'Write: `flags` must be an OR of SILENT_SUCCESS, READ_FENCE (0x3 in total); got -1.',
    ],
  ],
  'INDListen.getConnectionRequest': [
    [
      () => listen.getConnectionRequest!(connector),
      'INVALID_PARAMETER_1',
      "GetConnectionRequest: `connector` must belong to the listener's adapter instance; got an object.",
    ],
  ],
  'new NdMwDescriptor': [
    [
      () => new NdMwDescriptor(-1n, 1n, 1),
      'RangeError',
      '`base` and `length` must be bigints from 0 to 2^64 - 1, or integers below 2^53; got -1n and 1n.',
    ],
    [
      () => new NdMwDescriptor(1n, 1n, 2 ** 32),
      'RangeError',
      '`token` must be an unsigned 32-bit integer; got 4294967296.',
    ],
  ],
  'NdMwDescriptor.encode': [
    [
      () => untyped(descriptor).encode!(U8),
      'RangeError',
      '`offset` must leave 20 bytes for the wire form; got 0 in 3 bytes.',
    ],
  ],
  'NdMwDescriptor.decode': [
    [
      () => untyped(NdMwDescriptor).decode!(U8, 'x'),
      'RangeError',
      "`offset` must leave 20 bytes for the wire form; got 'x' in 3 bytes.",
    ],
  ],
  connectQueuePair: [
    [
      () => api.connectQueuePair!(5, queuePair, '127.0.0.1:1'),
      'INVALID_PARAMETER',
      'connectQueuePair: `adapter` must be an IND2Adapter; got 5.',
    ],
    [
      () => api.connectQueuePair!(adapter, 5, '127.0.0.1:1'),
      'INVALID_PARAMETER_1',
      'Connect: `queuePair` must belong to this adapter instance and must not be released; got 5.',
    ],
    [
      () => api.connectQueuePair!(adapter, queuePair, undefined),
      'INVALID_ADDRESS',
      'Connect: `address` must be an IP address as a string, or { address, port }; got undefined.',
    ],
    [
      () => api.connectQueuePair!(adapter, queuePair, '127.0.0.1:1', null),
      'INVALID_PARAMETER',
      'connectQueuePair: `options` must be an object with inboundReadLimit, outboundReadLimit, privateData, signal, from; got null.',
    ],
    [
      () => api.connectQueuePair!(adapter, queuePair, '127.0.0.1:1', { form: HOST }),
      'INVALID_PARAMETER',
      "connectQueuePair: `options` must contain only inboundReadLimit, outboundReadLimit, privateData, signal, from; got 'form'.",
    ],
  ],
  'Nd2ConnectingOptions.from': [
    [
      () => api.connectQueuePair!(adapter, queuePair, '127.0.0.1:1', { from: 5 }),
      'INVALID_ADDRESS',
      'connectQueuePair: `from` must be an IP address as a string, or { address, port }; got 5.',
    ],
  ],
  'WaitOptions.signal': [
    [
      () => api.connectQueuePair!(adapter, queuePair, '127.0.0.1:1', { signal: 5 }),
      'INVALID_PARAMETER',
      'connectQueuePair: `signal` must be an AbortSignal; got 5.',
    ],
    [
      () => api.nextResult!(queue, { signal: 'x' }),
      'INVALID_PARAMETER',
      "nextResult: `signal` must be an AbortSignal; got 'x'.",
    ],
  ],
  acceptQueuePair: [
    [
      () => api.acceptQueuePair!({}, listening, queuePair),
      'INVALID_PARAMETER',
      'acceptQueuePair: `adapter` must be an IND2Adapter; got an object.',
    ],
    [
      () => api.acceptQueuePair!(adapter, 5, queuePair),
      'INVALID_PARAMETER',
      'acceptQueuePair: `listener` must be an IND2Listener; got 5.',
    ],
  ],
  connectEndpoint: [
    [
      () => api.connectEndpoint!(5, endpoint, '127.0.0.1:1'),
      'INVALID_PARAMETER',
      'connectEndpoint: `connector` must be an INDConnector; got 5.',
    ],
  ],
  acceptEndpoint: [
    [
      () => api.acceptEndpoint!(5, connector1, endpoint),
      'INVALID_PARAMETER',
      'acceptEndpoint: `listen` must be an INDListen; got 5.',
    ],
    [
      () => api.acceptEndpoint!(listen, 5, endpoint),
      'INVALID_PARAMETER',
      'acceptEndpoint: `connector` must be an INDConnector; got 5.',
    ],
    [
      () => api.acceptEndpoint!(listen, connector1, endpoint, { data: 5 }),
      'INVALID_PARAMETER',
      "acceptEndpoint: `options` must contain only signal, privateData; got 'data'.",
    ],
  ],
  nextResult: [
    [() => api.nextResult!(5), 'INVALID_PARAMETER', 'nextResult: `queue` must be a completion queue; got 5.'],
    [
      () => api.nextResult!(queue, 5),
      'INVALID_PARAMETER',
      'nextResult: `options` must be an object with signal; got 5.',
    ],
    [
      () => api.nextResult!(queue, { timeout: 5 }),
      'INVALID_PARAMETER',
      "nextResult: `options` must contain only signal; got 'timeout'.",
    ],
  ],
  firstResult: [
    [
      () => api.firstResult!(queue),
      'INVALID_PARAMETER',
      'firstResult: `queues` must be an array of at least one completion queue; got an object.',
    ],
    [
      () => api.firstResult!([]),
      'INVALID_PARAMETER',
      'firstResult: `queues` must be an array of at least one completion queue; got an empty one.',
    ],
    [
      () => api.firstResult!([queue, 5]),
      'INVALID_PARAMETER',
      'firstResult: `queues` must contain only completion queues; got 5.',
    ],
  ],
  ndCleanup: [
    [
      () => api.ndCleanup!(),
      'DEVICE_NOT_READY',
      'NdCleanup: NetworkDirect must be started. Call ndStartup() first.',
    ],
  ],
  ndCheckAddress: [
    [
      () => api.ndCheckAddress!(HOST),
      'DEVICE_NOT_READY',
      'NdCheckAddress: NetworkDirect must be started. Call ndStartup() first.',
    ],
  ],
  ndResolveAddress: [
    [
      () => api.ndResolveAddress!(HOST),
      'DEVICE_NOT_READY',
      'NdResolveAddress: NetworkDirect must be started. Call ndStartup() first.',
    ],
  ],
  ndOpenAdapter: [
    [
      () => api.ndOpenAdapter!(HOST),
      'DEVICE_NOT_READY',
      'NdOpenAdapter: NetworkDirect must be started. Call ndStartup() first.',
    ],
  ],
  ndOpenV1Adapter: [
    [
      () => api.ndOpenV1Adapter!(HOST),
      'DEVICE_NOT_READY',
      'NdOpenV1Adapter: NetworkDirect must be started. Call ndStartup() first.',
    ],
  ],
  ndNotifyAddressListChange: [
    [
      () => api.ndNotifyAddressListChange!(),
      'DEVICE_NOT_READY',
      'NdNotifyAddressListChange: NetworkDirect must be started. Call ndStartup() first.',
    ],
  ],
  ndQueryAddressList: [
    [
      () => api.ndQueryAddressList!(),
      'DEVICE_NOT_READY',
      'NdQueryAddressList: NetworkDirect must be started. Call ndStartup() first.',
    ],
    [
      () => started(() => api.ndQueryAddressList!(99)),
      'INVALID_PARAMETER',
      'NdQueryAddressList: `flags` must be an OR of NdQueryFlag values; got 99.',
    ],
  ],
  ndStartup: [
    [
      () => api.ndStartup!({ link: 5 }),
      'INVALID_PARAMETER',
      "Startup: \\\\.\\WinVerbs: `link` must be 'auto', 'wire' or 'local'; got 5.",
    ],
  ],
  allocate: [
    [
      () => api.allocate!(-1),
      'INVALID_PARAMETER',
      `allocate: \`bytes\` must be an integer from 1 to ${constants.MAX_LENGTH}; got -1.`,
    ],
  ],
  'AllocateOptions.shared': [
    [
      () => api.allocate!(8, { shared: 1 }),
      'INVALID_PARAMETER',
      'allocate: `shared` must be a boolean; got 1.',
    ],
  ],
  claimLocalName: [
    [
      () => api.claimLocalName!('a b'),
      'INVALID_PARAMETER',
      'claimLocalName: `name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got \'a b\'.',
    ],
    [
      () => api.claimLocalName!('errors-nd'),
      'ADDRESS_ALREADY_EXISTS',
      "claimLocalName: another process or thread of this user owns the name 'errors-nd'; end it, or choose another name.",
    ],
  ],
  'LocalNameClaim.publish': [
    [
      () => claim.publish!('x'),
      'INVALID_PARAMETER',
      "publish: `port` must be an integer from 1 to 65535; got 'x'.",
    ],
  ],
  portsOfLocalName: [
    [
      () => api.portsOfLocalName!(null),
      'INVALID_PARAMETER',
      'portsOfLocalName: `name` must be 1 to 48 letters, digits, or characters of "_.:@-"; got null.',
    ],
  ],
  wireView: [
    [
      () => api.wireView!(U8, 0, 4),
      'RangeError',
      '`offset` must leave 4 bytes for the wire form; got 0 in 3 bytes.',
    ],
  ],
  'Overlapped.getResult': [
    [
      () => untyped(queue.notify!('any')).getResult!(),
      'PENDING',
      'The request has not completed; await it, or call getResult({ wait: true }) to block until it has.',
    ],
  ],
};

/** Runs a call of the framework between NdStartup and NdCleanup. */
function started(call: () => unknown): unknown {
  nd.ndStartup();
  try {
    return call();
  } finally {
    nd.ndCleanup();
  }
}

provoke(test, rows);

test('each function, method and option has rows', () => {
  complete(doorsOf('networkdirect'), rows, [
    [/^(?:NdUnknown|LocalNameClaim)\.release$/, 'without arguments, and releasing twice is permitted'],
    [/^readNdProviders$/, 'without arguments'],
    [/^ndProviderOf$/, 'undefined for anything but an adapter of a provider'],
    [/\.(?:queryAddressList|createOverlappedFile|getFileHandle|shouldPoll|flush)$/, 'without arguments'],
    [
      /^IND2Adapter\.createMemoryWindow$|^INDAdapter\.createConnector$|\.getNotifyAffinity$|BatchRequest$|RequestBatch$/,
      'without arguments',
    ],
    [/^IND2SharedReceiveQueue\.notify$|\.cancelOverlappedRequests$|^ndFlushProviders$/, 'without arguments'],
    [/^NdOverlappedFile\./, 'without arguments, and in every state'],
    [/^Nd2InitiatorOptions\.context$/, 'any value'],
    [
      /^NdAcceptingOptions\.privateData$/,
      'passed to accept(), which refuses it as that of Nd2ConnectOptions',
    ],
    [
      /^(?:new Overlapped|new StatusError)$|^Overlapped\.(?!getResult)|^GetResultOptions\./,
      'of requests, for providers',
    ],
    [/^status(?:Name|Text)$/, 'any number has a text'],
  ]);
});

test.run();
