// Whether a thread polls for a moment before it sleeps. A sleep and its wake-up cost as much as that moment, so polling pays if
// the next event mostly comes at once. After failures it is tried ever less often.
#pragma once
#include <algorithm>
#include <cstdint>

namespace nd {

class Expectation {
 public:
  static constexpr uint32_t kMostPasses = 64;
  // A longer time between two polls was that of another thread: it takes longer than any step, and less than a turn of another.
  static constexpr uint64_t kInterruptedNs = 200'000;

  // Before a sleep: whether to poll. One of the other functions follows.
  bool worthIt() {
    if (passes_ == 0) return true;
    passes_--;
    return false;
  }
  // The event was there, `ns` after the poll before. If another thread had the processor meanwhile, polling has not brought it: the
  // processor is wanted, and a sleep would have given it away at once.
  void met(uint64_t ns) {
    if (ns > kInterruptedNs) return inVain();
    next_ = 1;
  }
  void inVain() {
    passes_ = next_;
    next_ = std::min(2 * next_, kMostPasses);
  }

 private:
  uint32_t passes_ = 0;  // sleeps without polling
  uint32_t next_ = 1;    // after the next failure
};

}  // namespace nd
