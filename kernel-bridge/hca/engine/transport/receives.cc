#include "transport/receives.h"

#include "base/fence.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

// RNR NAKs for one PSN with growing times. The last retry of a sender that has kMostRnrRetries is left for the one that
// announces a receive.
constexpr uint32_t kGrowingNaks = wire::kMostRnrRetries - 1;
// Each time is four times the one before: a receive that is late by less is not waited for much longer than that.
constexpr uint32_t kGrowthShift = 2;

}  // namespace

bool Receives::hasReceive(Qp& qp) {
  if (qp.srq) return refreshShared(*qp.srq) && qp.srq->producer != qp.srq->head;
  return c_.refreshReceive(qp) && qp.rs.producer != qp.rs.head;
}

// Makes the poster of the next receive ring the doorbell. A receive that is being posted meanwhile is seen here, or its
// poster sees the request.
bool Receives::awaitReceive(Qp& qp) {
  if (qp.has(kAwaitsReceive)) return false;
  if (Srq* const srq = qp.srq) {
    srq->awaiting.push(qp);
    storeWord(srq->header + kSrqReceiveBell, srq->awaiting.first()->handle);
  } else {
    qp.set(kAwaitsReceive);
    qp.setBell();
  }
  if (c_.barrier) c_.barrier();
  else fullFence();
  return hasReceive(qp);
}

void Receives::endWait(Qp& qp) {
  endAwaiting(qp);
  qp.rs.rnrNaks = 0;
}

void Receives::endAwaiting(Qp& qp) {
  if (!qp.has(kAwaitsReceive)) return;
  Srq* const srq = qp.srq;
  if (!srq) {
    qp.clear(kAwaitsReceive);
    return qp.setBell();
  }
  srq->awaiting.remove(qp);
  storeWord(srq->header + kSrqReceiveBell, srq->awaiting.empty() ? 0 : srq->awaiting.first()->handle);
}

// A receive that was meant for this queue pair can serve another.
void Receives::leave(Qp& qp) {
  endWait(qp);
  if (qp.srq && !qp.srq->awaiting.empty()) s_.schedule(*qp.srq->awaiting.first());
}

// To as many senders as there are receives, those first that have waited longest.
void Receives::offer(Qp& qp) {
  if (!qp.srq) return announce(qp);
  Srq& srq = *qp.srq;
  for (uint32_t n = srq.producer - srq.head; n != 0 && !srq.awaiting.empty(); n--) {
    Qp& first = *srq.awaiting.first();
    announce(first);
    if (&first != &qp) s_.schedule(first);
  }
}

void Receives::announce(Qp& qp) {
  ReceiveState& rs = qp.rs;
  endAwaiting(qp);
  if (qp.has(kNakFatal) || !qp.has(kNakSent)) return;
  // A sender with kMostRnrRetries has none left after so many. One that came once more repeats for ever.
  const bool mayAnnounce =
      qp.local || ((qp.attributes.patience & rnrpatience::kResponder) && rs.rnrNaks != wire::kMostRnrRetries);
  if (!mayAnnounce) return;
  c_.counters.lateReceives++;
  if (!qp.has(kNakPending)) rs.rnrNaks++;
  qp.set(kNakPending);
  rs.nakSyndrome = wire::kClassRnr | wire::kRnrShortest;
  rs.nakPsn = rs.expected;
}

uint8_t Receives::rnrCode(const Qp& qp) const {
  const uint32_t least = qp.attributes.minRnrTimer, before = qp.rs.rnrNaks;
  // A sender's last retry is for what was posted after its patience had come to an end; there is no reason to put it
  // off.
  if (!(qp.attributes.patience & rnrpatience::kResponder) || before == kGrowingNaks) return uint8_t(least);
  const uint32_t shift = before < kGrowingNaks ? kGrowthShift * (kGrowingNaks - 1 - before) : 0;
  return wire::rnrCodeFor(std::max(c_.options.rnrPatienceNs >> shift, wire::rnrNanoseconds(least)));
}

bool Receives::refreshShared(Srq& srq) {
  const bool knownBad = srq.ringFault;
  if (c_.refreshShared(srq)) return true;
  if (KernelPort* port = c_.kernels[srq.kernel]; port && !knownBad)
    port->onEvent(HcaEvent::srq(srq.handle, SrqEvent::kFatal));
  return false;
}

// The WQE is copied, so that its place is free at once: messages of different QPs end in any order.
bool Receives::takeShared(Qp& qp) {
  if (qp.shared.held) return true;
  Srq& srq = *qp.srq;
  if (srq.producer == srq.head) return false;
  const uint32_t* wqe = srq.wqe(srq.head);
  SharedReceive& taken = qp.shared;
  taken.held = true;
  taken.wqe = srq.head++;
  const SgeList sges = parseReceive(wqe);
  taken.sgeCount = sges.count;
  const uint32_t words = std::min(sges.count, srq.sge) * (kSgeBytes / 4);
  for (uint32_t i = 0; i < words; i++) taken.sges[i] = peekWord(sges.words + i);
  storeWord(srq.header + kSrqConsumer, srq.head);
  checkLimit(srq);
  return true;
}

void Receives::checkLimit(Srq& srq) {
  if (srq.limit == 0 || !refreshShared(srq) || srq.producer - srq.head >= srq.limit) return;
  srq.limit = 0;
  if (KernelPort* port = c_.kernels[srq.kernel]) port->onEvent(HcaEvent::srq(srq.handle, SrqEvent::kLimit));
}

Status Receives::resizeSrq(Srq& srq, std::shared_ptr<Ring> ring, uint64_t address, uint32_t entries) {
  if (!refreshShared(srq)) return Status::kInvalidDeviceState;
  if (srq.producer - srq.head > entries) return Status::kBufferOverflow;
  Srq moved = srq;
  moved.ring = std::move(ring);
  moved.header = reinterpret_cast<uint32_t*>(address);
  moved.entries = entries;
  for (uint32_t i = srq.head; i != srq.producer; i++)
    std::memcpy(const_cast<uint32_t*>(moved.wqe(i)), srq.wqe(i), srq.stride);
  storeWord(moved.header + kSrqConsumer, srq.head);
  storeWord(moved.header + kSrqProducer, srq.producer);
  storeWord(moved.header + kSrqReceiveBell, loadWord(srq.header + kSrqReceiveBell));
  srq = std::move(moved);
  return Status::kSuccess;
}

}  // namespace nd
