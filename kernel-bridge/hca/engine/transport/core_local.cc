// Queue pairs on the local link (local_pair.h): the choice of the way, back-pressure, and what becomes of a payload
// that could not be copied.
#include "transport/core.h"

#include <utility>

namespace nd {

using namespace abi;

// A queue pair's peer is known: which way its packets go. It sends nothing while that is being asked.
void Core::chooseLink(Qp& qp) {
  leaveLink(qp);
  // Like a packet that was lost: the next one shows it.
  if (qp.has(kPullFailed)) qp.clear(kPullFailed | kNakSent);
  qp.local.reset();
  qp.clear(kPairPending);
  setMtu(qp);
  if (!qp.peerLocal || qp.datagram()) return;
  qp.local = link.localPair(qp.attributes.destinationQpn >> 16);
  if (qp.local) settleLink(qp);
}

void Core::settleLink(Qp& qp) {
  qp.put(kPairPending, qp.local->state == LocalPair::State::kAsking);
  if (qp.local->state == LocalPair::State::kRefused) qp.local.reset();
  setMtu(qp);
  if (!qp.has(kPairPending)) schedule(qp);
}

void Core::setMtu(Qp& qp) {
  const bool whole = qp.local && qp.local->up() && !qp.local->plain;
  qp.mtu = whole ? LocalPair::kMtu : qp.attributes.pathMtu;
  qp.mtuShift = qp.mtu ? 31 - uint32_t(__builtin_clz(qp.mtu)) : 0;
}

void Core::onLocalPair(LocalPair& pair) {
  received++;
  qps.forEach([&](Qp& qp) {
    if (qp.local.get() == &pair && qp.has(kPairPending)) settleLink(qp);
  });
}

// ── Back-pressure ───────────────────────────────────────────────────────────────────────────────

// Whether what is left of a message is named instead of carried. `mapped` tells whether the peer has the memory mapped. A pair
// may be closed a moment before its connections end.
template <typename Mapped>
static bool refers(const Qp& qp, uint32_t length, bool inRing, Mapped mapped) {
  if (length < LocalPair::kMappedFrom || inRing || !qp.reliable() || !qp.local || qp.local->plain || !qp.local->up())
    return false;
  if (qp.local->self || mapped()) return true;
  return length >= LocalPair::kReferenceFrom && qp.local->peerPulls() && qp.local->namesNext();
}

bool Core::refersToSource(Qp& qp, const SendEntry& e, uint32_t length) {
  if (e.count > LocalPair::kMaxPieces || (e.flags & kSendFlagInline)) return false;
  return refers(qp, length, qp.has(kRingOnly), [&] {
    const uint32_t* sge = qp.sendWqe(qp.rq.next) + kSendWqeHeaderBytes / 4;
    for (uint32_t i = 0; i < e.count; i++, sge += kSgeBytes / 4)
      if (!qp.local->isMapped(memory.sharedOf(qp.gatherCache, peekWord(sge + kSgeLkey)))) return false;
    return true;
  });
}

// The same of the next request, which the ring can carry.
bool Core::namesSource(Qp& qp) {
  const uint32_t* w = qp.sendWqe(qp.rq.next);
  if (qp.has(kRingOnly) || (peekWord(w + kSwFlags) & kSendFlagInline)) return false;
  const uint32_t lkey = peekWord(w + kSendWqeHeaderBytes / 4 + kSgeLkey);
  return qp.local->self || qp.local->isMapped(memory.sharedOf(qp.gatherCache, lkey));
}

bool Core::refersToTarget(Qp& qp, const ResponseJob& job) {
  return !job.atomic && refers(qp, job.length, job.inRing, [&] {
    return qp.local->isMapped(memory.sharedOf(qp.remoteCache, job.rkey));
  });
}

// Whether a packet of data may be sent now. If not, the queue pair stands in line for room, and sends none before its turn:
// whoever has packets answered is run again and again, and would take all the room there is from those who have sent none.
bool Core::hasRoom(Qp& qp, uint32_t payload, bool reference) {
  if (!qp.has(kStalled) && qp.local->ready(payload, reference)) return true;
  stall(qp);
  return false;
}

// The same of an acknowledgement, which waits for nobody's data.
bool Core::hasRoomToAnswer(Qp& qp) {
  if (qp.local->ready(0, false)) return true;
  stall(qp);
  return false;
}

void Core::stall(Qp& qp) {
  qp.local->wantSpace();
  if (qp.has(kStalled)) return;
  qp.set(kStalled);
  qp.nextStalled = nullptr;
  (lastStalled ? lastStalled->nextStalled : firstStalled) = &qp;
  lastStalled = &qp;
}

void Core::unstall(Qp& qp) {
  if (!qp.has(kStalled)) return;
  qp.clear(kStalled);
  Qp* previous = nullptr;
  for (Qp* q = firstStalled; q != &qp; q = q->nextStalled) previous = q;
  (previous ? previous->nextStalled : firstStalled) = qp.nextStalled;
  if (lastStalled == &qp) lastStalled = previous;
}

// It is the turn of the one who waits longest, before all who are to run. What it leaves is the next one's, in the next step.
void Core::onLocalSpace(LocalPair& pair) {
  received++;
  const auto waiting = [&](Qp* qp) {
    while (qp && qp->local.get() != &pair) qp = qp->nextStalled;
    return qp;
  };
  Qp* const qp = waiting(firstStalled);
  if (!qp || !waiting(qp->nextStalled)) pair.resume();
  if (!qp) return;
  unstall(*qp);
  scheduleFirst(*qp);
}

// A NAK that ends the queue pair also ends what its answers have named: the peer has copied that first, if it lives and goes on.
bool Core::mayBeCopying(Qp& qp) {
  Responder& rs = qp.rs;
  if (!qp.has(kNakFatal) || !rs.named || !qp.local->up() || qp.local->consumed(rs.namedEnd)) return false;
  if (!rs.nakLatest) rs.nakLatest = now + kGoodbyeNs;
  if (now >= rs.nakLatest) return false;
  const uint64_t due = now + kOwedNs;
  if (!timers.has(qp) || qp.timerDue > due) setTimer(qp, due);
  return true;
}

// The queue pair's packets are forgotten: what they name is no longer theirs.
void Core::leaveLink(Qp& qp) {
  unstall(qp);
  if (qp.rq.referred) memory.revoke();
  qp.rq.referred = false;
}

// ── In ──────────────────────────────────────────────────────────────────────────────────────────

void Core::onLocalPacket(LocalPair& pair, const LocalPacket& local) {
  countReceived(local.headerLength + local.length);
  Packet p;
  p.bth = wire::parseBth(local.bth);
  p.flags = wire::kOpcodes[p.bth.opcode].flags;
  p.extension = local.bth + wire::kBthBytes;
  p.payload = local.payload;
  p.length = local.length;
  p.pair = &pair;
  p.local = &local;
  Qp* qp = byQpn(p.bth.destinationQpn);
  if (!qp) {
    counters.unknownQp++;
    return;
  }
  if (!accepts(*qp, p)) return;
  if (qp->local.get() != &pair || local.sourceQpn != qp->attributes.destinationQpn) {
    counters.wrongAddress++;
    return;
  }
  if (!p.payload) p.span = qp->packetsFor(p.length);
  take(*qp, p);
}

void Core::onPlainPacket(LocalPair& pair, const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  if (length >= wire::kBthBytes) {
    const uint32_t qpn = wire::parseBth(bth).destinationQpn;
    if (qpn == wire::kGsiQpn || qpn == wire::kMulticastQpn) {
      counters.malformed++;
      return;
    }
  }
  carrier = &pair;
  onPacket(meta, bth, length);
  carrier = nullptr;
}

// The payload to its places, in order. kWcSuccess, or kUnpulled: the peer is told, and sends it again otherwise.
uint32_t Core::moveTo(const Packet& p, const Piece* places, uint32_t count) {
  if (p.payload) {
    const uint8_t* data = p.payload;
    for (uint32_t i = 0; i < count; i++) {
      std::memcpy(places[i].data, data, places[i].length);
      data += places[i].length;
    }
    return kWcSuccess;
  }
  const Pull outcome = p.pair->pull(*p.local, places, count);
  if (outcome == Pull::kDone) return kWcSuccess;
  pullLasting = outcome == Pull::kFailed;
  return kUnpulled;
}

// As responder: like a packet that was lost, but told with the reason.
void Core::refuseUnpulled(Qp& qp) {
  qp.set(kNakSent | kPullFailed);  // what follows in flight is refused silently until this PSN comes again
  qp.rs.unpulledLasting = pullLasting;
  schedule(qp);
}

// As requester: from the oldest packet on again, with payload in the ring until what is in flight now is answered.
void Core::toRing(Qp& qp, bool lasting) {
  Requester& rq = qp.rq;
  qp.set(kRingOnly);
  rq.ringOnlyAlways |= lasting;
  rq.ringOnlyEnd = rq.maxPsn;
  rq.fastRetried = true;  // what is under way from before shows gaps that are none
  goBack(qp);
}

void Core::onUnpulled(LocalPair& pair, uint32_t sourceQpn, uint32_t qpn, uint32_t psn, bool lasting) {
  received++;
  Qp* qp = byQpn(qpn);
  if (!qp || qp->local.get() != &pair || qp->attributes.destinationQpn != sourceQpn || qp->has(kFailing) ||
      !stateRules(qp->state()).receivesResponses)
    return;
  Requester& rq = qp->rq;
  if (wire::psnDiff(psn, rq.una) < 0 || wire::psnDiff(psn, rq.maxPsn) >= 0 || !advance(*qp, psn)) {
    counters.staleResponses++;
  } else if (!qp->has(kFailing | kRnrWait)) {
    toRing(*qp, lasting);
  }
  settle();
}

}  // namespace nd
