// Advises a program that waits for completions between iterations of its event loop whether to poll once more or to
// request a notification (IND2CompletionQueue.shouldPoll). If polling has recently paid off, it is advised for as long
// as a sleep and its wake-up would take.
#pragma once
#include "progress/spin_and_sleep_times.h"
#include "progress/spin_payoff.h"

namespace nd {

// The hint of one completion queue.
class PollHint {
 public:
  // Must be called before a poll, at `now`. `taken`: number of completions that the program has taken so far. Returns
  // false if the next poll is the last one of this wait; the next call then begins another wait.
  bool shouldPoll(uint32_t taken, uint64_t now) {
    if (spins_ && taken == taken_) {
      if (last_ < end_) {
        again_ = true;
        gap_ = now - last_;
        last_ = now;
        return true;
      }
      spin_.failed();
      spins_ = false;
      return false;
    }
    // The result of the first poll of a wait does not count, because it was there before.
    if (spins_ && again_) spin_.found(gap_);
    spins_ = spin_.pays();
    again_ = false;
    taken_ = taken;
    last_ = now;
    end_ = now + progress::kLoopSpinNs;
    return spins_;
  }

 private:
  SpinPayoff spin_;
  bool spins_ = false;  // the program polls in the present wait
  bool again_ = false;  // and it has polled more than once
  uint32_t taken_ = 0;  // completions taken when the wait began
  uint64_t end_ = 0;
  uint64_t last_ = 0;  // the previous poll
  uint64_t gap_ = 0;   // between the last two
};

}  // namespace nd
