#include "transport/extensions/selective_ack.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint32_t kOftenAgain = 4;  // the same packet, while others arrive

}  // namespace

// ── Responder ───────────────────────────────────────────────────────────────────────────────────

bool SelectiveAck::keep(Qp& qp, const Packet& p) {
  if (!agreed(qp)) return false;
  ReceiveState& rs = qp.rs;
  const uint32_t psn = p.bth.psn;
  const uint8_t* const bth = p.extension - wire::kBthBytes;
  const uint32_t length = uint32_t(p.payload - bth) + p.length + p.bth.pad;
  if (!rs.kept) rs.kept = std::make_unique<KeptPackets>(&c_.keptBytes);
  KeptPackets& kept = *rs.kept;
  if (kept.has(psn)) {
    c_.counters.duplicateRequests++;
  } else if (!mayKeep(kept, rs.expected, psn, length)) {
    c_.counters.unkept++;
  } else {
    const bool next = kept.has(wire::psnAdd(psn, wire::kPsnMask));
    kept.put(rs.expected, psn, bth, length);
    c_.counters.keptPackets++;
    qp.set(kKeeps);
    if (next && !p.bth.ackRequest && ++kept.sinceReport < kReportEvery) return true;
  }
  // After an RNR NAK the peer waits, and then tries again.
  if (qp.has(kNakSent)) return true;
  kept.sinceReport = 0;
  requestGap(qp);
  return true;
}

bool SelectiveAck::mayKeep(const KeptPackets& kept, uint32_t expected, uint32_t psn, uint32_t length) const {
  const uint32_t ahead = uint32_t(wire::psnDiff(psn, expected));
  if (ahead >= KeptPackets::kMostAhead) return false;
  const uint64_t cost = kept.costOf(ahead, length);
  return kept.bytes() + c_.keptBytes + 2 * cost <= 2 * c_.options.longWindowBytes;
}

Packet SelectiveAck::keptPacket(const uint8_t* bytes, uint32_t length) {
  Packet p;
  p.bth = wire::parseBth(bytes);
  const wire::OpInfo& op = wire::kOpcodes[p.bth.opcode];
  p.flags = op.flags;
  p.extension = bytes + wire::kBthBytes;
  p.payload = bytes + op.headerBytes;
  p.length = length - op.headerBytes - p.bth.pad;
  return p;
}

void SelectiveAck::requestGap(Qp& qp) {
  qp.set(kNakPending);
  qp.rs.nakSyndrome = wire::kNakSequence;
  qp.rs.nakPsn = qp.rs.expected;
  s_.schedule(qp);
}

void SelectiveAck::deliver(Qp& qp) {
  ReceiveState& rs = qp.rs;
  uint32_t length;
  // A request may end the queue pair, after which nothing is kept any more.
  while (rs.kept && !qp.has(kNakFatal | kFailing) && stateRules(qp.state()).receivesRequests) {
    const std::unique_ptr<uint8_t[]> bytes = rs.kept->take(rs.expected, &length);
    if (!bytes) break;
    t_.responder.take(qp, keptPacket(bytes.get(), length));
  }
  if (!rs.kept) return;
  if (rs.kept->count() == 0) {
    qp.clear(kKeeps);
    rs.kept.reset();
  } else if (!qp.has(kNakSent | kNakFatal | kFailing) && stateRules(qp.state()).receivesRequests) {
    requestGap(qp);
  }
}

void SelectiveAck::report(Qp& qp, OutPacket* out) {
  if (!qp.has(kKeeps) || !agreed(qp)) return;
  PsnRange ranges[kMostRanges];
  const uint32_t n = qp.rs.kept->ranges(qp.rs.expected, ranges, std::min(kMostRanges, qp.mtu / kRangeBytes));
  if (n == 0) return;
  for (uint32_t i = 0; i < n; i++) {
    wire::store32(ranges_ + i * kRangeBytes, ranges[i].first);
    wire::store32(ranges_ + i * kRangeBytes + 4, ranges[i].last);
  }
  out->pieces[0] = {ranges_, n * kRangeBytes};
  out->pieceCount = 1;
  out->payloadLength = n * kRangeBytes;
  c_.counters.sentReports++;
}

// ── Requester ───────────────────────────────────────────────────────────────────────────────────

Scoreboard& SelectiveAck::board(Qp& qp) {
  SendState& rq = qp.rq;
  if (!rq.board) rq.board = std::make_unique<Scoreboard>();
  if (!qp.has(kRecovering)) {
    qp.set(kRecovering);
    rq.board->clear();
    rq.board->highest = rq.board->examined = rq.una;
  }
  rq.board->end = rq.maxPsn;
  return *rq.board;
}

// Ranges must be in order and before the packet sent last, so a report costs no more than what is in flight.
bool SelectiveAck::isReport(const Qp& qp, const Packet& p) {
  if (p.length % kRangeBytes != 0 || p.bth.pad != 0) return false;
  for (uint32_t at = 0; at < p.length; at += kRangeBytes) {
    const uint32_t psn = wire::load32(p.payload + at), last = wire::load32(p.payload + at + 4);
    if (psn > wire::kPsnMask || last > wire::kPsnMask || wire::psnDiff(last, psn) < 0 ||
        wire::psnDiff(last, qp.rq.maxPsn) >= 0)
      return false;
    if (at != 0 && wire::psnDiff(psn, wire::load32(p.payload + at - 4)) <= 0) return false;
  }
  return true;
}

void SelectiveAck::onReport(Qp& qp, const Packet& p) {
  SendState& rq = qp.rq;
  if (!isReport(qp, p)) {
    c_.counters.malformed++;
    return;
  }
  c_.counters.receivedReports++;
  if (rq.psn != rq.maxPsn || qp.has(kRnrWait)) return;  // everything is retransmitted anyway
  Scoreboard& b = board(qp);
  uint32_t fresh = 0;
  for (uint32_t at = 0; at < p.length; at += kRangeBytes) {
    uint32_t psn = wire::load32(p.payload + at);
    const uint32_t last = wire::load32(p.payload + at + 4);
    if (wire::psnDiff(last, rq.una) < 0) continue;  // an older report
    if (wire::psnDiff(psn, rq.una) < 0) psn = rq.una;
    fresh += b.keep(rq.una, psn, last);
    if (wire::psnDiff(wire::psnAdd(last, 1), b.highest) > 0) b.highest = wire::psnAdd(last, 1);
  }
  uint32_t lost = examine(qp, wire::psnAdd(b.highest, wire::kPsnMask + 1 - Scoreboard::kReordering));
  for (; !b.again.empty(); b.again.pop_front()) {
    const Scoreboard::Again first = b.again.front();
    if (wire::psnDiff(b.highest, first.newest) <= int32_t(Scoreboard::kReordering)) break;
    if (wire::psnDiff(first.psn, LostResponses::executed(qp)) < 0 || !b.wasSentAgain(first)) continue;
    b.lost.push_back(first.psn);
    lost++;
  }
  if (rq.timing && b.isKept(rq.timedPsn)) t_.congestion.takeSample(rq);
  if (fresh != 0 || lost != 0) rq.ackStart = c_.now;  // reports without news could be repeated forever
  lose(qp, lost, b.reduced);
  t_.congestion.openWindow(qp, fresh);
  s_.schedule(qp);
}

// Marks packets before `end` that the peer does not keep as lost. Returns how many were not yet marked.
uint32_t SelectiveAck::examine(Qp& qp, uint32_t end) {
  SendState& rq = qp.rq;
  Scoreboard& b = *rq.board;
  uint32_t lost = 0, wqe, packet;
  const uint32_t executed = LostResponses::executed(qp);
  if (wire::psnDiff(b.examined, executed) < 0) b.examined = executed;
  while (wire::psnDiff(b.examined, end) < 0) {
    const uint32_t psn = b.examined;
    b.examined = wire::psnAdd(psn, 1);
    if (b.isKept(psn) || !find(qp, psn, &wqe, &packet)) continue;
    const SendEntry& e = qp.entry(wqe);
    // A READ request has several PSNs but is one packet.
    if (e.opcode == abi::kOpRead && psn != rq.una && (packet & (e.chunk - 1)) != 0) continue;
    b.lost.push_back(psn);
    lost++;
  }
  return lost;
}

bool SelectiveAck::find(Qp& qp, uint32_t psn, uint32_t* wqe, uint32_t* packet) {
  const SendState& rq = qp.rq;
  if (qp.has(kKeepAlive) && psn == rq.keepAlivePsn) return false;
  uint32_t least = 0, most = rq.begun - rq.head;  // the first that begins after the PSN
  while (least != most) {
    const uint32_t middle = least + (most - least) / 2;
    if (wire::psnDiff(qp.entry(rq.head + middle).firstPsn, psn) > 0) most = middle;
    else least = middle + 1;
  }
  for (; least != 0; least--) {
    const SendEntry& e = qp.entry(rq.head + least - 1);
    if (e.isLocal()) continue;
    *wqe = rq.head + least - 1;
    *packet = (psn - e.firstPsn) & wire::kPsnMask;
    return *packet < e.packets;
  }
  return false;
}

// Losses reduce the window only once per window, unless a model of the path evaluates them.
void SelectiveAck::lose(Qp& qp, uint32_t packets, LossMark& mark) {
  if (packets == 0) return;
  const SendState& rq = qp.rq;
  c_.counters.foundLost += packets;
  if (!rq.model && mark.known && wire::psnDiff(rq.una, mark.end) < 0) return;
  mark = {true, rq.maxPsn};
  t_.congestion.onLoss(qp, packets);
}

uint32_t SelectiveAck::onProgress(Qp& qp, uint32_t before) {
  SendState& rq = qp.rq;
  Scoreboard& b = *rq.board;
  b.oldestAgain = 0;
  uint32_t known = 0;
  for (uint32_t psn = before; psn != rq.una; psn = wire::psnAdd(psn, 1)) known += b.forget(psn);
  if (wire::psnDiff(rq.una, b.highest) > 0) b.highest = rq.una;
  if (wire::psnDiff(rq.una, b.end) >= 0) forget(qp);
  return known;
}

void SelectiveAck::onProbed(Qp& qp) {
  if (qp.rq.board && qp.has(kRecovering)) giveUp(qp, qp.rq.board->probeEnd);
}

void SelectiveAck::giveUp(Qp& qp, uint32_t end) {
  SendState& rq = qp.rq;
  if (rq.psn != rq.maxPsn || qp.has(kRnrWait) || wire::psnDiff(end, rq.una) <= 0 || wire::psnDiff(end, rq.maxPsn) > 0)
    return;
  Scoreboard& b = board(qp);
  b.lost.clear();
  b.again.clear();
  b.examined = rq.una;
  lose(qp, examine(qp, end), b.reduced);
  s_.schedule(qp);
}

void SelectiveAck::forget(Qp& qp) {
  qp.clear(kRecovering);
  if (qp.rq.board) qp.rq.board->clear();
}

bool SelectiveAck::probe(Qp& qp) {
  SendState& rq = qp.rq;
  uint32_t wqe, packet;
  if (rq.psn != rq.maxPsn || !find(qp, rq.una, &wqe, &packet) || qp.entry(wqe).isReadOrAtomic()) return false;
  Scoreboard& b = board(qp);
  b.probeEnd = rq.maxPsn;
  return sendAgain(qp, rq.una);
}

bool SelectiveAck::resend(Qp& qp, uint32_t& budget) {
  SendState& rq = qp.rq;
  Scoreboard& b = *rq.board;
  while (!b.lost.empty()) {
    const uint32_t psn = b.lost.front();
    if (wire::psnDiff(psn, LostResponses::executed(qp)) < 0 || b.isKept(psn)) {
      b.lost.pop_front();
      continue;
    }
    if (budget == 0) return false;
    if (rq.model && !t_.longWindow.mayLeave(qp)) return true;
    budget--;
    b.lost.pop_front();
    if (!sendAgain(qp, psn)) {
      t_.requester.goBack(qp);  // which also ends requests that cannot be sent
      return true;
    }
  }
  return true;
}

// Sends one packet with AckReq. The position of regular sending does not change. Returns false if it cannot be sent.
bool SelectiveAck::sendAgain(Qp& qp, uint32_t psn) {
  SendState& rq = qp.rq;
  uint32_t wqe, packet;
  if (!find(qp, psn, &wqe, &packet)) return false;
  if (psn == rq.una && ++rq.board->oldestAgain % kOftenAgain == 0) t_.fragments.suspect(qp);
  sendPart(qp, psn, wqe, packet, UINT32_MAX);
  SendEntry& e = qp.entry(wqe);
  if (e.status) {
    e.status = 0;
    return false;
  }
  rq.board->sentAgain(rq.una, psn, rq.maxPsn);
  return true;
}

void SelectiveAck::sendPart(Qp& qp, uint32_t psn, uint32_t wqe, uint32_t packet, uint32_t most) {
  SendState& rq = qp.rq;
  const uint32_t wasPsn = rq.psn, next = rq.next, wasPacket = rq.packet, reads = rq.reads,
                 ackRequestEnd = rq.ackRequestEnd;
  rq.psn = psn;
  rq.next = wqe;
  rq.packet = packet;
  rq.gather.offset = UINT32_MAX;
  const bool probing = qp.has(kProbing);
  qp.set(kProbing);  // requests a response
  t_.requester.sendOne(qp, qp.entry(wqe), most);
  qp.put(kProbing, probing);
  if (((rq.timedPsn - psn) & wire::kPsnMask) < ((rq.psn - psn) & wire::kPsnMask)) rq.timing = false;
  rq.psn = wasPsn;
  rq.next = next;
  rq.packet = wasPacket;
  rq.reads = reads;
  rq.gather.offset = UINT32_MAX;
  if (wire::psnDiff(ackRequestEnd, rq.ackRequestEnd) > 0) rq.ackRequestEnd = ackRequestEnd;
  if (!TimerHeap::has(qp)) t_.requester.startAckTimer(qp);
}

}  // namespace nd
