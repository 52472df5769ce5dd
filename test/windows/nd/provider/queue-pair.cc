#include "queue-pair.h"
#include <algorithm>
#include <cstring>
#include "adapter.h"
#include "clock.h"
#include "connector.h"
#include "shared-receive-queue.h"

namespace nd2 {

QueuePair::QueuePair(Adapter* adapter, CompletionQueue* receiveQueue, CompletionQueue* initiatorQueue,
                     SharedReceiveQueue* shared, const QueuePairOptions& options)
    : adapter_(adapter),
      receiveQueue_(receiveQueue),
      initiatorQueue_(initiatorQueue),
      shared_(shared),
      options_(options) {}

// ── Posts ──

HRESULT copySgl(const ND2_SGE* sge, ULONG count, ULONG most, Sgl& sgl) {
  if (count > most) {
    violation("%lu entries where %lu are allowed", count, most);
    return result(DATA_OVERRUN);
  }
  if (count > 0 && !mapped(sge, count * sizeof *sge, Access::Read)) {
    violation("no list of %lu entries at %p", count, static_cast<const void*>(sge));
    return result(ACCESS_VIOLATION);
  }
  if (count > 0) sgl.assign(sge, sge + count);
  if (lengthOf(sgl) > static_cast<UINT64>(modes.transfer)) {
    violation("%llu bytes in a request", lengthOf(sgl));
    return result(BUFFER_OVERFLOW);
  }
  return S_OK;
}

HRESULT QueuePair::Flush() {
  const Call call(*this, "IND2QueuePair::Flush");
  if (call.failed()) return call.status();
  if (modes.flush != 0) flush();
  return result(SUCCESS);
}

HRESULT QueuePair::Receive(void* context, const ND2_SGE* sge, ULONG count) {
  const Call call(*this, "IND2QueuePair::Receive");
  if (call.failed()) return call.status();
  if (shared_) {
    violation("the queue pair has a shared receive queue");
    return result(INVALID_DEVICE_REQUEST);
  }
  PostedReceive receive{context, {}};
  const HRESULT copied = copySgl(sge, count, options_.receiveSge, receive.sgl);
  if (copied != S_OK) return copied;
  if (receivesUsed_ >= options_.receiveDepth) return result(NO_MORE_ENTRIES);
  receivesUsed_++;
  if (state_ == State::Finished) {
    completeReceive(receive, CANCELED, 0, false);
    return result(SUCCESS);
  }
  receives_.push_back(std::move(receive));
  resume();
  return result(SUCCESS);
}

HRESULT QueuePair::Send(void* context, const ND2_SGE* sge, ULONG count, ULONG flags) {
  const Call call(*this, "IND2QueuePair::Send");
  if (call.failed()) return call.status();
  return transfer(ND2_SEND, context, sge, count, 0, 0, flags,
                  ND2_OP_SILENT | ND2_OP_READ_FENCE | ND2_OP_SOLICIT | ND2_OP_INLINE, options_.initiatorSge);
}

HRESULT QueuePair::Write(void* context, const ND2_SGE* sge, ULONG count, UINT64 address, UINT32 token, ULONG flags) {
  const Call call(*this, "IND2QueuePair::Write");
  if (call.failed()) return call.status();
  return transfer(ND2_WRITE, context, sge, count, address, token, flags,
                  ND2_OP_SILENT | ND2_OP_READ_FENCE | ND2_OP_INLINE, options_.initiatorSge);
}

HRESULT QueuePair::Read(void* context, const ND2_SGE* sge, ULONG count, UINT64 address, UINT32 token, ULONG flags) {
  const Call call(*this, "IND2QueuePair::Read");
  if (call.failed()) return call.status();
  if (modes.reads == 0) return result(NOT_IMPLEMENTED);
  const ULONG most = std::min(options_.initiatorSge, static_cast<ULONG>(MAX_READ_SGE));
  return transfer(ND2_READ, context, sge, count, address, token, flags, ND2_OP_SILENT | ND2_OP_READ_FENCE, most);
}

HRESULT QueuePair::transfer(ND2_REQUEST_TYPE type, void* context, const ND2_SGE* sge, ULONG count, UINT64 address,
                            UINT32 token, ULONG flags, ULONG known, ULONG most) {
  if ((flags & ~known) != 0) {
    violation("flags %#lx", flags);
    if (type != ND2_READ) return result(type == ND2_SEND ? INVALID_PARAMETER_4 : INVALID_PARAMETER_6);
  }
  Request request{};
  request.type = type;
  request.context = context;
  request.flags = flags;
  request.address = address;
  request.token = token;
  request.isInline = (flags & ND2_OP_INLINE) != 0 && modes.inlined != 0;
  const HRESULT copied = copySgl(sge, count, request.isInline ? 4096 : most, request.sgl);
  if (copied != S_OK) return copied;
  if (request.isInline) {
    if (lengthOf(request.sgl) > options_.inlineBytes) {
      violation("%llu bytes inline where %lu are allowed", lengthOf(request.sgl), options_.inlineBytes);
      return result(BUFFER_OVERFLOW);
    }
    for (const ND2_SGE& entry : request.sgl) {
      if (entry.BufferLength == 0 || mapped(entry.Buffer, entry.BufferLength, Access::Read)) continue;
      violation("unmapped inline memory at %p", entry.Buffer);
      return result(ACCESS_VIOLATION);
    }
    request.inlined = gather(request.sgl);
  }
  return initiate(std::move(request));
}

HRESULT QueuePair::Bind(void* context, IUnknown* region, IUnknown* window, const void* buffer, SIZE_T bytes,
                        ULONG flags) {
  const Call call(*this, "IND2QueuePair::Bind");
  if (call.failed()) return call.status();
  auto* const memory = find<MemoryRegion>(region);
  if (memory == nullptr || memory->adapter() != adapter()) {
    violation("%p is not a region", static_cast<void*>(region));
    return result(INVALID_PARAMETER_2);
  }
  auto* const opened = find<MemoryWindow>(window);
  if (opened == nullptr || opened->adapter() != adapter()) {
    violation("%p is not a window", static_cast<void*>(window));
    return result(INVALID_PARAMETER_3);
  }
  if ((flags & ~(ND2_OP_SILENT | ND2_OP_READ_FENCE | ND2_OP_ALLOW_READ | ND2_OP_ALLOW_WRITE)) != 0)
    violation("flags %#lx", flags);
  const UINT64 at = reinterpret_cast<UINT64>(buffer);
  if (!memory->registered() || bytes == 0 || !memory->holds(at, bytes)) {
    violation("%llu bytes at %p are not within the region", static_cast<UINT64>(bytes), buffer);
    return result(INVALID_PARAMETER);
  }
  if (state_ == State::Idle) return result(CONNECTION_INVALID);
  if (opened->bound()) return result(INVALID_DEVICE_STATE);
  if ((flags & ND2_OP_ALLOW_WRITE) != 0 && (memory->flags() & ND2_MR_LOCAL_WRITE) == 0) return result(ACCESS_VIOLATION);
  Request request{};
  request.type = ND2_BIND;
  request.context = context;
  request.flags = flags;
  request.outcome = SUCCESS;
  const HRESULT posted = initiate(std::move(request));
  if (posted == S_OK && state_ == State::Connected) opened->bind(this, memory, at, bytes, flags);
  return posted;
}

HRESULT QueuePair::Invalidate(void* context, IUnknown* window, ULONG flags) {
  const Call call(*this, "IND2QueuePair::Invalidate");
  if (call.failed()) return call.status();
  auto* const opened = find<MemoryWindow>(window);
  if (opened == nullptr || opened->adapter() != adapter()) {
    violation("%p is not a window", static_cast<void*>(window));
    return result(INVALID_PARAMETER_2);
  }
  if ((flags & ~(ND2_OP_SILENT | ND2_OP_READ_FENCE)) != 0) violation("flags %#lx", flags);
  Request request{};
  request.type = ND2_INVALIDATE;
  request.context = context;
  request.flags = flags;
  request.outcome = opened->bound() && opened->queuePair() == this ? SUCCESS : INVALID_DEVICE_REQUEST;
  const bool unbinds = *request.outcome == SUCCESS;
  const HRESULT posted = initiate(std::move(request));
  if (posted == S_OK && unbinds) opened->unbind();
  return posted;
}

HRESULT QueuePair::initiate(Request request) {
  if (state_ == State::Idle) return result(CONNECTION_INVALID);
  if (requestsUsed_ >= options_.initiatorDepth) return result(NO_MORE_ENTRIES);
  requestsUsed_++;
  if (state_ == State::Finished) {
    complete(request, CANCELED);
    return result(SUCCESS);
  }
  request.number = ++lastNumber_;
  requests_.push_back(std::move(request));
  advance();
  return result(SUCCESS);
}

// ── Execution ──

void QueuePair::advance() {
  ULONG reads = 0;
  for (Request& request : requests_) {
    if (!request.outcome && !request.sent) {
      if (reads > 0 && (request.flags & ND2_OP_READ_FENCE) != 0) break;
      if (request.type == ND2_READ && outboundReads_ > 0 && reads >= outboundReads_) break;
      launch(request);
    }
    if (request.type == ND2_READ && !request.outcome) reads++;
  }
  while (!requests_.empty() && requests_.front().outcome) {
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    complete(request, *request.outcome);
    if (*request.outcome == SUCCESS) continue;
    fail();
    return;
  }
}

void QueuePair::launch(Request& request) {
  request.sent = true;
  const bool reads = request.type == ND2_READ;
  if (!request.isInline && !allowed(request.sgl, adapter(), reads ? Access::Write : Access::Read)) {
    request.outcome = ACCESS_VIOLATION;
    return;
  }
  if (reads && outboundReads_ == 0) {
    request.outcome = INTERNAL_ERROR;
    return;
  }
  Frame frame;
  frame.head.kind = reads ? FrameKind::Read : request.type == ND2_SEND ? FrameKind::Send : FrameKind::Write;
  frame.head.from = placeOf(*this);
  frame.head.to = peer_;
  frame.head.number = request.number;
  frame.head.address = request.address;
  frame.head.token = request.token;
  frame.head.solicited = (request.flags & ND2_OP_SOLICIT) != 0;
  frame.head.length = lengthOf(request.sgl);
  if (!reads) frame.bytes = request.isInline ? request.inlined : gather(request.sgl);
  post(std::move(frame));
}

void QueuePair::complete(const Request& request, Status status) {
  if (status == SUCCESS && (request.flags & ND2_OP_SILENT) != 0) {
    silent_++;
    return;
  }
  Completion completion{{result(status), 0, options_.context, request.context, request.type}, Ref<QueuePair>(this)};
  completion.frees = 1 + std::exchange(silent_, 0);
  initiatorQueue_->add(std::move(completion), false);
}

void QueuePair::completeReceive(const PostedReceive& receive, Status status, ULONG bytes, bool solicited) {
  Completion completion{{result(status), bytes, options_.context, receive.context, ND2_RECEIVE}, Ref<QueuePair>(this)};
  completion.receive = true;
  receiveQueue_->add(std::move(completion), solicited);
}

void QueuePair::taken(const Completion& completion) {
  if (!completion.receive) requestsUsed_ -= completion.frees;
  else if (!shared_) receivesUsed_ -= completion.frees;
}

void QueuePair::connect(const Place& peer, UINT32 inboundReads, UINT32 outboundReads) {
  if (state_ != State::Idle) return;
  state_ = State::Connected;
  peer_ = peer;
  inboundReads_ = inboundReads;
  outboundReads_ = outboundReads;
}

void QueuePair::flush() {
  if (state_ == State::Finished) return;
  const bool connected = state_ == State::Connected;
  state_ = State::Finished;
  unbindAll(*this);
  for (const PostedReceive& receive : std::exchange(receives_, {})) completeReceive(receive, CANCELED, 0, false);
  for (const Request& request : std::exchange(requests_, {})) complete(request, CANCELED);
  for (const Frame& frame : std::exchange(waiting_, {})) acknowledge(frame, IO_TIMEOUT);
  if (!connected) return;
  Frame stop;
  stop.head.from = placeOf(*this);
  stop.head.to = peer_;
  post(std::move(stop));
}

void QueuePair::fail() {
  flush();
  if (connector_ != nullptr) connector_->queuePairFailed();
}

void QueuePair::released() {
  flush();
  if (connector_ != nullptr) connector_->queuePairFailed();
  if (modes.purge == 0) return;
  receiveQueue_->discard(*this);
  initiatorQueue_->discard(*this);
}

void QueuePair::gone() {
  receiveQueue_ = initiatorQueue_ = {};
  shared_ = {};
  adapter_ = {};
}

// ── Frames of the peer ──

void QueuePair::receive(Frame& frame) {
  if (frame.head.kind == FrameKind::Acknowledge) return acknowledged(frame);
  if (frame.head.kind == FrameKind::Stop) {
    waiting_.clear();
    return;
  }
  if (state_ != State::Connected) return acknowledge(frame, IO_TIMEOUT);
  if (!waiting_.empty() || !execute(frame)) {
    waiting_.push_back(std::move(frame));
    if (waiting_.size() == 1) awaitReceive();
  }
}

void QueuePair::awaitReceive() {
  if (shared_) return shared_->await(this);
  after(modes.rnr, [id = id(), wait = ++patience_] {
    auto* const queuePair = numbered<QueuePair>(id);
    if (queuePair == nullptr || queuePair->patience_ != wait || queuePair->waiting_.empty()) return;
    for (const Frame& frame : std::exchange(queuePair->waiting_, {})) queuePair->acknowledge(frame, IO_TIMEOUT);
  });
}

void QueuePair::resume() {
  while (!waiting_.empty() && state_ == State::Connected) {
    if (!execute(waiting_.front())) return awaitReceive();
    if (!waiting_.empty()) waiting_.pop_front();
    patience_++;
  }
}

bool QueuePair::execute(Frame& frame) {
  const FrameHead& head = frame.head;
  if (head.kind == FrameKind::Send) return deliver(frame);
  const bool reads = head.kind == FrameKind::Read;
  if (reads && inboundReads_ == 0) {
    acknowledge(frame, INTERNAL_ERROR);
    fail();
    return true;
  }
  void* memory = nullptr;
  if (head.length > 0) {
    memory = remoteMemory(*this, head.token, head.address, head.length, reads ? Access::Read : Access::Write);
    if (memory == nullptr) {
      acknowledge(frame, ACCESS_VIOLATION);
      fail();
      return true;
    }
  }
  std::vector<char> bytes;
  if (reads && head.length > 0) {
    const auto* const from = static_cast<const char*>(memory);
    bytes.assign(from, from + head.length);
  } else if (!reads && head.length > 0) {
    memcpy(memory, frame.bytes.data(), frame.bytes.size());
  }
  acknowledge(frame, SUCCESS, std::move(bytes));
  return true;
}

bool QueuePair::deliver(Frame& frame) {
  PostedReceive receive;
  if (shared_) {
    if (!shared_->take(receive)) return false;
  } else {
    if (receives_.empty()) return false;
    receive = std::move(receives_.front());
    receives_.pop_front();
  }
  Status here = SUCCESS, there = SUCCESS;
  if (frame.bytes.size() > lengthOf(receive.sgl)) here = DATA_OVERRUN, there = DATA_ERROR;
  else if (!frame.bytes.empty() && !allowed(receive.sgl, adapter(), Access::Write))
    here = ACCESS_VIOLATION, there = DATA_ERROR;
  const ULONG bytes = here == SUCCESS ? static_cast<ULONG>(frame.bytes.size()) : 0;
  if (here == SUCCESS) scatter(frame.bytes, receive.sgl);
  completeReceive(receive, here, bytes, frame.head.solicited != 0);
  acknowledge(frame, there);
  if (here != SUCCESS) fail();
  return true;
}

void QueuePair::acknowledge(const Frame& frame, Status status, std::vector<char> bytes) {
  Frame reply;
  reply.head.kind = FrameKind::Acknowledge;
  reply.head.from = placeOf(*this);
  reply.head.to = frame.head.from;
  reply.head.number = frame.head.number;
  reply.head.status = status;
  reply.bytes = std::move(bytes);
  post(std::move(reply));
}

void replyMissing(const Frame& frame) {
  const FrameKind kind = frame.head.kind;
  if (kind == FrameKind::Acknowledge || kind == FrameKind::Stop) return;
  Frame reply;
  reply.head.kind = FrameKind::Acknowledge;
  reply.head.from = frame.head.to;
  reply.head.to = frame.head.from;
  reply.head.number = frame.head.number;
  reply.head.status = IO_TIMEOUT;
  post(std::move(reply));
}

void QueuePair::acknowledged(Frame& frame) {
  if (state_ != State::Connected) return;
  for (Request& request : requests_) {
    if (request.number != frame.head.number) continue;
    auto status = static_cast<Status>(frame.head.status);
    if (request.type == ND2_READ && status == SUCCESS) {
      // Its memory may have been deregistered since the Read was sent.
      if (allowed(request.sgl, adapter(), Access::Write)) scatter(frame.bytes, request.sgl);
      else status = ACCESS_VIOLATION;
    }
    request.outcome = status;
    break;
  }
  advance();
}

void QueuePair::exhaust(DWORD process) {
  if (state_ != State::Connected || peer_.process != process) return;
  for (Request& request : requests_)
    if (request.sent && !request.outcome) request.outcome = IO_TIMEOUT;
  advance();
}

void removeDevice() {
  std::vector<QueuePair*> all;
  for (const auto& [com, object] : objects())
    if (object->kind() == Kind::QueuePair && object->held()) all.push_back(static_cast<QueuePair*>(object));
  for (auto* const queuePair : all) queuePair->flush();
  finishAll(DEVICE_REMOVED);
  deliverLocally();
}

}  // namespace nd2
