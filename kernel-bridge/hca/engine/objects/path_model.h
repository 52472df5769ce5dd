// PathModel: bandwidth and round trip of a connection's path, and the growth of its congestion window towards peers
// that take long windows (extensions::kLongWindow). It is made when the window is first full; most connections never
// need it.
//
// Sources: growth is CUBIC's (RFC 9438), in its region for TCP's friends as well; the limit on it, the way out of the
// start and the search for the least round trip are those of BBR's model (draft-ietf-ccwg-bbr): twice what bandwidth
// times round trip needs, which keeps queues short. A loss counts where there is a queue, or where many are lost; one
// in a hundred on an empty path does not.
#pragma once
#include <cstdint>

namespace nd {

struct PathModel {
  // A round: from here until what was sent last has been acknowledged.
  uint32_t roundEnd = 0;
  uint64_t roundStart = 0;           // 0: none is running
  uint32_t delivered = 0, lost = 0;  // PSNs in this round
  bool limited = false;              // the window was full in this round
  // The largest bandwidth of the last rounds, in PSNs per 2^32 ns: of the present few and of those before.
  uint64_t bandwidth = 0, bandwidthBefore = 0;
  uint32_t rounds = 0;
  // The start is over when the bandwidth has stopped to grow for some rounds.
  bool started = false;
  uint64_t reached = 0;
  uint32_t stagnant = 0;
  // Least round trip: renewed by draining the path when it is old.
  uint64_t leastAt = 0, leastDrained = 0;
  uint32_t draining = 0, windowBefore = 0;  // rounds left
  // CUBIC: where the window was before the last loss, when its curve began, and the window of a friend of TCP.
  double origin = 0, friendly = 0, plateauSeconds = 0, fraction = 0;
  uint64_t curveStart = 0;  // 0: begins with the next acknowledgement
  // Pacing: when the next packet is due.
  uint64_t due = 0;
  bool waits = false;  // a timer is set for that
  bool woken = false;  // by that timer, perhaps late

  uint64_t largestBandwidth() const { return bandwidth > bandwidthBefore ? bandwidth : bandwidthBefore; }
  // PSNs that fill the path without a queue.
  uint64_t filling(uint64_t leastRoundTrip) const { return (largestBandwidth() * leastRoundTrip) >> 32; }
};

}  // namespace nd
