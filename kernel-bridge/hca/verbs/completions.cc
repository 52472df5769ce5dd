// Turns the completions of libibverbs into CQEs.
#include <arpa/inet.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "verbs/data_path.h"
#include "verbs/request_id.h"

namespace nd::verbs {

using namespace abi;

namespace {

constexpr int kBatch = 32;

uint32_t wcStatusOf(int status) {
  switch (status) {
    case kIbSuccess: return kWcSuccess;
    case kIbLocalLength: return kWcLocalLength;
    case kIbLocalQpOp: return kWcLocalOp;
    case kIbLocalProtection: return kWcLocalProtection;
    case kIbFlushed: return kWcFlushed;
    case kIbMwBind: return kWcMwBind;
    case kIbBadResponse: return kWcBadResponse;
    case kIbLocalAccess: return kWcLocalAccess;
    case kIbRemoteInvalidRequest: return kWcRemoteInvalidRequest;
    case kIbRemoteAccess: return kWcRemoteAccess;
    case kIbRemoteOp: return kWcRemoteOp;
    case kIbRetryExceeded:
    case kIbResponseTimeout: return kWcTimeoutRetry;
    case kIbRnrRetryExceeded: return kWcRnrRetry;
    default: return kWcError;
  }
}

void report(const QpObject& qp, QpEvent type, uint32_t reason) {
  qp.device->events->push(qp.device->number, HcaEvent::qp(qp.handle, qp.token, type, reason));
}

QpObject* qpOf(const CqObject& cq, const RequestId& id, const ibv_wc& wc) {
  if (id.queue != RequestId::Queue::kShared) return Tables::all().qps.find(id.handle);
  std::lock_guard<std::mutex> lock(cq.device->qpns);
  const auto it = cq.device->byQpn.find(wc.qp_num);
  return it != cq.device->byQpn.end() ? it->second : nullptr;
}

// The first completion in error shows that the queue pair has left RTS.
void noteFailure(QpObject& qp, bool send, uint32_t status, Later* later) {
  if (status == kWcFlushed || qp.state.load() == kQpsError || qp.failed.exchange(true)) return;
  if (send && qp.type != kQptRc) {
    qp.publish(kQpsSqError);
    qp.failed = false;
    return;
  }
  qp.publish(kQpsError);
  report(qp, status == kWcTimeoutRetry ? QpEvent::kPeerLost : QpEvent::kFatal, status);
  later->emplace_back(&qp, qp.handle.load());
}

void takeShared(QpObject& qp, const RequestId& id, Completion* c) {
  c->flags |= kCqeFlagReceiveQueue | kCqeFlagSharedReceive;
  SrqObject* const srq = Tables::all().srqs.find(id.handle);
  // The consumer's word counts them, whatever their order of completion.
  if (srq == nullptr || srq != qp.srq) return;
  std::lock_guard<std::mutex> lock(srq->consumer);
  storeWord(srq->header + kSrqConsumer, ++srq->taken);
}

void fillReceive(QpObject& qp, const RequestId& id, const ibv_wc& wc, Completion* c, Later* later) {
  if (id.queue == RequestId::Queue::kShared) {
    takeShared(qp, id, c);
  } else {
    c->flags |= kCqeFlagReceiveQueue;
    if (qp.receivesOut.fetch_sub(1) == 1 && qp.state.load() == kQpsError) later->emplace_back(&qp, qp.handle.load());
  }
  c->opcode = wc.status == kIbSuccess && wc.opcode == kWcOpRecvImm ? kOpReceiveRdmaWrite : kOpReceive;
  // rdma_rxe uses this status for a receive that is too short for its message.
  if (c->status == kWcRemoteInvalidRequest) c->status = kWcLocalLength;
  if (wc.status != kIbSuccess) return;
  c->length = wc.byte_len;
  c->sourceQpn = wc.src_qp;
  c->pkeyIndex = wc.pkey_index;
  // rdma_rxe passes on a bit of the kernel that libibverbs uses for a checksum. Requests of connected queue pairs have
  // no checksum.
  const unsigned invalidated = qp.type == kQptRc ? kWcWithInv | kWcIpChecksum : kWcWithInv;
  if ((wc.wc_flags & invalidated) != 0) {
    qp.device->setBound(wc.immediate, false);
    c->flags |= kCqeFlagInvalidated;
    c->immediate = wc.immediate;
  } else if ((wc.wc_flags & kWcWithImm) != 0) {
    c->flags |= kCqeFlagImmediate;
    c->immediate = ntohl(wc.immediate);
  }
  if ((wc.wc_flags & kWcGrh) != 0 && qp.type == kQptUd) c->flags |= kCqeFlagGrh;
}

void fillSend(QpObject& qp, const RequestId& id, const ibv_wc& wc, Completion* c) {
  // A completion in error has no valid opcode, so it is taken from the request.
  c->opcode = peekWord(qp.sendWqe(id.index) + kSwOpcode);
  qp.sendSeen.store(id.index + 1, std::memory_order_relaxed);
  if (wc.status != kIbSuccess) {
    if (c->opcode == kOpBindWindow) qp.device->setBound(peekWord(qp.sendWqe(id.index) + kSwSwapLo), false);
    return;
  }
  if (c->opcode == kOpRead) c->length = wc.byte_len;
  if (c->opcode == kOpCompareExchange || c->opcode == kOpFetchAdd) c->length = 8;
}

void overrun(CqObject& cq, Handle handle) {
  if (cq.overrunReported) return;
  cq.overrunReported = true;
  cq.device->events->push(cq.device->number, HcaEvent::cq(handle, CqEvent::kOverrun));
}

void takeOne(CqObject& cq, const ibv_wc& wc, Later* later) {
  const RequestId id = RequestId::of(wc.wr_id);
  QpObject* const qp = qpOf(cq, id, wc);
  if (qp == nullptr) return;
  if (id.queue == RequestId::Queue::kMarker) {
    qp->sendsDrained = true;
    later->emplace_back(qp, qp->handle.load());
    return;
  }
  const bool send = id.queue == RequestId::Queue::kSend;
  // The device did not flush the request in time, so it has been completed without the device.
  if (send ? qp->sendsForced.load() : qp->receivesForced && id.queue == RequestId::Queue::kReceive) return;
  Completion c;
  c.token = qp->token;
  c.wqe = id.index;
  c.status = wcStatusOf(wc.status);
  c.vendor = wc.vendor_err;
  if (send) {
    fillSend(*qp, id, wc, &c);
  } else {
    fillReceive(*qp, id, wc, &c, later);
  }
  if (c.status != kWcSuccess) noteFailure(*qp, send, c.status, later);
  if (!cq.ring.dead) cq.ring.write(c);
}

// Called with the CQ locked.
void fetch(CqObject& cq, Later* later) {
  ibv_wc list[kBatch];
  for (;;) {
    const int count = cq.cq->context->ops.poll_cq(cq.cq, kBatch, list);
    for (int i = 0; i < count; ++i) takeOne(cq, list[i], later);
    if (count > 0) cq.device->polled.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed);
    // A queue that can no longer be polled has failed.
    if (count < 0 && !cq.ring.dead) cq.ring.die();
    if (count < kBatch) return;
  }
}

// The overrun of a CQ also fails its queue pairs.
void failUsers(const CqObject& cq) {
  Tables::all().qps.forEach([&](QpObject& qp) {
    std::lock_guard<std::mutex> lock(qp.mutex);
    if (qp.handle != 0 && (qp.sendCq == &cq || qp.receiveCq == &cq) && qp.state.load() > kQpsReset) enterError(qp);
  });
}

void settle(const Later& later) {
  for (const auto& [qp, handle] : later) {
    std::lock_guard<std::mutex> lock(qp->mutex);
    if (handle == 0 || qp->handle != handle || qp->state.load() != kQpsError) continue;
    enterError(*qp);
    flushHeld(*qp);
  }
}

void flushOne(QpObject& qp, CqObject& cq, uint32_t index, bool receive, uint32_t status) {
  Completion c;
  c.token = qp.token;
  c.wqe = index;
  c.status = status;
  c.opcode = receive ? kOpReceive : peekWord(qp.sendWqe(index) + kSwOpcode);
  c.flags = receive ? kCqeFlagReceiveQueue : 0;
  if (!cq.ring.dead) cq.ring.write(c);
}

// The queue pair consumes no more receives of its SRQ. Not every device reports this; rdma_rxe does not.
void reportLastWqe(QpObject& qp) {
  if (!qp.errorEntered || !qp.sendsDrained || qp.qp == nullptr || std::exchange(qp.lastWqeReported, true)) return;
  report(qp, QpEvent::kLastWqe, 0);
}

}  // namespace

Status armDevice(CqObject& cq) {
  if (cq.cq == nullptr || cq.ring.dead) return Status::kSuccess;
  const CqObject::Arm wanted = cq.ring.wantsAny() ? CqObject::Arm::kAny : CqObject::Arm::kSolicited;
  // Solicited entries, and errors on most devices, are reported without a request.
  if (cq.armed >= wanted) return Status::kSuccess;
  const int error = cq.cq->context->ops.req_notify_cq(cq.cq, wanted == CqObject::Arm::kSolicited ? 1 : 0);
  if (error == 0) cq.armed = wanted;
  return statusOf(error);
}

void drain(CqObject& cq, Handle handle, bool event) {
  thread_local Later later;
  Later now;
  now.swap(later);  // the memory is reused
  bool overran = false;
  {
    std::lock_guard<std::mutex> lock(cq.mutex);
    if (handle == 0 || cq.handle != handle || cq.cq == nullptr) {
      now.swap(later);
      return;
    }
    const bool solicited = event && cq.armed == CqObject::Arm::kSolicited;
    if (event) cq.armed = CqObject::Arm::kNone;
    now.insert(now.end(), cq.later.begin(), cq.later.end());
    cq.later.clear();
    fetch(cq, &now);
    if (solicited) cq.ring.solicitedCame();
    if (event) {
      // Without an event its owner would sleep forever.
      if (armDevice(cq) != Status::kSuccess) cq.ring.die();
      fetch(cq, &now);  // entries that came in between raise no event
    }
    if (cq.ring.dead && !cq.overrunReported) {
      overran = true;
      overrun(cq, handle);
    }
  }
  if (overran) failUsers(cq);
  settle(now);
  now.clear();
  now.swap(later);
}

void drainOf(QpObject& qp) {
  for (CqObject* cq : {qp.sendCq, qp.receiveCq == qp.sendCq ? nullptr : qp.receiveCq}) {
    if (cq == nullptr) continue;
    std::lock_guard<std::mutex> lock(cq->mutex);
    if (cq->cq != nullptr) fetch(*cq, &cq->later);
  }
}

void settleLater(CqObject& cq) {
  Later now;
  {
    std::lock_guard<std::mutex> lock(cq.mutex);
    now.swap(cq.later);
  }
  settle(now);
}

void flushHeld(QpObject& qp, bool force) {
  if (qp.state.load() != kQpsError) return;
  if (qp.sendsDrained || force) {
    const uint32_t producer = loadWord(qp.header + kQpSendProducer);
    std::lock_guard<std::mutex> lock(qp.sendCq->mutex);
    if (force && !qp.sendsDrained) {
      qp.sendDone = qp.sendSeen;
      qp.sendsForced = true;
    }
    if (producer - qp.sendDone > qp.sendEntries) qp.sendDone = producer;
    for (; qp.sendDone != producer; ++qp.sendDone) {
      flushOne(qp, *qp.sendCq, qp.sendDone, false, qp.failStatus != 0 ? qp.failStatus : kWcFlushed);
      qp.failStatus = 0;
    }
    if (force) qp.sendsDrained = true;
  }
  if (qp.srq != nullptr) return reportLastWqe(qp);
  if (qp.receiveEntries == 0) return;
  std::lock_guard<std::mutex> lock(qp.receiveCq->mutex);
  const int32_t out = qp.receivesOut.load();
  if (out > 0 && !force) return;
  const uint32_t producer = loadWord(qp.header + kQpReceiveProducer);
  if (out > 0) {
    qp.receiveDone -= static_cast<uint32_t>(out);
    qp.receivesOut = 0;
    qp.receivesForced = true;
  }
  if (producer - qp.receiveDone > qp.receiveEntries) qp.receiveDone = producer;
  for (; qp.receiveDone != producer; ++qp.receiveDone) flushOne(qp, *qp.receiveCq, qp.receiveDone, true, kWcFlushed);
}

namespace {

// A receive that a message has consumed is free once its completion has been fetched.
void progressShared(Handle handle) {
  SrqObject* const srq = Tables::all().srqs.find(handle);
  if (srq == nullptr) return;
  thread_local std::vector<Handle> cqs;
  cqs.clear();
  Tables::all().qps.forEach([&](QpObject& qp) {
    std::lock_guard<std::mutex> lock(qp.mutex);
    if (qp.handle != 0 && qp.srq == srq) cqs.push_back(qp.receiveCq->handle);
  });
  std::sort(cqs.begin(), cqs.end());
  cqs.erase(std::unique(cqs.begin(), cqs.end()), cqs.end());
  for (const Handle cq : cqs)
    if (CqObject* object = Tables::all().cqs.at(cq)) drain(*object, cq);
}

}  // namespace

void progress(Handle handle) {
  if ((handle & kSharedBit) != 0) return progressShared(handle & ~kSharedBit);
  if (CqObject* cq = Tables::all().cqs.at(handle)) drain(*cq, handle);
}

namespace {

template <typename Arm>
Status armBy(Handle handle, Arm arm) {
  CqObject* const cq = Tables::all().cqs.at(handle);
  if (cq == nullptr || handle == 0) return Status::kInvalidHandle;
  {
    std::lock_guard<std::mutex> lock(cq->mutex);
    if (cq->handle != handle) return Status::kInvalidHandle;
    if (cq->ring.dead) return Status::kBufferOverflow;
    Status status = arm(cq->ring);
    if (status == Status::kSuccess) status = armDevice(*cq);
    if (status != Status::kSuccess) return status;
  }
  // Entries that came before the device was armed raise no event of their own.
  drain(*cq, handle);
  return Status::kSuccess;
}

}  // namespace

Status armCq(Handle handle, bool solicitedOnly) {
  return armBy(handle, [&](Cq& ring) {
    ring.arm(solicitedOnly);
    return Status::kSuccess;
  });
}

Status armCqBatch(Handle handle, uint32_t count) {
  return armBy(handle, [&](Cq& ring) {
    if (count == 0 || !ring.fits(count)) return Status::kInvalidParameter;
    ring.armBatch(count);
    return Status::kSuccess;
  });
}

}  // namespace nd::verbs
