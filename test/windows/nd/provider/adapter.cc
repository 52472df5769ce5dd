#include "adapter.h"
#include "addresses.h"
#include "connector.h"
#include "hollow.h"
#include "shared-receive-queue.h"

namespace nd2 {

std::shared_ptr<File> Adapter::fileOf(HANDLE handle) const {
  const auto found = files_.find(handle);
  if (found != files_.end()) return found->second;
  violation("%p is not a file of CreateOverlappedFile", handle);
  return nullptr;
}

HRESULT Adapter::CreateOverlappedFile(HANDLE* file) {
  const Call call(*this, "IND2Adapter::CreateOverlappedFile");
  if (call.failed()) return call.status();
  if (file == nullptr) {
    violation("a null pointer for the handle");
    return result(INVALID_PARAMETER);
  }
  auto made = File::make(file);
  if (!made) return result(UNSUCCESSFUL);
  files_[*file] = std::move(made);
  return result(SUCCESS);
}

HRESULT Adapter::Query(ND2_ADAPTER_INFO* info, ULONG* bytes) {
  const Call call(*this, "IND2Adapter::Query");
  if (call.failed()) return call.status();
  if (bytes == nullptr) {
    violation("a null pointer for the size");
    return result(INVALID_PARAMETER);
  }
  const ULONG room = info == nullptr ? 0 : *bytes;
  *bytes = sizeof *info;
  if (room < sizeof *info) return result(BUFFER_OVERFLOW);
  if (info->InfoVersion != ND2_VERSION) return result(NOT_SUPPORTED);
  const auto setting = [](INT64 value) { return static_cast<ULONG>(value); };
  *info = {};
  info->InfoVersion = ND2_VERSION;
  info->VendorId = 0xabcd;
  info->DeviceId = 0x1234;
  info->AdapterId = ADAPTER_ID;
  info->MaxRegistrationSize = MAX_REGISTRATION;
  info->MaxWindowSize = modes.windows == 0 ? 0 : MAX_REGISTRATION;
  info->MaxInitiatorSge = setting(modes.sge);
  info->MaxReceiveSge = setting(modes.sge);
  info->MaxReadSge = modes.reads == 0 ? 0 : std::min(setting(modes.sge), MAX_READ_SGE);
  info->MaxTransferLength = setting(modes.transfer);
  info->MaxInlineDataSize = setting(modes.inlined);
  info->MaxInboundReadLimit = modes.reads == 0 ? 0 : MAX_INBOUND_READS;
  info->MaxOutboundReadLimit = modes.reads == 0 ? 0 : MAX_OUTBOUND_READS;
  info->MaxReceiveQueueDepth = MAX_QUEUE;
  info->MaxInitiatorQueueDepth = MAX_QUEUE;
  info->MaxSharedReceiveQueueDepth = setting(modes.srq);
  info->MaxCompletionQueueDepth = MAX_COMPLETION_QUEUE;
  info->InlineRequestThreshold = setting(modes.inlined);
  info->LargeRequestThreshold = 65536;
  info->MaxCallerData = MAX_CALLER_DATA;
  info->MaxCalleeData = MAX_CALLEE_DATA;
  info->AdapterFlags =
      ND2_ADAPTER_IN_ORDER_DMA | ND2_ADAPTER_LOOPBACK | (modes.resize == 0 ? 0 : ND2_ADAPTER_CQ_RESIZE);
  return result(SUCCESS);
}

HRESULT Adapter::QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) {
  const Call call(*this, "IND2Adapter::QueryAddressList");
  if (call.failed()) return call.status();
  return outputAddressList(list, bytes);
}

HRESULT Adapter::CreateCompletionQueue(REFIID iid, HANDLE file, ULONG depth, USHORT, KAFFINITY affinity, void** queue) {
  const Call call(*this, "IND2Adapter::CreateCompletionQueue");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::CompletionQueue, iid, queue);
  if (wrong != S_OK) return wrong;
  if (modes.hollow != 0) return giveHollowQueue(queue);
  auto own = fileOf(file);
  if (!own) return result(INVALID_HANDLE);
  if (depth == 0 || depth > MAX_COMPLETION_QUEUE) {
    violation("depth %lu", depth);
    return result(INVALID_PARAMETER_3);
  }
  return give(new CompletionQueue(this, std::move(own), depth, affinity), queue);
}

HRESULT Adapter::CreateMemoryRegion(REFIID iid, HANDLE file, void** region) {
  const Call call(*this, "IND2Adapter::CreateMemoryRegion");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::MemoryRegion, iid, region);
  if (wrong != S_OK) return wrong;
  auto own = fileOf(file);
  if (!own) return result(INVALID_HANDLE);
  return give(new MemoryRegion(this, std::move(own)), region);
}

HRESULT Adapter::CreateMemoryWindow(REFIID iid, void** window) {
  const Call call(*this, "IND2Adapter::CreateMemoryWindow");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::MemoryWindow, iid, window);
  if (wrong != S_OK) return wrong;
  if (modes.windows == 0) return result(NOT_IMPLEMENTED);
  return give(new MemoryWindow(this), window);
}

HRESULT Adapter::CreateSharedReceiveQueue(REFIID iid, HANDLE file, ULONG depth, ULONG maxSge, ULONG threshold, USHORT,
                                          KAFFINITY affinity, void** queue) {
  const Call call(*this, "IND2Adapter::CreateSharedReceiveQueue");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::SharedReceiveQueue, iid, queue);
  if (wrong != S_OK) return wrong;
  if (modes.srq == 0) return result(NOT_IMPLEMENTED);
  auto own = fileOf(file);
  if (!own) return result(INVALID_HANDLE);
  if (depth == 0 || depth > static_cast<ULONG>(modes.srq) || maxSge > static_cast<ULONG>(modes.sge) ||
      threshold > depth) {
    violation("depth %lu, %lu entries, threshold %lu", depth, maxSge, threshold);
    return result(INVALID_PARAMETER_3);
  }
  return give(new SharedReceiveQueue(this, std::move(own), depth, maxSge, threshold, affinity), queue);
}

namespace {

bool within(const char* what, ULONG value, INT64 least, INT64 most) {
  if (value >= least && value <= most) return true;
  violation("%s %lu", what, value);
  return false;
}

}  // namespace

HRESULT Adapter::CreateQueuePair(REFIID iid, IUnknown* receiveQueue, IUnknown* initiatorQueue, void* context,
                                 ULONG receiveDepth, ULONG initiatorDepth, ULONG maxReceiveSge, ULONG maxInitiatorSge,
                                 ULONG inlineBytes, void** queuePair) {
  const Call call(*this, "IND2Adapter::CreateQueuePair");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::QueuePair, iid, queuePair);
  if (wrong != S_OK) return wrong;
  if (modes.hollow != 0) return createHollowPair(initiatorQueue, context, queuePair);
  auto* const receives = find<CompletionQueue>(receiveQueue);
  auto* const initiates = find<CompletionQueue>(initiatorQueue);
  if (receives == nullptr || receives->adapter() != this) {
    violation("%p is not a completion queue of the adapter", static_cast<void*>(receiveQueue));
    return result(INVALID_PARAMETER_2);
  }
  if (initiates == nullptr || initiates->adapter() != this) {
    violation("%p is not a completion queue of the adapter", static_cast<void*>(initiatorQueue));
    return result(INVALID_PARAMETER_3);
  }
  if (!within("receive depth", receiveDepth, 1, MAX_QUEUE)) return result(INVALID_PARAMETER_5);
  if (!within("initiator depth", initiatorDepth, 1, MAX_QUEUE)) return result(INVALID_PARAMETER_6);
  if (!within("receive entries", maxReceiveSge, 1, modes.sge)) return result(INVALID_PARAMETER_7);
  if (!within("initiator entries", maxInitiatorSge, 1, modes.sge)) return result(INVALID_PARAMETER_8);
  if (!within("inline bytes", inlineBytes, 0, modes.inlined)) return result(INVALID_PARAMETER_9);
  const QueuePairOptions options{context, receiveDepth, initiatorDepth, maxReceiveSge, maxInitiatorSge, inlineBytes};
  return give(new QueuePair(this, receives, initiates, nullptr, options), queuePair);
}

HRESULT Adapter::CreateQueuePairWithSrq(REFIID iid, IUnknown* receiveQueue, IUnknown* initiatorQueue, IUnknown* shared,
                                        void* context, ULONG initiatorDepth, ULONG maxInitiatorSge, ULONG inlineBytes,
                                        void** queuePair) {
  const Call call(*this, "IND2Adapter::CreateQueuePairWithSrq");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::QueuePair, iid, queuePair);
  if (wrong != S_OK) return wrong;
  if (modes.srq == 0) return result(NOT_IMPLEMENTED);
  auto* const receives = find<CompletionQueue>(receiveQueue);
  auto* const initiates = find<CompletionQueue>(initiatorQueue);
  auto* const queue = find<SharedReceiveQueue>(shared);
  if (receives == nullptr || receives->adapter() != this || initiates == nullptr || initiates->adapter() != this) {
    violation("not a completion queue of the adapter");
    return result(receives == nullptr || receives->adapter() != this ? INVALID_PARAMETER_2 : INVALID_PARAMETER_3);
  }
  if (queue == nullptr || queue->adapter() != this) {
    violation("%p is not a shared receive queue of the adapter", static_cast<void*>(shared));
    return result(INVALID_PARAMETER_4);
  }
  if (!within("initiator depth", initiatorDepth, 1, MAX_QUEUE)) return result(INVALID_PARAMETER_6);
  if (!within("initiator entries", maxInitiatorSge, 1, modes.sge)) return result(INVALID_PARAMETER_7);
  if (!within("inline bytes", inlineBytes, 0, modes.inlined)) return result(INVALID_PARAMETER_8);
  const QueuePairOptions options{context, 0, initiatorDepth, 0, maxInitiatorSge, inlineBytes};
  return give(new QueuePair(this, receives, initiates, queue, options), queuePair);
}

HRESULT Adapter::CreateConnector(REFIID iid, HANDLE file, void** connector) {
  const Call call(*this, "IND2Adapter::CreateConnector");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::Connector, iid, connector);
  if (wrong != S_OK) return wrong;
  auto own = fileOf(file);
  if (!own) return result(INVALID_HANDLE);
  return give(new Connector(this, std::move(own)), connector);
}

HRESULT Adapter::CreateListener(REFIID iid, HANDLE file, void** listener) {
  const Call call(*this, "IND2Adapter::CreateListener");
  if (call.failed()) return call.status();
  const HRESULT wrong = checkMaking(Kind::Listener, iid, listener);
  if (wrong != S_OK) return wrong;
  auto own = fileOf(file);
  if (!own) return result(INVALID_HANDLE);
  return give(new Listener(this, std::move(own)), listener);
}

HRESULT outputAffinity(KAFFINITY wanted, USHORT* group, KAFFINITY* affinity) {
  if (modes.affinity == 0) return result(NOT_SUPPORTED);
  if (group == nullptr || affinity == nullptr) {
    violation("a null pointer for the affinity");
    return result(INVALID_PARAMETER);
  }
  *group = 0;
  *affinity = wanted == 0 ? 1 : wanted;
  return result(SUCCESS);
}

}  // namespace nd2
