// Adaptive spinning: whether a thread polls for a moment before it sleeps. A sleep and its wake-up cost as much as that
// moment, so spinning pays if the next event mostly comes at once. After failures it is tried ever less often.
#pragma once
#include <algorithm>

#include "progress/spin_and_sleep_times.h"

namespace nd {

class SpinPayoff {
 public:
  // Before a sleep: whether to spin. If so, found() or failed() follows.
  bool pays() {
    if (skips_ == 0) return true;
    skips_--;
    return false;
  }
  // The event was there, `ns` after the poll before. If another thread had the CPU meanwhile, spinning has not brought
  // it: the CPU is wanted, and a sleep would have released it at once.
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
