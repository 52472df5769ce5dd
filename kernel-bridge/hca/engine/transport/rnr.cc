#include "transport/rnr.h"

#include "base/fence.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

// RNR NAKs for one PSN, with growing times. The last retry of a sender with kMostRnrRetries is left for the NAK that
// announces a receive.
constexpr uint32_t kGrowingNaks = wire::kMostRnrRetries - 1;
// Each time is four times the previous one, so the wait never exceeds a receive's delay by much more than that.
constexpr uint32_t kGrowthShift = 2;

}  // namespace

bool Rnr::hasReceive(Qp& qp) {
  if (qp.srq) return t_.sharedReceives.refresh(*qp.srq) && qp.srq->producer != qp.srq->head;
  return c_.refreshReceive(qp) && qp.rs.producer != qp.rs.head;
}

// Makes the poster of the next receive ring the doorbell. A receive being posted meanwhile is either seen here, or its
// poster sees the request.
bool Rnr::awaitReceive(Qp& qp) {
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

void Rnr::endWait(Qp& qp) {
  endAwaiting(qp);
  qp.rs.rnrNaks = 0;
}

void Rnr::endAwaiting(Qp& qp) {
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
void Rnr::leave(Qp& qp) {
  endWait(qp);
  if (qp.srq && !qp.srq->awaiting.empty()) s_.schedule(*qp.srq->awaiting.first());
}

// Announces receives to as many senders as there are receives, starting with those that have waited longest.
void Rnr::offer(Qp& qp) {
  if (!qp.srq) return announce(qp);
  Srq& srq = *qp.srq;
  for (uint32_t n = srq.producer - srq.head; n != 0 && !srq.awaiting.empty(); n--) {
    Qp& first = *srq.awaiting.first();
    announce(first);
    if (&first != &qp) s_.schedule(first);
  }
}

void Rnr::announce(Qp& qp) {
  ReceiveState& rs = qp.rs;
  endAwaiting(qp);
  if (qp.has(kNakFatal) || !qp.has(kNakSent)) return;
  // A sender with kMostRnrRetries has no retries left after this many. One that tries again repeats forever.
  const bool mayAnnounce =
      qp.local || ((qp.attributes.rnrTimeout & rnrtimeout::kResponder) && rs.rnrNaks != wire::kMostRnrRetries);
  if (!mayAnnounce) return;
  c_.counters.lateReceives++;
  if (!qp.has(kNakPending)) rs.rnrNaks++;
  qp.set(kNakPending);
  rs.nakSyndrome = wire::kClassRnr | wire::kRnrShortest;
  rs.nakPsn = rs.expected;
}

uint8_t Rnr::rnrCode(const Qp& qp) const {
  const uint32_t least = qp.attributes.minRnrTimer, before = qp.rs.rnrNaks;
  // A sender's last retry is for receives posted after its RNR timeout had expired; there is no reason to delay it.
  if (!(qp.attributes.rnrTimeout & rnrtimeout::kResponder) || before == kGrowingNaks) return uint8_t(least);
  const uint32_t shift = before < kGrowingNaks ? kGrowthShift * (kGrowingNaks - 1 - before) : 0;
  return wire::rnrCodeFor(std::max(c_.options.rnrTimeoutNs >> shift, wire::rnrNanoseconds(least)));
}

}  // namespace nd
