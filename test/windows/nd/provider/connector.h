// Connectors and listeners: the connection manager. States and statuses are those of the SPI's reference.
#pragma once
#include <deque>
#include <memory>
#include "queue-pair.h"

namespace nd2 {

/// A connection request in a listener's backlog.
struct KeptRequest {
  Place from;
  Frame frame;
};

class Connector final : public Com<IND2Connector, Kind::Connector>, public Waiter {
 public:
  Connector(Adapter* adapter, std::shared_ptr<File> file);
  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override;
  HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT STDMETHODCALLTYPE Bind(const sockaddr* address, ULONG bytes) override;
  HRESULT STDMETHODCALLTYPE Connect(IUnknown* queuePair, const sockaddr* address, ULONG bytes, ULONG inbound,
                                    ULONG outbound, const void* data, ULONG dataBytes, OVERLAPPED* overlapped) override;
  HRESULT STDMETHODCALLTYPE CompleteConnect(OVERLAPPED* overlapped) override;
  HRESULT STDMETHODCALLTYPE Accept(IUnknown* queuePair, ULONG inbound, ULONG outbound, const void* data,
                                   ULONG dataBytes, OVERLAPPED* overlapped) override;
  HRESULT STDMETHODCALLTYPE Reject(const void* data, ULONG dataBytes) override;
  HRESULT STDMETHODCALLTYPE GetReadLimits(ULONG* inbound, ULONG* outbound) override;
  HRESULT STDMETHODCALLTYPE GetPrivateData(void* data, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE GetLocalAddress(sockaddr* address, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE GetPeerAddress(sockaddr* address, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE NotifyDisconnect(OVERLAPPED* overlapped) override;
  HRESULT STDMETHODCALLTYPE Disconnect(OVERLAPPED* overlapped) override;

  enum class State {
    Idle,
    Bound,
    Queued,
    Requested,
    Accepting,
    Connecting,
    Replied,
    Connected,
    Disconnecting,
    PeerDisconnected,
    Disconnected
  };
  State state() const { return state_; }
  const Adapter* adapter() const { return adapter_.get(); }
  const Place& peer() const { return peer_; }
  /// Starts and stops waiting at a listener.
  void queued() { state_ = State::Queued; }
  void unqueued() { state_ = State::Idle; }
  /// Assigns a connection request.
  void take(const KeptRequest& request);
  /// Handles a frame of the peer.
  void receive(const Frame& frame);
  /// Called when its queue pair has failed.
  void queuePairFailed();
  /// Called when the peer, or its request, no longer exists.
  void peerLost();

 private:
  void released() override;
  void gone() override;
  std::optional<HRESULT> checkData(const void* data, ULONG bytes, ULONG most);
  QueuePair* findQueuePair(IUnknown* queuePair);
  void sendToPeer(FrameKind kind, const void* data = nullptr, ULONG bytes = 0);
  void refused(const Frame& frame);
  void peerDisconnects();
  /// Ends the connection: flushes the queue pair and drops the reference to it.
  void endQueuePair();
  void detach();
  void endNotices(Status status);
  void abandon();

  Ref<Adapter> adapter_;
  State state_ = State::Idle;
  SOCKADDR_INET local_{}, remote_{};
  Ref<QueuePair> queuePair_;
  Place peer_;
  UINT64 peersQueuePair_ = 0;
  UINT32 inbound_ = 0, outbound_ = 0;  ///< the peer's offer, or what it grants, in this side's view
  UINT32 ownInbound_ = 0, ownOutbound_ = 0;
  std::vector<char> data_;
  bool hasData_ = false;
  OVERLAPPED* establishing_ = nullptr;  ///< Connect or Accept
  OVERLAPPED* disconnecting_ = nullptr;
  std::vector<OVERLAPPED*> notices_;
};

class Listener final : public Com<IND2Listener, Kind::Listener>, public Waiter {
 public:
  Listener(Adapter* adapter, std::shared_ptr<File> file);
  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override;
  HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT STDMETHODCALLTYPE Bind(const sockaddr* address, ULONG bytes) override;
  HRESULT STDMETHODCALLTYPE Listen(ULONG backlog) override;
  HRESULT STDMETHODCALLTYPE GetLocalAddress(sockaddr* address, ULONG* bytes) override;
  HRESULT STDMETHODCALLTYPE GetConnectionRequest(IUnknown* connector, OVERLAPPED* overlapped) override;

  void requested(const Frame& frame);
  /// Removes a request from the backlog, because its sender has withdrawn it.
  void drop(const Place& from);
  void dropAllOf(DWORD process);

 private:
  struct Waiting {
    Ref<Connector> connector;
    OVERLAPPED* overlapped;
  };
  void released() override;
  void gone() override;
  void cancelAll();
  void match();

  Ref<Adapter> adapter_;
  SOCKADDR_INET local_{};
  std::unique_ptr<Claim> claim_;
  bool listening_ = false;
  ULONG backlog_ = 0;
  std::deque<Waiting> waiting_;
  std::deque<KeptRequest> kept_;
};

/// Rejects a request whose listener does not exist.
void refuse(const Frame& frame);
/// Handles the withdrawal of a request by its sender.
void abandoned(const Place& from);
/// Handles the end of another process.
void processGone(DWORD process);
/// Fails the requests that an unreachable process has not answered.
void retriesExhausted(DWORD process);

}  // namespace nd2
