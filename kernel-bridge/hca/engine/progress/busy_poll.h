// The polling thread: whether it is waiting, and when it yields. Engine::progress() is its poll. Requires the engine's
// lock unless stated otherwise.
#pragma once
#include <atomic>
#include <cstdint>

#include "progress/spin_and_sleep_times.h"

namespace nd {

class BusyPoll {
 public:
  // Whether the polling thread also polled a moment ago without result: it then does nothing else.
  bool waits(uint64_t now) const {
    return waitingSince_ < now && now < lastPoll_.load(std::memory_order_relaxed) + progress::kBusyGapNs;
  }
  // Whether it has done nothing else for a while. Not true for a thread that polls once more before it sleeps.
  bool waitsOn(uint64_t now) const {
    const uint64_t last = lastPoll_.load(std::memory_order_relaxed);
    return waitingSince_ + progress::kBusyGapNs < last && now < last + progress::kBusyGapNs;
  }
  // After a poll from `began` to `now`: whether the thread should yield, having found nothing for a while.
  bool shouldYield(bool moved, uint64_t began, uint64_t now) {
    if (moved || began > lastPoll_.load(std::memory_order_relaxed) + progress::kOtherWorkNs) waitingSince_ = now;
    lastPoll_.store(now, std::memory_order_relaxed);
    return now >= waitingSince_ + progress::kYieldAfterNs;
  }
  void foundWork(uint64_t now) { waitingSince_ = now; }
  // The thread returns from yielding, without the lock: time used by others does not count as other work of this
  // thread.
  void cameBack(uint64_t now) { lastPoll_.store(now, std::memory_order_relaxed); }

 private:
  uint64_t waitingSince_ = 0;          // start of the polls without result
  std::atomic<uint64_t> lastPoll_{0};  // when the last poll ended
};

}  // namespace nd
