// Whether a thread polls for a moment before it sleeps. A sleep and its wake-up cost as much as that moment, so polling pays if
// the next event mostly comes at once. After failures it is tried ever less often.
#pragma once
#include <algorithm>
#include <cstdint>

namespace nd {

class Expectation {
 public:
  static constexpr uint32_t kMostPasses = 64;

  // Before a sleep: whether to poll. One of the other functions follows.
  bool worthIt() {
    if (passes_ == 0) return true;
    passes_--;
    return false;
  }
  void met() { next_ = 1; }
  void inVain() {
    passes_ = next_;
    next_ = std::min(2 * next_, kMostPasses);
  }

 private:
  uint32_t passes_ = 0;  // sleeps without polling
  uint32_t next_ = 1;    // after the next failure
};

}  // namespace nd
