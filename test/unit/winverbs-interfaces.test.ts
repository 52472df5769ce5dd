// Every method of every WinVerbs interface with its slot, so that a missing or renamed method is detected.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import * as wv from '../../winverbs/index.js';

/** A method: its name in TypeScript, on the interface's class or another one, or the reason why it is missing. */
type Where = string | readonly [className: string, name: string] | { readonly none: string };

const OVERLAPPED: Record<string, Where> = {
  CancelOverlappedRequests: 'cancelOverlappedRequests',
  GetOverlappedResult: ['Overlapped', 'getResult'],
};
const QUEUE_PAIR: Record<string, Where> = {
  ...OVERLAPPED,
  Query: 'query',
  Modify: 'modify',
  PostReceive: 'postReceive',
};
const ENDPOINT: Record<string, Where> = { ...OVERLAPPED, BindAddress: 'bindAddress' };

/** Class → methods by their names in WinVerbs, in the order of their slots. */
const INTERFACES: Record<string, Record<string, Where>> = {
  WvObject: {
    QueryInterface: { none: 'use instanceof instead' },
    AddRef: 'addRef',
    Release: 'release',
  },
  WvOverlapped: OVERLAPPED,
  WVProvider: {
    GetFileHandle: {
      none: 'completions are delivered on the event loop, and no port exists to bind a file to',
    },
    QueryDeviceList: 'queryDeviceList',
    QueryDevice: 'queryDevice',
    TranslateAddress: 'translateAddress',
    OpenDevice: 'openDevice',
    CreateConnectEndpoint: 'createConnectEndpoint',
    CreateDatagramEndpoint: 'createDatagramEndpoint',
  },
  WVDevice: {
    ...OVERLAPPED,
    Query: 'query',
    QueryPort: 'queryPort',
    QueryGid: 'queryGid',
    FindGid: 'findGid',
    QueryPkey: 'queryPkey',
    FindPkey: 'findPkey',
    CreateCompletionQueue: 'createCompletionQueue',
    AllocateProtectionDomain: 'allocateProtectionDomain',
    Notify: 'notify',
  },
  WVCompletionQueue: {
    ...OVERLAPPED,
    Resize: 'resize',
    Peek: 'peek',
    Notify: 'notify',
    BatchNotify: 'batchNotify',
    Poll: 'poll',
  },
  WVProtectionDomain: {
    ...OVERLAPPED,
    CreateSharedReceiveQueue: 'createSharedReceiveQueue',
    CreateConnectQueuePair: 'createConnectQueuePair',
    CreateDatagramQueuePair: 'createDatagramQueuePair',
    RegisterMemory: 'registerMemory',
    'RegisterMemory, overlapped': 'registerMemoryOverlapped',
    DeregisterMemory: 'deregisterMemory',
    'DeregisterMemory, overlapped': 'deregisterMemoryOverlapped',
    AllocateMemoryWindow: 'allocateMemoryWindow',
    CreateAddressHandle: 'createAddressHandle',
  },
  WVMemoryWindow: { 'IUnknown only': 'release' },
  WVAddressHandle: { 'IUnknown only': 'release' },
  WVSharedReceiveQueue: {
    ...OVERLAPPED,
    Query: 'query',
    Modify: 'modify',
    PostReceive: 'postReceive',
    Notify: 'notify',
  },
  WVConnectQueuePair: {
    ...QUEUE_PAIR,
    PostSend: { none: 'each kind of request has a method; startBatch and submitBatch make a list of them' },
    'PostSend, a list': 'submitBatch',
    Send: 'send',
    Read: 'read',
    Write: 'write',
    CompareExchange: 'compareExchange',
    FetchAdd: 'fetchAdd',
    BindMemoryWindow: 'bindMemoryWindow',
    'Invalidate (an addition)': 'invalidateMemoryWindow',
    'Send and invalidate (an addition)': 'sendAndInvalidate',
  },
  WVDatagramQueuePair: {
    ...QUEUE_PAIR,
    Send: 'send',
    SendMessage: 'sendMessage',
    AttachMulticast: 'attachMulticast',
    DetachMulticast: 'detachMulticast',
  },
  WVConnectEndpoint: {
    ...ENDPOINT,
    'Modify, option ROUTE': 'resolveRoute',
    Listen: 'listen',
    Reject: 'reject',
    GetRequest: 'getRequest',
    Connect: 'connect',
    Accept: 'accept',
    Disconnect: 'disconnect',
    NotifyDisconnect: 'notifyDisconnect',
    Query: 'query',
  },
  WVDatagramEndpoint: {
    ...ENDPOINT,
    'Modify, option ROUTE': 'resolveRoute',
    Listen: 'listen',
    Reject: 'reject',
    GetRequest: 'getRequest',
    Lookup: 'lookup',
    Accept: 'accept',
    JoinMulticast: 'joinMulticast',
    LeaveMulticast: 'leaveMulticast',
    Query: 'query',
  },
};

const classes = wv as unknown as Record<string, { readonly prototype: object } | undefined>;

function has(prototype: object | null, name: string): boolean {
  return (
    prototype !== null && (Object.hasOwn(prototype, name) || has(Object.getPrototypeOf(prototype), name))
  );
}

for (const [className, methods] of Object.entries(INTERFACES)) {
  test(`${className} has every method of its interface`, () => {
    for (const [method, where] of Object.entries(methods)) {
      if (typeof where === 'object' && 'none' in where) continue;
      const [owner, name] = typeof where === 'string' ? [className, where] : where;
      const found = classes[owner];
      assert.ok(found !== undefined, `the class ${owner} does not exist`);
      assert.ok(has(found.prototype, name), `${method} of ${className} should be ${owner}.${name}`);
    }
  });
}

test.run();
