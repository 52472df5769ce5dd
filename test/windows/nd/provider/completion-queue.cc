#include "completion-queue.h"
#include <algorithm>
#include "adapter.h"
#include "queue-pair.h"

namespace nd2 {

CompletionQueue::CompletionQueue(Adapter* adapter, std::shared_ptr<File> file, ULONG depth, KAFFINITY affinity)
    : adapter_(adapter), depth_(depth), affinity_(affinity) {
  file_ = std::move(file);
}

HRESULT CompletionQueue::CancelOverlappedRequests() {
  const Call call(*this, "IND2CompletionQueue::CancelOverlappedRequests");
  if (call.failed()) return call.status();
  cancelAll();
  return result(SUCCESS);
}

HRESULT CompletionQueue::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  const Call call(*this, "IND2CompletionQueue::GetOverlappedResult");
  if (call.failed()) return call.status();
  return overlappedResult(overlapped, wait);
}

HRESULT CompletionQueue::GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) {
  const Call call(*this, "IND2CompletionQueue::GetNotifyAffinity");
  if (call.failed()) return call.status();
  return outputAffinity(affinity_, group, affinity);
}

HRESULT CompletionQueue::Resize(ULONG depth) {
  const Call call(*this, "IND2CompletionQueue::Resize");
  if (call.failed()) return call.status();
  if (modes.resize == 0) {
    violation("the adapter has no CQ_RESIZE_SUPPORTED");
    return result(NOT_IMPLEMENTED);
  }
  if (depth == 0 || depth > MAX_COMPLETION_QUEUE) {
    violation("depth %lu", depth);
    return result(INVALID_PARAMETER);
  }
  if (depth < entries_.size()) return result(BUFFER_OVERFLOW);
  depth_ = depth;
  return result(SUCCESS);
}

HRESULT CompletionQueue::Notify(ULONG type, OVERLAPPED* overlapped) {
  const Call call(*this, "IND2CompletionQueue::Notify");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2CompletionQueue::Notify", overlapped)) return *outcome;
  if (type > ND2_NOTIFY_SOLICITED) {
    violation("type %lu", type);
    return result(INVALID_PARAMETER);
  }
  if (overrun_) return settle(*this, overlapped, BUFFER_OVERFLOW);
  if (concerns(type)) {
    notified_ = last_;
    return settle(*this, overlapped, SUCCESS);
  }
  const HRESULT pending = wait(*this, overlapped);
  notices_.push_back({type, overlapped});
  return pending;
}

ULONG CompletionQueue::GetResults(ND2_RESULT* results, ULONG count) {
  const Call call(*this, "IND2CompletionQueue::GetResults");
  // Results remain after the removal of the device.
  if (call.failed() && modes.removed == 0) return static_cast<ULONG>(call.status());
  if (count > 0 && !mapped(results, count * sizeof(ND2_RESULT), Access::Write)) {
    violation("no room for %lu results at %p", count, static_cast<void*>(results));
    return 0;
  }
  ULONG taken = 0;
  for (; taken < count && !entries_.empty(); taken++) {
    const Completion& entry = entries_.front();
    results[taken] = entry.result;
    if (entry.queuePair) entry.queuePair->taken(entry);
    entries_.pop_front();
  }
  if (taken < count) notified_ = last_;
  return taken;
}

void CompletionQueue::add(Completion completion, bool solicited) {
  if (overrun_ || !held()) return;
  if (entries_.size() >= depth_) {
    overrun_ = true;
    for (const Notice& notice : std::exchange(notices_, {})) finish(*this, notice.overlapped, BUFFER_OVERFLOW);
    return;
  }
  last_++;
  if (solicited || completion.result.Status != S_OK) lastSolicited_ = last_;
  entries_.push_back(std::move(completion));
  completeNotifications();
}

bool CompletionQueue::concerns(ULONG type) const {
  if (type == ND2_NOTIFY_ERRORS) return false;
  return (type == ND2_NOTIFY_ANY ? last_ : lastSolicited_) > notified_;
}

void CompletionQueue::completeNotifications() {
  // A notification of ANY also completes those of SOLICITED.
  bool ends = false;
  for (const Notice& notice : notices_) ends = ends || concerns(notice.type);
  if (!ends) return;
  notified_ = last_;
  std::vector<Notice> kept;
  for (const Notice& notice : std::exchange(notices_, {})) {
    if (notice.type == ND2_NOTIFY_ERRORS) kept.push_back(notice);
    else finish(*this, notice.overlapped, SUCCESS);
  }
  notices_ = std::move(kept);
}

void CompletionQueue::discard(const QueuePair& queuePair) {
  const auto its = [&queuePair](const Completion& entry) { return entry.queuePair.get() == &queuePair; };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), its), entries_.end());
}

void CompletionQueue::cancelAll() {
  for (const Notice& notice : std::exchange(notices_, {})) finish(*this, notice.overlapped, CANCELED);
  completeDelayed(*this);
}

void CompletionQueue::released() {
  cancelAll();
  // The entries can no longer be consumed, and refer to queue pairs that refer to this queue.
  entries_.clear();
}

void CompletionQueue::gone() {
  entries_.clear();
  adapter_ = {};
  file_.reset();
}

}  // namespace nd2
