// Queue pairs: their requests in order, frames of peers, and the transition to ERROR.
#pragma once
#include <deque>
#include <string>
#include "completion-queue.h"
#include "memory.h"
#include "wire.h"

namespace nd2 {

class Connector;
class SharedReceiveQueue;

/// A posted Receive.
struct PostedReceive {
  void* context;
  Sgl sgl;
};

/// Options of a new queue pair.
struct QueuePairOptions {
  void* context = nullptr;
  ULONG receiveDepth = 0, initiatorDepth = 0, receiveSge = 0, initiatorSge = 0, inlineBytes = 0;
};

class QueuePair final : public Com<IND2QueuePair, Kind::QueuePair> {
 public:
  QueuePair(Adapter* adapter, CompletionQueue* receiveQueue, CompletionQueue* initiatorQueue,
            SharedReceiveQueue* shared, const QueuePairOptions& options);
  HRESULT STDMETHODCALLTYPE Flush() override;
  HRESULT STDMETHODCALLTYPE Send(void* context, const ND2_SGE* sge, ULONG count, ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Receive(void* context, const ND2_SGE* sge, ULONG count) override;
  HRESULT STDMETHODCALLTYPE Bind(void* context, IUnknown* region, IUnknown* window, const void* buffer, SIZE_T bytes,
                                 ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Invalidate(void* context, IUnknown* window, ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Read(void* context, const ND2_SGE* sge, ULONG count, UINT64 address, UINT32 token,
                                 ULONG flags) override;
  HRESULT STDMETHODCALLTYPE Write(void* context, const ND2_SGE* sge, ULONG count, UINT64 address, UINT32 token,
                                  ULONG flags) override;

  const Adapter* adapter() const { return adapter_.get(); }
  /// The connector that uses it, if any.
  Connector* connector() const { return connector_; }
  void attach(Connector* connector) { connector_ = connector; }
  void detach() { connector_ = nullptr; }
  /// Connects it to another queue pair.
  void connect(const Place& peer, UINT32 inboundReads, UINT32 outboundReads);
  /// Moves it to ERROR and cancels all outstanding requests.
  void flush();
  bool finished() const { return state_ == State::Finished; }
  /// Called when the client has taken a completion.
  void taken(const Completion& completion);
  void receive(Frame& frame);
  /// Fails the requests that a process has not answered, as an adapter does when its retries are exhausted.
  void exhaust(DWORD process);
  /// Called when its shared receive queue has a Receive again.
  void resume();

 private:
  enum class State { Idle, Connected, Finished };
  struct Request {
    UINT64 number;
    ND2_REQUEST_TYPE type;
    void* context;
    ULONG flags;
    Sgl sgl;
    UINT64 address;
    UINT32 token;
    std::vector<char> inlined;
    bool isInline;
    bool sent;
    std::optional<Status> outcome;
  };
  void released() override;
  void gone() override;
  /// Checks and copies a list. Returns S_OK or the error of the post.
  HRESULT copyList(const ND2_SGE* sge, ULONG count, ULONG most, Sgl& sgl) const;
  HRESULT initiate(Request request);
  HRESULT transfer(ND2_REQUEST_TYPE type, void* context, const ND2_SGE* sge, ULONG count, UINT64 address, UINT32 token,
                   ULONG flags, ULONG known, ULONG most);
  /// Sends requests and reports completions, in order.
  void advance();
  void launch(Request& request);
  void complete(const Request& request, Status status);
  void completeReceive(const PostedReceive& receive, Status status, ULONG bytes, bool solicited);
  /// Ends the connection, because a request has failed.
  void fail();
  /// Executes a frame of the peer. Returns false if it must wait for a Receive.
  bool execute(Frame& frame);
  bool deliver(Frame& frame);
  void acknowledge(const Frame& frame, Status status, std::vector<char> bytes = {});
  void acknowledged(Frame& frame);
  void awaitReceive();

  Ref<Adapter> adapter_;
  Ref<CompletionQueue> receiveQueue_, initiatorQueue_;
  Ref<SharedReceiveQueue> shared_;
  const QueuePairOptions options_;
  State state_ = State::Idle;
  Connector* connector_ = nullptr;
  Place peer_;
  UINT32 inboundReads_ = 0, outboundReads_ = 0;
  std::deque<PostedReceive> receives_;
  std::deque<Request> requests_;
  std::deque<Frame> waiting_;  ///< from the peer, for a Receive
  ULONG receivesUsed_ = 0, requestsUsed_ = 0, silent_ = 0;
  UINT64 lastNumber_ = 0;
  UINT64 patience_ = 0;  ///< counts the waits for a Receive
};

/// Copies a client's list. Returns S_OK or the error of the post.
HRESULT copySgl(const ND2_SGE* sge, ULONG count, ULONG most, Sgl& sgl);

/// Replies to a frame whose queue pair no longer exists.
void replyMissing(const Frame& frame);
/// Removes the device: all requests and connections end.
void removeDevice();

}  // namespace nd2
