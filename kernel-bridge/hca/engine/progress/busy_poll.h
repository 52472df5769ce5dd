// Decides whether a polling thread is waiting, and when it yields. The thread polls by Engine::progress(). Requires the
// engine's lock unless stated otherwise.
#pragma once
#include <atomic>
#include <cstdint>

#include "progress/spin_and_sleep_times.h"

namespace nd {

class BusyPoll {
 public:
  // Returns whether the polling thread also polled a moment ago without result, and so does nothing else.
  bool waits(uint64_t now) const {
    return waitingSince_ < now && now < lastPoll_.load(std::memory_order_relaxed) + progress::kBusyGapNs;
  }
  // Returns whether it has done nothing else for a while. This excludes a thread that polls once more before it sleeps.
  bool waitsOn(uint64_t now) const {
    const uint64_t last = lastPoll_.load(std::memory_order_relaxed);
    return waitingSince_ + progress::kBusyGapNs < last && now < last + progress::kBusyGapNs;
  }
  // Called after a poll from `began` to `now`. Returns whether the thread should yield because it has found nothing for
  // a while.
  bool shouldYield(bool moved, uint64_t began, uint64_t now) {
    if (moved || began > lastPoll_.load(std::memory_order_relaxed) + progress::kOtherWorkNs) waitingSince_ = now;
    lastPoll_.store(now, std::memory_order_relaxed);
    return now >= waitingSince_ + progress::kYieldAfterNs;
  }
  void foundWork(uint64_t now) { waitingSince_ = now; }
  // Called without the lock when the thread returns from yielding. Time used by other threads does not count as other
  // work of this thread.
  void cameBack(uint64_t now) { lastPoll_.store(now, std::memory_order_relaxed); }

 private:
  uint64_t waitingSince_ = 0;          // start of the polls without result
  std::atomic<uint64_t> lastPoll_{0};  // when the last poll ended
};

}  // namespace nd
