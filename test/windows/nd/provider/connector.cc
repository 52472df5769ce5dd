#include "connector.h"
#include <algorithm>
#include <cstring>
#include "adapter.h"
#include "addresses.h"

namespace nd2 {

Connector::Connector(Adapter* adapter, std::shared_ptr<File> file) : adapter_(adapter) { file_ = std::move(file); }

// ── Calls of the client ──

HRESULT Connector::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  const Call call(*this, "IND2Connector::GetOverlappedResult");
  if (call.failed()) return call.status();
  return overlappedResult(overlapped, wait);
}

HRESULT Connector::CancelOverlappedRequests() {
  const Call call(*this, "IND2Connector::CancelOverlappedRequests");
  if (call.failed()) return call.status();
  if (establishing_ != nullptr) {
    OVERLAPPED* const request = std::exchange(establishing_, nullptr);
    abandon();
    finish(*this, request, CANCELED);
  }
  if (disconnecting_ != nullptr) {
    state_ = State::Disconnected;
    finish(*this, std::exchange(disconnecting_, nullptr), CANCELED);
  }
  endNotices(CANCELED);
  completeDelayed(*this);
  return result(SUCCESS);
}

HRESULT Connector::Bind(const sockaddr* address, ULONG bytes) {
  const Call call(*this, "IND2Connector::Bind");
  if (call.failed()) return call.status();
  if (state_ != State::Idle) return result(ADDRESS_ALREADY_ASSOCIATED);
  auto copy = copyAddress(address, bytes);
  if (!copy || !isLocal(*copy)) return result(INVALID_ADDRESS);
  if (portOf(*copy) == 0) setPort(*copy, ephemeralPort());
  local_ = *copy;
  state_ = State::Bound;
  return result(SUCCESS);
}

std::optional<HRESULT> Connector::checkData(const void* data, ULONG bytes, ULONG most) {
  if (bytes > most) {
    violation("%lu bytes of private data", bytes);
    return result(INVALID_BUFFER_SIZE);
  }
  if (bytes > 0 && !mapped(data, bytes, Access::Read)) {
    violation("no private data at %p", data);
    return result(ACCESS_VIOLATION);
  }
  return std::nullopt;
}

QueuePair* Connector::findQueuePair(IUnknown* queuePair) {
  auto* const found = find<QueuePair>(queuePair);
  if (found != nullptr && found->adapter() == adapter()) return found;
  violation("%p is not a queue pair of the adapter", static_cast<void*>(queuePair));
  return nullptr;
}

HRESULT Connector::Connect(IUnknown* queuePair, const sockaddr* address, ULONG bytes, ULONG inbound, ULONG outbound,
                           const void* data, ULONG dataBytes, OVERLAPPED* overlapped) {
  const Call call(*this, "IND2Connector::Connect");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2Connector::Connect", overlapped)) return *outcome;
  const auto to = copyAddress(address, bytes);
  if (!to) return result(INVALID_ADDRESS);
  auto* const pair = findQueuePair(queuePair);
  if (pair == nullptr) return result(INVALID_PARAMETER_1);
  if (const auto wrong = checkData(data, dataBytes, MAX_CALLER_DATA)) return *wrong;
  if (state_ == State::Idle) return result(ADDRESS_NOT_ASSOCIATED);
  if (state_ == State::Queued || state_ == State::Disconnected) return result(INVALID_DEVICE_STATE);
  if (state_ != State::Bound || pair->connector() != nullptr) return result(CONNECTION_ACTIVE);
  if (pair->finished()) return result(INVALID_DEVICE_STATE);
  remote_ = *to;
  data_.clear();
  hasData_ = false;
  if (isWildcard(remote_)) return settle(*this, overlapped, BAD_NETWORK_NAME);
  if (!isLocal(remote_)) return settle(*this, overlapped, NETWORK_UNREACHABLE);
  const Place listener = listenerAt(remote_.si_family, portOf(remote_));
  if (listener.process == 0) return settle(*this, overlapped, CONNECTION_REFUSED);
  queuePair_ = Ref<QueuePair>(pair);
  pair->attach(this);
  ownInbound_ = std::min<UINT32>(inbound, MAX_INBOUND_READS);
  ownOutbound_ = std::min<UINT32>(outbound, MAX_OUTBOUND_READS);
  peer_ = listener;
  const HRESULT pending = wait(*this, overlapped);
  establishing_ = overlapped;
  state_ = State::Connecting;
  sendToPeer(FrameKind::Request, data, dataBytes);
  return pending;
}

HRESULT Connector::CompleteConnect(OVERLAPPED* overlapped) {
  const Call call(*this, "IND2Connector::CompleteConnect");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2Connector::CompleteConnect", overlapped)) return *outcome;
  if (state_ == State::Disconnected) return result(CONNECTION_ABORTED);
  if (state_ != State::Replied) return result(CONNECTION_INVALID);
  state_ = State::Connected;
  queuePair_->connect({peer_.process, peersQueuePair_}, std::min(ownInbound_, inbound_),
                      std::min(ownOutbound_, outbound_));
  sendToPeer(FrameKind::Ready);
  return settle(*this, overlapped, SUCCESS);
}

HRESULT Connector::Accept(IUnknown* queuePair, ULONG inbound, ULONG outbound, const void* data, ULONG dataBytes,
                          OVERLAPPED* overlapped) {
  const Call call(*this, "IND2Connector::Accept");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2Connector::Accept", overlapped)) return *outcome;
  auto* const pair = findQueuePair(queuePair);
  if (pair == nullptr) return result(INVALID_PARAMETER_1);
  if (const auto wrong = checkData(data, dataBytes, MAX_CALLEE_DATA)) return *wrong;
  if (state_ == State::Disconnected) return result(CONNECTION_ABORTED);
  if (state_ == State::Idle || state_ == State::Queued) return result(CONNECTION_INVALID);
  if (state_ != State::Requested || pair->connector() != nullptr) return result(CONNECTION_ACTIVE);
  if (pair->finished()) return result(INVALID_DEVICE_STATE);
  queuePair_ = Ref<QueuePair>(pair);
  pair->attach(this);
  ownInbound_ = std::min<UINT32>({inbound, MAX_INBOUND_READS, inbound_});
  ownOutbound_ = std::min<UINT32>({outbound, MAX_OUTBOUND_READS, outbound_});
  const HRESULT pending = wait(*this, overlapped);
  establishing_ = overlapped;
  state_ = State::Accepting;
  // The peer can send from now on, too. This frame precedes everything that it sends.
  sendToPeer(FrameKind::Reply, data, dataBytes);
  pair->connect({peer_.process, peersQueuePair_}, ownInbound_, ownOutbound_);
  return pending;
}

HRESULT Connector::Reject(const void* data, ULONG dataBytes) {
  const Call call(*this, "IND2Connector::Reject");
  if (call.failed()) return call.status();
  if (const auto wrong = checkData(data, dataBytes, MAX_CALLEE_DATA)) return *wrong;
  if (state_ == State::Disconnected) return result(CONNECTION_INVALID);
  if (state_ != State::Requested && state_ != State::Replied) return result(INVALID_DEVICE_STATE);
  sendToPeer(FrameKind::Reject, data, dataBytes);
  endQueuePair();
  state_ = State::Disconnected;
  return result(SUCCESS);
}

HRESULT Connector::GetReadLimits(ULONG* inbound, ULONG* outbound) {
  const Call call(*this, "IND2Connector::GetReadLimits");
  if (call.failed()) return call.status();
  if (state_ == State::Disconnected) return result(CONNECTION_INVALID);
  if (state_ != State::Requested && state_ != State::Replied) return result(INVALID_DEVICE_STATE);
  if (inbound != nullptr) *inbound = inbound_;
  if (outbound != nullptr) *outbound = outbound_;
  return result(SUCCESS);
}

HRESULT Connector::GetPrivateData(void* data, ULONG* bytes) {
  const Call call(*this, "IND2Connector::GetPrivateData");
  if (call.failed()) return call.status();
  if (bytes == nullptr) {
    violation("a null pointer for the size");
    return result(INVALID_PARAMETER);
  }
  if (!hasData_) {
    const bool waits = state_ == State::Queued || state_ == State::Connecting;
    return result(waits ? INVALID_DEVICE_STATE : CONNECTION_INVALID);
  }
  const auto need = static_cast<ULONG>(data_.size());
  const ULONG room = data == nullptr ? 0 : *bytes;
  if (std::min(room, need) > 0) memcpy(data, data_.data(), std::min(room, need));
  *bytes = need;
  return result(room < need ? BUFFER_OVERFLOW : SUCCESS);
}

HRESULT Connector::GetLocalAddress(sockaddr* address, ULONG* bytes) {
  const Call call(*this, "IND2Connector::GetLocalAddress");
  if (call.failed()) return call.status();
  if (local_.si_family == 0) return result(ADDRESS_NOT_ASSOCIATED);
  return outputAddress(local_, address, bytes);
}

HRESULT Connector::GetPeerAddress(sockaddr* address, ULONG* bytes) {
  const Call call(*this, "IND2Connector::GetPeerAddress");
  if (call.failed()) return call.status();
  const bool none = state_ == State::Idle || state_ == State::Bound || state_ == State::Queued;
  if (none || remote_.si_family == 0) return result(CONNECTION_INVALID);
  return outputAddress(remote_, address, bytes);
}

HRESULT Connector::NotifyDisconnect(OVERLAPPED* overlapped) {
  const Call call(*this, "IND2Connector::NotifyDisconnect");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2Connector::NotifyDisconnect", overlapped)) return *outcome;
  switch (state_) {
    case State::Connected: break;
    case State::PeerDisconnected: return settle(*this, overlapped, SUCCESS);
    case State::Disconnecting:
    case State::Disconnected: return result(CONNECTION_DISCONNECTED);
    default: return result(CONNECTION_INVALID);
  }
  const HRESULT pending = wait(*this, overlapped);
  notices_.push_back(overlapped);
  return pending;
}

HRESULT Connector::Disconnect(OVERLAPPED* overlapped) {
  const Call call(*this, "IND2Connector::Disconnect");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2Connector::Disconnect", overlapped)) return *outcome;
  if (state_ == State::Disconnecting) return result(INVALID_DEVICE_STATE);
  if (state_ == State::PeerDisconnected) {
    endQueuePair();
    state_ = State::Disconnected;
    return settle(*this, overlapped, SUCCESS);
  }
  if (state_ != State::Connected) return result(CONNECTION_INVALID);
  const HRESULT pending = wait(*this, overlapped);
  disconnecting_ = overlapped;
  state_ = State::Disconnecting;
  endNotices(CONNECTION_DISCONNECTED);
  sendToPeer(FrameKind::Disconnect);
  endQueuePair();
  return pending;
}

// ── Frames of the peer ──

void Connector::sendToPeer(FrameKind kind, const void* data, ULONG bytes) {
  Frame frame;
  frame.head.kind = kind;
  frame.head.from = placeOf(*this);
  frame.head.to = peer_;
  frame.head.local = local_;
  frame.head.remote = remote_;
  frame.head.inbound = ownInbound_;
  frame.head.outbound = ownOutbound_;
  if (queuePair_) frame.head.queuePair = queuePair_->id();
  if (bytes > 0) frame.bytes.assign(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
  if (modes.padding != 0 && kind != FrameKind::Ready && kind != FrameKind::Disconnect)
    frame.bytes.resize(kind == FrameKind::Request ? MAX_CALLER_DATA : MAX_CALLEE_DATA);
  post(std::move(frame));
}

void Connector::take(const KeptRequest& request) {
  const FrameHead& head = request.frame.head;
  state_ = State::Requested;
  peer_ = request.from;
  peersQueuePair_ = head.queuePair;
  local_ = head.remote;
  remote_ = head.local;
  inbound_ = std::min<UINT32>(head.outbound, MAX_INBOUND_READS);
  outbound_ = std::min<UINT32>(head.inbound, MAX_OUTBOUND_READS);
  data_ = request.frame.bytes;
  hasData_ = true;
}

void Connector::receive(const Frame& frame) {
  const FrameHead& head = frame.head;
  switch (head.kind) {
    case FrameKind::Reply:
      if (state_ != State::Connecting) {
        Frame reply;
        reply.head.kind = FrameKind::Reject;
        reply.head.from = placeOf(*this);
        reply.head.to = head.from;
        return post(std::move(reply));
      }
      state_ = State::Replied;
      peer_ = head.from;
      peersQueuePair_ = head.queuePair;
      inbound_ = std::min<UINT32>(head.outbound, MAX_INBOUND_READS);
      outbound_ = std::min<UINT32>(head.inbound, MAX_OUTBOUND_READS);
      data_ = frame.bytes;
      hasData_ = true;
      return finish(*this, std::exchange(establishing_, nullptr), SUCCESS);
    case FrameKind::Ready:
      if (state_ != State::Accepting) return;
      state_ = State::Connected;
      return finish(*this, std::exchange(establishing_, nullptr), SUCCESS);
    case FrameKind::Reject: return refused(frame);
    case FrameKind::Disconnect: {
      Frame reply;
      reply.head.kind = FrameKind::Disconnected;
      reply.head.from = placeOf(*this);
      reply.head.to = head.from;
      post(std::move(reply));
      return peerDisconnects();
    }
    case FrameKind::Disconnected:
      if (state_ == State::Disconnecting) peerDisconnects();
      return;
    default: return;
  }
}

void Connector::refused(const Frame& frame) {
  OVERLAPPED* const request = std::exchange(establishing_, nullptr);
  switch (state_) {
    case State::Connecting:
      // The queue pair is unchanged and can be connected again.
      detach();
      state_ = State::Bound;
      data_ = frame.bytes;
      hasData_ = true;
      return finish(*this, request, CONNECTION_REFUSED);
    case State::Accepting:
      endQueuePair();
      state_ = State::Disconnected;
      return finish(*this, request, CONNECTION_REFUSED);
    case State::Replied:
      endQueuePair();
      state_ = State::Disconnected;
      return;
    default: return;
  }
}

void Connector::peerDisconnects() {
  switch (state_) {
    case State::Accepting:
      if (establishing_ != nullptr) finish(*this, std::exchange(establishing_, nullptr), SUCCESS);
      [[fallthrough]];
    case State::Connected:
      state_ = State::PeerDisconnected;
      endNotices(SUCCESS);
      if (queuePair_) queuePair_->flush();
      return;
    case State::Disconnecting:
      state_ = State::Disconnected;
      if (disconnecting_ != nullptr) finish(*this, std::exchange(disconnecting_, nullptr), SUCCESS);
      return;
    default: return;
  }
}

void Connector::queuePairFailed() {
  if (state_ == State::Connected || state_ == State::Accepting) {
    sendToPeer(FrameKind::Disconnect);
    peerDisconnects();
  } else if (state_ == State::Connecting || state_ == State::Replied) {
    OVERLAPPED* const request = std::exchange(establishing_, nullptr);
    abandon();
    if (request != nullptr) finish(*this, request, CONNECTION_ABORTED);
  }
  detach();
}

void Connector::peerLost() {
  switch (state_) {
    case State::Requested:
    case State::Replied:
      endQueuePair();
      state_ = State::Disconnected;
      return;
    case State::Connecting: {
      Frame none;
      return refused(none);
    }
    case State::Accepting: {
      OVERLAPPED* const request = std::exchange(establishing_, nullptr);
      endQueuePair();
      state_ = State::Disconnected;
      return finish(*this, request, CONNECTION_ABORTED);
    }
    default: return peerDisconnects();
  }
}

// ── End of the connection ──

void Connector::endNotices(Status status) {
  for (auto* const notice : std::exchange(notices_, {})) finish(*this, notice, status);
}

void Connector::detach() {
  if (queuePair_) queuePair_->detach();
  queuePair_ = {};
}

void Connector::endQueuePair() {
  if (queuePair_) queuePair_->flush();
  detach();
}

/// Notifies the peer that the attempt has ended.
void Connector::abandon() {
  switch (state_) {
    case State::Connecting:
      sendToPeer(FrameKind::Abandon);
      detach();
      break;
    case State::Requested:
    case State::Replied:
    case State::Accepting:
      sendToPeer(FrameKind::Reject);
      endQueuePair();
      break;
    case State::Connected:
      sendToPeer(FrameKind::Disconnect);
      endQueuePair();
      break;
    default: endQueuePair();
  }
  state_ = State::Disconnected;
}

void Connector::released() {
  OVERLAPPED* const request = std::exchange(establishing_, nullptr);
  OVERLAPPED* const ending = std::exchange(disconnecting_, nullptr);
  abandon();
  if (request != nullptr) finish(*this, request, CANCELED);
  if (ending != nullptr) finish(*this, ending, CANCELED);
  endNotices(CANCELED);
  completeDelayed(*this);
}

void Connector::gone() {
  data_.clear();
  adapter_ = {};
  file_.reset();
}

// ── Listeners ──

Listener::Listener(Adapter* adapter, std::shared_ptr<File> file) : adapter_(adapter) { file_ = std::move(file); }

HRESULT Listener::CancelOverlappedRequests() {
  const Call call(*this, "IND2Listener::CancelOverlappedRequests");
  if (call.failed()) return call.status();
  cancelAll();
  return result(SUCCESS);
}

HRESULT Listener::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  const Call call(*this, "IND2Listener::GetOverlappedResult");
  if (call.failed()) return call.status();
  return overlappedResult(overlapped, wait);
}

HRESULT Listener::Bind(const sockaddr* address, ULONG bytes) {
  const Call call(*this, "IND2Listener::Bind");
  if (call.failed()) return call.status();
  if (claim_) return result(ADDRESS_ALREADY_ASSOCIATED);
  auto copy = copyAddress(address, bytes);
  if (!copy || (!isLocal(*copy) && !isWildcard(*copy))) return result(INVALID_ADDRESS);
  if (portOf(*copy) != 0) {
    claim_.reset(Claim::take(copy->si_family, portOf(*copy)));
    if (!claim_) return result(SHARING_VIOLATION);
  }
  for (int i = 0; !claim_ && i < 16384; i++) {
    setPort(*copy, ephemeralPort());
    claim_.reset(Claim::take(copy->si_family, portOf(*copy)));
  }
  if (!claim_) return result(TOO_MANY_ADDRESSES);
  local_ = *copy;
  return result(SUCCESS);
}

HRESULT Listener::Listen(ULONG backlog) {
  const Call call(*this, "IND2Listener::Listen");
  if (call.failed()) return call.status();
  if (!claim_ || listening_) return result(INVALID_DEVICE_STATE);
  listening_ = true;
  backlog_ = backlog;
  claim_->announce(*this);
  return result(SUCCESS);
}

HRESULT Listener::GetLocalAddress(sockaddr* address, ULONG* bytes) {
  const Call call(*this, "IND2Listener::GetLocalAddress");
  if (call.failed()) return call.status();
  if (!claim_) return result(INVALID_DEVICE_STATE);
  return outputAddress(local_, address, bytes);
}

HRESULT Listener::GetConnectionRequest(IUnknown* connector, OVERLAPPED* overlapped) {
  const Call call(*this, "IND2Listener::GetConnectionRequest");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2Listener::GetConnectionRequest", overlapped)) return *outcome;
  auto* const passive = find<Connector>(connector);
  if (passive == nullptr || passive->adapter() != adapter_.get()) {
    violation("%p is not a connector of the adapter", static_cast<void*>(connector));
    return result(INVALID_PARAMETER_1);
  }
  if (!listening_) return result(INVALID_DEVICE_STATE);
  if (passive->state() != Connector::State::Idle) return result(CONNECTION_ACTIVE);
  if (!kept_.empty()) {
    passive->take(kept_.front());
    kept_.pop_front();
    return settle(*this, overlapped, SUCCESS);
  }
  const HRESULT pending = wait(*this, overlapped);
  passive->queued();
  waiting_.push_back({Ref<Connector>(passive), overlapped});
  return pending;
}

void Listener::requested(const Frame& frame) {
  if (!listening_ || (waiting_.empty() && backlog_ > 0 && kept_.size() >= backlog_)) return refuse(frame);
  kept_.push_back({frame.head.from, frame});
  match();
}

void Listener::match() {
  while (!waiting_.empty() && !kept_.empty()) {
    const Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    if (first.connector->state() != Connector::State::Queued) {
      // The connector was released meanwhile.
      finish(*this, first.overlapped, CANCELED);
      continue;
    }
    first.connector->take(kept_.front());
    kept_.pop_front();
    finish(*this, first.overlapped, SUCCESS);
  }
}

void Listener::drop(const Place& from) {
  const auto gone = [&from](const KeptRequest& request) { return request.from == from; };
  kept_.erase(std::remove_if(kept_.begin(), kept_.end(), gone), kept_.end());
}

void Listener::dropAllOf(DWORD process) {
  const auto gone = [process](const KeptRequest& request) { return request.from.process == process; };
  kept_.erase(std::remove_if(kept_.begin(), kept_.end(), gone), kept_.end());
}

void Listener::cancelAll() {
  for (const Waiting& one : std::exchange(waiting_, {})) {
    if (one.connector->state() == Connector::State::Queued) one.connector->unqueued();
    finish(*this, one.overlapped, CANCELED);
  }
  completeDelayed(*this);
}

void Listener::released() {
  cancelAll();
  for (const KeptRequest& request : std::exchange(kept_, {})) refuse(request.frame);
  listening_ = false;
  claim_.reset();
}

void Listener::gone() {
  adapter_ = {};
  file_.reset();
}

// ── All connectors ──

void refuse(const Frame& frame) {
  Frame reply;
  reply.head.kind = FrameKind::Reject;
  reply.head.from = frame.head.to;
  reply.head.to = frame.head.from;
  post(std::move(reply));
}

namespace {

template <typename T, typename Action>
void forEach(Action action) {
  std::vector<Ref<T>> all;
  for (const auto& [com, object] : objects())
    if (object->kind() == T::KIND && numbered<T>(object->id()) != nullptr) all.emplace_back(static_cast<T*>(object));
  for (const auto& one : all) action(*one.get());
}

}  // namespace

void abandoned(const Place& from) {
  forEach<Listener>([&from](Listener& listener) { listener.drop(from); });
  forEach<Connector>([&from](Connector& connector) {
    const bool passive = connector.state() == Connector::State::Requested;
    if ((passive || connector.state() == Connector::State::Accepting) && connector.peer() == from) connector.peerLost();
  });
}

void processGone(DWORD process) {
  forEach<Listener>([process](Listener& listener) { listener.dropAllOf(process); });
  forEach<Connector>([process](Connector& connector) {
    if (connector.peer().process == process) connector.peerLost();
  });
}

void retriesExhausted(DWORD process) {
  forEach<QueuePair>([process](QueuePair& pair) { pair.exhaust(process); });
}

}  // namespace nd2
