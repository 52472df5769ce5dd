// The windows of connections whose peers take long ones: path_model.h says by which rules, and where they come from.
#include <cmath>

#include "transport/congestion.h"
#include "transport/transport.h"

namespace nd {

namespace {

// On nearer paths the window that every peer takes is enough, and more would only wait in the receiver's socket.
constexpr uint64_t kNearNs = 250'000;
// The window is so many times what fills the path, at most: while it is looked for, and later.
constexpr uint32_t kStartGain = 4, kGain = 2;
// And so many packets more: connections that share a path come to equal parts by them, for whoever has less gains more.
constexpr uint32_t kEqualPart = 32;
constexpr uint32_t kBandwidthRounds = 3;
// The bandwidth has to grow by a quarter in three rounds.
constexpr uint32_t kStagnantRounds = 3;
// Nor may the round trip become longer by an eighth, within these limits (HyStart++, RFC 9406 §4.2).
constexpr uint64_t kLeastDelayNs = 4'000'000, kMostDelayNs = 16'000'000;
constexpr uint64_t kLeastAgeNs = 5'000'000'000;
// A loss of up to one in so many says nothing about queues.
constexpr uint32_t kFewLost = 50;
// RFC 9438 §4.1, §4.6.
constexpr double kCubic = 0.4, kDecrease = 0.7, kFriendlyIncrease = 3 * (1 - kDecrease) / (1 + kDecrease);
// Packets leave a quarter faster than one window in a round trip; and what is late by no more than this leaves at once.
constexpr uint64_t kSlackNs = 1'000'000;

double seconds(uint64_t ns) { return double(ns) * 1e-9; }

bool hasQueue(const SendState& rq, uint64_t ns) { return rq.lastRoundTrip > rq.leastRoundTrip + ns; }

// The queue that the start has made is drained in the next round, which also shows the least round trip behind others' queues.
void endStart(PathModel& m) {
  m.started = true;
  m.leastAt = 0;
}

}  // namespace

uint32_t Congestion::limitOf(const Qp& qp) const {
  const uint32_t least = c_.options.window;
  if (!(qp.attributes.extensions & extensions::kLongWindow) || qp.local || !qp.reliable()) return least;
  return std::max(least, std::min(uint32_t(c_.options.longWindowBytes >> qp.mtuShift), kMostWindow));
}

void Congestion::onFull(Qp& qp) const {
  SendState& rq = qp.rq;
  if (!(qp.attributes.extensions & extensions::kLongWindow) || qp.peerLocal || rq.leastRoundTrip < kNearNs) return;
  if (!rq.model) {
    if (limitOf(qp) <= c_.options.window) return;
    rq.model = std::make_unique<PathModel>();
    rq.model->leastAt = c_.now;
  }
  PathModel& m = *rq.model;
  m.limited = true;
  if (m.roundStart == 0) beginRound(rq);
  qp.set(kNarrowed);
}

void Congestion::beginRound(SendState& rq) const {
  PathModel& m = *rq.model;
  m.roundEnd = rq.maxPsn;
  m.roundStart = c_.now;
  m.delivered = m.lost = 0;
  m.limited = false;
}

void Congestion::growLong(Qp& qp, uint32_t acknowledged) const {
  SendState& rq = qp.rq;
  PathModel& m = *rq.model;
  m.delivered += acknowledged;
  if (!m.started && hasQueue(rq, std::max(std::min(rq.leastRoundTrip / 8, kMostDelayNs), kLeastDelayNs))) endStart(m);
  if (m.draining == 0 && (m.limited || rq.window < c_.options.window)) {
    if (!m.started) rq.window += acknowledged;
    else growByCurve(rq, acknowledged);
  }
  if (m.roundStart != 0 && wire::psnDiff(rq.una, m.roundEnd) >= 0) endRound(qp);
  if (m.draining != 0) return;
  const uint64_t most = m.filling(rq.leastRoundTrip) * (m.started ? kGain : kStartGain) + kEqualPart;
  const uint32_t limit = limitOf(qp);
  rq.window = std::min(rq.window, uint32_t(std::min<uint64_t>(limit, std::max<uint64_t>(most, c_.options.window))));
}

void Congestion::growByCurve(SendState& rq, uint32_t acknowledged) const {
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
  m.friendly += kFriendlyIncrease * acknowledged / window;
  const double target = std::min(std::max(m.origin + kCubic * t * t * t, m.friendly), 1.5 * window);
  if (target <= window) return;
  m.fraction += (target - window) * acknowledged / window;
  const uint32_t whole = uint32_t(m.fraction);
  m.fraction -= whole;
  rq.window += whole;
}

void Congestion::endRound(Qp& qp) const {
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
  if (!m.started && m.limited) {
    if (rate >= m.reached + m.reached / 4) {
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
  m.roundStart = 0;  // what comes now says nothing about the path
  qp.clear(kNarrowed);
}

// Whether what was lost in this round shows a queue that is full.
void Congestion::weighLosses(SendState& rq) const {
  PathModel& m = *rq.model;
  const bool many = uint64_t(m.lost) * kFewLost > m.delivered + m.lost;
  if (!many && !hasQueue(rq, rq.leastRoundTrip / 4 + kSlackNs / 2)) return;
  const uint32_t reduced = std::max(uint32_t(rq.window * kDecrease), kSmallestWindow);
  // RFC 9438 §4.7: whoever has less than before leaves more to the others.
  m.origin = rq.window < m.origin ? rq.window * (1 + kDecrease) / 2 : rq.window;
  rq.window = many ? reduced : std::max(reduced, std::min(rq.window, uint32_t(m.filling(rq.leastRoundTrip))));
  m.started = true;
  m.curveStart = 0;
}

// A path that is always full shows no longer how near its end is. Now and then a quarter of it is sent, for two rounds.
void Congestion::drain(SendState& rq) const {
  PathModel& m = *rq.model;
  if (m.draining == 0) {
    if (!m.started || rq.window <= c_.options.window || c_.now - m.leastAt < kLeastAgeNs) return;
    m.draining = 2;
    m.windowBefore = rq.window;
    m.leastDrained = UINT64_MAX;
    rq.window = std::max(uint32_t(m.filling(rq.leastRoundTrip) / 4), kSmallestWindow);
    return;
  }
  if (--m.draining != 0) return;
  rq.window = m.windowBefore;
  if (m.leastDrained != UINT64_MAX) rq.leastRoundTrip = m.leastDrained;
  m.leastAt = c_.now;
}

void Congestion::sampleLeast(SendState& rq, uint64_t sample) const {
  rq.lastRoundTrip = sample;
  if (rq.leastRoundTrip == 0 || sample <= rq.leastRoundTrip) {
    rq.leastRoundTrip = std::max<uint64_t>(sample, 1);
    if (rq.model) rq.model->leastAt = c_.now;
  }
  if (rq.model && rq.model->draining != 0) rq.model->leastDrained = std::min(rq.model->leastDrained, sample);
}

// A window was reduced by other rules than these: by a time-out or by notifications.
void Congestion::restartCurve(SendState& rq, uint32_t before) const {
  PathModel& m = *rq.model;
  m.origin = before;
  m.curveStart = 0;
  m.draining = 0;
  m.started = rq.window > kSmallestWindow;  // after a time-out the path is looked for again
  m.reached = 0;
  m.stagnant = 0;
}

bool Congestion::mayLeave(Qp& qp) const {
  PathModel& m = *qp.rq.model;
  const uint64_t slack = std::min(kSlackNs, qp.rq.leastRoundTrip / 4);
  if (m.due <= c_.now + slack) return true;
  if (!m.waits) {
    m.waits = true;
    s_.setTimer(qp, m.due);
  }
  return false;
}

void Congestion::left(SendState& rq, uint32_t span) const {
  PathModel& m = *rq.model;
  const uint64_t interval = rq.roundTrip * 4 * span / (5 * uint64_t(rq.window));
  m.due = std::max(m.due, c_.now) + interval;
}

}  // namespace nd
