#include "transport/congestion.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

// The longest time that a packet waits for an ACK before one is requested.
constexpr uint64_t kLateAckRequestNs = 1'000'000;
// A queue pair sends at most one CNP in this time.
constexpr uint64_t kCongestionNs = 50'000;
constexpr uint32_t kMostWithoutAckRequest = 32;  // maximum number of packets without AckReq, however long the window is

}  // namespace

// AckReq is set at the end of a signaled message, when half of the send queue is unsignaled or has waited for
// kLateAckRequestNs, when a quarter of the window was sent without AckReq, when the window is full, on retransmissions,
// and where no later packet could request an ACK. Requester::requestAck handles the remaining tail.
bool Congestion::wantsAckRequest(Qp& qp, const SendEntry& e, bool last, uint32_t span) const {
  if (!qp.reliable()) return false;
  SendState& rq = qp.rq;
  const uint32_t inFlight = ((rq.psn - rq.una) & wire::kPsnMask) + span;
  rq.sinceAck += span;
  bool ackRequest = rq.sinceAck >= std::min((rq.window + 3) / 4, kMostWithoutAckRequest) || inFlight >= rq.window ||
                    qp.has(kProbing | kRequestingAck);
  if (last && !ackRequest) {
    ackRequest = qp.signalAll || (e.flags & kSendFlagSignaled) || ++rq.messagesSinceAck >= qp.sendEntries / 2 ||
                 (rq.withoutAckRequest() && c_.now - rq.ackStart >= kLateAckRequestNs) || qp.has(kAwaited) ||
                 qp.local || wire::psnDiff(rq.psn, rq.maxPsn) < 0 || !stateRules(qp.state()).beginsWork ||
                 rq.roundTrip == 0 || qp.attributes.ackTimeout == 0 || qp.attributes.retryCount == 0;
  }
  if (ackRequest) rq.sinceAck = rq.messagesSinceAck = 0;
  return ackRequest;
}

void Congestion::openWindow(Qp& qp, uint32_t acknowledged) const {
  if (!qp.has(kNarrowed)) return;
  SendState& rq = qp.rq;
  if (rq.model) return t_.longWindow.grow(qp, acknowledged);
  rq.credit += acknowledged;
  if (rq.credit < rq.window) return;
  rq.credit -= rq.window;
  rq.window++;
  qp.put(kNarrowed, rq.window < c_.options.window);
}

// The local link loses nothing and has no queues.
void Congestion::reduceWindow(Qp& qp, uint32_t packets) const {
  if (qp.local) return;
  SendState& rq = qp.rq;
  rq.credit = 0;
  const uint32_t before = rq.window;
  rq.window = std::min(rq.model ? before : c_.options.window, std::max(packets, kSmallestWindow));
  if (rq.model) t_.longWindow.restartCurve(rq, before);
  qp.put(kNarrowed, rq.model || rq.window < c_.options.window);
}

void Congestion::onLoss(Qp& qp, uint32_t packets) const {
  const SendState& rq = qp.rq;
  if (rq.model) t_.longWindow.onLoss(qp, packets);
  else reduceWindow(qp, rq.window / 2);
}

// The window is reduced once per interval, however many notifications arrive, because they report the same queue. The
// interval is one round trip, since a reduction affects the queue only after that. If alpha decayed faster, a long
// queue would never reduce a small window.
void Congestion::onNotification(Qp& qp) {
  SendState& rq = qp.rq;
  c_.counters.congestionNotifications++;
  const uint64_t interval = std::max(kCongestionNs, rq.roundTrip);
  uint64_t quiet = rq.congestedAt == 0 ? interval : c_.now - rq.congestedAt;
  if (quiet < interval) return;
  // alpha moves by 1/16 towards 1 now, and back towards 0 for each interval that passed without a notification.
  for (; quiet >= 2 * interval && rq.alpha > 16; quiet -= interval) rq.alpha -= rq.alpha / 16;
  rq.congestedAt = c_.now;
  rq.alpha += (SendState::kAlphaOne - rq.alpha) / 16;
  reduceWindow(qp, rq.window - uint32_t(uint64_t(rq.window) * rq.alpha / (2 * SendState::kAlphaOne)));
}

void Congestion::onMarked(Qp& qp) {
  c_.counters.congestionMarked++;
  if (qp.cnpSentAt != 0 && c_.now - qp.cnpSentAt < kCongestionNs) return;
  qp.cnpSentAt = c_.now;
  qp.set(kCnpPending);
  s_.schedule(qp);
}

// RFC 6298 §2, in nanoseconds.
void Congestion::sampleRoundTrip(SendState& rq) const {
  if (rq.timing && wire::psnDiff(rq.una, rq.timedPsn) > 0) takeSample(rq);
}

void Congestion::takeSample(SendState& rq) const {
  rq.timing = false;
  const uint64_t sample = c_.now - rq.timedAt;
  t_.longWindow.sample(rq, sample);
  if (rq.roundTrip == 0) {
    rq.roundTrip = sample + 1;
    rq.variation = sample / 2;
    return;
  }
  const uint64_t difference = sample > rq.roundTrip ? sample - rq.roundTrip : rq.roundTrip - sample;
  rq.variation += difference / 4 - rq.variation / 4;
  rq.roundTrip += sample / 8 - rq.roundTrip / 8;
}

bool Congestion::takesBesideKept(const Qp& qp, uint32_t packets) const {
  return t_.longWindow.takesBesideKept(qp, packets);
}

}  // namespace nd
