// Adaptive spinning: whether a thread polls for a moment before it sleeps. A sleep and its wake-up cost as much as that
// moment, so spinning pays if the next event usually comes at once. After failures it is tried less and less often.
#pragma once
#include <algorithm>

#include "progress/spin_and_sleep_times.h"

namespace nd {

class SpinPayoff {
 public:
  // Call before a sleep: whether to spin. If so, found() or failed() follows.
  bool pays() {
    if (skips_ == 0) return true;
    skips_--;
    return false;
  }
  // The event came `ns` after the previous poll. If another thread had the CPU meanwhile, spinning does not get the
  // credit: the CPU was needed, and a sleep would have released it at once.
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
