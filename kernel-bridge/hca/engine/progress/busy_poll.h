// The thread that polls: whether it waits, and when it lets others run. Engine::progress() is its poll. The engine's
// lock is held, but for where that is said.
#pragma once
#include <atomic>
#include <cstdint>

#include "progress/spin_and_sleep_times.h"

namespace nd {

class BusyPoll {
 public:
  // Whether the thread that polls now did so a moment ago, without result: then it does nothing else.
  bool waits(uint64_t now) const {
    return waitingSince_ < now && now < lastPoll_.load(std::memory_order_relaxed) + progress::kBusyGapNs;
  }
  // Whether it has done nothing else for a while. Not so a thread that polls once more before it sleeps.
  bool waitsOn(uint64_t now) const {
    const uint64_t last = lastPoll_.load(std::memory_order_relaxed);
    return waitingSince_ + progress::kBusyGapNs < last && now < last + progress::kBusyGapNs;
  }
  // After a poll from `began` to `now`: whether the thread should let others run, having found nothing for a while.
  bool shouldYield(bool moved, uint64_t began, uint64_t now) {
    if (moved || began > lastPoll_.load(std::memory_order_relaxed) + progress::kOtherWorkNs) waitingSince_ = now;
    lastPoll_.store(now, std::memory_order_relaxed);
    return now >= waitingSince_ + progress::kYieldAfterNs;
  }
  void foundWork(uint64_t now) { waitingSince_ = now; }
  // The thread comes back from yielding, without the lock: others' time is no other work of this thread.
  void cameBack(uint64_t now) { lastPoll_.store(now, std::memory_order_relaxed); }

 private:
  uint64_t waitingSince_ = 0;          // polls have found nothing since
  std::atomic<uint64_t> lastPoll_{0};  // when the last one ended
};

}  // namespace nd
