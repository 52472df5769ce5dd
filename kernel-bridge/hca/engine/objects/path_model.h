// PathModel estimates the bandwidth and round-trip time of a connection's path, and controls the growth of its
// congestion window towards peers that accept long windows (extensions::kLongWindow). It is created when the window is
// first full, so most connections never need it.
//
// The window grows as in CUBIC (RFC 9438), including its TCP-friendly region. Its limit of twice the bandwidth-delay
// product, which keeps queues short, the end of the startup phase and the probe for the minimum round-trip time follow
// BBR's model (draft-ietf-ccwg-bbr). A loss counts only if there is a queue or many packets are lost; losing one packet
// in a hundred on an empty path does not count.
#pragma once
#include <cstdint>

namespace nd {

struct PathModel {
  // The current round ends when the packets sent last have been acknowledged.
  uint32_t roundEnd = 0;
  uint64_t roundStart = 0;           // 0: no round is running
  uint32_t delivered = 0, lost = 0;  // PSNs in this round
  bool limited = false;              // whether the window was full in this round
  // The largest bandwidth of the current few rounds, and of the few before, in PSNs per 2^32 ns.
  uint64_t bandwidth = 0, bandwidthBefore = 0;
  uint32_t rounds = 0;
  // Startup ends when the bandwidth has not grown for some rounds.
  bool started = false;
  uint64_t reached = 0;
  uint32_t stagnant = 0;
  // Minimum round-trip time. When it is old, it is measured again with the path drained.
  uint64_t leastAt = 0, leastDrained = 0;
  uint32_t draining = 0, windowBefore = 0;  // rounds left
  // CUBIC: the window before the last loss, the start of its curve, and the TCP-friendly window.
  double origin = 0, friendly = 0, plateauSeconds = 0, fraction = 0;
  uint64_t curveStart = 0;  // 0: starts with the next acknowledgement
  // Pacing: when the next packet is due.
  uint64_t due = 0;
  bool waits = false;  // whether a timer is set for that
  bool woken = false;  // woken by that timer, perhaps late

  uint64_t largestBandwidth() const { return bandwidth > bandwidthBefore ? bandwidth : bandwidthBefore; }
  // Returns the number of PSNs that fill the path without a queue.
  uint64_t filling(uint64_t leastRoundTrip) const { return (largestBandwidth() * leastRoundTrip) >> 32; }
};

}  // namespace nd
