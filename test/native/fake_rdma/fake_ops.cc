// The data path of the fake: the functions in a context.
#include "fake_state.h"

namespace fake {

namespace {

State& s() { return State::get(); }

ibv_mw* allocMw(ibv_pd* pd, int type) {
  if (s().fails("alloc_mw")) return nullptr;
  ibv_context* const context = pd->context;
  auto* const mw = new ibv_mw{context, pd, static_cast<Context*>(context)->nextKey++ << 8, 0, type};
  std::lock_guard<std::mutex> hold(s().mutex);
  static_cast<Context*>(context)->mws.insert(mw);
  s().count(kMw, 1);
  return mw;
}

int deallocMw(ibv_mw* mw) {
  if (s().fails("dealloc_mw")) return errno;
  std::lock_guard<std::mutex> hold(s().mutex);
  if (static_cast<Context*>(mw->context)->mws.erase(mw) == 0) std::abort();
  s().count(kMw, -1);
  delete mw;
  return 0;
}

// Handles queue pairs whose flush needs several polls.
void flushDue(CompletionQueue& cq) {
  std::shared_lock<std::shared_mutex> none(s().ends);
  std::vector<QueuePair*> all;
  {
    std::lock_guard<std::mutex> hold(s().mutex);
    auto& context = static_cast<Context&>(*cq.ibv_cq::context);
    for (QueuePair* qp : context.qps)
      if (qp->send_cq == &cq || qp->recv_cq == &cq) all.push_back(qp);
  }
  for (QueuePair* qp : all) {
    std::lock_guard<SpinLock> hold(qp->lock);
    if (qp->flushIn > 0 && --qp->flushIn == 0) s().flush(*qp);
  }
}

int pollCq(ibv_cq* which, int most, ibv_wc* out) {
  auto& cq = static_cast<CompletionQueue&>(*which);
  if (!s().echo) {
    s().at(Moment::kBeforePoll, which);
    if (s().fails("poll_cq")) return -1;
    if (s().flushAfterPolls.load() > 0) flushDue(cq);
  }
  int count = 0;
  {
    std::lock_guard<SpinLock> hold(cq.lock);
    for (; count < most && cq.tail != cq.head; ++count, ++cq.tail) out[count] = cq.ring[cq.tail & cq.mask];
  }
  if (count == 0 && !s().echo) s().at(Moment::kAfterEmptyPoll, which);
  return count;
}

int requestNotify(ibv_cq* which, int solicitedOnly) {
  auto& cq = static_cast<CompletionQueue&>(*which);
  s().at(Moment::kBeforeArm, which);
  if (s().fails("req_notify_cq")) return errno;
  {
    std::lock_guard<SpinLock> hold(cq.lock);
    const auto wanted = solicitedOnly != 0 ? CompletionQueue::Arm::kSolicited : CompletionQueue::Arm::kAny;
    if (cq.arm < wanted) cq.arm = wanted;
  }
  s().at(Moment::kAfterArm, which);
  return 0;
}

// Requests succeed immediately, so the rest of a benchmark's time is the program's own.
int echoSends(QueuePair& qp, ibv_send_wr* wr) {
  auto& cq = static_cast<CompletionQueue&>(*qp.send_cq);
  std::lock_guard<SpinLock> hold(qp.lock);
  std::lock_guard<SpinLock> queue(cq.lock);
  for (; wr != nullptr; wr = wr->next) {
    if ((wr->send_flags & kSendSignaled) == 0 && !qp.signalAll) continue;
    if (cq.head - cq.tail > cq.mask) return 0;
    ibv_wc& wc = cq.ring[cq.head++ & cq.mask];
    wc.wr_id = wr->wr_id;
    wc.status = 0;
    wc.opcode = 0;
    wc.byte_len = 0;
    wc.vendor_err = 0;
    wc.qp_num = qp.qp_num;
    wc.wc_flags = 0;
  }
  return 0;
}

int postSend(ibv_qp* which, ibv_send_wr* wr, ibv_send_wr** bad) {
  auto& qp = static_cast<QueuePair&>(*which);
  if (s().echo) return echoSends(qp, wr);
  int size = 0;
  {
    std::lock_guard<SpinLock> hold(qp.lock);
    for (; wr != nullptr; wr = wr->next, ++size) {
      const bool refused = s().fails("post_send");
      if (!refused && qp.sends.size() >= qp.cap.max_send_wr) errno = ENOMEM;
      else if (!refused && qp.state < 3) errno = EINVAL;
      else if (!refused) errno = 0;
      if (refused || errno != 0) {
        *bad = wr;
        break;
      }
      Send copy{*wr, {wr->sg_list, wr->sg_list + wr->num_sge}, {}};
      if ((wr->send_flags & kSendInline) != 0)
        for (const ibv_sge& sge : copy.sges) {
          const auto* from = reinterpret_cast<const uint8_t*>(sge.addr);
          copy.inlined.insert(copy.inlined.end(), from, from + sge.length);
        }
      qp.sendLog.push_back(std::move(copy));
      qp.sends.push_back({wr->wr_id, qp.signalAll || (wr->send_flags & kSendSignaled) != 0, wr->opcode});
    }
    if (qp.state == 6 && qp.flushIn < 0 && s().flushAfterPolls.load() == 0) s().flush(qp);
  }
  if (size > 0) s().noteSize(size);
  return wr != nullptr ? errno : 0;
}

int postReceive(ibv_qp* which, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  auto& qp = static_cast<QueuePair&>(*which);
  int size = 0;
  {
    std::lock_guard<SpinLock> hold(qp.lock);
    for (; wr != nullptr; wr = wr->next, ++size) {
      const bool refused = s().fails("post_recv");
      if (!refused && qp.receives.size() >= qp.cap.max_recv_wr) errno = ENOMEM;
      else if (!refused) errno = 0;
      if (refused || errno != 0) {
        *bad = wr;
        break;
      }
      qp.receiveLog.push_back({wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}});
      qp.receives.push_back(wr->wr_id);
    }
  }
  if (size > 0) s().noteSize(size);
  return wr != nullptr ? errno : 0;
}

int postShared(ibv_srq* which, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  auto& srq = static_cast<SharedQueue&>(*which);
  int size = 0;
  {
    std::lock_guard<SpinLock> hold(srq.lock);
    for (; wr != nullptr; wr = wr->next, ++size) {
      const bool refused = s().fails("post_srq_recv");
      if (!refused && srq.receives.size() >= srq.mostRequests) errno = ENOMEM;
      else if (!refused) errno = 0;
      if (refused || errno != 0) {
        *bad = wr;
        break;
      }
      srq.log.push_back({wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}});
      srq.receives.push_back(wr->wr_id);
    }
  }
  if (size > 0) s().noteSize(size);
  return wr != nullptr ? errno : 0;
}

}  // namespace

void fillOps(ibv_context_ops* ops) {
  if (s().hasWindows) ops->alloc_mw = allocMw;
  ops->dealloc_mw = deallocMw;
  ops->poll_cq = pollCq;
  ops->req_notify_cq = requestNotify;
  ops->post_srq_recv = postShared;
  ops->post_send = postSend;
  ops->post_recv = postReceive;
}

}  // namespace fake
