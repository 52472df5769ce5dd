/**
 * The COM interfaces of a NetworkDirect v2 provider: IIDs, and for each method its vtable slot and the types of its
 * arguments. All methods return 32 bits. Source: ND SPI v2 (ndspi.h).
 */

const POINTER = 'uintptr_t';
const HANDLE = 'intptr_t';
const U16 = 'uint16_t';
const U32 = 'uint32_t';
const U64 = 'uint64_t';

const overlapped = { CancelOverlappedRequests: [3], GetOverlappedResult: [4, POINTER, U32] } as const;

/** IID, and methods by name: `[slot, ...types]`. Slots 0 to 2 are IUnknown's. */
export const interfaces = {
  IClassFactory: {
    iid: '00000001-0000-0000-C000-000000000046',
    slots: { CreateInstance: [3, POINTER, POINTER, POINTER] },
  },
  IND2Provider: {
    iid: '49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E',
    slots: {
      QueryAddressList: [3, POINTER, POINTER],
      ResolveAddress: [4, POINTER, U32, POINTER],
      OpenAdapter: [5, POINTER, U64, POINTER],
    },
  },
  IND2Adapter: {
    iid: 'D89C798C-4823-4D69-846C-DFDCCFF9E5F3',
    slots: {
      CreateOverlappedFile: [3, POINTER],
      Query: [4, POINTER, POINTER],
      QueryAddressList: [5, POINTER, POINTER],
      CreateCompletionQueue: [6, POINTER, HANDLE, U32, U16, U64, POINTER],
      CreateMemoryRegion: [7, POINTER, HANDLE, POINTER],
      CreateMemoryWindow: [8, POINTER, POINTER],
      CreateSharedReceiveQueue: [9, POINTER, HANDLE, U32, U32, U32, U16, U64, POINTER],
      CreateQueuePair: [10, POINTER, POINTER, POINTER, POINTER, U32, U32, U32, U32, U32, POINTER],
      CreateQueuePairWithSrq: [11, POINTER, POINTER, POINTER, POINTER, POINTER, U32, U32, U32, POINTER],
      CreateConnector: [12, POINTER, HANDLE, POINTER],
      CreateListener: [13, POINTER, HANDLE, POINTER],
    },
  },
  IND2CompletionQueue: {
    iid: '20CC445E-64A0-4CBB-AA75-F6A7251FDA9E',
    slots: {
      ...overlapped,
      GetNotifyAffinity: [5, POINTER, POINTER],
      Resize: [6, U32],
      Notify: [7, U32, POINTER],
      GetResults: [8, POINTER, U32],
    },
  },
  IND2SharedReceiveQueue: {
    iid: 'AABD67DC-459A-4DB1-826B-56CFCC278883',
    slots: {
      ...overlapped,
      GetNotifyAffinity: [5, POINTER, POINTER],
      Modify: [6, U32, U32],
      Notify: [7, POINTER],
      Receive: [8, POINTER, POINTER, U32],
    },
  },
  IND2MemoryRegion: {
    iid: '55DFEA2F-BC56-4982-8A45-0301BE46C413',
    slots: {
      ...overlapped,
      Register: [5, POINTER, POINTER, U32, POINTER],
      Deregister: [6, POINTER],
      GetLocalToken: [7],
      GetRemoteToken: [8],
    },
  },
  IND2MemoryWindow: { iid: '070FE1F5-0AB5-4361-88DB-974BA704D4B9', slots: { GetRemoteToken: [3] } },
  IND2QueuePair: {
    iid: 'EEF2F332-B75D-4063-BCE3-3A0BAD2D02CE',
    slots: {
      Flush: [3],
      Send: [4, POINTER, POINTER, U32, U32],
      Receive: [5, POINTER, POINTER, U32],
      Bind: [6, POINTER, POINTER, POINTER, POINTER, POINTER, U32],
      Invalidate: [7, POINTER, POINTER, U32],
      Read: [8, POINTER, POINTER, U32, U64, U32, U32],
      Write: [9, POINTER, POINTER, U32, U64, U32, U32],
    },
  },
  IND2Connector: {
    iid: '7DD615C4-6B4C-4866-950C-F3B1D25A5302',
    slots: {
      ...overlapped,
      Bind: [5, POINTER, U32],
      Connect: [6, POINTER, POINTER, U32, U32, U32, POINTER, U32, POINTER],
      CompleteConnect: [7, POINTER],
      Accept: [8, POINTER, U32, U32, POINTER, U32, POINTER],
      Reject: [9, POINTER, U32],
      GetReadLimits: [10, POINTER, POINTER],
      GetPrivateData: [11, POINTER, POINTER],
      GetLocalAddress: [12, POINTER, POINTER],
      GetPeerAddress: [13, POINTER, POINTER],
      NotifyDisconnect: [14, POINTER],
      Disconnect: [15, POINTER],
    },
  },
  IND2Listener: {
    iid: '65D23D83-3A57-4E02-86A4-350165C2D130',
    slots: {
      ...overlapped,
      Bind: [5, POINTER, U32],
      Listen: [6, U32],
      GetLocalAddress: [7, POINTER, POINTER],
      GetConnectionRequest: [8, POINTER, POINTER],
    },
  },
} as const satisfies Readonly<
  Record<
    string,
    { readonly iid: string; readonly slots: Readonly<Record<string, readonly [number, ...string[]]>> }
  >
>;

/** The name of an interface. */
export type InterfaceName = keyof typeof interfaces;
/** The methods of an interface. */
export type SlotOf<I extends InterfaceName> = keyof (typeof interfaces)[I]['slots'] & string;
/** Interfaces with overlapped requests. */
export type OverlappedName = {
  [I in InterfaceName]: 'GetOverlappedResult' extends SlotOf<I> ? I : never;
}[InterfaceName];

/** Converts a GUID's text to its 16 bytes. */
export function guidBytes(text: string): Uint8Array {
  const bytes = Buffer.from(text.replaceAll('-', ''), 'hex');
  // The first three members are little-endian integers.
  bytes.subarray(0, 4).reverse();
  bytes.subarray(4, 6).reverse();
  bytes.subarray(6, 8).reverse();
  return bytes;
}

/** Converts the 16 bytes of a GUID to text. */
export function guidText(bytes: Uint8Array): string {
  const ordered = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].map((at) => bytes[at]!);
  return Buffer.from(ordered)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
    .toUpperCase();
}
