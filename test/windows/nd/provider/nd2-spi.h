// Declarations of NetworkDirect SPI v2, written by hand from the SPI's reference. ../spi-layouts.ts compares them with
// the library, and Microsoft's headers if they are available.
#pragma once
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <unknwn.h>

constexpr ULONG ND2_VERSION = 0x20000;

constexpr ULONG ND2_ADAPTER_IN_ORDER_DMA = 0x1;
constexpr ULONG ND2_ADAPTER_CQ_RESIZE = 0x100;
constexpr ULONG ND2_ADAPTER_LOOPBACK = 0x10000;

constexpr ULONG ND2_NOTIFY_ERRORS = 0;
constexpr ULONG ND2_NOTIFY_ANY = 1;
constexpr ULONG ND2_NOTIFY_SOLICITED = 2;

constexpr ULONG ND2_MR_LOCAL_WRITE = 0x1;
constexpr ULONG ND2_MR_REMOTE_READ = 0x2;
constexpr ULONG ND2_MR_REMOTE_WRITE_BIT = 0x4;
constexpr ULONG ND2_MR_READ_SINK = 0x8;
constexpr ULONG ND2_MR_DO_NOT_SECURE = 0x80000000;

constexpr ULONG ND2_OP_SILENT = 0x1;
constexpr ULONG ND2_OP_READ_FENCE = 0x2;
constexpr ULONG ND2_OP_SOLICIT = 0x4;
constexpr ULONG ND2_OP_ALLOW_READ = 0x8;
constexpr ULONG ND2_OP_ALLOW_WRITE = 0x10;
constexpr ULONG ND2_OP_INLINE = 0x20;

enum ND2_REQUEST_TYPE : ULONG {
  ND2_RECEIVE = 0,
  ND2_SEND = 1,
  ND2_BIND = 2,
  ND2_INVALIDATE = 3,
  ND2_READ = 4,
  ND2_WRITE = 5
};

struct ND2_ADAPTER_INFO {
  ULONG InfoVersion;
  UINT16 VendorId;
  UINT16 DeviceId;
  UINT64 AdapterId;
  SIZE_T MaxRegistrationSize;
  SIZE_T MaxWindowSize;
  ULONG MaxInitiatorSge;
  ULONG MaxReceiveSge;
  ULONG MaxReadSge;
  ULONG MaxTransferLength;
  ULONG MaxInlineDataSize;
  ULONG MaxInboundReadLimit;
  ULONG MaxOutboundReadLimit;
  ULONG MaxReceiveQueueDepth;
  ULONG MaxInitiatorQueueDepth;
  ULONG MaxSharedReceiveQueueDepth;
  ULONG MaxCompletionQueueDepth;
  ULONG InlineRequestThreshold;
  ULONG LargeRequestThreshold;
  ULONG MaxCallerData;
  ULONG MaxCalleeData;
  ULONG AdapterFlags;
};

struct ND2_SGE {
  void* Buffer;
  ULONG BufferLength;
  UINT32 MemoryRegionToken;
};

struct ND2_RESULT {
  HRESULT Status;
  ULONG BytesTransferred;
  void* QueuePairContext;
  void* RequestContext;
  ND2_REQUEST_TYPE RequestType;
};

#define ND2_METHOD virtual HRESULT STDMETHODCALLTYPE

struct IND2Overlapped : IUnknown {
  ND2_METHOD CancelOverlappedRequests() = 0;
  ND2_METHOD GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) = 0;
};

struct IND2Provider : IUnknown {
  ND2_METHOD QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) = 0;
  ND2_METHOD ResolveAddress(const sockaddr* address, ULONG bytes, UINT64* id) = 0;
  ND2_METHOD OpenAdapter(REFIID iid, UINT64 id, void** adapter) = 0;
};

struct IND2Adapter : IUnknown {
  ND2_METHOD CreateOverlappedFile(HANDLE* file) = 0;
  ND2_METHOD Query(ND2_ADAPTER_INFO* info, ULONG* bytes) = 0;
  ND2_METHOD QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) = 0;
  ND2_METHOD CreateCompletionQueue(REFIID iid, HANDLE file, ULONG depth, USHORT group, KAFFINITY affinity,
                                   void** queue) = 0;
  ND2_METHOD CreateMemoryRegion(REFIID iid, HANDLE file, void** region) = 0;
  ND2_METHOD CreateMemoryWindow(REFIID iid, void** window) = 0;
  ND2_METHOD CreateSharedReceiveQueue(REFIID iid, HANDLE file, ULONG depth, ULONG maxSge, ULONG threshold, USHORT group,
                                      KAFFINITY affinity, void** queue) = 0;
  ND2_METHOD CreateQueuePair(REFIID iid, IUnknown* receiveQueue, IUnknown* initiatorQueue, void* context,
                             ULONG receiveDepth, ULONG initiatorDepth, ULONG maxReceiveSge, ULONG maxInitiatorSge,
                             ULONG inlineBytes, void** queuePair) = 0;
  ND2_METHOD CreateQueuePairWithSrq(REFIID iid, IUnknown* receiveQueue, IUnknown* initiatorQueue, IUnknown* shared,
                                    void* context, ULONG initiatorDepth, ULONG maxInitiatorSge, ULONG inlineBytes,
                                    void** queuePair) = 0;
  ND2_METHOD CreateConnector(REFIID iid, HANDLE file, void** connector) = 0;
  ND2_METHOD CreateListener(REFIID iid, HANDLE file, void** listener) = 0;
};

struct IND2CompletionQueue : IND2Overlapped {
  ND2_METHOD GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) = 0;
  ND2_METHOD Resize(ULONG depth) = 0;
  ND2_METHOD Notify(ULONG type, OVERLAPPED* overlapped) = 0;
  virtual ULONG STDMETHODCALLTYPE GetResults(ND2_RESULT* results, ULONG count) = 0;
};

struct IND2SharedReceiveQueue : IND2Overlapped {
  ND2_METHOD GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) = 0;
  ND2_METHOD Modify(ULONG depth, ULONG threshold) = 0;
  ND2_METHOD Notify(OVERLAPPED* overlapped) = 0;
  ND2_METHOD Receive(void* context, const ND2_SGE* sge, ULONG count) = 0;
};

struct IND2MemoryWindow : IUnknown {
  virtual UINT32 STDMETHODCALLTYPE GetRemoteToken() = 0;
};

struct IND2MemoryRegion : IND2Overlapped {
  ND2_METHOD Register(const void* buffer, SIZE_T bytes, ULONG flags, OVERLAPPED* overlapped) = 0;
  ND2_METHOD Deregister(OVERLAPPED* overlapped) = 0;
  virtual UINT32 STDMETHODCALLTYPE GetLocalToken() = 0;
  virtual UINT32 STDMETHODCALLTYPE GetRemoteToken() = 0;
};

struct IND2QueuePair : IUnknown {
  ND2_METHOD Flush() = 0;
  ND2_METHOD Send(void* context, const ND2_SGE* sge, ULONG count, ULONG flags) = 0;
  ND2_METHOD Receive(void* context, const ND2_SGE* sge, ULONG count) = 0;
  ND2_METHOD Bind(void* context, IUnknown* region, IUnknown* window, const void* buffer, SIZE_T bytes, ULONG flags) = 0;
  ND2_METHOD Invalidate(void* context, IUnknown* window, ULONG flags) = 0;
  ND2_METHOD Read(void* context, const ND2_SGE* sge, ULONG count, UINT64 address, UINT32 token, ULONG flags) = 0;
  ND2_METHOD Write(void* context, const ND2_SGE* sge, ULONG count, UINT64 address, UINT32 token, ULONG flags) = 0;
};

struct IND2Connector : IND2Overlapped {
  ND2_METHOD Bind(const sockaddr* address, ULONG bytes) = 0;
  ND2_METHOD Connect(IUnknown* queuePair, const sockaddr* address, ULONG bytes, ULONG inbound, ULONG outbound,
                     const void* data, ULONG dataBytes, OVERLAPPED* overlapped) = 0;
  ND2_METHOD CompleteConnect(OVERLAPPED* overlapped) = 0;
  ND2_METHOD Accept(IUnknown* queuePair, ULONG inbound, ULONG outbound, const void* data, ULONG dataBytes,
                    OVERLAPPED* overlapped) = 0;
  ND2_METHOD Reject(const void* data, ULONG dataBytes) = 0;
  ND2_METHOD GetReadLimits(ULONG* inbound, ULONG* outbound) = 0;
  ND2_METHOD GetPrivateData(void* data, ULONG* bytes) = 0;
  ND2_METHOD GetLocalAddress(sockaddr* address, ULONG* bytes) = 0;
  ND2_METHOD GetPeerAddress(sockaddr* address, ULONG* bytes) = 0;
  ND2_METHOD NotifyDisconnect(OVERLAPPED* overlapped) = 0;
  ND2_METHOD Disconnect(OVERLAPPED* overlapped) = 0;
};

struct IND2Listener : IND2Overlapped {
  ND2_METHOD Bind(const sockaddr* address, ULONG bytes) = 0;
  ND2_METHOD Listen(ULONG backlog) = 0;
  ND2_METHOD GetLocalAddress(sockaddr* address, ULONG* bytes) = 0;
  ND2_METHOD GetConnectionRequest(IUnknown* connector, OVERLAPPED* overlapped) = 0;
};

#undef ND2_METHOD

namespace nd2 {

constexpr GUID IID_Overlapped{0xabf72719, 0xb016, 0x4a40, {0xa6, 0xf7, 0x62, 0x27, 0x91, 0xa7, 0x04, 0x4c}};
constexpr GUID IID_Provider{0x49eae6c1, 0x76c4, 0x46d0, {0x80, 0x03, 0x5c, 0x2e, 0xaa, 0x2c, 0x9a, 0x8e}};
constexpr GUID IID_Adapter{0xd89c798c, 0x4823, 0x4d69, {0x84, 0x6c, 0xdf, 0xdc, 0xcf, 0xf9, 0xe5, 0xf3}};
constexpr GUID IID_CompletionQueue{0x20cc445e, 0x64a0, 0x4cbb, {0xaa, 0x75, 0xf6, 0xa7, 0x25, 0x1f, 0xda, 0x9e}};
constexpr GUID IID_SharedReceiveQueue{0xaabd67dc, 0x459a, 0x4db1, {0x82, 0x6b, 0x56, 0xcf, 0xcc, 0x27, 0x88, 0x83}};
constexpr GUID IID_MemoryRegion{0x55dfea2f, 0xbc56, 0x4982, {0x8a, 0x45, 0x03, 0x01, 0xbe, 0x46, 0xc4, 0x13}};
constexpr GUID IID_MemoryWindow{0x070fe1f5, 0x0ab5, 0x4361, {0x88, 0xdb, 0x97, 0x4b, 0xa7, 0x04, 0xd4, 0xb9}};
constexpr GUID IID_QueuePair{0xeef2f332, 0xb75d, 0x4063, {0xbc, 0xe3, 0x3a, 0x0b, 0xad, 0x2d, 0x02, 0xce}};
constexpr GUID IID_Connector{0x7dd615c4, 0x6b4c, 0x4866, {0x95, 0x0c, 0xf3, 0xb1, 0xd2, 0x5a, 0x53, 0x02}};
constexpr GUID IID_Listener{0x65d23d83, 0x3a57, 0x4e02, {0x86, 0xa4, 0x35, 0x01, 0x65, 0xc2, 0xd1, 0x30}};
constexpr GUID IID_Unknown{0x00000000, 0x0000, 0x0000, {0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};
constexpr GUID IID_ClassFactory{0x00000001, 0x0000, 0x0000, {0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};

/// Statuses that this provider returns. They are NTSTATUS values in spite of their type.
enum Status : UINT32 {
  SUCCESS = 0,
  PENDING = 0x103,
  BUFFER_OVERFLOW = 0x80000005,
  DEVICE_BUSY = 0x80000011,
  NO_MORE_ENTRIES = 0x8000001a,
  UNSUCCESSFUL = 0xc0000001,
  ACCESS_VIOLATION = 0xc0000005,
  INVALID_HANDLE = 0xc0000008,
  INVALID_PARAMETER = 0xc000000d,
  INVALID_DEVICE_REQUEST = 0xc0000010,
  DATA_OVERRUN = 0xc000003c,
  DATA_ERROR = 0xc000003e,
  SHARING_VIOLATION = 0xc0000043,
  IO_TIMEOUT = 0xc00000b5,
  NOT_SUPPORTED = 0xc00000bb,
  BAD_NETWORK_NAME = 0xc00000cc,
  INTERNAL_ERROR = 0xc00000e5,
  INVALID_PARAMETER_1 = 0xc00000ef,
  INVALID_PARAMETER_2,
  INVALID_PARAMETER_3,
  INVALID_PARAMETER_4,
  INVALID_PARAMETER_5,
  INVALID_PARAMETER_6,
  INVALID_PARAMETER_7,
  INVALID_PARAMETER_8,
  INVALID_PARAMETER_9,
  CANCELED = 0xc0000120,
  INVALID_ADDRESS = 0xc0000141,
  INVALID_DEVICE_STATE = 0xc0000184,
  INVALID_BUFFER_SIZE = 0xc0000206,
  TOO_MANY_ADDRESSES = 0xc0000209,
  CONNECTION_DISCONNECTED = 0xc000020c,
  CONNECTION_REFUSED = 0xc0000236,
  ADDRESS_ALREADY_ASSOCIATED = 0xc0000238,
  ADDRESS_NOT_ASSOCIATED = 0xc0000239,
  CONNECTION_INVALID = 0xc000023a,
  CONNECTION_ACTIVE = 0xc000023b,
  NETWORK_UNREACHABLE = 0xc000023c,
  CONNECTION_ABORTED = 0xc0000241,
  DEVICE_REMOVED = 0xc00002b6,
  NO_INTERFACE = 0x80004002,
  NOT_IMPLEMENTED = 0x80004001,
};

}  // namespace nd2
