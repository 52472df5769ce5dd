#include "transport/extensions/lost_responses.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint32_t kReordering = Scoreboard::kReordering;
constexpr uint32_t kOftenRepeated = 4;                                // the same response, while others arrive
constexpr size_t kMostRepeats = ResponseScoreboard::kMostReRequests;  // that are waiting

void raise(uint32_t& psn, uint32_t to) {
  if (wire::psnDiff(to, psn) > 0) psn = to;
}

}  // namespace

// ── Requester ────────────────────────────────────────────────────────────────────────────────────────────────────────

ResponseScoreboard& LostResponses::board(Qp& qp) {
  SendState& rq = qp.rq;
  if (!qp.has(kResponseGap)) {
    qp.set(kResponseGap);
    rq.responses = std::make_unique<ResponseScoreboard>(&c_.keptBytes, rq.una);
  }
  return *rq.responses;
}

void LostResponses::keep(Qp& qp, const Packet& p) {
  SendState& rq = qp.rq;
  const uint32_t psn = p.bth.psn;
  uint32_t wqe = 0, packet = 0;
  const bool known = SelectiveAck::find(qp, psn, &wqe, &packet);
  const SendEntry& e = qp.entry(wqe);
  const bool fits =
      known && ((p.flags & wire::kRead) ? e.opcode == kOpRead : e.isReadOrAtomic() && e.opcode != kOpRead);
  if (!fits || p.length > qp.mtu) {
    c_.counters.malformed++;
    return;
  }
  if (!qp.has(kResponseGap)) c_.counters.responseGaps++;
  ResponseScoreboard& b = board(qp);
  const uint8_t* const bth = p.extension - wire::kBthBytes;
  const uint32_t length = uint32_t(p.payload - bth) + p.length + p.bth.pad;
  if (b.kept.has(psn)) {
    c_.counters.staleResponses++;
    return;
  }
  // A response that cannot be kept counts as lost. It does not indicate a gap before it, because later responses could
  // not be kept either.
  if (!t_.selectiveAck.mayKeep(b.kept, rq.una, psn, length)) {
    c_.counters.unkept++;
    return;
  }
  b.kept.put(rq.una, psn, bth, length);
  c_.counters.keptPackets++;
  b.extend(wire::psnAdd(psn, 1));
  raise(b.executed, wire::psnAdd(psn, e.opcode == kOpRead ? e.leftOfRequest(packet) : 1));
  if (qp.has(kRecovering)) rq.board->forget(psn);
  if (rq.timing && psn == rq.timedPsn) t_.congestion.takeSample(rq);
  rq.ackStart = c_.now;
  see(qp, p);
  t_.congestion.openWindow(qp, 1);
  s_.schedule(qp);
}

void LostResponses::onNext(Qp& qp, const Packet& p) {
  see(qp, p);
  deliver(qp);
}

// Derives the missing responses from those received.
void LostResponses::see(Qp& qp, const Packet& p) {
  ResponseScoreboard& b = *qp.rq.responses;
  uint32_t lost = 0;
  if (p.bth.ackRequest) {
    const ResponseScoreboard::ReRequest* const reRequest = b.reRequestFor(p.bth.psn);
    if (!reRequest) return;
    const uint32_t position = reRequest->position + ((p.bth.psn - reRequest->first) & wire::kPsnMask);
    lost = settle(qp, position + 1 - kReordering);
    if (b.probing && int32_t(position - b.probePosition) >= 0) onProbed(qp);
  } else {
    raise(b.highest, wire::psnAdd(p.bth.psn, 1));
    b.extend(b.highest);
    lost = examine(qp, wire::psnAdd(b.highest, wire::kPsnMask + 1 - kReordering));
    while (!b.reRequests.empty() && wire::psnDiff(b.highest, b.reRequests.front().newest) > int32_t(kReordering))
      lost += settle(qp, b.reRequests.front().end());
  }
  t_.selectiveAck.lose(qp, lost, b.reduced);
}

void LostResponses::onExecuted(Qp& qp, uint32_t end) {
  SendState& rq = qp.rq;
  if (!qp.has(kResponseGap)) c_.counters.responseGaps++;
  ResponseScoreboard& b = board(qp);
  if (wire::psnDiff(end, b.executed) > 0) rq.ackStart = c_.now;
  raise(b.executed, end);
  raise(b.highest, end);
  b.extend(end);
  uint32_t lost = examine(qp, end);
  while (!b.reRequests.empty() && wire::psnDiff(end, b.reRequests.front().newest) > 0)
    lost += settle(qp, b.reRequests.front().end());
  t_.selectiveAck.lose(qp, lost, b.reduced);
  s_.schedule(qp);
}

// Processes the response to a probe. Whatever was sent before the probe and has not arrived is lost.
void LostResponses::onProbed(Qp& qp) {
  ResponseScoreboard& b = *qp.rq.responses;
  b.probing = false;
  uint32_t lost = settle(qp, b.probePosition);
  lost += examine(qp, b.probeEnd);
  t_.selectiveAck.lose(qp, lost, b.reduced);
  if (wire::psnDiff(b.probeEnd, executed(qp)) > 0) t_.selectiveAck.giveUp(qp, b.probeEnd);
  s_.schedule(qp);
}

// Marks responses of executed requests before `end` that have not arrived as lost. Returns their number.
uint32_t LostResponses::examine(Qp& qp, uint32_t end) {
  ResponseScoreboard& b = *qp.rq.responses;
  uint32_t lost = 0, wqe, packet;
  if (wire::psnDiff(end, b.executed) > 0) end = b.executed;
  raise(b.examined, qp.rq.una);
  for (; wire::psnDiff(b.examined, end) < 0; b.examined = wire::psnAdd(b.examined, 1)) {
    const uint32_t psn = b.examined;
    if (b.kept.has(psn) || !SelectiveAck::find(qp, psn, &wqe, &packet) || !qp.entry(wqe).isReadOrAtomic() ||
        b.reRequestFor(psn))
      continue;
    b.lose(psn);
    lost++;
  }
  return lost;
}

// Does the same for re-requests made before a position. Responses that have been re-requested once more since then are
// skipped. If a retransmitted request has not arrived either, it is retransmitted whole, like other lost requests
// (selective_ack.h).
uint32_t LostResponses::settle(Qp& qp, uint32_t position) {
  ResponseScoreboard& b = *qp.rq.responses;
  const uint32_t end = executed(qp);
  uint32_t lost = 0;
  while (!b.reRequests.empty() && int32_t(position - b.reRequests.front().position) > 0) {
    ResponseScoreboard::ReRequest& first = b.reRequests.front();
    const uint32_t psn = first.first;
    if (wire::psnDiff(psn, qp.rq.una) >= 0 && wire::psnDiff(psn, end) < 0 && !b.kept.has(psn) &&
        !b.reRequestFor(psn, 1)) {
      b.lose(psn);
      lost++;
    }
    first.first = wire::psnAdd(psn, 1);
    first.position++;
    if (--first.count == 0) b.reRequests.pop_front();
  }
  return lost;
}

void LostResponses::deliver(Qp& qp) {
  SendState& rq = qp.rq;
  uint32_t length;
  // A response may end the queue pair, after which nothing is kept any more.
  while (qp.has(kResponseGap) && !qp.has(kFailing)) {
    ResponseScoreboard& b = *rq.responses;
    if (wire::psnDiff(b.executed, rq.una) > 0 && !t_.completer.advance(qp, b.executed) && qp.has(kFailing)) return;
    const std::unique_ptr<uint8_t[]> bytes = b.kept.take(rq.una, &length);
    if (!bytes) break;
    b.delivering = true;
    t_.completer.takeResponse(qp, SelectiveAck::keptPacket(bytes.get(), length));
    if (qp.has(kResponseGap)) b.delivering = false;
  }
  if (!qp.has(kResponseGap)) return;
  ResponseScoreboard& b = *rq.responses;
  while (!b.reRequests.empty() &&
         wire::psnDiff(wire::psnAdd(b.reRequests.front().first, b.reRequests.front().count), rq.una) <= 0)
    b.reRequests.pop_front();
  if (wire::psnDiff(rq.una, b.end) < 0) return;
  qp.clear(kResponseGap);
  rq.responses.reset();
}

bool LostResponses::isReRequest(Qp& qp, uint32_t span) {
  const SendState& rq = qp.rq;
  if (wire::psnDiff(rq.psn, rq.maxPsn) >= 0 || !agreed(qp)) return false;
  board(qp).reRequest(rq.psn, span, rq.maxPsn);
  return true;
}

// Returns the number of consecutive missing PSNs from `psn` on.
uint32_t LostResponses::missingFrom(const Qp& qp, uint32_t psn, uint32_t most) const {
  const KeptPackets& kept = qp.rq.responses->kept;
  uint32_t n = 0;
  while (n < most && !kept.has(wire::psnAdd(psn, n))) n++;
  return n;
}

bool LostResponses::reRequest(Qp& qp, uint32_t& budget) {
  SendState& rq = qp.rq;
  ResponseScoreboard& b = *rq.responses;
  if (wire::psnDiff(rq.psn, b.executed) < 0) return true;  // everything is retransmitted anyway
  while (!b.lost.empty()) {
    PsnRange& lost = b.lost.front();
    raise(lost.first, rq.una);
    uint32_t wqe, packet;
    if (wire::psnDiff(lost.first, lost.last) > 0) {
      b.lost.pop_front();
      continue;
    }
    const uint32_t psn = lost.first, all = ((lost.last - psn) & wire::kPsnMask) + 1;
    uint32_t n = missingFrom(qp, psn, all);
    if (n == 0 || !SelectiveAck::find(qp, psn, &wqe, &packet) || !qp.entry(wqe).isReadOrAtomic()) {
      lost.first = wire::psnAdd(psn, 1);
      continue;
    }
    if (b.reRequests.size() >= ResponseScoreboard::kMostReRequests)
      return true;  // the response to one of them triggers the next round
    if (budget == 0) return false;
    if (rq.model && !t_.longWindow.mayLeave(qp)) return true;
    budget--;
    const SendEntry& e = qp.entry(wqe);
    n = std::min(n, e.opcode == kOpRead ? e.leftOfRequest(packet) : 1);
    t_.selectiveAck.sendPart(qp, psn, wqe, packet, n);
    lost.first = wire::psnAdd(psn, n);
  }
  return true;
}

bool LostResponses::probe(Qp& qp) {
  SendState& rq = qp.rq;
  uint32_t wqe, packet;
  if (!agreed(qp) || rq.psn != rq.maxPsn || !SelectiveAck::find(qp, rq.una, &wqe, &packet)) return false;
  const SendEntry& e = qp.entry(wqe);
  if (!e.isReadOrAtomic()) return false;
  ResponseScoreboard& b = board(qp);
  b.probing = true;
  b.probePosition = b.position;
  b.probeEnd = rq.maxPsn;
  // A request that may not have arrived is sent unchanged, because a part would be mistaken for the whole.
  t_.selectiveAck.sendPart(qp, rq.una, wqe, packet,
                           e.opcode == kOpRead ? missingFrom(qp, rq.una, e.leftOfRequest(packet)) : 1);
  return true;
}

uint32_t LostResponses::startOver(Qp& qp, uint32_t from) {
  const SendState& rq = qp.rq;
  if (!qp.has(kResponseGap) && (rq.reads == 0 || !agreed(qp))) return 0;
  ResponseScoreboard& b = board(qp);
  if (from != rq.una) {
    b.forget(from);
    return requestsBefore(qp, from);
  }
  b.lost.clear();
  b.reRequests.clear();
  b.probing = false;
  raise(b.examined, rq.maxPsn);
  b.extend(rq.maxPsn);
  return 0;
}

// Returns the number of READs and ATOMICs in flight before a PSN.
uint32_t LostResponses::requestsBefore(Qp& qp, uint32_t end) {
  uint32_t n = 0, wqe, packet;
  for (uint32_t psn = qp.rq.una; wire::psnDiff(psn, end) < 0;) {
    const bool known = SelectiveAck::find(qp, psn, &wqe, &packet);
    const SendEntry& e = qp.entry(wqe);
    if (known && e.isReadOrAtomic()) n++;
    psn = wire::psnAdd(psn, !known ? 1 : e.opcode == kOpRead ? e.leftOfRequest(packet) : e.packets - packet);
  }
  return n;
}

// ── Responder ────────────────────────────────────────────────────────────────────────────────────────────────────────

// Finds the re-requested part of a response. Returns false if it is not part of one.
bool LostResponses::part(Qp& qp, const Packet& p, Resource& r, ResponseJob* job) const {
  const uint32_t offset = (p.bth.psn - r.psn) & wire::kPsnMask;
  job->psn = p.bth.psn;
  job->msn = qp.rs.msn;
  job->replay = job->again = true;
  job->atomic = r.atomic;
  job->result = r.result;
  if (r.atomic) return true;
  const wire::Reth reth = wire::parseReth(p.extension);
  const uint64_t skipped = uint64_t(offset) * qp.mtu, end = skipped + reth.length;
  job->address = reth.address;
  job->rkey = reth.rkey;
  job->length = reth.length;
  job->started = offset != 0;
  job->partial = end != r.length;
  const bool whole = reth.length != 0 && reth.length % qp.mtu == 0;
  return reth.rkey == r.rkey && reth.address == r.address + skipped && end <= r.length && (!job->partial || whole);
}

void LostResponses::onRepeated(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  if (!p.bth.solicited) return;  // a duplicate, created in the network, of a request that has been handled
  Resource* of = nullptr;
  for (uint32_t i = 0; i < rs.resources.size() && !of; i++) {
    Resource& r = rs.resources[i];
    if (r.atomic == ((p.flags & wire::kAtomic) != 0) && ((p.bth.psn - r.psn) & wire::kPsnMask) < r.packets) of = &r;
  }
  ResponseJob job;
  if (!of || !part(qp, p, *of, &job)) {
    c_.counters.malformed++;
    return;
  }
  const auto packetsOf = [&](const ResponseJob& j) { return j.atomic ? 1 : qp.packetsFor(j.length); };
  // Responses waiting to be sent for the first time are sent anyway.
  if (rs.jobs.size()) {
    const int32_t ahead = wire::psnDiff(rs.jobs[0].psn, job.psn);
    if (ahead <= 0) return;
    if (uint32_t(ahead) < packetsOf(job)) {
      job.length = uint32_t(ahead) * qp.mtu;
      job.partial = true;
    }
  }
  if (!rs.repeats) rs.repeats = std::make_unique<std::deque<ResponseJob>>();
  if (rs.repeats->size() >= kMostRepeats) return;
  // A waiting repetition is not queued twice, so there are never more responses than requested. The part begins after
  // the waiting ones, and ends before them.
  for (bool again = true; again;) {
    again = false;
    for (const ResponseJob& other : *rs.repeats) {
      const int32_t covered = wire::psnDiff(wire::psnAdd(other.psn, packetsOf(other)), job.psn);
      if (wire::psnDiff(other.psn, job.psn) > 0 || covered <= 0) continue;
      if (uint32_t(covered) >= packetsOf(job)) return;
      const uint32_t bytes = uint32_t(covered) * qp.mtu;
      job.psn = wire::psnAdd(job.psn, uint32_t(covered));
      job.address += bytes;
      job.length -= bytes;
      job.started = again = true;
    }
  }
  for (const ResponseJob& other : *rs.repeats) {
    const int32_t before = wire::psnDiff(other.psn, job.psn);
    if (before <= 0 || uint32_t(before) >= packetsOf(job)) continue;
    job.length = uint32_t(before) * qp.mtu;
    job.partial = true;
  }
  t_.fragments.onRepeated(qp, *of, job.psn, job.length, kOftenRepeated);
  rs.repeats->push_back(job);
  s_.schedule(qp);
}

}  // namespace nd
