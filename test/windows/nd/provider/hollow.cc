#include "hollow.h"

namespace nd2 {

namespace {

class HollowQueue final : public Com<IND2CompletionQueue, Kind::HollowCompletionQueue> {
 public:
  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override { return S_OK; }
  HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED*, BOOL) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE GetNotifyAffinity(USHORT*, KAFFINITY*) override { return result(NOT_SUPPORTED); }
  HRESULT STDMETHODCALLTYPE Resize(ULONG) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE Notify(ULONG, OVERLAPPED*) override { return S_OK; }
  ULONG STDMETHODCALLTYPE GetResults(ND2_RESULT* results, ULONG count) override {
    if (count == 0 || !sent) return 0;
    sent = false;
    results[0] = last;
    return 1;
  }

  bool sent = false;
  ND2_RESULT last{};
};

class HollowPair final : public Com<IND2QueuePair, Kind::HollowQueuePair> {
 public:
  HollowPair(HollowQueue* queue, void* context) : queue_(queue), context_(context) {}
  HRESULT STDMETHODCALLTYPE Flush() override { return S_OK; }
  HRESULT STDMETHODCALLTYPE Send(void* context, const ND2_SGE*, ULONG, ULONG) override {
    queue_->last = {S_OK, 0, context_, context, ND2_SEND};
    queue_->sent = true;
    return S_OK;
  }
  HRESULT STDMETHODCALLTYPE Receive(void*, const ND2_SGE*, ULONG) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE Bind(void*, IUnknown*, IUnknown*, const void*, SIZE_T, ULONG) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE Invalidate(void*, IUnknown*, ULONG) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE Read(void*, const ND2_SGE*, ULONG, UINT64, UINT32, ULONG) override { return S_OK; }
  HRESULT STDMETHODCALLTYPE Write(void*, const ND2_SGE*, ULONG, UINT64, UINT32, ULONG) override { return S_OK; }

 private:
  void gone() override { queue_ = {}; }
  Ref<HollowQueue> queue_;
  void* const context_;
};

}  // namespace

HRESULT giveHollowQueue(void** queue) { return give(new HollowQueue, queue); }

HRESULT createHollowPair(IUnknown* queue, void* context, void** queuePair) {
  auto* const found = find<HollowQueue>(queue);
  if (found == nullptr) return result(INVALID_PARAMETER_3);
  return give(new HollowPair(found, context), queuePair);
}

}  // namespace nd2

/// Returns the time of one Send and one GetResults in ns, as the mean of `rounds` calls through the vtable.
extern "C" __declspec(dllexport) double standin_bare(IND2QueuePair* queuePair, IND2CompletionQueue* queue, ND2_SGE* sge,
                                                     ND2_RESULT* results, UINT32 rounds) {
  LARGE_INTEGER frequency, begun, ended;
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&begun);
  for (UINT32 i = 0; i < rounds; i++) {
    if (queuePair->Send(sge, sge, 1, 0) != S_OK || queue->GetResults(results, 1) != 1) return -1;
  }
  QueryPerformanceCounter(&ended);
  return 1e9 * static_cast<double>(ended.QuadPart - begun.QuadPart) / static_cast<double>(frequency.QuadPart) / rounds;
}
