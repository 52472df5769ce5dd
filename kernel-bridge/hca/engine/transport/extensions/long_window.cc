#include "transport/extensions/long_window.h"

#include <cmath>

#include "transport/transport.h"

namespace nd {

namespace {

// On shorter paths the window that every peer accepts is sufficient. More packets would only wait in the receiver's
// socket.
constexpr uint64_t kNearNs = 250'000;
// Maximum ratio of the window to the bandwidth-delay product: during startup, and afterwards.
constexpr uint32_t kStartGain = 4, kGain = 2;
// Number of packets in addition to that. They equalize connections on one path, because a smaller share gains more from
// them.
constexpr uint32_t kEqualPart = 32;
constexpr uint32_t kBandwidthRounds = 3;
// During startup the bandwidth must grow by a quarter in three rounds.
constexpr uint32_t kStagnantRounds = 3;
// Nor may the round-trip time increase by an eighth, within these limits (HyStart++, RFC 9406 §4.2).
constexpr uint64_t kLeastDelayNs = 4'000'000, kMostDelayNs = 16'000'000;
constexpr uint64_t kLeastAgeNs = 5'000'000'000;
// A loss of up to one in this many does not indicate a queue.
constexpr uint32_t kFewLost = 50;
constexpr uint32_t kFewPackets = 8;  // nor do this few
// RFC 9438 §4.1, §4.6.
constexpr double kCubic = 0.4, kDecrease = 0.7, kFriendlyIncrease = 3 * (1 - kDecrease) / (1 + kDecrease);
// TCP fills the interface's MTU of 9000 or 1500 bytes; standard packets have 4096 or 1024. If every packet is equally
// likely to be lost, throughput is proportional to the packet size times the root of the increase (RFC 5348 §3.1). The
// increase is therefore the square of the ratio of the sizes. Longer, agreed packets keep that increase. Otherwise a
// rate reduced by CNPs would take twice the time to recover, and a CUBIC flow on the same path would get more than its
// share.
constexpr uint32_t kJumbo = 4096;
constexpr double kJumboShare = 4.8, kShare = 2;
// Packets are sent a quarter faster than one window per round trip. Those that are late by no more than this are sent
// immediately.
constexpr uint64_t kSlackNs = 1'000'000;
// A thread that is woken late sends what became due meanwhile, but at most this much in one go.
constexpr uint64_t kCatchUpNs = 2'000'000;

double shareOf(const Qp& qp) { return qp.mtu >= kJumbo ? kJumboShare : kShare; }

double seconds(uint64_t ns) { return double(ns) * 1e-9; }

// There is a queue that has lasted and still exists.
bool hasQueue(const SendState& rq, uint64_t ns) {
  return std::min(rq.lastRoundTrip, rq.roundTrip) > rq.leastRoundTrip + ns;
}

// The queue built up during startup is drained in the next round, which also shows the minimum round-trip time despite
// other flows' queues.
void endStart(PathModel& m) {
  m.started = true;
  m.leastAt = 0;
}

}  // namespace

uint32_t LongWindow::limitOf(const Qp& qp) const {
  const uint32_t least = c_.options.window;
  if (!(qp.attributes.extensions & extensions::kLongWindow) || qp.local || !qp.reliable()) return least;
  return std::max(least, std::min(uint32_t(c_.options.longWindowBytes / qp.mtu), kMostWindow));
}

void LongWindow::onFull(Qp& qp) const {
  SendState& rq = qp.rq;
  if (!(qp.attributes.extensions & extensions::kLongWindow) || qp.peerLocal || rq.leastRoundTrip < kNearNs) return;
  if (!rq.model) {
    if (limitOf(qp) <= c_.options.window) return;
    rq.model = std::make_unique<PathModel>();
    rq.model->leastAt = c_.now;
  }
  PathModel& m = *rq.model;
  m.limited = true;
  m.woken = false;
  if (m.roundStart == 0) beginRound(rq);
  qp.set(kNarrowed);
}

// Records a loss, which is evaluated at the end of the round.
void LongWindow::onLoss(Qp& qp, uint32_t packets) const {
  SendState& rq = qp.rq;
  if (rq.model->roundStart == 0) beginRound(rq);
  qp.set(kNarrowed);
  rq.model->lost += packets;
}

bool LongWindow::takesBesideKept(const Qp& qp, uint32_t packets) const {
  const uint32_t kept =
      (qp.has(kRecovering) ? qp.rq.board->kept : 0) + (qp.has(kResponseGap) ? qp.rq.responses->kept.count() : 0);
  return packets - std::min(kept, packets) <= qp.rq.window && packets <= limitOf(qp);
}

void LongWindow::beginRound(SendState& rq) const {
  PathModel& m = *rq.model;
  m.roundEnd = rq.maxPsn;
  m.roundStart = c_.now;
  m.delivered = m.lost = 0;
  m.limited = false;
}

void LongWindow::grow(Qp& qp, uint32_t acknowledged) const {
  SendState& rq = qp.rq;
  PathModel& m = *rq.model;
  m.delivered += acknowledged;
  // One late response may come from a busy host, so startup continues when the delay is gone.
  if (m.stagnant != kStagnantRounds)
    m.started =
        rq.lastRoundTrip > rq.leastRoundTrip + std::max(std::min(rq.leastRoundTrip / 8, kMostDelayNs), kLeastDelayNs);
  if (m.draining == 0 && (m.limited || rq.window < c_.options.window)) {
    if (!m.started) rq.window += acknowledged;
    else growByCurve(rq, acknowledged, shareOf(qp));
  }
  uint32_t come = rq.una;
  if (qp.has(kRecovering) && wire::psnDiff(rq.board->highest, come) > 0) come = rq.board->highest;
  if (qp.has(kResponseGap) && wire::psnDiff(rq.responses->highest, come) > 0) come = rq.responses->highest;
  if (m.roundStart != 0 && wire::psnDiff(come, m.roundEnd) >= 0) endRound(qp);
  if (m.draining != 0) return;
  const uint64_t most = m.filling(rq.leastRoundTrip) * (m.started ? kGain : kStartGain) + kEqualPart;
  const uint32_t limit = limitOf(qp);
  rq.window = std::min(rq.window, uint32_t(std::min<uint64_t>(limit, std::max<uint64_t>(most, c_.options.window))));
}

void LongWindow::growByCurve(SendState& rq, uint32_t acknowledged, double share) const {
  PathModel& m = *rq.model;
  const double window = rq.window;
  if (m.curveStart == 0) {
    m.curveStart = c_.now;
    m.friendly = window;
    m.fraction = 0;
    m.plateauSeconds = window < m.origin ? std::cbrt((m.origin - window) / kCubic) : 0;
    if (window >= m.origin) m.origin = window;
  }
  const double t = seconds(c_.now - m.curveStart + rq.roundTrip) - m.plateauSeconds;
  m.friendly += share * kFriendlyIncrease * acknowledged / window;
  const double target = std::min(std::max(m.origin + kCubic * t * t * t, m.friendly), 1.5 * window);
  if (target <= window) return;
  m.fraction += (target - window) * acknowledged / window;
  const uint32_t whole = uint32_t(m.fraction);
  m.fraction -= whole;
  rq.window += whole;
}

void LongWindow::endRound(Qp& qp) const {
  SendState& rq = qp.rq;
  PathModel& m = *rq.model;
  const uint64_t took = std::max<uint64_t>(c_.now - m.roundStart, 1), rate = (uint64_t(m.delivered) << 32) / took;
  if (m.limited || rate > m.largestBandwidth()) {
    if (++m.rounds % kBandwidthRounds == 0) {
      m.bandwidthBefore = m.bandwidth;
      m.bandwidth = 0;
    }
    m.bandwidth = std::max(m.bandwidth, rate);
  }
  if (m.limited && m.stagnant != kStagnantRounds) {
    if (!m.started && rate >= m.reached + m.reached / 4) {
      m.reached = rate;
      m.stagnant = 0;
    } else if (++m.stagnant == kStagnantRounds) {
      endStart(m);
    }
  }
  if (m.lost != 0) weighLosses(rq);
  drain(rq);
  const bool limited = m.limited;
  beginRound(rq);
  if (limited || rq.window < c_.options.window || m.draining != 0) return;
  m.roundStart = 0;  // later responses say nothing about the path
  qp.clear(kNarrowed);
}

// Returns whether the losses of this round indicate a full queue.
void LongWindow::weighLosses(SendState& rq) const {
  PathModel& m = *rq.model;
  const bool many = m.lost > kFewPackets && uint64_t(m.lost) * kFewLost > m.delivered + m.lost;
  if (!many && !hasQueue(rq, rq.leastRoundTrip / 4 + kSlackNs / 2)) return;
  const uint32_t reduced = std::max(uint32_t(rq.window * kDecrease), Congestion::kSmallestWindow);
  // A flow with a smaller window than before leaves more to the others (RFC 9438 §4.7).
  m.origin = rq.window < m.origin ? rq.window * (1 + kDecrease) / 2 : rq.window;
  rq.window = many ? reduced : std::max(reduced, std::min(rq.window, uint32_t(m.filling(rq.leastRoundTrip) * 5 / 4)));
  m.started = true;
  m.stagnant = kStagnantRounds;
  m.curveStart = 0;
}

// A path that is always full no longer shows its minimum round-trip time. From time to time, therefore, only a quarter
// is sent for two rounds.
void LongWindow::drain(SendState& rq) const {
  PathModel& m = *rq.model;
  if (m.draining == 0) {
    if (!m.started || rq.window <= c_.options.window || c_.now - m.leastAt < kLeastAgeNs) return;
    m.draining = 2;
    m.windowBefore = rq.window;
    m.leastDrained = UINT64_MAX;
    rq.window = std::max(uint32_t(m.filling(rq.leastRoundTrip) / 4), Congestion::kSmallestWindow);
    return;
  }
  if (--m.draining != 0) return;
  rq.window = m.windowBefore;
  if (m.leastDrained != UINT64_MAX) rq.leastRoundTrip = m.leastDrained;
  m.leastAt = c_.now;
}

void LongWindow::sample(SendState& rq, uint64_t sample) const {
  rq.lastRoundTrip = sample;
  if (rq.leastRoundTrip == 0 || sample <= rq.leastRoundTrip) {
    rq.leastRoundTrip = std::max<uint64_t>(sample, 1);
    if (rq.model) rq.model->leastAt = c_.now;
  }
  if (rq.model && rq.model->draining != 0) rq.model->leastDrained = std::min(rq.model->leastDrained, sample);
}

// Called when other rules have reduced the window, after a timeout or notifications.
void LongWindow::restartCurve(SendState& rq, uint32_t before) const {
  PathModel& m = *rq.model;
  m.origin = before;
  m.curveStart = 0;
  m.draining = 0;
  m.started = rq.window > Congestion::kSmallestWindow;  // after a timeout the path is probed anew
  m.reached = 0;
  m.stagnant = m.started ? kStagnantRounds : 0;
}

bool LongWindow::mayLeave(Qp& qp) const {
  PathModel& m = *qp.rq.model;
  const uint64_t slack = std::min(kSlackNs, qp.rq.leastRoundTrip / 4);
  if (m.due <= c_.now + slack) return true;
  m.woken = false;
  if (!m.waits) {
    m.waits = true;
    s_.setTimer(qp, m.due);
  }
  return false;
}

void LongWindow::left(SendState& rq, uint32_t span) const {
  PathModel& m = *rq.model;
  const uint64_t interval = rq.roundTrip * 4 * span / (5 * uint64_t(rq.window));
  m.due = std::max(m.due, m.woken ? c_.now - std::min(c_.now, kCatchUpNs) : c_.now) + interval;
}

}  // namespace nd
