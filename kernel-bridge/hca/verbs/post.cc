// Handles doorbells: turns the WQEs of the rings into lists of work requests for libibverbs.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/wqe.h"
#include "verbs/data_path.h"
#include "verbs/request_id.h"

namespace nd::verbs {

using namespace abi;

namespace {

constexpr uint32_t kList = 32;  // requests passed in one call

// An SGE of a ring has the layout of libibverbs.
static_assert(sizeof(ibv_sge) == kSgeBytes && offsetof(ibv_sge, length) == kSgeLength * 4 &&
              offsetof(ibv_sge, lkey) == kSgeLkey * 4);

ibv_sge* ibvSges(SgeList sges) { return reinterpret_cast<ibv_sge*>(const_cast<uint32_t*>(sges.words)); }

bool bindRequest(Device& device, const SendWqe& wqe, ibv_send_wr* wr) {
  const auto region = device.regions.find(wqe.rkey);
  const auto window = device.windows.find(wqe.presentKey() >> 8);
  if (region == device.regions.end() || window == device.windows.end()) return false;
  // The window's present key, which devices read when the request is posted.
  window->second->rkey = wqe.presentKey();
  device.setBound(wqe.presentKey(), true);
  wr->opcode = kWrBindMw;
  wr->bind_mw.mw = window->second;
  wr->bind_mw.rkey = wqe.nextKey();
  const unsigned access =
      static_cast<unsigned>(accessOf(wqe.access)) & (kRemoteWriteBit | kRemoteReadBit | kRemoteAtomicBit);
  wr->bind_mw.bind_info = {region->second.mr, wqe.remote, wqe.compare, access};
  return true;
}

bool datagramRequest(const QpObject& qp, const SendWqe& wqe, ibv_send_wr* wr, uint32_t* failure) {
  AhObject* const ah = Tables::all().ahs.find(wqe.ah);
  if (ah == nullptr || ah->device != qp.device || ah->pd != qp.pd || ah->ah == nullptr) return false;
  if (wqe.length > ah->pathMtu) {
    *failure = kWcLocalLength;
    return false;
  }
  wr->wr.ud = {ah->ah, wqe.remoteQpn, (wqe.remoteQkey & 0x80000000u) != 0 ? qp.attributes.qkey : wqe.remoteQkey};
  return true;
}

// Sets the opcode and its parameters; the list of SGEs is already set. Returns false if the request is not supported.
bool fillRequest(const QpObject& qp, const SendWqe& wqe, ibv_send_wr* wr, uint32_t* failure) {
  const bool immediate = (wqe.flags & kSendFlagImmediate) != 0;
  // Otherwise the word must be 0, because librxe refuses to bind a window if it is set, and the list has been used
  // before.
  wr->immediate = immediate ? htonl(wqe.immediate) : 0;
  switch (wqe.opcode) {
    case kOpSend:
      wr->opcode = immediate ? kWrSendImm : kWrSend;
      if ((wqe.flags & kSendFlagInvalidate) != 0) {
        wr->opcode = kWrSendInvalidate;
        wr->immediate = wqe.immediate;
      }
      if (qp.type == kQptUd) return datagramRequest(qp, wqe, wr, failure);
      return !immediate || !qp.device->iwarp;
    case kOpWrite:
      wr->opcode = immediate ? kWrWriteImm : kWrWrite;
      wr->wr.rdma = {wqe.remote, wqe.rkey};
      return !immediate || !qp.device->iwarp;
    case kOpRead:
      wr->opcode = kWrRead;
      wr->wr.rdma = {wqe.remote, wqe.rkey};
      return true;
    case kOpCompareExchange:
    case kOpFetchAdd:
      wr->opcode = wqe.opcode == kOpFetchAdd ? kWrFetchAdd : kWrCompareSwap;
      wr->wr.atomic = {wqe.remote, wqe.compare, wqe.swap, wqe.rkey};
      return !qp.device->iwarp;
    case kOpBindWindow: return bindRequest(*qp.device, wqe, wr);
    case kOpLocalInvalidate:
      wr->opcode = kWrLocalInvalidate;
      wr->immediate = wqe.rkey;
      return qp.device->setBound(wqe.rkey, false);
    default: return false;
  }
}

// Makes a work request from a WQE. Returns false if it already fails, with the status in `failure`.
bool translate(const QpObject& qp, uint32_t index, const SendWqe& wqe, ibv_send_wr* wr, ibv_sge* inlined,
               uint32_t* failure) {
  const uint32_t* const words = qp.sendWqe(index);
  wr->wr_id = RequestId::send(qp.handle, index);
  wr->send_flags = ((wqe.flags & kSendFlagSignaled) != 0 ? kSendSignaled : 0u) |
                   ((wqe.flags & kSendFlagFence) != 0 ? kSendFence : 0u) |
                   ((wqe.flags & kSendFlagSolicited) != 0 ? kSendSolicited : 0u);
  *failure = kWcLocalOp;
  if (wqe.isInline()) {
    *inlined = {reinterpret_cast<uintptr_t>(SendWqe::inlineBytes(words)), wqe.count, 0};
    wr->sg_list = inlined;
    wr->num_sge = wqe.count == 0 ? 0 : 1;
    wr->send_flags |= kSendInline;
  } else {
    // A request without a packet has no SGEs.
    wr->sg_list = ibvSges(wqe.sges(words));
    wr->num_sge = wqe.isLocal() ? 0 : static_cast<int>(wqe.count);
  }
  return fillRequest(qp, wqe, wr, failure);
}

void reportFatal(QpObject& qp, uint32_t reason) {
  qp.device->events->push(qp.device->number, HcaEvent::qp(qp.handle, qp.token, QpEvent::kFatal, reason));
}

// The next request in the ring cannot be posted. It completes with this status once all earlier ones have completed.
void failNext(QpObject& qp, uint32_t status) {
  qp.failStatus = status;
  qp.failed = true;
  enterError(qp);
  reportFatal(qp, status);
  flushHeld(qp);  // in case no earlier request is left
}

// Posts a list to the device, and returns how many requests were accepted.
template <typename Post, typename Queue, typename Request>
uint32_t postedOf(Post post, Queue* queue, Request* list, uint32_t count) {
  Request* bad = nullptr;
  if (post(queue, list, &bad) == 0) return count;
  return bad >= list && bad < list + count ? static_cast<uint32_t>(bad - list) : 0;
}

// Posts at most kList requests. Returns false if there are no more for now.
bool postSome(QpObject& qp, uint32_t waiting) {
  thread_local ibv_send_wr list[kList];
  thread_local ibv_sge inlined[kList];
  uint32_t most = std::min(waiting, kList);
  uint32_t failure = 0, count = 0;
  std::shared_lock<std::shared_mutex> handles(qp.device->keys, std::defer_lock);
  std::unique_lock<std::shared_mutex> windows(qp.device->keys, std::defer_lock);
  // Not every device checks the depth: rdma_rxe waits forever if no reads may be in flight (rxe_req.c,
  // check_init_depth).
  const WqeLimits limits = {qp.type, qp.sendSge, qp.maxInline, wire::kMaxMessage, qp.attributes.initiatorDepth};
  for (; count < most; ++count) {
    const uint32_t index = qp.sendDone + count;
    SendWqe wqe;
    failure = wqe.parse(qp.sendWqe(index), limits);
    const bool binds = wqe.opcode == kOpBindWindow;
    // A bind starts a new list: one window may be bound several times.
    if (count > 0 && binds) {
      most = count;
      break;
    }
    if (binds) windows.lock();
    else if (count == 0 && qp.type == kQptUd) handles.lock();
    if (failure != 0 || !translate(qp, index, wqe, &list[count], &inlined[count], &failure)) break;
    list[count].next = nullptr;
    if (count > 0) list[count - 1].next = &list[count];
  }
  uint32_t posted = count;
  if (count > 0) {
    posted = postedOf(qp.qp->context->ops.post_send, qp.qp, list, count);
    if (posted < count) failure = kWcLocalOp;
    qp.device->posts.fetch_add(posted, std::memory_order_relaxed);
    qp.device->postCalls.fetch_add(1, std::memory_order_relaxed);
  }
  if (handles.owns_lock()) handles.unlock();
  if (windows.owns_lock()) windows.unlock();
  qp.sendDone += posted;
  if (posted == most) return true;
  failNext(qp, failure);
  return false;
}

// The device accepts no more receives of this queue, or its ring is corrupt. The owner is notified once.
void failShared(SrqObject& srq) {
  srq.failed = true;
  srq.device->events->push(srq.device->number, HcaEvent::srq(srq.handle, SrqEvent::kFatal));
}

// Reads the SGEs of a receive WQE. Returns false if there are more than allowed.
bool receiveRequest(const uint32_t* wqe, uint32_t mostSges, uint64_t id, ibv_recv_wr* wr) {
  const SgeList sges = parseReceive(wqe);
  if (sges.count > mostSges) return false;
  *wr = {id, nullptr, ibvSges(sges), static_cast<int>(sges.count)};
  return true;
}

// Posts a last request whose completion shows that all others have completed, signaled or not. Returns false if the
// device rejected it.
bool postMarker(QpObject& qp) {
  ibv_send_wr marker{}, *bad = nullptr;
  marker.wr_id = RequestId::marker(qp.handle);
  marker.opcode = kWrWrite;
  marker.send_flags = kSendSignaled;
  std::shared_lock<std::shared_mutex> keys(qp.device->keys, std::defer_lock);
  if (qp.type == kQptUd) {
    // It needs a destination, although nothing is sent in ERROR. It has that of the preceding datagram, unless its
    // owner has destroyed it.
    keys.lock();
    AhObject* const ah = Tables::all().ahs.find(peekWord(qp.sendWqe(qp.sendDone - 1) + kSwAh));
    if (ah == nullptr || ah->device != qp.device || ah->ah == nullptr) return false;
    marker.opcode = kWrSend;
    marker.wr.ud = {ah->ah, 1, 0};
  }
  return qp.qp->context->ops.post_send(qp.qp, &marker, &bad) == 0;
}

}  // namespace

void enterError(QpObject& qp) {
  if (qp.state.load() != kQpsError) qp.publish(kQpsError);
  if (qp.errorEntered) return;
  qp.errorEntered = true;
  if (qp.qp == nullptr) {
    qp.sendsDrained = true;
    qp.receivesOut = 0;
    return;
  }
  ibv_qp_attr attributes{};
  attributes.qp_state = static_cast<int>(kQpsError);
  qp.device->lib->ibv_modify_qp(qp.qp, &attributes, kQpState_);
  if (qp.sendSeen == qp.sendDone) {
    qp.sendsDrained = true;
    return;
  }
  qp.markerPosted = postMarker(qp);
  if (!qp.markerPosted) {
    drainOf(qp);
    qp.sendsDrained = true;
  }
}

void postSends(QpObject& qp) {
  const uint32_t producer = loadWord(qp.header + kQpSendProducer);
  uint32_t waiting = producer - qp.sendDone;
  if (waiting == 0) return;
  if (waiting > qp.sendEntries) return failNext(qp, kWcLocalOp);
  const uint32_t state = qp.state.load();
  if (state == kQpsError) {
    enterError(qp);
    return flushHeld(qp);
  }
  if (state < kQpsRts || qp.qp == nullptr) return;
  while (waiting > 0 && postSome(qp, waiting)) waiting = producer - qp.sendDone;
}

void postReceives(QpObject& qp) {
  const uint32_t producer = loadWord(qp.header + kQpReceiveProducer);
  uint32_t waiting = producer - qp.receiveDone;
  if (waiting == 0 || qp.receiveEntries == 0) return;
  if (waiting > qp.receiveEntries) return failNext(qp, kWcLocalOp);
  const uint32_t state = qp.state.load();
  // In ERROR requests are not posted to the device, because not every device flushes them.
  if (state == kQpsError) {
    enterError(qp);
    return flushHeld(qp);
  }
  if (state < kQpsInit || qp.qp == nullptr) return;
  thread_local ibv_recv_wr list[kList];
  while (waiting > 0) {
    uint32_t count = 0;
    for (; count < std::min(waiting, kList); ++count) {
      const uint32_t index = qp.receiveDone + count;
      if (!receiveRequest(qp.receiveWqe(index), qp.receiveSge, RequestId::receive(qp.handle, index), &list[count]))
        break;
      if (count > 0) list[count - 1].next = &list[count];
    }
    if (count == 0) return failNext(qp, kWcLocalOp);
    // The requests are counted first, because they may complete before the call returns.
    qp.receivesOut.fetch_add(static_cast<int32_t>(count));
    const uint32_t posted = postedOf(qp.qp->context->ops.post_recv, qp.qp, list, count);
    qp.receivesOut.fetch_sub(static_cast<int32_t>(count - posted));
    qp.receiveDone += posted;
    waiting -= posted;
    if (posted < count) return failNext(qp, kWcLocalOp);
  }
}

void postShared(SrqObject& srq) {
  const uint32_t producer = loadWord(srq.header + kSrqProducer);
  uint32_t waiting = producer - srq.done;
  if (waiting == 0 || srq.srq == nullptr || srq.failed) return;
  if (waiting > srq.entries) return failShared(srq);
  thread_local ibv_recv_wr list[kList];
  while (waiting > 0) {
    uint32_t count = 0;
    for (; count < std::min(waiting, kList); ++count) {
      const uint32_t index = srq.done + count;
      uint32_t* const wqe = srq.header + (kSrqHeaderBytes + size_t{index & (srq.entries - 1)} * srq.stride) / 4;
      if (!receiveRequest(wqe, srq.sge, RequestId::shared(srq.handle, index), &list[count])) break;
      if (count > 0) list[count - 1].next = &list[count];
    }
    if (count == 0) return failShared(srq);
    const uint32_t posted = postedOf(srq.srq->context->ops.post_srq_recv, srq.srq, list, count);
    srq.done += posted;
    waiting -= posted;
    if (posted < count) return failShared(srq);
  }
}

void ringSends(Handle handle) {
  QpObject* const qp = Tables::all().qps.at(handle);
  if (qp == nullptr) return;
  std::lock_guard<std::mutex> lock(qp->mutex);
  if (handle == 0 || qp->handle != handle) return;
  postSends(*qp);
}

void ringReceives(Handle handle) {
  if ((handle & kSharedBit) != 0) {
    SrqObject* const srq = Tables::all().srqs.at(handle & ~kSharedBit);
    if (srq == nullptr) return;
    std::lock_guard<std::mutex> lock(srq->mutex);
    if (srq->handle == (handle & ~kSharedBit)) postShared(*srq);
    return;
  }
  QpObject* const qp = Tables::all().qps.at(handle);
  if (qp == nullptr) return;
  std::lock_guard<std::mutex> lock(qp->mutex);
  if (handle == 0 || qp->handle != handle) return;
  postReceives(*qp);
}

}  // namespace nd::verbs
