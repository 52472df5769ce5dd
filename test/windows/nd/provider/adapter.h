// The provider, its adapter, and the adapter's limits.
#pragma once
#include <map>
#include <memory>
#include "overlapped.h"

namespace nd2 {

/// Uses all 64 bits, so that a conversion to a double or a signed integer would change it.
constexpr UINT64 ADAPTER_ID = 0x8123456789abcdef;
constexpr UINT64 MAX_REGISTRATION = UINT64{1} << 40;
constexpr ULONG MAX_COMPLETION_QUEUE = 1 << 20;
constexpr ULONG MAX_QUEUE = 16384;
constexpr ULONG MAX_READ_SGE = 8;
constexpr ULONG MAX_INBOUND_READS = 16, MAX_OUTBOUND_READS = 15;
constexpr ULONG MAX_CALLER_DATA = 56, MAX_CALLEE_DATA = 148;

class Adapter final : public Com<IND2Adapter, Kind::Adapter> {
 public:
  HRESULT STDMETHODCALLTYPE CreateOverlappedFile(HANDLE* file) override;
  HRESULT STDMETHODCALLTYPE Query(ND2_ADAPTER_INFO* info, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE CreateCompletionQueue(REFIID iid, HANDLE file, ULONG depth, USHORT group,
                                                  KAFFINITY affinity, void** queue) override;
  HRESULT STDMETHODCALLTYPE CreateMemoryRegion(REFIID iid, HANDLE file, void** region) override;
  HRESULT STDMETHODCALLTYPE CreateMemoryWindow(REFIID iid, void** window) override;
  HRESULT STDMETHODCALLTYPE CreateSharedReceiveQueue(REFIID iid, HANDLE file, ULONG depth, ULONG maxSge,
                                                     ULONG threshold, USHORT group, KAFFINITY affinity,
                                                     void** queue) override;
  HRESULT STDMETHODCALLTYPE CreateQueuePair(REFIID iid, IUnknown* receiveQueue, IUnknown* initiatorQueue, void* context,
                                            ULONG receiveDepth, ULONG initiatorDepth, ULONG maxReceiveSge,
                                            ULONG maxInitiatorSge, ULONG inlineBytes, void** queuePair) override;
  HRESULT STDMETHODCALLTYPE CreateQueuePairWithSrq(REFIID iid, IUnknown* receiveQueue, IUnknown* initiatorQueue,
                                                   IUnknown* shared, void* context, ULONG initiatorDepth,
                                                   ULONG maxInitiatorSge, ULONG inlineBytes, void** queuePair) override;
  HRESULT STDMETHODCALLTYPE CreateConnector(REFIID iid, HANDLE file, void** connector) override;
  HRESULT STDMETHODCALLTYPE CreateListener(REFIID iid, HANDLE file, void** listener) override;

 private:
  void gone() override { files_.clear(); }
  std::shared_ptr<File> fileOf(HANDLE handle) const;
  std::map<HANDLE, std::shared_ptr<File>> files_;
};

/// Sets the output parameters of GetNotifyAffinity.
HRESULT outputAffinity(KAFFINITY wanted, USHORT* group, KAFFINITY* affinity);

}  // namespace nd2
