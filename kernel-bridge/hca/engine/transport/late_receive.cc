// Messages that find no receive (IBA 1 §9.7.5.2.8): for how long their sender is asked to wait, how this side learns of the
// receive that is posted then, and how the sender learns of it before its time is over.
//
// Posting a receive needs no call, except while the ring's header asks for one (kQpReceiveBell, kSrqReceiveBell). A message
// that waits makes it ask, and a second RNR NAK for the same PSN, with the shortest timer there is, tells the sender when a
// receive has come. A requester of ours shortens its wait by that, and so does Linux; others repeat when their time is over.
#include "base/fence.h"
#include "transport/core.h"

namespace nd {

using namespace abi;

namespace {

// RNR NAKs for one PSN with growing times. The last retry of a sender that has kMostRnrRetries is left for the one that tells
// of a receive.
constexpr uint32_t kGrowingNaks = wire::kMostRnrRetries - 1;
// Each time is four times the one before: a receive that is late by less is not waited for much longer than that.
constexpr uint32_t kGrowthShift = 2;

}  // namespace

bool Core::hasReceive(Qp& qp) {
  if (qp.srq) return refreshShared(*qp.srq) && qp.srq->producer != qp.srq->head;
  return refreshReceive(qp) && qp.rs.producer != qp.rs.head;
}

// Has the poster of the next receive ring. One that is being posted meanwhile is seen, or its poster sees that it is to ring.
bool Core::awaitReceive(Qp& qp) {
  if (qp.rs.awaitsReceive) return false;
  qp.rs.awaitsReceive = true;
  if (Srq* const srq = qp.srq) {
    qp.nextAwaiting = nullptr;
    (srq->lastAwaiting ? srq->lastAwaiting->nextAwaiting : srq->firstAwaiting) = &qp;
    srq->lastAwaiting = &qp;
    storeWord(srq->header + kSrqReceiveBell, srq->firstAwaiting->handle);
  } else {
    qp.setBell();
  }
  if (barrier) barrier();
  else fullFence();
  return hasReceive(qp);
}

// The message has its receive.
void Core::endWait(Qp& qp) {
  endAwaiting(qp);
  qp.rs.rnrNaks = 0;
}

// Nobody has to be told of the next receive.
void Core::endAwaiting(Qp& qp) {
  if (!qp.rs.awaitsReceive) return;
  qp.rs.awaitsReceive = false;
  Srq* const srq = qp.srq;
  if (!srq) return qp.setBell();
  Qp* previous = nullptr;
  for (Qp* q = srq->firstAwaiting; q != &qp; q = q->nextAwaiting) previous = q;
  (previous ? previous->nextAwaiting : srq->firstAwaiting) = qp.nextAwaiting;
  if (srq->lastAwaiting == &qp) srq->lastAwaiting = previous;
  storeWord(srq->header + kSrqReceiveBell, srq->firstAwaiting ? srq->firstAwaiting->handle : 0);
}

// The queue pair ends. What was offered to it may be another's.
void Core::leaveReceives(Qp& qp) {
  endWait(qp);
  if (qp.srq && qp.srq->firstAwaiting) schedule(*qp.srq->firstAwaiting);
}

// Receives have been posted: as many senders are told as there are receives, those first that have waited longest.
void Core::offerReceives(Qp& qp) {
  if (!qp.srq) return tellOfReceive(qp);
  Srq& srq = *qp.srq;
  for (uint32_t n = srq.producer - srq.head; n != 0 && srq.firstAwaiting; n--) {
    Qp& first = *srq.firstAwaiting;
    tellOfReceive(first);
    if (&first != &qp) schedule(first);
  }
}

void Core::tellOfReceive(Qp& qp) {
  Responder& rs = qp.rs;
  endAwaiting(qp);
  if (qp.has(kNakFatal) || !qp.has(kNakSent)) return;
  // A sender with kMostRnrRetries has none left after so many. One that came once more repeats for ever.
  const bool mayTell = qp.local || ((qp.attributes.patience & rnrpatience::kResponder) && rs.rnrNaks != wire::kMostRnrRetries);
  if (!mayTell) return;
  counters.lateReceives++;
  if (!qp.has(kNakPending)) rs.rnrNaks++;
  qp.set(kNakPending);
  rs.nakSyndrome = wire::kClassRnr | wire::kRnrShortest;
  rs.nakPsn = rs.expected;
}

// The timer code of the next RNR NAK.
uint8_t Core::rnrCode(const Qp& qp) const {
  const uint32_t least = qp.attributes.minRnrTimer, before = qp.rs.rnrNaks;
  // A sender's last retry is for what was posted after its patience had come to an end; there is no reason to put it off.
  if (!(qp.attributes.patience & rnrpatience::kResponder) || before == kGrowingNaks) return uint8_t(least);
  const uint32_t shift = before < kGrowingNaks ? kGrowthShift * (kGrowingNaks - 1 - before) : 0;
  return wire::rnrCodeFor(std::max(options.rnrPatienceNs >> shift, wire::rnrNanoseconds(least)));
}

// The wait is over. What follows the oldest packet would only be dropped, if there is no receive yet.
void Core::repeatRefused(Qp& qp) {
  qp.clear(kRnrWait);
  goBack(qp);
  qp.set(kProbing);
}

// Whether one more RNR NAK is one too many.
bool Core::rnrPatienceEnds(const Qp& qp) const {
  const uint32_t count = qp.attributes.rnrRetry;
  if (count == wire::kRnrForEver || qp.rq.rnrRetries < count) return false;
  const bool patient = count == wire::kMostRnrRetries && (qp.attributes.patience & rnrpatience::kRequester);
  return !patient || now - qp.rq.rnrSince >= options.rnrPatienceNs;
}

}  // namespace nd
