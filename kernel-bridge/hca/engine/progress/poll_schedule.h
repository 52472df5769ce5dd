// Decides which descriptors a poll checks, and when. A poll first checks the socket that last delivered packets, and
// then all descriptors with one system call. While the local link is in use, it skips both for a few microseconds after
// an empty poll. Requires the engine's lock.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "progress/spin_and_sleep_times.h"

namespace nd {

// The scope of the next poll.
enum class PollScope : uint8_t {
  kBusiest,  // the sockets, however busy the local link is; the busiest of them first
  kAll,      // all descriptors
  kLater,    // only the local link, for some microseconds
};

class PollSchedule {
 public:
  void next(PollScope scope, uint64_t now) {
    due_ = scope == PollScope::kLater ? now + progress::kLongestGapNs : 0;
    all_ |= scope == PollScope::kAll;
  }
  bool due(uint64_t now) const { return now >= due_; }

  // ── The calls of a poll: beginsWithBusiest(); if it returns true, a poll of the busiest socket; allDue() with its
  // result; ends().
  bool beginsWithBusiest() { return !std::exchange(all_, false) && !crowded_; }
  bool allDue(uint32_t found) {
    if (found != 0 && ++pollsOfOne_ < progress::kPollsOfOne) return false;
    pollsOfOne_ = 0;
    return true;
  }
  // A thread that is busy on the local link, or waits there for a reply, polls the sockets less often as long as they
  // are empty.
  void ends(uint32_t found, uint64_t now) {
    gap_ = found != 0 ? 0 : std::min(2 * gap_ + progress::kFirstGapNs, progress::kLongestGapNs);
    due_ = now + gap_;
  }
  // Called when all descriptors were polled and this many sockets were readable. Several are served round-robin.
  void sawSockets(uint32_t count) { crowded_ = count > 1; }

  // ── Further polls of the busiest socket after an empty poll; more of them while only that socket delivers.
  uint32_t repeats() const { return repeats_; }
  void delivered() { repeats_ = std::min(2 * repeats_ + 1, progress::kMostRepeats); }
  void cameElsewhere() { repeats_ = 0; }

 private:
  uint64_t due_ = 0, gap_ = 0;  // of the next poll of the sockets, while the local link is up
  uint32_t pollsOfOne_ = 0, repeats_ = 0;
  bool all_ = false;      // the next poll is of all descriptors
  bool crowded_ = false;  // several sockets are readable, so every poll is of all descriptors
};

}  // namespace nd
