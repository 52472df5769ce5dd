// Completion queues: their entries, the slots that these free in queue pairs, and notifications.
#pragma once
#include <deque>
#include <vector>
#include "overlapped.h"

namespace nd2 {

class Adapter;
class QueuePair;

/// A completed request, and the number of slots of its queue that are freed when the client takes it.
struct Completion {
  ND2_RESULT result;
  Ref<QueuePair> queuePair;
  ULONG frees = 1;
  bool receive = false;
};

class CompletionQueue final : public Com<IND2CompletionQueue, Kind::CompletionQueue>, public Waiter {
 public:
  CompletionQueue(Adapter* adapter, std::shared_ptr<File> file, ULONG depth, KAFFINITY affinity);
  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override;
  HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT STDMETHODCALLTYPE GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) override;
  HRESULT STDMETHODCALLTYPE Resize(ULONG depth) override;
  HRESULT STDMETHODCALLTYPE Notify(ULONG type, OVERLAPPED* overlapped) override;
  ULONG STDMETHODCALLTYPE GetResults(ND2_RESULT* results, ULONG count) override;

  const Adapter* adapter() const { return adapter_.get(); }
  void add(Completion completion, bool solicited);
  /// Removes the entries of a queue pair.
  void discard(const QueuePair& queuePair);

 private:
  struct Notice {
    ULONG type;
    OVERLAPPED* overlapped;
  };
  void released() override;
  void gone() override;
  void cancelAll();
  /// Completes the notifications that new entries match.
  void completeNotifications();
  bool concerns(ULONG type) const;

  Ref<Adapter> adapter_;
  std::deque<Completion> entries_;
  std::vector<Notice> notices_;
  ULONG depth_;
  const KAFFINITY affinity_;
  bool overrun_ = false;
  /// Numbers of the last entry, of the last one that completes SOLICITED, and of the last one that was notified.
  UINT64 last_ = 0, lastSolicited_ = 0, notified_ = 0;
};

}  // namespace nd2
