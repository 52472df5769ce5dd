// Whether a thread looks on for a moment before it sleeps: a sleep and its end cost as much as the moment, so that it is
// worth it where what comes next mostly comes at once, and is tried ever less often where it does not.
#pragma once
#include <algorithm>
#include <cstdint>

namespace nd {

class Expectation {
 public:
  static constexpr uint32_t kMostPasses = 64;

  // Before a sleep: whether to look on. Then one of the others follows.
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
  uint32_t passes_ = 0;  // sleeps without
  uint32_t next_ = 1;    // after the next time in vain
};

}  // namespace nd
