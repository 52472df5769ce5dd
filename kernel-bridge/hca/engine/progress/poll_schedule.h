// Which descriptors a poll looks at, and when: first the socket that packets came by last, then all of them by one
// system call; while the local link is up, none for some microseconds after a poll that found nothing. With the
// engine's lock held.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "progress/spin_and_sleep_times.h"

namespace nd {

// What the next poll is to look at.
enum class Look : uint8_t {
  kBusiest,  // at the sockets, however busy the local link is; the busiest of them first
  kAll,      // at all descriptors
  kLater,    // at the local link alone, for some microseconds
};

class PollSchedule {
 public:
  void next(Look look, uint64_t now) {
    due_ = look == Look::kLater ? now + progress::kLongestGapNs : 0;
    all_ |= look == Look::kAll;
  }
  bool due(uint64_t now) const { return now >= due_; }

  // ── A poll: begins(); if true, one of the busiest socket; then allDue() with what that found; ends().
  bool beginsWithBusiest() { return !std::exchange(all_, false) && !crowded_; }
  bool allDue(uint32_t found) {
    if (found != 0 && ++pollsOfOne_ < progress::kPollsOfOne) return false;
    pollsOfOne_ = 0;
    return true;
  }
  // A thread that is busy on the local link, or waits there for an answer, polls the sockets less often as long as
  // these have nothing.
  void ends(uint32_t found, uint64_t now) {
    gap_ = found != 0 ? 0 : std::min(2 * gap_ + progress::kFirstGapNs, progress::kLongestGapNs);
    due_ = now + gap_;
  }
  // All descriptors were polled, and so many sockets had something: of several, each gets its turn.
  void sawSockets(uint32_t count) { crowded_ = count > 1; }

  // ── Further polls of the busiest socket after an empty poll; more of them while that socket alone delivers.
  uint32_t repeats() const { return repeats_; }
  void delivered() { repeats_ = std::min(2 * repeats_ + 1, progress::kMostRepeats); }
  void cameElsewhere() { repeats_ = 0; }

 private:
  uint64_t due_ = 0, gap_ = 0;  // of the next poll of the sockets, while the local link is up
  uint32_t pollsOfOne_ = 0, repeats_ = 0;
  bool all_ = false;      // the next poll is of all
  bool crowded_ = false;  // so are all polls while several sockets have something
};

}  // namespace nd
