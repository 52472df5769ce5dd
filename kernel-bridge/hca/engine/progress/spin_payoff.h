// Adaptive spinning: decides whether a thread polls for a moment before it sleeps. A sleep and its wake-up take as long
// as that moment, so spinning pays off if the next event usually comes within it. After failures, the thread spins less
// and less often.
#pragma once
#include <algorithm>

#include "progress/spin_and_sleep_times.h"

namespace nd {

class SpinPayoff {
 public:
  // Must be called before a sleep. Returns whether to spin; if so, found() or failed() must follow.
  bool pays() {
    if (skips_ == 0) return true;
    skips_--;
    return false;
  }
  // Called when the event came `ns` after the previous poll. If another thread had the CPU meanwhile, the event does
  // not count as a success of spinning, because the CPU was needed and a sleep would have released it immediately.
  void found(uint64_t ns) {
    if (ns > progress::kPreemptionNs) return failed();
    next_ = 1;
  }
  void failed() {
    skips_ = next_;
    next_ = std::min(2 * next_, progress::kMostSkips);
  }

 private:
  uint32_t skips_ = 0;  // sleeps without a spin
  uint32_t next_ = 1;   // after the next failure
};

}  // namespace nd
