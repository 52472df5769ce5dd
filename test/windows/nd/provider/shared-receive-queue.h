// Shared receive queues: Receives that several queue pairs share.
#pragma once
#include <deque>
#include "queue-pair.h"

namespace nd2 {

class SharedReceiveQueue final : public Com<IND2SharedReceiveQueue, Kind::SharedReceiveQueue>, public Waiter {
 public:
  SharedReceiveQueue(Adapter* adapter, std::shared_ptr<File> file, ULONG depth, ULONG maxSge, ULONG threshold,
                     KAFFINITY affinity);
  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override;
  HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT STDMETHODCALLTYPE GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) override;
  HRESULT STDMETHODCALLTYPE Modify(ULONG depth, ULONG threshold) override;
  HRESULT STDMETHODCALLTYPE Notify(OVERLAPPED* overlapped) override;
  HRESULT STDMETHODCALLTYPE Receive(void* context, const ND2_SGE* sge, ULONG count) override;

  const Adapter* adapter() const { return adapter_.get(); }
  /// Takes the first Receive; returns false if there is none.
  bool take(PostedReceive& receive);
  /// Called when a message of this queue pair waits for a Receive.
  void await(QueuePair* queuePair) { waiting_.emplace_back(queuePair); }

 private:
  void released() override;
  void gone() override;
  void cancelAll();
  bool low() const { return threshold_ > 0 && receives_.size() < threshold_; }

  Ref<Adapter> adapter_;
  std::deque<PostedReceive> receives_;
  std::vector<OVERLAPPED*> notices_;
  std::deque<Ref<QueuePair>> waiting_;
  ULONG depth_, threshold_;
  const ULONG maxSge_;
  const KAFFINITY affinity_;
};

}  // namespace nd2
