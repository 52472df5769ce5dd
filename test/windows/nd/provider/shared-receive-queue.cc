#include "shared-receive-queue.h"
#include "adapter.h"

namespace nd2 {

SharedReceiveQueue::SharedReceiveQueue(Adapter* adapter, std::shared_ptr<File> file, ULONG depth, ULONG maxSge,
                                       ULONG threshold, KAFFINITY affinity)
    : adapter_(adapter), depth_(depth), threshold_(threshold), maxSge_(maxSge), affinity_(affinity) {
  file_ = std::move(file);
}

HRESULT SharedReceiveQueue::CancelOverlappedRequests() {
  const Call call(*this, "IND2SharedReceiveQueue::CancelOverlappedRequests");
  if (call.failed()) return call.status();
  cancelAll();
  return result(SUCCESS);
}

HRESULT SharedReceiveQueue::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  const Call call(*this, "IND2SharedReceiveQueue::GetOverlappedResult");
  if (call.failed()) return call.status();
  return overlappedResult(overlapped, wait);
}

HRESULT SharedReceiveQueue::GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) {
  const Call call(*this, "IND2SharedReceiveQueue::GetNotifyAffinity");
  if (call.failed()) return call.status();
  return outputAffinity(affinity_, group, affinity);
}

HRESULT SharedReceiveQueue::Modify(ULONG depth, ULONG threshold) {
  const Call call(*this, "IND2SharedReceiveQueue::Modify");
  if (call.failed()) return call.status();
  const ULONG deep = depth == 0 ? depth_ : depth;
  if (deep > static_cast<ULONG>(modes.srq) || threshold > deep) {
    violation("depth %lu, threshold %lu", depth, threshold);
    return result(INVALID_PARAMETER);
  }
  if (deep < receives_.size()) return result(BUFFER_OVERFLOW);
  depth_ = deep;
  if (threshold != 0) threshold_ = threshold;
  return result(SUCCESS);
}

HRESULT SharedReceiveQueue::Notify(OVERLAPPED* overlapped) {
  const Call call(*this, "IND2SharedReceiveQueue::Notify");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2SharedReceiveQueue::Notify", overlapped)) return *outcome;
  if (low()) return settle(*this, overlapped, SUCCESS);
  const HRESULT pending = wait(*this, overlapped);
  notices_.push_back(overlapped);
  return pending;
}

HRESULT SharedReceiveQueue::Receive(void* context, const ND2_SGE* sge, ULONG count) {
  const Call call(*this, "IND2SharedReceiveQueue::Receive");
  if (call.failed()) return call.status();
  PostedReceive receive{context, {}};
  const HRESULT copied = copySgl(sge, count, maxSge_, receive.sgl);
  if (copied != S_OK) return copied;
  if (receives_.size() >= depth_) return result(NO_MORE_ENTRIES);
  receives_.push_back(std::move(receive));
  if (!waiting_.empty()) {
    const Ref<QueuePair> first = std::move(waiting_.front());
    waiting_.pop_front();
    first->resume();
  }
  return result(SUCCESS);
}

bool SharedReceiveQueue::take(PostedReceive& receive) {
  if (receives_.empty()) return false;
  receive = std::move(receives_.front());
  receives_.pop_front();
  if (low())
    for (auto* const notice : std::exchange(notices_, {})) finish(*this, notice, SUCCESS);
  return true;
}

void SharedReceiveQueue::cancelAll() {
  for (auto* const notice : std::exchange(notices_, {})) finish(*this, notice, CANCELED);
  completeDelayed(*this);
}

void SharedReceiveQueue::released() {
  cancelAll();
  // No more Receives can be posted, and waiting queue pairs refer to this queue.
  waiting_.clear();
}

void SharedReceiveQueue::gone() {
  receives_.clear();
  waiting_.clear();
  adapter_ = {};
  file_.reset();
}

}  // namespace nd2
