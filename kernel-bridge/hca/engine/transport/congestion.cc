// How much of a connection may be under way, and what is done when the end of it is lost: the congestion window, the
// answer to ECN marks (RoCEv2 congestion management, IBA 1 annex A17 §17.9), the round-trip time and the tail probe.
//
// Loss and congestion notifications make the window smaller, what is acknowledged makes it grow again: halved by a
// loss, reduced by the smoothed share of marked intervals on notifications (as DCQCN reduces its rate), one packet
// larger for each window acknowledged.
#include "transport/core.h"

namespace nd {

// ── Asking for acknowledgements ─────────────────────────────────────────────────────────────────

// Whether a packet of a SEND or WRITE carries AckReq: at the end of messages whose completion is wanted, of every so
// many that nobody waits for (half of the send queue), and of those that others have waited before for too long; for
// every quarter of the window, and where the window ends. What is repeated asks, and so does who may not ask later.
// The tail that this leaves is asked for by ask().
bool Core::asksForAnswer(Qp& qp, const SendEntry& e, bool last, uint32_t span) const {
  if (!qp.reliable()) return false;
  Requester& rq = qp.rq;
  const uint32_t inFlight = ((rq.psn - rq.una) & wire::kPsnMask) + span;
  rq.sinceAck += span;
  bool asks = rq.sinceAck >= (rq.window + 3) / 4 || inFlight >= rq.window || qp.has(kProbing | kAsking);
  if (last && !asks) {
    asks = qp.signalAll || (e.flags & abi::kSendFlagSignaled) || ++rq.messagesSinceAck >= qp.sendEntries / 2 ||
           (rq.unasked() && now - rq.ackStart >= kLateAskNs) || qp.has(kAwaited) || qp.local ||
           wire::psnDiff(rq.psn, rq.maxPsn) < 0 || !stateRules(qp.state()).beginsWork ||
           rq.roundTrip == 0 || qp.attributes.ackTimeout == 0 || qp.attributes.retryCount == 0;
  }
  if (asks) rq.sinceAck = rq.messagesSinceAck = 0;
  return asks;
}

// Asks for the answer to packets that have left without asking: by the oldest of them, once more, beside what goes on.
// On the local link each message's last packet asks, and a packet more may find no room in the ring.
void Core::ask(Qp& qp) {
  if (qp.local) return;
  Requester& rq = qp.rq;
  SendEntry& e = qp.entry(rq.head);
  if (rq.head == rq.begun || e.local || e.isReadOrAtomic() || qp.has(kRnrWait)) return;
  counters.lateAckRequests++;
  const uint32_t psn = rq.psn, next = rq.next, packet = rq.packet;
  qp.set(kAsking);
  rq.askLimit = psn;
  rq.psn = rq.una;
  rq.next = rq.head;
  rq.packet = (rq.una - e.firstPsn) & wire::kPsnMask;
  rq.gather.offset = UINT32_MAX;
  sendData(qp, e, 1);
  rq.psn = psn;
  rq.next = next;
  rq.packet = packet;
  rq.gather.offset = UINT32_MAX;
  if (!e.status) return;
  // Its memory is not registered any more, which matters only if it was lost: an empty WRITE asks in its place. Amid a longer
  // message, or what is repeated, there is no PSN for one; that asks by itself, soon.
  e.status = 0;
  qp.clear(kAsking);
  if (qp.has(kKeepAlive)) return;
  if (packet != 0 || psn != rq.maxPsn) {
    rq.ackStart = now;
    return;
  }
  qp.set(kKeepAlive);
  rq.keepAlivePsn = rq.psn;
  schedule(qp);
}

// ── Window ──────────────────────────────────────────────────────────────────────────────────────

void Core::openWindow(Qp& qp, uint32_t acknowledged) const {
  if (!qp.has(kNarrowed)) return;
  Requester& rq = qp.rq;
  rq.credit += acknowledged;
  if (rq.credit < rq.window) return;
  rq.credit -= rq.window;
  rq.window++;
  qp.put(kNarrowed, rq.window < options.window);
}

// The local link loses nothing and has no queues on the way.
void Core::reduceWindow(Qp& qp, uint32_t packets) const {
  if (qp.local) return;
  Requester& rq = qp.rq;
  rq.credit = 0;
  rq.window = std::min(options.window, std::max(packets, kSmallestWindow));
  qp.put(kNarrowed, rq.window < options.window);
}

// A CNP. One reduction per interval, however many come: they tell of the same queue.
void Core::onCongestion(Qp& qp) {
  Requester& rq = qp.rq;
  counters.congestionNotifications++;
  if (now - rq.congestedAt < kCongestionNs && rq.congestedAt != 0) return;
  // alpha moves by 1/16 towards 1 now, and back towards 0 for each interval that passed without a notification.
  for (uint64_t quiet = now - rq.congestedAt; quiet >= 2 * kCongestionNs && rq.alpha > 16; quiet -= kCongestionNs)
    rq.alpha -= rq.alpha / 16;
  rq.congestedAt = now;
  rq.alpha += (kAlphaOne - rq.alpha) / 16;
  reduceWindow(qp, rq.window - uint32_t(uint64_t(rq.window) * rq.alpha / (2 * kAlphaOne)));
}

void Core::onMarked(Qp& qp) {
  counters.congestionMarked++;
  if (qp.cnpSentAt != 0 && now - qp.cnpSentAt < kCongestionNs) return;
  qp.cnpSentAt = now;
  qp.set(kCnpPending);
  schedule(qp);
}

void Core::sendCongestionNotification(Qp& qp) {
  if (!qp.has(kCnpPending)) return;
  qp.clear(kCnpPending);
  if (qp.local) return;
  wire::Bth bth;
  bth.opcode = wire::kOpCnp;
  bth.destinationQpn = qp.attributes.destinationQpn;
  wire::emitBth(out.header, bth);
  out.header[wire::kBthCongestionByte] = wire::kBecn;
  std::memset(out.header + wire::kBthBytes, 0, wire::kCnpReservedBytes);
  out.headerLength = wire::kBthBytes + wire::kCnpReservedBytes;
  out.pieceCount = out.payloadLength = out.padLength = 0;
  counters.congestionNotificationsSent++;
  // Not to be marked itself.
  Path path = qp.route;
  path.trafficClass &= wire::kDscpMask;
  transmit(qp, path);
}

// ── Round-trip time and tail probe ──────────────────────────────────────────────────────────────

// RFC 6298 §2, in nanoseconds.
void Core::sampleRoundTrip(Requester& rq) {
  if (!rq.timing || wire::psnDiff(rq.una, rq.timedPsn) <= 0) return;
  rq.timing = false;
  const uint64_t sample = now - rq.timedAt;
  if (rq.roundTrip == 0) {
    rq.roundTrip = sample + 1;
    rq.variation = sample / 2;
    return;
  }
  const uint64_t difference = sample > rq.roundTrip ? sample - rq.roundTrip : rq.roundTrip - sample;
  rq.variation += difference / 4 - rq.variation / 4;
  rq.roundTrip += sample / 8 - rq.roundTrip / 8;
}

// When silence means that the newest packets, or their acknowledgement, are lost; UINT64_MAX: not to be guessed.
// A loss in the middle shows by what comes after it; one at the end would cost the whole ACK time-out (as for TCP,
// RFC 8985 §7). A peer that has used up its retries is asked no more often than it allows.
uint64_t Core::probeDue(const Qp& qp) const {
  const Requester& rq = qp.rq;
  if (qp.local || rq.probes >= kMostProbes || qp.attributes.retryCount == 0 || qp.attributes.ackTimeout == 0)
    return UINT64_MAX;
  if (rq.unasked() && !qp.has(kKeepAlive)) return rq.ackStart + kShortestProbeNs;  // no reason to think of a loss yet
  if (rq.roundTrip == 0) return UINT64_MAX;
  const uint64_t interval = std::max(2 * rq.roundTrip + 4 * rq.variation, kShortestProbeNs);
  return rq.ackStart + interval * ((2ull << rq.probes) - 1);
}

// Repeats the oldest packet only, asking for an answer; that tells what else is to be repeated.
void Core::probe(Qp& qp) {
  Requester& rq = qp.rq;
  const uint64_t ackStart = rq.ackStart;
  rq.probes++;
  if (rq.unasked() && !qp.has(kKeepAlive)) return ask(qp);
  counters.tailProbes++;
  goBack(qp);
  rq.ackStart = ackStart;  // a probe is no reason to wait longer for the time-out
  qp.set(kProbing);
}

}  // namespace nd
